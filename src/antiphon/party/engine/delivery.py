"""Causal delivery: a block is delivered when everything that its advance names is. Blocked feeds wait in their store.

A lane that cannot go on is put to sleep under the feed that it waits for, and woken by that feed alone; nothing scans.
How the runs of several feeds are interleaved does not matter to what comes of them: that is the law of models.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from antiphon.core.errors import MissingBlocks, UnknownFeed
from antiphon.core.timeframe import Timeframe
from antiphon.feed.header import Entry, Kind
from antiphon.feed.store.reader import FeedReader
from antiphon.party.engine.lane import Lane, Run
from antiphon.party.engine.ports import NO_END, Authority, LaneState, Standing
from antiphon.snapshot.root import FeedCut

BUFFERS_MAX = 8  # lanes whose next blocks are at hand; a span each
NAMED_MAX = 1 << 16


@dataclass(frozen=True, slots=True)
class Blocked:
    """A feed that cannot go on, its next block, and what it waits for."""

    feed: bytes
    seq: int
    waits_for: Entry | None
    reason: str


class Delivery:
    """The lanes of one party. Not thread-safe: its processor is."""

    def __init__(self, store: FeedReader, authority: Authority, lanes: Iterable[LaneState] = ()) -> None:
        self._store = store
        self._authority = authority
        self.lanes = {state.feed: Lane(state) for state in lanes}
        self._ready: deque[bytes] = deque(self.lanes)
        self._queued = set(self.lanes)
        self._asleep: dict[bytes, set[bytes]] = defaultdict(set)  # feed waited for → feeds that wait
        self._buffered: OrderedDict[bytes, None] = OrderedDict()
        self._ends: dict[bytes, int] = {}  # forked feeds
        self._named: dict[tuple[bytes, int], tuple[bytes, int]] = {}  # delivered blocks that others name: hash, lamport

    # -- what to look at

    def activate(self, feed: bytes) -> None:
        """Begin to deliver a feed. Done again it changes nothing."""
        if feed not in self.lanes:
            number = 1 + max((lane.state.number for lane in self.lanes.values()), default=0)
            self.lanes[feed] = Lane(LaneState(feed, number))
            self.wake(feed)

    def wake(self, *feeds: bytes) -> None:
        """These feeds may have grown."""
        for feed in feeds:
            if feed in self.lanes and feed not in self._queued:
                self._queued.add(feed)
                self._ready.append(feed)

    def wake_for_control(self) -> None:
        """The control feeds moved: whoever waits for a feed that is not delivered here looks again."""
        control = self._authority.is_control
        for waited in [feed for feed in self._asleep if feed not in self.lanes or control(feed)]:
            self.wake(*self._asleep.pop(waited))
        self._doubt_faults()

    def _doubt_faults(self) -> None:
        """What looked like a lie about a feed is none if that feed turns out to be forked before it: look again."""
        for lane in self.lanes.values():
            if lane.state.fault:
                lane.state.fault = ""
                self.wake(lane.feed)

    def end_fork(self, feed: bytes, end: int) -> int:
        """A feed ends at `end` for everybody; returns how many delivered blocks lie beyond it."""
        lane = self.lanes[feed]
        if end < self._ends.get(feed, NO_END):
            self._ends[feed] = end
            self._named.clear()
            lane.release()
            lane.forget()
            self.wake(*self._asleep.pop(feed, ()))
            self._doubt_faults()
        return max(0, lane.state.position - end)

    def rebase(self, feed: bytes, cut: FeedCut) -> None:
        """So many messages of a feed, all of them delivered, are in the base from now on."""
        self._named.clear()
        self.activate(feed)
        lane = self.lanes[feed]
        state = lane.state
        state.base, state.base_lamport = cut.length, cut.lamport
        if feed in self._ends:  # what a final epoch holds is final
            self._ends[feed] = max(self._ends[feed], cut.length)
        state.segments = lane.segments_from(cut.length)
        state.voids = [
            void._replace(start=max(void.start, cut.length)) for void in state.voids if void.stop > cut.length
        ]

    def rebased(self) -> None:
        """Every lane stands on the new base: what waited for something inside it, or seemed to lie, looks again."""
        self._doubt_faults()
        for waited in list(self._asleep):
            self.wake(*self._asleep.pop(waited))

    # -- delivery

    @property
    def at_rest(self) -> bool:
        """Whether no feed is to be looked at."""
        return not self._ready

    def pump(self) -> Iterator[Run]:
        """Everything that can be delivered now, in a causal order."""
        while self._ready:
            feed = self._ready.popleft()
            self._queued.discard(feed)
            lane = self.lanes[feed]
            moved = False
            for run in self._advance(lane):
                moved = True
                yield run
            if moved and feed in self._asleep:
                self.wake(*self._asleep.pop(feed))

    def _advance(self, lane: Lane) -> Iterator[Run]:
        lane.waits_for = None
        end = self._ends.get(lane.feed, NO_END)
        while True:
            try:
                buffer = lane.fill(self._store, end)
            except (MissingBlocks, UnknownFeed):  # woken when blocks come
                lane.release()
                return
            if buffer is None:
                self._buffered.pop(lane.feed, None)
                return
            if not lane.state.position and buffer.span.columns["kind"][buffer.at] == Kind.CREDENTIAL:
                # It begins as a control feed does, so it is none of ours, whatever it was admitted as.
                lane.state.fault = (
                    "block 0: a credential, so it is a control feed, and not the data feed it was admitted as"
                )
                lane.release()
                return
            self._keep(lane.feed)
            low, high = buffer.at, buffer.high
            while buffer.next_moving < len(buffer.moving):
                index = buffer.moving[buffer.next_moving]
                if index >= high:
                    break
                if not self._pass(lane, buffer.span.first + index, buffer.entries(index)):
                    high = index
                    break
                buffer.next_moving += 1
            stopped = high < buffer.high
            buffer.at = high
            if high > low:
                run = Run(lane.feed, buffer.span, low, high)
                lane.delivered(run)
                yield run
            if stopped:
                return

    def _pass(self, lane: Lane, seq: int, entries: tuple[Entry, ...]) -> bool:
        """Whether a block's advance is covered; if not, its lane is put to sleep, or ends."""
        control = {}
        for entry in entries:
            if self._authority.is_control(entry.feed):
                standing = self._authority.standing(entry)
                control[entry.feed] = entry.seq
            else:
                standing = self._data_standing(entry)
            if standing is Standing.LIE:
                lane.state.fault = f"block {seq}: its entry for feed {entry.feed.hex()[:8]} tells a wrong lamport"
                lane.release()
                return False
            if standing is Standing.WAITING:
                lane.waits_for = entry
                self._asleep[entry.feed].add(lane.feed)
                return False
        if control:
            lane.see(seq, control)
        return True

    def _data_standing(self, entry: Entry) -> Standing:
        other = self.lanes.get(entry.feed)
        if other is not None and entry.seq < other.state.base:
            # Joiners know nothing else of what is inside the cut, and everybody judges as they do (rule 2).
            return Standing.COVERED if entry.lamport <= other.state.base_lamport else Standing.LIE
        end = self._ends.get(entry.feed, NO_END)
        if entry.seq >= end:  # no two peers hold the same beyond a fork, so nobody waits for it
            return Standing.COVERED if not end or (other and other.state.position >= end) else Standing.WAITING
        if other is None or other.state.position <= entry.seq:
            return Standing.WAITING
        known = other.known(entry.seq) or self._named.get((entry.feed, entry.seq))
        if known is None:
            block = self._store.block(entry.feed, entry.seq)
            known = block.hash, block.lamport
            if len(self._named) >= NAMED_MAX:
                self._named.clear()
            self._named[entry.feed, entry.seq] = known
        if known[0] != entry.hash:
            return Standing.WAITING  # for the evidence of a fork
        return Standing.COVERED if known[1] == entry.lamport else Standing.LIE

    def _keep(self, feed: bytes) -> None:
        self._buffered[feed] = None
        self._buffered.move_to_end(feed)
        if len(self._buffered) > BUFFERS_MAX:
            oldest, _ = self._buffered.popitem(last=False)
            self.lanes[oldest].release()

    # -- what there is to say

    def timeframe(self) -> Timeframe:
        return Timeframe({feed: lane.state.position - 1 for feed, lane in self.lanes.items() if lane.state.position})

    def blocked(self) -> list[Blocked]:
        found = []
        for feed, lane in sorted(self.lanes.items()):
            entry, seq = lane.waits_for, lane.state.position
            if lane.state.fault:
                found.append(Blocked(feed, seq, None, lane.state.fault))
            elif lane.other_branch:
                found.append(Blocked(feed, seq, None, "the epoch below it holds another branch of this feed"))
            elif entry is not None:
                what = f"block {entry.seq} of feed {entry.feed.hex()[:8]}"
                other = self.lanes.get(entry.feed)
                forked = other is not None and other.state.position > entry.seq
                found.append(
                    Blocked(feed, seq, entry, f"it has seen another {what} than the one held" if forked else what)
                )
        return found
