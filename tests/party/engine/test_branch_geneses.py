"""Geneses beyond forks: what is read step by step equals what a plain walk over everything finds."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.budget import budget

from antiphon.core.errors import Equivocation, MissingBlocks, RefusedBlocks
from antiphon.feed.block import Block
from antiphon.feed.encoder import Draft
from antiphon.feed.header import NO_HASH, Entry, Kind
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.party.engine.branch_geneses import BranchGeneses, Candidates
from antiphon.testing.spans import SpanWriter, key_pair

PARTY = key_pair("party").key
FORKED, READERS = ("mallory", "oscar"), ("alice", "bob")
Found = dict[tuple[bytes, int, bytes], dict[bytes, int]]  # by item, seq and message of a genesis: who has seen it since


class Play:
    """Two feeds whose writers fork them again and again, and feeds that have seen some of it."""

    def __init__(self, store: FeedStore, seed: int) -> None:
        self.store, self.chance = store, random.Random(seed)
        self.branches: dict[str, list[SpanWriter]] = {}
        self.before: dict[SpanWriter, Span] = {}  # the last span of each branch
        self.tips: dict[str, list[Entry]] = {name: [] for name in FORKED}
        self.readers = {name: SpanWriter(key_pair(name), PARTY) for name in READERS}
        for name in FORKED:
            writer = SpanWriter(key_pair(name), PARTY)
            self.branches[name] = [writer]
            self.write(name, writer)
        self.stops = {bytes(key_pair(name).key): 1 for name in FORKED}
        self.starts = {bytes(key_pair(name).key): 0 for name in (*FORKED, *READERS)}
        self.forked: dict[bytes, int] = {}

    def write(self, name: str, writer: SpanWriter) -> None:
        """A block of one branch, perhaps a genesis."""
        kind = self.chance.choice([Kind.GENESIS, Kind.MUTATION])
        draft = Draft(kind, self.chance.randbytes(16), self.chance.randbytes(4))
        (span,) = writer.extend([draft])
        if writer is self.branches[name][0]:
            self.take(span)
        else:
            before = self.before.get(writer)
            if before is not None and self.chance.random() < 0.5:  # two spans with some blocks in common
                span = before.joined(span)
            self.before[writer] = span
            self.store.ingest_branch([span])
        self.tips[name].append(span.block(span.count - 1).entry)

    def take(self, span: Span) -> None:
        try:
            self.store.ingest(span)
        except (Equivocation, MissingBlocks, RefusedBlocks):
            self.store.ingest_branch([span])

    def step(self) -> None:
        name = self.chance.choice(FORKED)
        feed, writers = bytes(key_pair(name).key), self.branches[name]
        match self.chance.choice(["write", "write", "fork", "read", "read", "read", "stop", "told"]):
            case "write":
                self.write(name, self.chance.choice(writers))
            case "fork":
                made = self.chance.choice(writers).fork(len(writers))
                writers.append(made)
                self.write(name, made)
            case "read":
                reader = self.readers[self.chance.choice(READERS)]
                self.take(reader.write(1, seen=[self.chance.choice(self.tips[name])]))
            case "stop":
                self.stops[feed] = self.chance.randint(0, self.store.record(feed).length)
            case "told":
                self.forked[feed] = 0

    def bounds(self) -> dict[bytes, tuple[int, int]]:
        known = {record.feed: record.length for record in self.store.feeds(PARTY)} | self.stops
        return {feed: (self.starts[feed], stop) for feed, stop in known.items()}


def blocks_of(store: FeedStore, feed: bytes, stop: int) -> dict[bytes, tuple[Block, bytes]]:
    """The branch blocks of a feed, by hash, each with the hash before it."""
    record = store.record(feed)
    held = store.held(feed, stop, record.length) if stop < record.length else ()
    found = {}
    for span in (*held, *store.branches(feed)):
        previous = span.previous
        for block in span.blocks(0, span.count):
            found[bytes(block.hash)] = block, previous
            previous = bytes(block.hash)
    return found


def walk(store: FeedStore, forked: Mapping[bytes, int], bounds: Mapping[bytes, tuple[int, int]]) -> Found:
    """Every genesis beyond a fork that somebody has seen, found block by block, without any memory."""
    found: Found = {}
    for feed in forked:
        start, stop = bounds[feed]
        blocks = blocks_of(store, feed, stop)
        for block, _ in blocks.values():
            if block.kind is Kind.GENESIS and block.seq >= start:
                found[bytes(block.item), block.seq, block.message or b""] = {}
        for reader, (low, high) in bounds.items():
            for message in store.read(reader, low, high) if reader != feed else ():
                at = next((bytes(entry.hash) for entry in message.advance if entry.feed == feed), NO_HASH)
                while at in blocks:
                    block, at = blocks[at]
                    if block.kind is Kind.GENESIS and block.seq >= start:
                        found[bytes(block.item), block.seq, block.message or b""].setdefault(reader, message.seq)
    return {genesis: readers for genesis, readers in found.items() if readers}


def known(candidates: Candidates) -> Found:
    return {
        (bytes(item), one.note.seq, one.note.message or b""): one.since
        for item, ones in candidates.items()
        for one in ones
        if one.since
    }


@pytest.mark.parametrize("seed", range(budget(20, 2_000)))
def test_step_by_step_or_at_once(tmp_path: Path, seed: int) -> None:
    with FeedStore.open(tmp_path, durable=False) as store:
        play, kept = Play(store, seed), BranchGeneses(store)
        for _ in range(40):
            play.step()
            bounds = play.bounds()
            assert known(kept.update(play.forked, bounds)) == walk(store, play.forked, bounds)
