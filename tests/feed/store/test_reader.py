"""Reading: by block, by range and as ranges for peers, with nothing unverified, unsynced or past an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import CorruptBlock, MissingBlocks, StoreError
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.block import BodyState
from antiphon.feed.chain import verify_span
from antiphon.feed.header import NO_HASH
from antiphon.feed.span import decode
from antiphon.feed.store.env import Env
from antiphon.feed.store.feed_store import FeedStore
from antiphon.testing.spans import Forged, SpanWriter, drafts, key_pair

OpenStore = Callable[..., FeedStore]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FeedStore]:
    """60 blocks of Alice's, small and large, single and in batches."""
    alice, party = key_pair("alice"), key_pair("party").key
    with FeedStore.open(tmp_path_factory.mktemp("mixed"), durable=False) as store:
        store.create(alice.key, party)
        for count, size, atomic in [(1, 5, False), (9, 900, False), (20, 2000, True), (5, 10, True), (25, 40, False)]:
            store.append(alice, party, drafts(count, size), atomic=atomic)
        yield store


@given(start=st.none() | st.integers(0, 70), stop=st.none() | st.integers(0, 70))
def test_a_range_is_read_from_start_to_before_stop(mixed: FeedStore, start: int | None, stop: int | None) -> None:
    feed = key_pair("alice").key

    read = list(mixed.read(feed, start, stop))

    assert [block.seq for block in read] == list(range(60))[start:stop]
    assert read == [mixed.block(feed, block.seq) for block in read]


@given(start=st.integers(0, 59), bodies=st.booleans())
def test_ranges_for_a_peer_verify_from_any_start(mixed: FeedStore, start: int, bodies: bool) -> None:
    feed = key_pair("alice").key
    previous = mixed.block(feed, start - 1).hash if start else NO_HASH
    at = start

    for span in mixed.spans(feed, start, bodies=bodies):
        checked = verify_span(decode(span.encode()))
        assert (checked.first, checked.previous) == (at, previous)
        assert set(checked.states) <= ({BodyState.PRESENT} if bodies else {BodyState.LEFT_OUT})
        at, previous = checked.end, checked.hash_at(checked.end - 1)

    assert at == 60


def test_what_is_not_held_is_not_read(mixed: FeedStore, alice: KeyPair) -> None:
    for seq in (-1, 60, 2**70):
        with pytest.raises(MissingBlocks, match="not held here; blocks 0 to 59 are"):
            mixed.block(alice.key, seq)
    assert list(mixed.read(alice.key, 60)) == []
    assert list(mixed.spans(alice.key, 60)) == []


def test_nothing_past_an_end_is_read(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    store.ingest(writer.write(2))
    store.ingest(writer.forge(Forged(), Forged(kind=99)))

    with pytest.raises(MissingBlocks):
        store.block(alice.key, 3)
    assert [block.seq for block in store.read(alice.key, 0, 9)] == [0, 1, 2]
    assert sum(batch.num_rows for batch in store.arrow(alice.key)) == 3


def test_feeds_are_listed_by_party(store: FeedStore, alice: KeyPair, bob: KeyPair, party: PublicKey) -> None:
    other = key_pair("other party").key
    store.create(alice.key, party)
    store.create(bob.key, other)

    assert {record.feed for record in store.feeds()} == {alice.key, bob.key}
    assert [record.feed for record in store.feeds(party)] == [alice.key]
    assert [record.feed for record in store.feeds(other)] == [bob.key]


def test_a_reader_may_be_slow_while_the_feed_grows_and_is_pruned(
    store: FeedStore, alice: KeyPair, party: PublicKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No transaction is held between two blocks, so a slow reader neither blocks others nor keeps old pages."""
    monkeypatch.setattr("antiphon.feed.store.reader._READ_SIZE", 1)
    store.create(alice.key, party)
    store.append(alice, party, drafts(3, 9000))
    store.append(alice, party, drafts(3, 9000))
    reading, growing = store.read(alice.key), store.spans(alice.key)

    assert next(reading).seq == 0
    assert next(growing).end == 3
    store.append(alice, party, drafts(2))
    assert [block.seq for block in reading] == [1, 2, 3, 4, 5]
    assert [span.end for span in growing] == [6, 8]

    reading = store.read(alice.key)
    next(reading)
    store.prune(alice.key, 7)
    with pytest.raises(MissingBlocks, match="pruned"):
        list(reading)


def test_nothing_leaves_before_it_is_synced(
    open_store: OpenStore, alice: KeyPair, party: PublicKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 6, with `durable=False`: also what was appended while a peer was being served is synced before it goes."""
    store = open_store(durable=False)
    store.create(alice.key, party)
    store.append(alice, party, drafts(2, 9000))
    synced: list[int] = []
    flush = Env.flush

    def watched(env: Env) -> None:
        length = store.bounds(alice.key).length
        flush(env)
        synced.append(length)

    monkeypatch.setattr(Env, "flush", watched)

    assert store.block(alice.key, 0).seq == 0
    assert synced == []  # what stays here need not wait
    for span in store.spans(alice.key):
        assert span.end <= synced[-1]
        if span.end < 8:
            store.append(alice, party, drafts(2, 9000))

    assert synced == [2, 4, 6, 8]
    assert [span.end for span in store.spans(alice.key)] == [2, 4, 6, 8]
    assert synced == [2, 4, 6, 8, 8]


def test_verify_finds_a_span_that_does_not_link_up(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    first, second = writer.write(2, size=9000), writer.write(2, size=9000)
    store.ingest_all([first, second])
    foreign = SpanWriter(alice, writer.party, seed=7)
    foreign.write(2)

    store._change(lambda tables: tables.put_span(foreign.write(2, size=9000)))

    with pytest.raises(CorruptBlock, match="block 2: it does not link up") as raised:
        store.verify(alice.key)
    assert (raised.value.feed, raised.value.seq) == (alice.key, 2)


def test_a_span_that_is_missing_is_reported(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    first, second = writer.write(2, size=9000), writer.write(2, size=9000)
    store.ingest_all([first, second])
    store._change(lambda tables: tables.drop_span(first))

    for read in (
        lambda: store.block(alice.key, 1),
        lambda: list(store.read(alice.key)),
        lambda: list(store.arrow(alice.key)),
        lambda: store.verify(alice.key),
    ):
        with pytest.raises(CorruptBlock, match="missing from the store"):
            read()


def test_an_error_of_the_database_is_one_of_ours(
    store: FeedStore, alice: KeyPair, party: PublicKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(alice.key, party)

    def fails(*_: object) -> None:
        raise lmdb.CorruptedError("a page is not where it should be")

    monkeypatch.setattr("antiphon.feed.store.tables.Tables.find", fails)

    with pytest.raises(StoreError, match="cannot be read: a page is not where"):
        store.bounds(alice.key)


def test_a_closed_store_says_so(store: FeedStore, alice: KeyPair, party: PublicKey, tmp_path: Path) -> None:
    store.create(alice.key, party)
    store.close()
    store.close()

    for act in (
        lambda: store.bounds(alice.key),
        lambda: list(store.read(alice.key)),
        lambda: store.map_size,
        store.watch,
        store.flush,
    ):
        with pytest.raises(StoreError, match=f"{tmp_path}.*is closed; open it again"):
            act()
