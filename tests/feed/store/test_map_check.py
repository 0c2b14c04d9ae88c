"""The file of a store is checked by hand before it is mapped: what is cut short or rewired is refused with an error."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest
from tests.budget import budget

from antiphon.core.errors import DamagedStore, StoreError
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.map_check import map_fault
from antiphon.testing.spans import SpanWriter

OpenStore = Callable[..., FeedStore]

#: Opens a store, and reads all that it holds. It ends with 0 if all is right, with 3 after an error of Antiphon.
READ = """
import sys
from antiphon.core.errors import AntiphonError
from antiphon.feed.store.feed_store import FeedStore
try:
    with FeedStore.open(sys.argv[1]) as store:
        store.check_structure()
        for record in store.feeds():
            store.verify(record.feed)
except AntiphonError as error:
    print(error)
    sys.exit(3)
"""


def read(folder: Path) -> tuple[int, str]:
    """Read a store in a process of its own, which a damaged file may kill."""
    done = subprocess.run([sys.executable, "-c", READ, str(folder)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def folder(open_store: OpenStore, tmp_path: Path, alice: KeyPair, bob: KeyPair, party: PublicKey) -> Path:
    with open_store() as store:
        for pair in (alice, bob):
            writer = SpanWriter(pair, party)
            for size in (30, 9000, 100, 30_000):
                store.ingest(writer.write(20, size=size))
    return tmp_path / "store"


@pytest.mark.parametrize("kept", [100, 4096, 8192, 20_000, 1 << 17, 1 << 20])
def test_a_store_that_was_cut_short_is_refused(folder: Path, kept: int) -> None:
    """Before, every command ended with SIGBUS and without a word."""
    file = folder / "data.mdb"
    os.truncate(file, kept)

    for readonly in (False, True):
        with pytest.raises(DamagedStore, match=r"store is damaged|data\.mdb: it (is cut short|does not begin)") as told:
            FeedStore.open(folder, readonly=readonly)
        assert told.value.file == str(file)
    assert read(folder)[0] == 3


def test_a_store_without_its_unused_end_is_whole(folder: Path) -> None:
    """Space behind the last page is allocated ahead, and need not be there."""
    file = folder / "data.mdb"
    with lmdb.open(str(folder), max_dbs=8, lock=False, readonly=True) as env:
        used = (env.info()["last_pgno"] + 1) * env.stat()["psize"]
    with file.open("ab") as end:
        end.write(bytes(100_000))
    assert map_fault(file, None) == ""
    os.truncate(file, used)

    assert map_fault(file, None) == ""
    assert read(folder) == (0, "")


def test_zeros_and_foreign_bytes_are_refused(folder: Path) -> None:
    file = folder / "data.mdb"
    size = file.stat().st_size
    for content in (bytes(size), b"#!/bin/sh\n" * 1000, b"x"):
        file.write_bytes(content)
        with pytest.raises(DamagedStore, match="it does not begin as a file of LMDB does"):
            FeedStore.open(folder)


@pytest.mark.parametrize("seed", range(budget(3, 40)))
def test_no_flipped_bit_kills_a_reader(folder: Path, seed: int) -> None:
    """The pages of trees are the dangerous ones; those of values have checksums of their own."""
    file, chance = folder / "data.mdb", random.Random(seed)
    data = file.read_bytes()
    # Flags of branch, leaf and meta pages; overflow pages hold values.
    pages = [at for at in range(0, len(data), 4096) if data[at + 10] & 0xB]
    for _ in range(4):
        at, bit = chance.choice(pages) + chance.randrange(4096), 1 << chance.randrange(8)
        file.write_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
        code, told = read(folder)
        assert code in (0, 3), f"byte {at}, bit {bit}: ended with {code}: {told[-300:]}"


@pytest.mark.parametrize("seed", range(budget(2, 20)))
def test_all_that_lmdb_writes_is_sound(tmp_path: Path, seed: int) -> None:
    """A check that is too strict would close a sound store."""
    chance = random.Random(seed)
    with lmdb.open(str(tmp_path), map_size=1 << 28, max_dbs=2, sync=False) as env:
        tables = [env.open_db(name) for name in (b"a", b"b")]
        keys: list[bytes] = []
        for _ in range(60):
            with env.begin(write=True) as txn:
                for _ in range(chance.randrange(40)):
                    keys.append(chance.randbytes(chance.choice((8, 40, 200))))
                    txn.put(keys[-1], chance.randbytes(chance.choice((0, 9, 500, 3000, 20_000))), db=tables[0])
                    txn.put(keys[-1], b"", db=tables[1])
                for _ in range(chance.randrange(30)):
                    txn.delete(chance.choice(keys), db=chance.choice(tables)) if keys else None
            assert map_fault(tmp_path / "data.mdb", None) == ""
            assert map_fault(tmp_path / "data.mdb") == ""


def test_a_new_store_has_nothing_to_check(tmp_path: Path) -> None:
    assert map_fault(tmp_path / "data.mdb") == ""
    (tmp_path / "data.mdb").touch()
    assert map_fault(tmp_path / "data.mdb") == ""
    FeedStore.open(tmp_path).close()
    with pytest.raises(StoreError, match="let its writer open it first"):
        FeedStore.open(tmp_path / "none", readonly=True)
