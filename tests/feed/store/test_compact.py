"""Compaction: what was erased or pruned is gone from the file, and the store goes on as before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.core.errors import StoreError
from antiphon.core.keys import KeyPair
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.store.feed_store import FeedStore

PARTY = KeyPair.from_seed(b"p" * 32).key
PAIR = KeyPair.from_seed(b"f" * 32)
SECRET = b"the secret that must go away " * 20


def filled(path: Path) -> FeedStore:
    store = FeedStore.open(path)
    store.create(PAIR.key, PARTY)
    store.append(PAIR, PARTY, [Draft(Kind.MUTATION, bytes(16), text) for text in (b"a", SECRET, b"c")])
    return store


def test_erased_bytes_are_gone_after_compaction(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        store.erase(PAIR.key, 1)
        store.append(PAIR, PARTY, [Draft(Kind.MUTATION, bytes(16), b"d")])
        assert SECRET in (tmp_path / "data.mdb").read_bytes(), "freed pages keep it until then"
        store.compact()
        assert SECRET not in (tmp_path / "data.mdb").read_bytes()
        assert (tmp_path / "data.mdb").stat().st_mode & 0o777 == 0o600
        assert [block.message for block in store.read(PAIR.key)] == [b"a", None, b"c", b"d"]
        store.verify(PAIR.key)


def test_a_compacted_store_is_not_taken_for_a_restored_one(tmp_path: Path) -> None:
    with filled(tmp_path) as store, store.watch() as watch:
        store.compact()
        store.append(PAIR, PARTY, [Draft(Kind.MUTATION, bytes(16), b"d")])
        assert watch.wait(5) == {PAIR.key: 4}
    with FeedStore.open(tmp_path) as store:
        store.append(PAIR, PARTY, [Draft(Kind.MUTATION, bytes(16), b"e")])
        assert store.bounds(PAIR.key).length == 5


def test_a_watch_notices_what_comes_after_compaction_however_much(tmp_path: Path) -> None:
    """The new file counts its transactions from the beginning, and comes to where the old one was."""
    with filled(tmp_path) as store, store.watch() as watch:
        before = store.transaction
        store.compact()
        assert store.transaction > before
        for length in range(4, 4 + before):
            store.append(PAIR, PARTY, [Draft(Kind.MUTATION, bytes(16), b"d")])
            assert watch.poll() == {PAIR.key: length}


def test_a_pruned_store_gets_smaller(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        for _ in range(20):
            store.append(PAIR, PARTY, [Draft(Kind.MUTATION, bytes(16), bytes(1000))] * 100)
        store.prune(PAIR.key, 1900)
        before = (tmp_path / "data.mdb").stat().st_size
        assert store.compact() < before / 4
        assert store.bounds(PAIR.key).start == 1900


def test_nobody_else_may_read_meanwhile(tmp_path: Path) -> None:
    with filled(tmp_path) as store:
        reader = subprocess.Popen(
            [sys.executable, "-c", READER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"
        with pytest.raises(StoreError, match="another process reads"):
            store.compact()
        reader.communicate()
        store.compact()
        assert store.bounds(PAIR.key).length == 3


READER = """
import sys
from antiphon.feed.store.feed_store import FeedStore
store = FeedStore.open(sys.argv[1], readonly=True)
len(store.feeds())
print("reading", flush=True)
sys.stdin.read()
"""
