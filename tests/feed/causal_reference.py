"""Random histories of control feeds and data feeds with branches, an engine on the core that delivers them, and a plain
reference.

The reference scans all feeds and branches until nothing more can be delivered or shown. A block's hash and lamport
follow from its place, so an entry can tell the truth about a block that is written later: circles come up as well.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256

from hypothesis import strategies as st

from antiphon.feed import causal_delivery
from antiphon.feed.branches import BranchBlock, Branches
from antiphon.feed.causal_delivery import CausalQueue, Standing
from antiphon.feed.header import NO_END, NO_HASH, Entry

FEEDS = [bytes([number]) * 32 for number in range(1, 7)]  # the first three are control feeds
CONTROL = frozenset(FEEDS[:3])


def hash_of(feed: bytes, seq: int, branch: int = 0) -> bytes:
    return NO_HASH if seq < 0 else sha256(feed + bytes([seq, branch])).digest()


def lamport_of(feed: bytes, seq: int) -> int:
    """A step for each block, as headers have it: so history that turns out to be a branch is shown all the same."""
    return seq + 1


def link_of(entry: Entry) -> tuple[bytes, int]:
    """The hash and the lamport of the one block of a feed's history at a place."""
    return hash_of(entry.feed, entry.seq), lamport_of(entry.feed, entry.seq)


@dataclass(frozen=True)
class Arrive:
    """More blocks of a feed come in."""

    feed: bytes
    count: int


@dataclass(frozen=True)
class Cut:
    """A feed turns out to be forked: it ends here for everybody, and what is held beyond is a branch."""

    feed: bytes
    end: int


@dataclass(frozen=True)
class Rebase:
    """An epoch becomes final: up to so many delivered blocks of a data feed are in its snapshot."""

    feed: bytes
    length: int


@dataclass(frozen=True)
class Show:
    """Blocks of another branch of a feed come in, from one on."""

    feed: bytes
    first: int


Event = Arrive | Cut | Rebase | Show


@dataclass(frozen=True)
class History:
    """The advance entries of all blocks by feed, its other branch, and what happens; whether delivery runs after it."""

    blocks: dict[bytes, list[tuple[Entry, ...]]]
    branches: dict[bytes, list[BranchBlock]]
    events: list[tuple[Event, bool]]


def make_history(seed: int, feed_count: int, length_max: int, event_count: int) -> History:
    """A random history. Most entries tell the truth, and most events bring blocks."""
    chance = random.Random(seed)
    feeds = chance.sample(FEEDS, feed_count)
    forks = {feed: min(chance.randint(0, length_max), chance.randint(0, length_max)) for feed in feeds}
    branches: dict[bytes, list[BranchBlock]] = {feed: [] for feed in feeds}

    def entries(feed: bytes) -> tuple[Entry, ...]:
        others = [other for other in FEEDS if other != feed and (other in CONTROL or feed not in CONTROL)]
        near = [other for other in others if other in feeds]
        seen = near if near and chance.random() < 0.9 else others
        count = min(len(seen), chance.choice([0, 0, 1, 1, 2, 3]))
        return tuple(sorted(entry(other) for other in chance.sample(seen, count)))

    def entry(other: bytes) -> Entry:
        found = Entry(other, min(chance.randint(0, length_max) for _ in range(3)), 0, b"")
        hash_, lamport = link_of(found)
        if branches.get(other) and chance.random() < 0.5:
            known = chance.choice(branches[other])
            found, hash_, lamport = found._replace(seq=known.seq), known.hash, known.lamport
        if chance.random() < 0.1:
            lamport += chance.choice([-3, -2, -1, 1, 2, 5])
        return found._replace(lamport=lamport, hash=bytes([9]) * 32 if chance.random() < 0.1 else hash_)

    def branch(feed: bytes) -> list[BranchBlock]:
        made: list[BranchBlock] = []
        previous, before = hash_of(feed, forks[feed] - 1), lamport_of(feed, forks[feed] - 1) if forks[feed] else 0
        for seq in range(forks[feed], length_max + 1):
            seen = entries(feed)
            lamport = 1 + max([before, *(entry.lamport for entry in seen)]) + (chance.random() < 0.1)
            made.append(BranchBlock(feed, seq, hash_of(feed, seq, 1), previous, lamport, seen))
            previous, before = made[-1].hash, lamport
        return made

    def event() -> tuple[Event, bool]:
        feed, number = chance.choice(feeds), max(chance.randint(0, length_max), chance.randint(0, length_max))
        kinds: list[type[Event]] = [Arrive, Arrive, Arrive, Arrive, Cut, Rebase, Rebase, Show, Show, Show]
        return chance.choice(kinds)(feed, number), chance.random() < 0.5

    for feed in feeds:
        branches[feed] = branch(feed)
    blocks = {feed: [entries(feed) for _ in range(chance.randint(length_max // 2, length_max))] for feed in feeds}
    return History(blocks, branches, [event() for _ in range(event_count)])


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
        return min(len(self.held), self.end)

    @property
    def base_lamport(self) -> int:
        return lamport_of(self.feed, self.base - 1)

    @property
    def ended(self) -> bool:
        """True if a block that follows the history is a branch: always in a data feed, and at a known fork."""
        return self.feed not in CONTROL or self.position >= self.end

    def beyond(self) -> list[BranchBlock]:
        """The blocks that are held beyond the end: a branch like any other."""
        return [
            BranchBlock(
                self.feed,
                seq,
                hash_of(self.feed, seq),
                hash_of(self.feed, seq - 1),
                lamport_of(self.feed, seq),
                self.held[seq],
            )
            for seq in range(min(self.end, len(self.held)), len(self.held))
        ]


class Engine:
    """Two layers on the core, as in a peer: data feeds wait for control feeds, and never the other way round."""

    def __init__(self) -> None:
        self.feeds = {feed: Feed(feed) for feed in FEEDS}
        self.control, self.data = CausalQueue(self._position(True)), CausalQueue(self._position(False))
        self.branches = {id(queue): Branches(queue) for queue in (self.control, self.data)}
        self.log: list[bytes] = []

    def play(self, history: History) -> None:
        for event, run in history.events:
            feed = self.feeds[event.feed]
            if isinstance(event, Arrive):
                feed.held = history.blocks[event.feed][: len(feed.held) + event.count]
                self._queue(event.feed).wake(event.feed)
                self._branches(event.feed).add(feed.beyond())
            elif isinstance(event, Show):
                shown = [replace(block) for block in history.branches[event.feed] if block.seq >= event.first]
                self._branches(event.feed).add(shown)
            elif isinstance(event, Cut):
                self._cut(feed, max(event.end, feed.base))
            elif event.feed not in CONTROL:
                self._rebase(feed, max(feed.base, min(event.length, feed.position)))
            if run:
                self._run()
        self._run()

    def _position(self, control: bool) -> Callable[[bytes], int]:
        return lambda feed: self.feeds[feed].position if (feed in CONTROL) == control else 0

    def _queue(self, feed: bytes) -> CausalQueue:
        return self.control if feed in CONTROL else self.data

    def _branches(self, feed: bytes) -> Branches:
        return self.branches[id(self._queue(feed))]

    def _of(self, queue: CausalQueue) -> Iterable[Feed]:
        return [feed for feed in self.feeds.values() if self._queue(feed.feed) is queue]

    def _cut(self, feed: Feed, end: int) -> None:
        if end < feed.end:
            feed.end = end
            feed.position = min(feed.position, end)
            self._branches(feed.feed).add(feed.beyond())
            self._queue(feed.feed).doubt([feed])
            self._queue(feed.feed).wake_ended(feed.feed)

    def _rebase(self, feed: Feed, length: int) -> None:
        feed.base = length
        self.data.doubt(self._of(self.data))
        self.branches[id(self.data)].doubt()
        self.data.wake_all()

    def _run(self) -> None:
        moved = list(self.control.deliver(self._advance))
        if moved:
            self.data.wake_waiters(moved)
        self.log += moved + list(self.data.deliver(self._advance))

    def _advance(self, name: bytes) -> Iterator[bytes]:
        feed = self.feeds.get(name)
        if feed is None:
            yield from self._show(name)
            return
        while feed.position < feed.stop and not feed.fault:
            entries = feed.held[feed.position]
            if not self._queue(name).passes(feed, feed.position, entries, self._standing):
                if feed.fault:
                    self._queue(name).wake_ended(name)
                return
            feed.position += 1
            yield hash_of(name, feed.position - 1)

    def _show(self, name: bytes) -> Iterator[bytes]:
        (branches,) = [branches for branches in self.branches.values() if name in branches.blocks]
        block = branches.blocks[name]
        feed = self.feeds[block.feed]
        head = None if feed.ended or feed.fault else hash_of(feed.feed, feed.position - 1)
        if branches.show(block, self._standing, feed.position, link_of, feed.base, feed.base_lamport, head):
            yield name

    def _standing(self, entry: Entry) -> Standing:
        other = self.feeds[entry.feed]
        shown = self._branches(entry.feed).shown
        return causal_delivery.entry_standing(entry, other.position, link_of, shown, other.base, other.base_lamport)


class Reference:
    """The same feeds, delivered from nothing by scanning all of them until a whole round brings nothing."""

    def __init__(self, feeds: Iterable[Feed], branches: Iterable[BranchBlock]) -> None:
        self.feeds = {feed.feed: Feed(feed.feed, feed.held, feed.base, feed.end, feed.base) for feed in feeds}
        self.branches = list(branches)
        self.shown: dict[bytes, BranchBlock] = {}
        before = None
        while before != (before := ([feed.position for feed in self.feeds.values()], len(self.shown))):
            for feed in self.feeds.values():
                if feed.position < feed.stop and all(map(self.covered, feed.held[feed.position])):
                    feed.position += 1
            for block in self.branches:
                if block.hash not in self.shown and self._follows(block):
                    self.shown[block.hash] = block

    def _follows(self, block: BranchBlock) -> bool:
        feed, before = self.feeds[block.feed], self.shown.get(block.previous)
        if block.seq == feed.position and block.previous == hash_of(feed.feed, block.seq - 1) and not feed.ended:
            obstacle = self._obstacle(feed)
            if obstacle is None or not obstacle[1]:  # history to come, unless the history has a fault
                return False
        bounds = [0] if block.seq == 0 else []
        if 0 < block.seq <= feed.base:
            bounds.append(feed.base_lamport)
        if before is not None:
            bounds.append(before.lamport)
        if feed.base < block.seq <= feed.position and block.previous == hash_of(block.feed, block.seq - 1):
            bounds.append(lamport_of(block.feed, block.seq - 1))
        greatest = max([*bounds, *(entry.lamport for entry in block.entries)], default=0)
        return bool(bounds) and all(map(self.covered, block.entries)) and block.lamport <= greatest + 1

    def covered(self, entry: Entry) -> bool:
        other, shown = self.feeds[entry.feed], self.shown.get(entry.hash)
        if entry.seq < other.base and entry.lamport <= other.base_lamport:
            return True
        if shown is not None and (shown.feed, shown.seq, shown.lamport) == (entry.feed, entry.seq, entry.lamport):
            return True
        return other.base <= entry.seq < other.position and (entry.hash, entry.lamport) == link_of(entry)

    def obstacles(self) -> dict[bytes, tuple[Entry, bool]]:
        """By blocked feed: the first entry of its next block that is not covered, and if that is a lie."""
        return {name: found for name, feed in self.feeds.items() if (found := self._obstacle(feed)) is not None}

    def _obstacle(self, feed: Feed) -> tuple[Entry, bool] | None:
        entries = feed.held[feed.position] if feed.position < feed.stop else ()
        entry = next((entry for entry in entries if not self.covered(entry)), None)
        if entry is None:
            return None
        other, shown = self.feeds[entry.feed], self.shown.get(entry.hash)
        known = other.position > entry.seq and entry.hash == hash_of(entry.feed, entry.seq)
        known = known or (shown is not None and (shown.feed, shown.seq) == (entry.feed, entry.seq))
        return entry, entry.seq >= other.base and known


def disagreements(history: History) -> list[str]:
    """Play a history on the core, and compare the outcome with the reference; empty if they agree."""
    engine = Engine()
    engine.play(history)
    held = [block for branches in engine.branches.values() for block in branches.blocks]
    all_ = [block for made in history.branches.values() for block in made]
    all_ += [block for feed in engine.feeds.values() for block in replace(feed, end=0).beyond()]
    reference = Reference(engine.feeds.values(), [block for block in all_ if block.hash in held])
    found = []
    for name, feed in engine.feeds.items():
        if feed.position != reference.feeds[name].position:
            found.append(f"feed {name[0]}: {feed.position} delivered, not {reference.feeds[name].position}")
    shown = {block.hash for branches in engine.branches.values() for block in branches.blocks.values() if block.shown}
    if shown != set(reference.shown):
        found.append(f"{len(shown)} shown, not {len(reference.shown)}")
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
        if name in engine.feeds and engine.feeds[name].position < engine.feeds[name].stop
    }
    if waits != named:
        found.append(f"waits {named}, not {waits}")
    return found + out_of_order(engine)


def out_of_order(engine: Engine) -> list[str]:
    """Blocks that were delivered before a block that they have seen."""
    at: dict[bytes, int] = {}
    for index, name in enumerate(engine.log):
        at.setdefault(name, index)
    found = []
    for name, feed in engine.feeds.items():
        for seq, entries in enumerate(feed.held[: feed.position]):
            for entry in entries:
                inside = entry.seq < engine.feeds[entry.feed].base
                if not inside and at.get(entry.hash, len(at)) >= at[hash_of(name, seq)]:
                    found.append(f"block {seq} of feed {name[0]} came before {entry.seq} of feed {entry.feed[0]}")
    return found
