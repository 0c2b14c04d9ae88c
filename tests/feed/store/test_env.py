"""The environment: one writing process, many readers, a map that grows under all of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from antiphon.core.errors import StoreError, StoreLocked
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.store import map_file
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.gate import Gate
from antiphon.testing.spans import drafts

OpenStore = Callable[..., FeedStore]
Start = Callable[..., Callable[[str], str]]
SMALL_MAP = 1 << 17
TURNS = 1_000


def test_a_second_writer_is_told_who_writes(
    store: FeedStore, open_store: OpenStore, child: Start, tmp_path: Path
) -> None:
    ask = child("locker", tmp_path / "store")

    assert ask("write") == (
        f"StoreLocked: the store at {tmp_path / 'store'} is being written by process {os.getpid()}; "
        "stop that one, or open the store read-only"
    )
    assert ask("read") == "opened"
    with pytest.raises(StoreLocked, match=str(os.getpid())):
        open_store()
    store.close()
    assert ask("write") == "opened"
    open_store()


def test_readers_in_other_processes_see_the_feed_grow(
    store: FeedStore, child: Start, tmp_path: Path, alice: KeyPair, party: PublicKey
) -> None:
    store.create(alice.key, party)
    store.append(alice, party, drafts(3))
    readers = [child("reader", tmp_path / "store") for _ in range(2)]

    for length in (3, 5, 7):
        assert [ask("read") for ask in readers] == [str(length)] * 2
        store.append(alice, party, drafts(2))
    store.prune(alice.key, 4)

    assert [ask("read") for ask in readers] == ["5", "5"]


def test_a_reader_writes_nothing(
    child: Start, store: FeedStore, tmp_path: Path, alice: KeyPair, party: PublicKey
) -> None:
    store.create(alice.key, party)
    reader = child("reader", tmp_path / "store")

    assert reader("append").startswith("StoreError: the store at")
    assert "read-only here" in reader("append")
    assert store.bounds(alice.key).length == 0


def test_a_store_opened_read_only_refuses_every_change(open_store: OpenStore, alice: KeyPair, party: PublicKey) -> None:
    with open_store() as writing:
        writing.create(alice.key, party)
        writing.append(alice, party, drafts(2))
        span = next(writing.spans(alice.key))
    reading = open_store(readonly=True)

    assert len(list(reading.read(alice.key))) == 2
    for act in (
        lambda: reading.create(alice.key, party),
        lambda: reading.append(alice, party, drafts(1)),
        lambda: reading.ingest(span),
        lambda: reading.prune(alice.key, 1),
        lambda: reading.erase(alice.key, 0),
        lambda: reading.retire(alice.key),
    ):
        with pytest.raises(StoreError, match="read-only"):
            act()
    assert next(reading.spans(alice.key)).end == 2


def test_there_is_nothing_to_read_before_a_writer_was_there(open_store: OpenStore, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="let its writer open it first"):
        open_store("none", readonly=True)
    assert not (tmp_path / "none").exists()


def test_a_process_opens_a_store_once(store: FeedStore, open_store: OpenStore) -> None:
    with pytest.raises(StoreError, match="opens one store once"):
        open_store(readonly=True)


def test_the_map_grows_by_itself(open_store: OpenStore, alice: KeyPair, party: PublicKey) -> None:
    store = open_store(map_size=SMALL_MAP)
    store.create(alice.key, party)
    assert store.map_size == SMALL_MAP

    for _ in range(20):
        store.append(alice, party, drafts(20, 3000))
    store.append(alice, party, drafts(5, 1 << 19))

    assert store.map_size >= 32 * SMALL_MAP
    assert store.verify(alice.key).length == 405


def test_the_map_grows_under_readers_in_threads_and_processes(
    open_store: OpenStore, child: Start, tmp_path: Path, alice: KeyPair, party: PublicKey
) -> None:
    store = open_store(map_size=SMALL_MAP)
    store.create(alice.key, party)
    store.append(alice, party, drafts(1))
    reader = child("reader", tmp_path / "store")
    done = threading.Event()

    def read() -> int:
        rounds = 0
        with store.watch() as watch:
            while not done.is_set():
                length = store.bounds(alice.key).length
                assert len([block.seq for block in store.read(alice.key)]) >= length
                assert sum(batch.num_rows for batch in store.arrow(alice.key, columns=["seq"])) >= length
                assert store.block(alice.key, length - 1).seq == length - 1
                watch.poll()
                rounds += 1
        return rounds

    with ThreadPoolExecutor(3) as pool:
        threads = [pool.submit(read) for _ in range(3)]
        for count in range(1, 41):
            store.append(alice, party, drafts(4, 20_000))
            if count % 8 == 0:
                assert reader("read") == str(1 + 4 * count)
        done.set()
        assert all(thread.result() > 0 for thread in threads)

    assert store.map_size >= 16 * SMALL_MAP
    assert store.verify(alice.key).length == 161


def test_a_reader_follows_a_map_that_another_process_grows(
    child: Start, open_store: OpenStore, tmp_path: Path, alice: KeyPair
) -> None:
    write = child("writer", tmp_path / "store", SMALL_MAP)
    assert write("1 10") == "1"
    store = open_store(readonly=True, map_size=SMALL_MAP)

    for length in range(11, 62, 10):
        assert write("10 30000") == str(length)
        assert [block.seq for block in store.read(alice.key)] == list(range(length))

    assert store.map_size > SMALL_MAP
    assert store.verify(alice.key).length == 61


def test_a_map_does_not_grow_for_ever(
    open_store: OpenStore, alice: KeyPair, party: PublicKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_file, "MAP_SIZE_MAX", 2 * SMALL_MAP)
    store = open_store(map_size=SMALL_MAP)
    store.create(alice.key, party)

    with pytest.raises(StoreError, match="prune or split it"):
        store.append(alice, party, drafts(4, 1 << 17))

    assert store.append(alice, party, drafts(1))[0].seq == 0


def test_only_the_user_may_read_the_files(store: FeedStore, tmp_path: Path) -> None:
    folder = tmp_path / "store"

    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o077 for path in folder.iterdir()} == {0}


def test_the_gate_lets_many_pass_or_one_alone() -> None:
    gate = Gate()
    inside: list[str] = []
    log: list[tuple[str, ...]] = []
    lock = threading.Lock()

    def pass_through(name: str, alone: bool) -> None:
        for _ in range(200):
            with gate.exclusive() if alone else gate.shared():
                with lock:
                    inside.append(name)
                    log.append(tuple(inside))
                with lock:
                    inside.remove(name)

    with ThreadPoolExecutor(5) as pool:
        for future in [pool.submit(pass_through, name, name in "AB") for name in "ABxyz"]:
            future.result()

    assert len(log) == 1000
    assert all(len(names) == 1 for names in log if "A" in names or "B" in names)


def test_a_transaction_has_its_number_only_once_readers_see_it(
    store: FeedStore, alice: KeyPair, party: PublicKey
) -> None:
    """LMDB tells the number of a commit that is still on its way to the disk: who noted it would miss the blocks."""
    store.create(alice.key, party)
    store.append(alice, party, drafts(1))
    first, wrong, both = store.transaction, [], threading.Barrier(2)

    def look() -> None:
        for turn in range(TURNS):
            both.wait()
            sum(range(turn % 40 * 20))  # another moment of the commit each time
            number = store.transaction
            wrong.extend([turn] if store.record(alice.key).length < 1 + number - first else [])
            both.wait()

    reader = threading.Thread(target=look)
    reader.start()
    for _ in range(TURNS):
        both.wait()
        store.append(alice, party, drafts(1))
        both.wait()
    reader.join()
    assert wrong == []
