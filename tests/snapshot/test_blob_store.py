"""Blobs on disk: kept on return, verified on every read, collected, and shared with processes that only read."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tests.snapshot.helpers import damage

from antiphon.core.cid import Cid
from antiphon.core.errors import DamagedBlob, MissingBlob, StoreClosed, StoreError, StoreLocked
from antiphon.snapshot import blob_store
from antiphon.snapshot.blob_store import BlobStore

SMALL_MAP = 1 << 20
WRITER = """
import sys
from antiphon.snapshot.blob_store import BlobStore
store = BlobStore.open(sys.argv[1])
for number in range(1_000_000):
    cid = store.put(b"%d " % number * 50)
    print(cid, flush=True)
"""


def test_a_store_that_is_opened_again_has_everything(tmp_path: Path) -> None:
    with BlobStore.open(tmp_path / "deep" / "blobs") as store:
        cids = [store.put(b"%d" % number) for number in range(50)]

    with BlobStore.open(tmp_path / "deep" / "blobs") as store:
        assert [store.get(cid) for cid in cids] == [b"%d" % number for number in range(50)]
        assert (store.count, store.size) == (50, 90)
        assert list(store) == sorted(cids)


def test_nobody_else_may_read_the_files(tmp_path: Path) -> None:
    with BlobStore.open(tmp_path / "blobs"):
        modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "blobs").iterdir()}
        assert modes == {0o600}
        assert stat.S_IMODE((tmp_path / "blobs").stat().st_mode) == 0o700


def test_a_damaged_blob_is_never_served_and_can_be_put_again(tmp_path: Path) -> None:
    data = random.Random(1).randbytes(3000)
    with BlobStore.open(tmp_path) as store:
        cid, other = store.put(data), store.put(b"other")
    damage(tmp_path, data)

    with BlobStore.open(tmp_path) as store:
        assert store.has(cid)  # nobody has looked yet
        with pytest.raises(DamagedBlob, match=f"{cid}.*fetch it") as caught:
            store.get(cid)
        assert caught.value.cid == cid
        assert store.missing([other, cid]) == [cid]

        store.put(data)
        assert store.get(cid) == data
        assert store.has(cid)
        assert (store.count, store.size) == (2, 3005)


def test_a_blob_that_is_right_again_is_there_again(tmp_path: Path) -> None:
    """A process that only reads cannot put it; the one that writes does."""
    data = random.Random(1).randbytes(3000)
    with BlobStore.open(tmp_path) as store:
        cid = store.put(data)
        damage(tmp_path, data)
        with pytest.raises(DamagedBlob):
            store.get(cid)
        assert not store.has(cid)
        damage(tmp_path, bytes([data[0] ^ 1]) + data[1:])
        assert store.get(cid) == data
        assert store.has(cid)


def test_the_map_grows_by_itself(tmp_path: Path) -> None:
    with BlobStore.open(tmp_path, map_size=SMALL_MAP) as store, Reader(tmp_path) as reader:
        blobs = [bytes([number]) * 300_000 for number in range(20)]
        store.put_all((Cid.of(blob), blob) for blob in blobs)
        assert all(store.get(Cid.of(blob)) == blob for blob in blobs)
        assert reader.wait() == 0


class Reader:
    """A process that opened the store while its map was small, and reads after it has grown."""

    def __init__(self, folder: Path) -> None:
        code = (
            "import sys\nfrom antiphon.core.cid import Cid\nfrom antiphon.snapshot.blob_store import BlobStore\n"
            "store = BlobStore.open(sys.argv[1], readonly=True)\n"
            "print('ready', flush=True)\nsys.stdin.readline()\n"
            "assert store.get(Cid.of(bytes([19]) * 300_000)) == bytes([19]) * 300_000\nassert store.count == 20\n"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Reader:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        return self

    def wait(self) -> int:
        self._process.communicate(b"go\n")
        return self._process.returncode

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def test_one_process_writes(tmp_path: Path) -> None:
    code = "import sys; from antiphon.snapshot.blob_store import BlobStore; BlobStore.open(sys.argv[1])"
    with BlobStore.open(tmp_path):
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
        assert StoreLocked.__name__ in done.stderr


def test_a_reader_writes_nothing_and_a_closed_store_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="let its writer open it first"):
        BlobStore.open(tmp_path / "new", readonly=True)
    with BlobStore.open(tmp_path) as store:
        cid = store.put(b"hello")
    with BlobStore.open(tmp_path, readonly=True) as reader:
        assert reader.get(cid) == b"hello"
        with pytest.raises(StoreError, match="read-only"):
            reader.put(b"more")
    with pytest.raises(StoreClosed):
        reader.get(cid)
    with pytest.raises(StoreClosed):
        store.put(b"hello")


def collect(store: BlobStore, keep: Collection[Cid]) -> tuple[int, int]:
    """Let go of every blob that is not to be kept; how many there were, and their bytes."""
    with store.collecting() as collection:
        gone = [collection.sweep(page, keep.__contains__, store.delete) for page in store.pages()]
    return sum(count for count, _ in gone), sum(size for _, size in gone)


@given(st.dictionaries(st.binary(max_size=40), st.booleans(), max_size=40))
def test_a_collection_keeps_what_is_to_be_kept(
    tmp_path_factory: pytest.TempPathFactory, blobs: dict[bytes, bool]
) -> None:
    with BlobStore.open(tmp_path_factory.mktemp("blobs")) as store:
        store.put_all((Cid.of(data), data) for data in blobs)
        kept = {Cid.of(data) for data, keep in blobs.items() if keep}
        gone = [data for data, keep in blobs.items() if not keep]

        assert collect(store, kept) == (len(gone), sum(map(len, gone)))
        assert set(store) == kept
        assert store.size == sum(len(data) for data, keep in blobs.items() if keep)
        assert collect(store, ())[0] == len(kept)
        assert (store.count, store.size) == (0, 0)


def test_a_collection_goes_through_more_than_one_page(tmp_path: Path) -> None:
    with BlobStore.open(tmp_path) as store:
        pairs = [(Cid.of(data), data) for data in (b"%d" % number for number in range(10_000))]
        store.put_all(pairs)
        kept = {cid for cid, _ in pairs[::3]}
        assert collect(store, kept)[0] == 10_000 - len(kept)
        assert list(store) == sorted(kept)


def test_deleting_what_is_not_there_is_harmless(tmp_path: Path) -> None:
    with BlobStore.open(tmp_path) as store:
        cid = store.put(b"hello")
        assert store.delete([cid, Cid.of(b"absent"), cid]) == (1, 5)
        with pytest.raises(MissingBlob, match=str(cid)):
            store.get(cid)


def test_what_was_let_go_is_gone_from_the_file_after_compaction(tmp_path: Path) -> None:
    secret = random.Random(1).randbytes(50_000)
    with BlobStore.open(tmp_path) as store:
        cids = [store.put(bytes([number]) * 30_000) for number in range(40)]
        store.put(secret)
        collect(store, cids[:2])
        before = (tmp_path / "data.mdb").stat().st_size
        assert secret[:1000] in (tmp_path / "data.mdb").read_bytes()

        assert store.compact() == (tmp_path / "data.mdb").stat().st_size < before / 4
        assert secret[:1000] not in (tmp_path / "data.mdb").read_bytes()
        assert {path.name for path in tmp_path.iterdir()} == {"data.mdb", "lock.mdb", "readers.lock", "writer.lock"}
        assert (tmp_path / "data.mdb").stat().st_mode & 0o777 == 0o600
        assert (list(store), store.size) == (sorted(cids[:2]), 60_000)
        new = store.put(b"new")
        assert (store.get(new), store.get(cids[1])) == (b"new", b"\1" * 30_000)
    with BlobStore.open(tmp_path) as store:
        assert store.count == 3


def test_compaction_that_fails_leaves_the_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with BlobStore.open(tmp_path) as store:
        cid = store.put(b"hello")
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", full)
            with pytest.raises(StoreError, match="No space left"):
                store.compact()
        assert (store.get(cid), store.get(store.put(b"more"))) == (b"hello", b"more")
        assert not (tmp_path / "compact").exists()
    with BlobStore.open(tmp_path, readonly=True) as reader, pytest.raises(StoreError, match="read-only"):
        reader.compact()


def test_threads_read_and_write_while_the_file_is_compacted(tmp_path: Path) -> None:
    with BlobStore.open(tmp_path) as store, ThreadPoolExecutor(4) as pool:
        blobs = [b"%d" % number * 2000 for number in range(60)]
        done = [pool.submit(lambda blob: store.get(store.put(blob)) == blob, blob) for blob in blobs]
        for _ in range(3):
            store.compact()
        assert all(one.result() for one in done)
        assert store.count == 60


def test_a_store_of_another_format_is_refused_to_writers_and_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(blob_store, "FORMAT", b"antiphon.blobs.v9")
        BlobStore.open(tmp_path).close()
    for readonly in (False, True):
        with pytest.raises(StoreError, match="newer Antiphon"):
            BlobStore.open(tmp_path, readonly=readonly)


def test_threads_share_a_store(tmp_path: Path) -> None:
    with BlobStore.open(tmp_path, map_size=SMALL_MAP) as store, ThreadPoolExecutor(4) as pool:
        blobs = [b"%d" % number * 2000 for number in range(200)]

        def put_and_get(blob: bytes) -> bool:
            return store.get(store.put(blob)) == blob

        assert all(pool.map(put_and_get, blobs))
        assert store.count == 200


@pytest.mark.slow
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    for wanted in (3, 40):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        heard = [process.stdout.readline().strip() for _ in range(wanted)]
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()

        with BlobStore.open(tmp_path) as store:
            assert store.missing(map(Cid.parse, heard)) == []
            assert store.size == sum(len(store.get(cid)) for cid in store)
