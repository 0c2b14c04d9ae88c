"""Branches that are read when somebody asks: the same is delivered as if all of them were read at once."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget

from antiphon.core.errors import AntiphonError, BrokenChain, Equivocation, MissingBlocks, RefusedBlocks
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import NO_END, Entry
from antiphon.feed.span import Span
from antiphon.feed.store import tables
from antiphon.feed.store.feed_store import FeedStore
from antiphon.party.engine.authority import OpenAuthority
from antiphon.party.engine.delivery import Delivery
from antiphon.testing.spans import Forged, SpanWriter, key_pair

PARTY = key_pair("party").key
PAIRS = [key_pair(f"writer {number}") for number in range(4)]
FEEDS = [bytes(pair.key) for pair in PAIRS]

#: By feed: how far it is delivered, which blocks are delivered, and why it ended.
Stops = dict[bytes, tuple[int, bytes, str]]


class Eager(Delivery):
    """Reads every branch as soon as it is here."""

    def take_branches(self, record: FeedRecord) -> None:
        super().take_branches(record)
        end = min(record.valid_length, self._ends.get(record.feed, NO_END))
        beyond = self._store.held(record.feed, end, record.length) if end < record.length else ()
        for span in (*beyond, *self._store.branches(record.feed)):
            self.branches.add_span(span)


def branched_spans(chance: random.Random) -> list[Span]:
    """Spans of feeds that are forked again and again, each block with entries for blocks of any branch."""
    writers = [SpanWriter(pair, PARTY) for pair in PAIRS]
    blocks: list[Entry] = []
    spans: list[Span] = []
    for number in range(chance.randint(4, 40)):
        writer = chance.choice(writers)
        if chance.random() < 0.2:
            writer = writer.fork(number + 1)
            writers.append(writer)
        made = []
        for _ in range(chance.choice([1, 1, 2, 4])):
            seen: dict[bytes, Entry] = {}
            for entry in chance.sample(blocks, min(len(blocks), chance.choice([0, 0, 1, 2]))):
                if entry.feed != writer.pair.key:
                    seen[entry.feed] = entry._replace(
                        seq=entry.seq + 2 * (chance.random() < 0.1),  # a true hash at another place
                        lamport=entry.lamport + (chance.random() < 0.05),
                        hash=bytes(32) if chance.random() < 0.05 else entry.hash,
                    )
            made.append(Forged(advance=tuple(sorted(seen.values())), created_ms=number))
        span = writer.forge(*made)
        spans.append(span)
        blocks += [span.block(index).entry for index in range(span.count)]
    return spans


def take(store: FeedStore, span: Span) -> None:
    """Take a span as a session does."""
    try:
        store.ingest(span)
    except Equivocation:
        pass
    except (BrokenChain, MissingBlocks, RefusedBlocks):
        store.ingest_branch([span])


def stops(delivery: Delivery) -> Stops:
    states = [lane.state for lane in delivery.lanes.values()]
    return {state.feed: (state.position, state.hash, state.fault) for state in states}


def pump(delivery: Delivery, store: FeedStore) -> bool:
    """Deliver what can be. False if a lane has delivered blocks beyond a fork: the engine begins it again then."""
    for record in store.feeds(PARTY):
        if record.end != NO_END and delivery.end_fork(record.feed, record.end):
            return False
        delivery.take_branches(record)
        delivery.wake(record.feed)
    list(delivery.pump())
    return True


def activated(kind: type[Delivery], store: FeedStore) -> Delivery:
    delivery = kind(store, OpenAuthority(store, PARTY))
    for feed in FEEDS:
        delivery.activate(feed)
    return delivery


@settings(max_examples=budget(60, 2_000))
@given(st.integers(0, 1 << 32))
def test_branches_that_are_read_on_demand_deliver_the_same(seed: int) -> None:
    chance = random.Random(seed)
    spans = branched_spans(chance)
    if chance.random() < 0.5:
        chance.shuffle(spans)
    with TemporaryDirectory() as folder, FeedStore.open(Path(folder), durable=False) as store:
        lazy, eager = activated(Delivery, store), activated(Eager, store)
        for span in spans:
            try:
                take(store, span)
            except AntiphonError:  # it begins beyond all that is here
                continue
            if not pump(lazy, store):
                lazy = activated(Delivery, store)
                pump(lazy, store)
            if not pump(eager, store):
                eager = activated(Eager, store)
                pump(eager, store)
            assert stops(lazy) == stops(eager)
        again = activated(Delivery, store)
        pump(again, store)
        assert stops(again) == stops(lazy)


@pytest.mark.parametrize("liar", [1, 2])
def test_a_true_hash_at_another_place_hides_no_branch(tmp_path: Path, liar: int) -> None:
    """An honest block and a liar's wait for one hash, the liar's at a wrong place; then the branch comes."""
    forked = SpanWriter(PAIRS[0], PARTY)
    others = [SpanWriter(pair, PARTY) for pair in PAIRS[1:3]]
    with FeedStore.open(tmp_path, durable=False) as store:
        store.ingest(forked.write(1))
        branch, third = forked.fork(2).write(3), forked.fork(3).write(1)
        take(store, forked.write(1))
        take(store, third)  # the fork is known
        seen = branch.block(2).entry
        delivery = activated(Delivery, store)
        for number, writer in enumerate(others, 1):
            store.ingest(writer.write(1, seen=[seen._replace(seq=seen.seq + 2 * (number == liar))]))
        pump(delivery, store)
        take(store, branch)
        delivery.take_branches(store.record(FEEDS[0]))  # the only feed with news
        list(delivery.pump())
        delivered = {number for number in (1, 2) if delivery.lanes[FEEDS[number]].state.position}
        assert delivered == {1, 2} - {liar}


@pytest.mark.parametrize("named", [False, True])
def test_a_branch_is_not_read_before_a_block_that_waits_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """Mallory's branch has 40 spans. Alice has seen the fifth, so that and those before it are read.

    The first is read twice: the index names it for the last common block, too.
    """
    mallory, alice = SpanWriter(PAIRS[0], PARTY), SpanWriter(PAIRS[1], PARTY)
    with FeedStore.open(tmp_path, durable=False) as store:
        store.ingest(mallory.write(1))
        other = mallory.fork(2)
        take(store, mallory.write(1))
        branch = [other.write(1) for _ in range(40)]
        for span in branch:
            take(store, span)
        store.ingest(alice.write(1, seen=[branch[4].block(0).entry] if named else []))
        reads: list[bytes] = []
        read = tables.decode_branch

        def counted(key: bytes, stored: bytes) -> Span:
            reads.append(key)
            return read(key, stored)

        monkeypatch.setattr(tables, "decode_branch", counted)
        delivery = activated(Delivery, store)
        pump(delivery, store)
        assert delivery.lanes[FEEDS[1]].state.position == 1
        assert len(reads) == (6 if named else 0)
