"""Random histories of control feeds and data feeds, an engine on the core that delivers them, and a plain reference.

The reference scans all feeds until nothing more can be delivered. A block's hash and lamport follow from its place, so
an entry can tell the truth about a block that is written later: waits in a circle come up as well.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from hypothesis import strategies as st

from antiphon.feed import causal_delivery
from antiphon.feed.causal_delivery import CausalQueue, Standing
from antiphon.feed.header import NO_END, Entry

FEEDS = [bytes([number]) * 32 for number in range(1, 7)]  # the first three are control feeds
CONTROL = frozenset(FEEDS[:3])


def lamport_of(feed: bytes, seq: int) -> int:
    return 10 * seq + feed[0]


def link_of(entry: Entry) -> tuple[bytes, int]:
    """The hash and the lamport of the one block at a place."""
    return sha256(entry.feed + bytes([entry.seq])).digest(), lamport_of(entry.feed, entry.seq)


@dataclass(frozen=True)
class Arrive:
    """More blocks of a feed come in."""

    feed: bytes
    count: int


@dataclass(frozen=True)
class Cut:
    """A feed turns out to be forked: it ends here for everybody."""

    feed: bytes
    end: int


@dataclass(frozen=True)
class Rebase:
    """An epoch becomes final: up to so many delivered blocks of a data feed are in its snapshot."""

    feed: bytes
    length: int


Event = Arrive | Cut | Rebase


@dataclass(frozen=True)
class History:
    """The advance entries of all blocks by feed, and what happens, with whether delivery runs after it."""

    blocks: dict[bytes, list[tuple[Entry, ...]]]
    events: list[tuple[Event, bool]]


def make_history(seed: int, feed_count: int, length_max: int, event_count: int) -> History:
    """A random history. Most entries tell the truth, and most events bring blocks."""
    chance = random.Random(seed)
    feeds = chance.sample(FEEDS, feed_count)

    def entries(feed: bytes) -> tuple[Entry, ...]:
        others = [other for other in FEEDS if other != feed and (other in CONTROL or feed not in CONTROL)]
        near = [other for other in others if other in feeds]
        seen = near if near and chance.random() < 0.9 else others
        count = min(len(seen), chance.choice([0, 0, 1, 1, 2, 3]))
        return tuple(sorted(entry(other) for other in chance.sample(seen, count)))

    def entry(other: bytes) -> Entry:
        found = Entry(other, min(chance.randint(0, length_max) for _ in range(3)), 0, b"")
        hash_, lamport = link_of(found)
        if chance.random() < 0.1:
            lamport += chance.randint(-20, 40)
        return found._replace(lamport=lamport, hash=bytes(32) if chance.random() < 0.1 else hash_)

    def event() -> tuple[Event, bool]:
        feed, number = chance.choice(feeds), max(chance.randint(0, length_max), chance.randint(0, length_max))
        kinds: list[type[Event]] = [Arrive, Arrive, Arrive, Arrive, Cut, Rebase, Rebase]
        return chance.choice(kinds)(feed, number), chance.random() < 0.5

    blocks = {feed: [entries(feed) for _ in range(chance.randint(length_max // 2, length_max))] for feed in feeds}
    return History(blocks, [event() for _ in range(event_count)])


def histories() -> st.SearchStrategy[History]:
    return st.builds(
        make_history, st.integers(0, 1 << 32), st.integers(2, len(FEEDS)), st.integers(1, 6), st.integers(1, 30)
    )


@dataclass
class Feed:
    """A feed as one engine has it."""

    feed: bytes
    held: list[tuple[Entry, ...]] = field(default_factory=list)
    position: int = 0
    end: int = NO_END
    base: int = 0
    fault: str = ""

    @property
    def stop(self) -> int:
        """Data feeds are cut at their end; of a forked control feed, votes count where they are held."""
        return len(self.held) if self.feed in CONTROL else min(len(self.held), self.end)

    @property
    def base_lamport(self) -> int:
        return lamport_of(self.feed, self.base - 1)


class Engine:
    """Two layers on the core, as in a peer: data feeds wait for control feeds, and never the other way round."""

    def __init__(self) -> None:
        self.feeds = {feed: Feed(feed) for feed in FEEDS}
        self.control, self.data = CausalQueue(), CausalQueue()
        self.log: list[tuple[bytes, int]] = []

    def play(self, history: History) -> None:
        for event, run in history.events:
            feed = self.feeds[event.feed]
            if isinstance(event, Arrive):
                feed.held = history.blocks[event.feed][: len(feed.held) + event.count]
                self._queue(event.feed).wake(event.feed)
            elif isinstance(event, Cut):
                self._cut(feed, max(event.end, feed.base))
            elif event.feed not in CONTROL:
                self._rebase(feed, max(feed.base, min(event.length, feed.position)))
            if run:
                self._run()
        self._run()

    def _queue(self, feed: bytes) -> CausalQueue:
        return self.control if feed in CONTROL else self.data

    def _of(self, queue: CausalQueue) -> Iterable[Feed]:
        return [feed for feed in self.feeds.values() if self._queue(feed.feed) is queue]

    def _cut(self, feed: Feed, end: int) -> None:
        if end < feed.end:
            feed.end = end
            if feed.feed not in CONTROL:
                feed.position = min(feed.position, end)
            queue = self._queue(feed.feed)
            queue.wake_waiters(feed.feed)
            queue.doubt(self._of(queue))
            self._control_moved()

    def _rebase(self, feed: Feed, length: int) -> None:
        feed.base = length
        self.data.doubt(self._of(self.data))
        self.data.wake_waiters_where(lambda _: True)

    def _control_moved(self) -> None:
        self.data.wake_waiters_where(CONTROL.__contains__)
        self.data.doubt(self._of(self.data))

    def _run(self) -> None:
        moved = list(self.control.deliver(self._advance))
        if moved:
            self._control_moved()
        self.log += moved + list(self.data.deliver(self._advance))

    def _advance(self, name: bytes) -> Iterator[tuple[bytes, int]]:
        feed = self.feeds[name]
        while feed.position < feed.stop and not feed.fault:
            entries = feed.held[feed.position]
            if not self._queue(name).passes(feed, feed.position, entries, self._standing):
                return
            feed.position += 1
            yield name, feed.position - 1

    def _standing(self, entry: Entry) -> Standing:
        other = self.feeds[entry.feed]
        return causal_delivery.entry_standing(entry, other.position, other.end, link_of, other.base, other.base_lamport)


class Reference:
    """The same feeds, delivered from nothing by scanning all of them until a whole round delivers no block."""

    def __init__(self, feeds: Iterable[Feed]) -> None:
        self.feeds = {feed.feed: Feed(feed.feed, feed.held, feed.base, feed.end, feed.base) for feed in feeds}
        before = None
        while before != (before := [feed.position for feed in self.feeds.values()]):
            for feed in self.feeds.values():
                if feed.position < feed.stop and all(map(self.covered, feed.held[feed.position])):
                    feed.position += 1

    def covered(self, entry: Entry) -> bool:
        other = self.feeds[entry.feed]
        if entry.seq < other.base:
            return entry.lamport <= other.base_lamport
        if entry.seq >= other.end:
            return other.position >= other.end
        return other.position > entry.seq and (entry.hash, entry.lamport) == link_of(entry)

    def obstacles(self) -> dict[bytes, tuple[Entry, bool]]:
        """By blocked feed: the first entry of its next block that is not covered, and if that is a lie."""
        found = {}
        for name, feed in self.feeds.items():
            if feed.position < feed.stop:
                entry = next(entry for entry in feed.held[feed.position] if not self.covered(entry))
                other, (hash_, lamport) = self.feeds[entry.feed], link_of(entry)
                same = other.position > entry.seq and entry.hash == hash_ and lamport != entry.lamport
                found[name] = entry, entry.seq < other.base or (entry.seq < other.end and same)
        return found


def disagreements(history: History) -> list[str]:
    """Play a history on the core, and compare the outcome with the reference; empty if they agree."""
    engine = Engine()
    engine.play(history)
    reference = Reference(engine.feeds.values())
    found = []
    for name, feed in engine.feeds.items():
        if feed.position != reference.feeds[name].position:
            found.append(f"feed {name[0]}: {feed.position} delivered, not {reference.feeds[name].position}")
    lies = {
        name: f"block {reference.feeds[name].position}: its entry for feed {entry.feed.hex()[:8]} "
        "tells a wrong lamport [feed.lamport]"
        for name, (entry, lie) in reference.obstacles().items()
        if lie
    }
    if lies != {name: feed.fault for name, feed in engine.feeds.items() if feed.fault}:
        found.append(f"other lies than {lies}")
    waits = {name: entry for name, (entry, lie) in reference.obstacles().items() if not lie}
    named = {
        name: entry
        for name, entry in {**engine.control.waits_for, **engine.data.waits_for}.items()
        if engine.feeds[name].position < engine.feeds[name].stop
    }
    if waits != named:
        found.append(f"waits {named}, not {waits}")
    return found + out_of_order(engine)


def out_of_order(engine: Engine) -> list[str]:
    """Blocks that were delivered before a block that they have seen, or twice."""
    found = [] if len(set(engine.log)) == len(engine.log) else ["a block was delivered twice"]
    at = {place: index for index, place in enumerate(engine.log)}
    for (name, seq), index in at.items():
        feed = engine.feeds[name]
        for entry in feed.held[seq]:
            other = engine.feeds[entry.feed]
            if entry.seq < other.end and at.get((entry.feed, entry.seq), index) >= index and entry.seq >= other.base:
                found.append(f"block {seq} of feed {name[0]} came before block {entry.seq} of feed {entry.feed[0]}")
    return found
