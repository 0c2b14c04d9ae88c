"""`Delivery`: causal delivery of the data feeds of a party, in runs of blocks, on top of `feed.causal_delivery`.

A block is delivered once every block that its advance entries name is delivered, or shown on a branch (rule 23). A
blocked lane waits in the feed store, not in memory. It is registered under the block that it waits for, and only that
wakes it: nothing scans. The interleaving of runs of several feeds does not change any state: models guarantee that.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from antiphon.core.errors import CorruptBlock, MissingBlocks, UnknownFeed
from antiphon.core.reasons import Reason, because, code_of
from antiphon.core.timeframe import Timeframe
from antiphon.feed.branches import Branches
from antiphon.feed.causal_delivery import CausalQueue, Standing, entry_standing
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.header import NO_END, Entry, Kind
from antiphon.feed.span import Span
from antiphon.feed.store.ingest import begins_control
from antiphon.feed.store.reader import FeedReader
from antiphon.party.engine.lane import Lane, Run
from antiphon.party.engine.ports import Authority, LaneState
from antiphon.party.engine.rot import Rot
from antiphon.snapshot.root import FeedCut

BUFFERS_MAX = 8  # lanes that hold a span in memory
NAMED_MAX = 1 << 16
FETCHED_BLOCKS = 256  # beyond the end of a feed, that are read together with the one that is asked for
CONTROL_FEED = because(
    Reason.FEED_KIND, "block 0: a credential, so it is a control feed, and not the data feed it was admitted as"
)
OTHER_BRANCH = because(Reason.WAITS_BRANCH, "the epoch below it holds another branch of this feed")


@dataclass(frozen=True, slots=True)
class Blocked:
    """A feed that cannot be delivered further, its next block, and the entry that it waits for."""

    feed: bytes
    seq: int
    waits_for: Entry | None
    reason: str

    @property
    def code(self) -> Reason:
        """The stable code of the reason."""
        return code_of(self.reason)


class Delivery:
    """The lanes of one party. Not thread-safe: `PartyProcessor` holds a lock around it."""

    def __init__(
        self,
        store: FeedReader,
        authority: Authority,
        lanes: Iterable[LaneState] = (),
        *,
        look: bool = True,
        rot: Rot | None = None,
    ) -> None:
        """Continue these lanes. With `look` all of them are looked at; otherwise the caller wakes those with news."""
        self._store = store
        self._authority = authority
        self.rot = Rot() if rot is None else rot
        self.lanes = {state.feed: Lane(state) for state in lanes}
        self._numbers = max((lane.state.number for lane in self.lanes.values()), default=0)  # given to lanes so far
        self._queue = CausalQueue(self._position, self.lanes if look else ())
        self.branches = Branches(self._queue, self._fetch)
        self._branched: dict[bytes, FeedRecord] = {}  # the records by which branch blocks are fetched
        self._counted = 0  # control blocks whose waiters were woken
        self._buffered: OrderedDict[bytes, None] = OrderedDict()
        self._ends: dict[bytes, int] = {}  # of forked or faulty feeds
        self.moved: set[bytes] = set()  # feeds whose positions have changed since `take_moved`
        self._named: dict[tuple[bytes, int], tuple[bytes, int]] = {}  # delivered blocks that others name: hash, lamport

    # -- lanes

    def activate(self, feed: bytes) -> None:
        """Add a lane for a feed, unless it has one."""
        if feed not in self.lanes:
            self._numbers += 1
            self.lanes[feed] = Lane(LaneState(feed, self._numbers))
            self.wake(feed)

    def wake(self, feed: bytes) -> None:
        """Schedule the lane of a feed that may have grown; a feed without a lane is ignored."""
        if feed in self.lanes:
            self._queue.wake(feed)

    def wake_for_control(self) -> None:
        """Schedule the lanes that wait for control blocks which have come to count since."""
        blocks = self._authority.counted(self._counted)
        self._counted += len(blocks)
        self._queue.wake_waiters(blocks)

    def take_branches(self, record: FeedRecord) -> None:
        """Take note of blocks of a feed that are no history: beyond its end, and of other branches.

        None is read before a block that waits has an entry for it, or for one that follows it.
        """
        self.rot.look_again(record)
        known = self._branched.get(record.feed)
        if known is record or record.feed not in self.lanes:
            return
        self._branched[record.feed] = record
        self.lanes[record.feed].compare(record)
        if record.branches or self._end(record) < record.length:
            self.branches.seek_again(record.feed)

    def _end(self, record: FeedRecord) -> int:
        """Return where the history of a feed ends: blocks that are held beyond it are on a branch."""
        if self.parts_from_base(record):
            return 0
        return min(record.valid_length, self._ends.get(record.feed, NO_END))

    def parts_from_base(self, record: FeedRecord) -> bool:
        """True if the held blocks of a feed are another branch than the one that the base has taken."""
        lane = self.lanes.get(record.feed)
        if lane is None or lane.state.position != lane.state.base:
            return False
        state, base = lane.state, lane.state.base
        if not base or record.start > base:
            return False
        if record.length <= base:  # a block inside the cut matters only if it is above the cut's lamport (rule 2′)
            return record.lamport > state.base_lamport
        if record.start == base:
            return record.start_hash != state.hash
        with suppress(CorruptBlock):
            (last,) = self._store.held(record.feed, base - 1, base)
            return last.hash_at(base - 1) != state.hash
        return False

    def _fetch(self, entry: Entry) -> list[Span]:
        """Read the branch block that an entry names. Branches of control are a matter of the authority alone."""
        feed, seq = entry.feed, entry.seq
        record = self._branched.get(feed)
        if record is None:
            return []
        start = max(self._end(record), record.start)
        found: list[Span] = []
        if start <= seq < record.length:
            with suppress(CorruptBlock):  # as good as missing
                held = list(self._store.held(feed, max(start, seq - FETCHED_BLOCKS), seq + 1))
                found = held if held[-1].hash_at(seq) == entry.hash and self._matters(held[-1], seq) else []
        if not found and record.branches:
            with suppress(CorruptBlock):
                span = self._store.branch_with(feed, seq, entry.hash)
                found = [] if span is None else [span]
        return [span for span in found if not begins_control(span)]

    def _matters(self, span: Span, seq: int) -> bool:
        """True unless a block is inside the cut and not above its lamport: then nobody asks whether it is shown."""
        state = self.lanes[span.feed].state
        return seq >= state.base or int(span.columns["lamport"][seq - span.first]) > state.base_lamport

    def end_fork(self, feed: bytes, end: int) -> int:
        """End a feed at `end`, as every peer does. Return how many delivered blocks lie beyond it."""
        lane = self.lanes[feed]
        if end < self._ends.get(feed, NO_END):
            self._ends[feed] = end
            self._named.clear()
            lane.release()
            lane.forget()
            self._branched.pop(feed, None)
            self._queue.doubt([lane.state])
            self.moved.add(feed)
        return max(0, lane.state.position - end)

    def change_branch(self, feed: bytes) -> None:
        """Let a lane continue, of whose feed the store has another branch now: the one that the base holds."""
        lane = self.lanes[feed]
        lane.other_branch = False
        lane.release()
        lane.forget()
        self._named.clear()
        self._branched.pop(feed, None)
        self.wake(feed)

    def rebase(self, feed: bytes, cut: FeedCut) -> None:
        """Move the base of a lane to a cut. All messages inside the cut are delivered."""
        self._named.clear()
        self.activate(feed)
        lane = self.lanes[feed]
        state = lane.state
        state.base, state.base_lamport = cut.length, cut.lamport
        if feed in self._ends:  # what a final epoch holds is final
            self._ends[feed] = max(self._ends[feed], cut.length)
        state.segments = state.segments.since(cut.length)
        state.voids = [
            void._replace(start=max(void.start, cut.length)) for void in state.voids if void.stop > cut.length
        ]

    def rebased(self) -> None:
        """Check all waiting and faulty lanes again, after `rebase` of every lane."""
        self._queue.doubt(lane.state for lane in self.lanes.values())
        self.branches.doubt()
        self._queue.wake_all()
        self._queue.wake(*(feed for feed, lane in self.lanes.items() if lane.other_branch))

    def take_moved(self) -> set[bytes]:
        """Return the feeds whose positions have changed since the last call."""
        moved, self.moved = self.moved, set()
        return moved

    # -- delivery

    def is_done(self, records: Iterable[FeedRecord]) -> bool:
        """True if all blocks of these feeds are delivered: nothing waits, has ended, or is on a branch."""
        if self._queue.ready or self._queue.waits_for or self.rot or self.branches.blocks:
            return False
        ends = ((record, self.lanes.get(record.feed)) for record in records)
        return all(
            record.why is End.NONE
            and not (record.branches or record.ignored)
            and (lane is None or (lane.is_at(record) and not lane.state.fault))
            for record, lane in ends
        )

    @property
    def at_rest(self) -> bool:
        """True if no lane is scheduled."""
        return not self._queue.ready

    def pump(self) -> Iterator[Run]:
        """Deliver all blocks that can be delivered now, as runs in a causal order."""
        return self._queue.deliver(self._advance)

    def _position(self, feed: bytes) -> int:
        lane = self.lanes.get(feed)
        return 0 if lane is None else lane.state.position

    def _advance(self, feed: bytes) -> Iterator[Run]:
        if feed in self.branches.blocks:
            self._show(feed)
            return
        lane = self.lanes[feed]
        end = min(self._ends.get(lane.feed, NO_END), self.rot.end(lane.feed))
        while True:
            try:
                buffer = lane.fill(self._store, end)
            except (MissingBlocks, UnknownFeed):  # woken when blocks come
                lane.release()
                return
            except CorruptBlock as error:
                lane.release()
                self.rot.note(error, self._store.find(lane.feed))
                return
            if buffer is None:
                self._buffered.pop(lane.feed, None)
                return
            if not lane.state.position and buffer.span.columns["kind"][buffer.at] == Kind.CREDENTIAL:
                # A feed that begins with a credential is a control feed, whatever it was admitted as.
                lane.state.fault = CONTROL_FEED
                lane.release()
                return
            self._keep(lane.feed)
            low, high = buffer.at, buffer.high
            while buffer.next_moving < len(buffer.moving):
                index = buffer.moving[buffer.next_moving]
                if index >= high:
                    break
                if not self._passes(lane, buffer.span.first + index, buffer.entries(index)):
                    high = index
                    break
                buffer.next_moving += 1
            stopped = high < buffer.high
            buffer.at = high
            if high > low:
                run = Run(lane.feed, buffer.span, low, high)
                lane.delivered(run)
                self.moved.add(lane.feed)
                yield run
            if stopped:
                if lane.state.fault:
                    lane.release()
                return

    def _show(self, block: bytes) -> None:
        """Show a branch block, if all that leads to it is here: its messages are not applied."""
        found = self.branches.blocks[block]
        state = self.lanes[found.feed].state
        standing = partial(self._standing, {})
        if self.branches.show(found, standing, state.position, self._link, state.base, state.base_lamport):
            self._queue.wake_waiters([block])

    def _passes(self, lane: Lane, seq: int, entries: tuple[Entry, ...]) -> bool:
        """True if block `seq` can be delivered. The lane then has seen the control blocks that it names."""
        control: dict[bytes, int] = {}
        passes = self._queue.passes(lane.state, seq, entries, partial(self._standing, control))
        if passes and control:
            lane.see(seq, control)
        return passes

    def _standing(self, control: dict[bytes, int], entry: Entry) -> Standing:
        """Compare an advance entry with the feed that it names; note its seq in `control` if it names a control block.

        A feed may have branches of both kinds. The block that an entry names is on one of them.
        """
        found = self._authority.standing(entry)
        if found is not Standing.WAITING:
            control[entry.feed] = entry.seq
            return found
        lane = self.lanes.get(entry.feed)
        if lane is None:
            return Standing.WAITING
        state, shown = lane.state, self.branches.shown
        return entry_standing(entry, state.position, self._link, shown, state.base, state.base_lamport)

    def _link(self, entry: Entry) -> tuple[bytes, int]:
        """Return the hash and the lamport of the delivered block at an entry's seq."""
        feed, seq = entry.feed, entry.seq
        known = self.lanes[feed].known(seq) or self._named.get((feed, seq))
        if known is None:
            block = self._store.block(feed, seq)
            known = block.hash, block.lamport
            if len(self._named) >= NAMED_MAX:
                self._named.clear()
            self._named[feed, seq] = known
        return known

    def _keep(self, feed: bytes) -> None:
        self._buffered[feed] = None
        self._buffered.move_to_end(feed)
        if len(self._buffered) > BUFFERS_MAX:
            oldest, _ = self._buffered.popitem(last=False)
            self.lanes[oldest].release()

    # -- status

    def timeframe(self) -> Timeframe:
        """Return the last delivered seq of each data feed."""
        return Timeframe({feed: lane.state.position - 1 for feed, lane in self.lanes.items() if lane.state.position})

    def covers(self, timeframe: Timeframe) -> bool:
        """True if all of a timeframe is delivered."""
        return all(self._position(feed) > seq for feed, seq in timeframe.items())

    @property
    def lamport(self) -> int:
        """The greatest lamport of all delivered messages. Control blocks have theirs: a fork may take some back."""
        return max((lane.state.lamport for lane in self.lanes.values()), default=0)

    def wanted(self) -> Iterator[Entry]:
        """Yield the blocks, perhaps of other branches, that are missing for waiting blocks to be delivered."""
        for feed in sorted(self.lanes.keys() & self._queue.waits_for.keys()):
            missing = self.branches.obstacle(self._queue.waits_for[feed])
            if missing is not None and self._authority.is_control(missing.feed):
                missing = self._authority.obstacle(missing)
            if missing is not None:
                yield missing

    def blocked(self) -> list[Blocked]:
        """List the lanes that wait or have ended in a fault, with reasons for people."""
        return [blocked for feed in sorted(self.lanes) if (blocked := self.blocked_at(feed)) is not None]

    def blocked_at(self, feed: bytes) -> Blocked | None:
        """Return why the lane of a feed waits, or where it has ended in a fault; None if it does neither."""
        lane, entry = self.lanes[feed], self._queue.waits_for.get(feed)
        seq = lane.state.position
        if lane.state.fault:
            return Blocked(feed, seq, None, lane.state.fault)
        if lane.other_branch:
            return Blocked(feed, seq, None, OTHER_BRANCH)
        if reason := self.rot.reason(feed):
            return Blocked(feed, seq, None, reason)
        if entry is None:
            return None
        what = f"block {entry.seq} of feed {entry.feed.hex()[:8]}"
        other = self.lanes.get(entry.feed)
        if other is not None and other.state.position > entry.seq:
            return Blocked(
                feed, seq, entry, because(Reason.WAITS_BRANCH, f"it has seen another {what} than the one held")
            )
        return Blocked(feed, seq, entry, because(Reason.WAITS_BLOCK, what))
