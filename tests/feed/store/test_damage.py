"""What has changed on the disk is found, named and dropped, and fetched from a peer again. Nothing sound is dropped."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.budget import budget

from antiphon.core.errors import CorruptBlock, Equivocation, FeedRetired
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Entry, Kind
from antiphon.feed.span import Span
from antiphon.feed.store.damage import DamagedPart
from antiphon.feed.store.feed_store import FeedStore
from antiphon.testing.spans import SpanWriter

OpenStore = Callable[..., FeedStore]
SPANS = (0, 4, 7, 9, 15)  # where the spans of `feed` begin; it has 16 blocks


def spoil(store: FeedStore, table: str, key: bytes, at: int = -9, mask: int = 0x10) -> None:
    """Change a byte of a stored value, as a failing disk would."""

    def change(tables: object) -> None:
        txn, db = tables.raw(table)  # type: ignore[attr-defined]
        value = bytearray(txn.get(key, db=db))
        value[at] ^= mask
        txn.put(key, bytes(value), db=db)

    store._change(change)


def span_key(feed: bytes, first: int) -> bytes:
    return feed + first.to_bytes(8, "big")


def other_writer(pair: KeyPair, party: PublicKey, last: Span) -> SpanWriter:
    """A second history of a feed, after a span."""
    writer = SpanWriter(pair, party, seed=9)
    lamport = int(last.columns["lamport"][-1])
    writer.record = writer.record.extended(last.end, last.hash_at(last.end - 1), lamport, last.signature)
    return writer


@pytest.fixture
def written(alice: KeyPair, bob: KeyPair, party: PublicKey) -> list[Span]:
    """Alice's feed, in spans that are too large to be merged."""
    writer, other = SpanWriter(alice, party), SpanWriter(bob, party)
    ends = (*SPANS[1:], 16)
    return [
        writer.write(end - first, size=5000, seen=[other.write(1).block(0).entry])
        for first, end in zip(SPANS, ends, strict=True)
    ]


@pytest.fixture
def store(open_store: OpenStore, written: list[Span]) -> FeedStore:
    made = open_store()
    for span in written:
        made.ingest(span)
    assert [span.first for span in made.spans(written[0].feed)] == list(SPANS)
    return made


def hashes(store: FeedStore, feed: bytes) -> list[bytes]:
    return [block.hash for block in store.read(feed)]


def test_a_sound_store_has_no_damage(store: FeedStore, written: list[Span]) -> None:
    feed = written[0].feed
    assert store.feed_keys() == [feed]
    assert store.damages(feed) == []
    before = store.record(feed)

    store.drop_damage(feed)

    assert store.record(feed) == before


@pytest.mark.parametrize("rotten", SPANS)
def test_rotten_blocks_are_dropped_and_come_back(store: FeedStore, written: list[Span], rotten: int) -> None:
    """Only the rotten span has to come from a peer; what was sound behind it joins the feed again."""
    feed, before = written[0].feed, hashes(store, written[0].feed)
    index = SPANS.index(rotten)
    spoil(store, "spans", span_key(feed, rotten))

    (found,) = store.damages(feed)
    assert (found.part, found.feed) == (DamagedPart.BLOCKS, feed)
    assert (found.seq, found.count) == (written[index].end - 1, written[index].count)
    assert "its stored bytes have changed" in found.why

    bounds = store.drop_damage(feed)
    assert bounds is not None
    assert (bounds.start, bounds.length) == (0, rotten)
    assert store.damages(feed) == []
    assert hashes(store, feed) == before[:rotten]
    assert not store.record(feed).retired

    done = store.ingest(written[index])

    assert done.added == 16 - rotten
    assert hashes(store, feed) == before
    assert store.verify(feed).length == 16
    assert store.damages(feed) == []


def test_peers_may_send_other_ranges(store: FeedStore, written: list[Span]) -> None:
    """A range over a part of what is kept aside replaces that part, and the rest of it stays."""
    feed, before = written[0].feed, hashes(store, written[0].feed)
    spoil(store, "spans", span_key(feed, 4))
    store.drop_damage(feed)

    done = store.ingest(written[1].joined(written[2]).joined(written[3]))

    assert done.added == 12
    assert hashes(store, feed) == before
    assert store.verify(feed).length == 16


def test_bodies_that_are_kept_aside_are_not_lost(store: FeedStore, written: list[Span]) -> None:
    feed = written[0].feed
    spoil(store, "spans", span_key(feed, 4))
    store.drop_damage(feed)

    store.ingest(written[1])
    spoil(store, "spans", span_key(feed, 4))
    store.drop_damage(feed)
    for span in written[1:]:
        store.ingest(span.without_bodies() if span.first > 4 else span)

    assert [block.body is not None for block in store.read(feed)] == [True] * 16


def test_two_rotten_spans(store: FeedStore, written: list[Span]) -> None:
    feed, before = written[0].feed, hashes(store, written[0].feed)
    spoil(store, "spans", span_key(feed, 4))
    spoil(store, "spans", span_key(feed, 9))
    assert [(found.seq, found.count) for found in store.damages(feed)] == [(6, 3), (14, 6)]

    store.drop_damage(feed)
    assert store.ingest(written[1]).added == 5
    assert store.record(feed).length == 9
    assert store.ingest(written[3]).added == 7

    assert hashes(store, feed) == before


def test_what_is_kept_aside_may_rot_too(store: FeedStore, written: list[Span]) -> None:
    feed, before = written[0].feed, hashes(store, written[0].feed)
    spoil(store, "spans", span_key(feed, 4))
    store.drop_damage(feed)
    spoil(store, "spans", span_key(feed, 7))

    assert store.ingest(written[1]).added == 3
    for span in written[2:]:
        store.ingest(span)

    assert hashes(store, feed) == before


def test_another_branch_in_the_gap_is_a_fork(
    store: FeedStore, written: list[Span], alice: KeyPair, party: PublicKey
) -> None:
    """The blocks that are kept aside are signed, too: they are not replaced by others in silence."""
    feed = written[0].feed
    spoil(store, "spans", span_key(feed, 15))
    store.drop_damage(feed)
    spoil(store, "spans", span_key(feed, 7))
    store.drop_damage(feed)  # 9 to 14 are kept aside
    other = other_writer(alice, party, written[1])

    store.ingest(other.write(2, size=5000))
    store.ingest(other.write(6, size=5000))

    with pytest.raises(Equivocation):
        store.ingest(written[2])
    assert store.bounds(feed).end == 7


def test_a_rotten_record_is_made_from_the_blocks(store: FeedStore, written: list[Span]) -> None:
    feed, before = written[0].feed, store.record(written[0].feed)
    spoil(store, "records", feed)
    with pytest.raises(CorruptBlock):
        store.record(feed)
    assert [found.part for found in store.damages(feed)] == [DamagedPart.RECORD]

    store.drop_damage(feed)

    assert replace(store.record(feed), retired=False) == before
    assert store.damages(feed) == []
    assert store.verify(feed).length == 16


def test_a_lost_record_of_a_pruned_feed(store: FeedStore, written: list[Span]) -> None:
    feed = written[0].feed
    before = store.prune(feed, 8)
    spoil(store, "records", feed)

    assert store.drop_damage(feed) == before

    assert store.verify(feed) == before


def test_other_parties_go_on(store: FeedStore, written: list[Span], bob: KeyPair) -> None:
    """One rotten record closed every party of the store."""
    other = SpanWriter(bob, KeyPair.from_seed(b"o" * 32).key)
    store.ingest(other.write(3))
    spoil(store, "records", written[0].feed)

    assert [record.feed for record in store.feeds(other.party)] == [bob.key]
    assert [record.feed for record in store.feeds()] == [bob.key]
    with pytest.raises(CorruptBlock):
        store.feeds(written[0].party)


def test_a_rotten_timeframe_is_made_from_the_blocks(store: FeedStore, written: list[Span], bob: KeyPair) -> None:
    feed = written[0].feed
    before: dict[bytes, Entry] = store.frontier(feed)
    spoil(store, "frontiers", feed + bob.key)
    assert [found.part for found in store.damages(feed)] == [DamagedPart.TIMEFRAME]

    store.drop_damage(feed)

    assert store.frontier(feed) == before
    assert store.record(feed).length == 16


def test_an_own_feed_that_lost_blocks_is_not_written_again(
    open_store: OpenStore, alice: KeyPair, party: PublicKey
) -> None:
    """Rule 6: the writer would sign a second block at a seq that it has given to others."""
    store = open_store()
    store.create(alice.key, party)
    for _ in range(3):
        store.append(alice, party, [Draft(Kind.MUTATION, bytes(16), bytes(9000))])
    spoil(store, "spans", span_key(alice.key, 2))

    store.drop_damage(alice.key)

    assert store.record(alice.key).length == 2
    with pytest.raises(FeedRetired):
        store.append(alice, party, [Draft(Kind.MUTATION, bytes(16), b"again")])


def test_a_feed_of_which_nothing_is_left_keeps_its_place(
    open_store: OpenStore, alice: KeyPair, party: PublicKey
) -> None:
    store = open_store()
    store.create(alice.key, party)
    store.append(alice, party, [Draft(Kind.MUTATION, bytes(16), b"one")])
    spoil(store, "spans", span_key(alice.key, 0))
    spoil(store, "records", alice.key)

    store.drop_damage(alice.key)

    assert (store.record(alice.key).length, store.record(alice.key).retired) == (0, True)
    with pytest.raises(FeedRetired):
        store.append(alice, party, [Draft(Kind.MUTATION, bytes(16), b"again")])


def test_branches_and_evidence(store: FeedStore, written: list[Span], alice: KeyPair, party: PublicKey) -> None:
    feed = written[0].feed
    other = other_writer(alice, party, written[1]).write(2, size=100)
    with pytest.raises(Equivocation):
        store.ingest(other)
    ended, last = store.record(feed), other.hash_at(other.end - 1)
    assert store.damages(feed) == []
    spoil(store, "branches", feed + last)
    spoil(store, "forks", feed)
    assert {found.part for found in store.damages(feed)} == {DamagedPart.BRANCH, DamagedPart.EVIDENCE}

    store.drop_damage(feed)

    assert store.damages(feed) == []
    assert store.record(feed).bounds == ended.bounds
    assert store.fork(feed) is None
    with pytest.raises(Equivocation):
        store.ingest(other)
    assert store.fork(feed) is not None
    assert store.branch_with(feed, other.end - 1, last) is not None


def test_a_forked_feed_whose_record_is_lost_stays_cut(
    store: FeedStore, written: list[Span], alice: KeyPair, party: PublicKey
) -> None:
    feed = written[0].feed
    with pytest.raises(Equivocation):
        store.ingest(other_writer(alice, party, written[1]).write(2, size=100))
    before = store.bounds(feed)
    spoil(store, "records", feed)

    assert store.drop_damage(feed) == before


@pytest.mark.parametrize("seed", range(budget(20, 400)))
def test_any_rot_is_found_and_healed(
    open_store: OpenStore, alice: KeyPair, bob: KeyPair, party: PublicKey, seed: int
) -> None:
    """Law: after rot anywhere in the rows of a feed, dropping and a peer give back the same blocks, bit for bit."""
    chance, store = random.Random(seed), open_store(f"s{seed}")
    writer, other = SpanWriter(alice, party), SpanWriter(bob, party)
    sent = []
    for _ in range(chance.randrange(1, 9)):
        seen = [other.write(1).block(0).entry] if chance.random() < 0.5 else []
        sent.append(writer.write(chance.randrange(1, 5), size=chance.choice((10, 3000, 9000)), seen=seen))
        store.ingest(sent[-1])
    before, record = hashes(store, alice.key), store.record(alice.key)
    for _ in range(chance.randrange(1, 4)):
        table = chance.choice(("spans", "spans", "records", "frontiers"))
        with store._env.read() as tables:
            txn, db = tables.raw(table)
            with txn.cursor(db) as cursor:
                rows = [(bytes(key), len(value)) for key, value in cursor]
        if rows:
            key, size = chance.choice(rows)
            spoil(store, table, key, chance.randrange(size), 1 << chance.randrange(8))

    for feed in store.feed_keys():
        store.drop_damage(feed)
    assert all(not store.damages(feed) for feed in store.feed_keys())
    for span in sent:
        if span.end > store.record(alice.key).length:
            store.ingest(span)

    assert hashes(store, alice.key) == before
    assert replace(store.record(alice.key), retired=False, branches=0) == replace(record, branches=0)
