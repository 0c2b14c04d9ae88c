"""`SettledBranches`: the branch blocks of control feeds that a machine knows without holding them.

Most of what a hostile writer signs beyond a fork says nothing but whom it names, counts for nobody, or waits for ever.
An opening takes that from a checkpoint, and leaves the blocks in the store (`BranchCheckpoint`). A block is read again,
with those that lead to it, when somebody asks for its act, when it is a vote that may count, when a block follows it,
or when the block comes that it waits for.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from antiphon.core.stamp import Stamp
from antiphon.feed.block import Block
from antiphon.feed.branches import BranchBlock, Branches
from antiphon.feed.causal_delivery import CausalQueue
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import NO_END, NO_HASH, Entry, Flag
from antiphon.feed.span import Span
from antiphon.halo.acts.act import Act
from antiphon.halo.acts.barren_acts import BarrenActs, Row, row_of
from antiphon.halo.acts.grant import admits, subject_of
from antiphon.halo.control.branch_checkpoint import COUNT, OPEN, SHOWN, START, BranchCheckpoint, SettledSpan
from antiphon.halo.control.control_lane import ControlLane, linked
from antiphon.halo.control.stray_acts import StrayActs
from antiphon.halo.credentials.claims import EpochAct, Equivocated, FeedAdmission, FeedKind, PartyGenesis
from antiphon.halo.finality.epoch_chain import EpochChain
from antiphon.halo.finality.idle_votes import branch_kind, may_count

if TYPE_CHECKING:
    from antiphon.halo.control.machine import PartyMachine


class BranchSource(Protocol):
    """The kept branches of feeds, as a feed store has them."""

    def branch_ending(self, feed: bytes, hash_: bytes) -> Span | None:
        """Return the span of a branch that ends with a block."""

    def branch_firsts(self, feed: bytes) -> Mapping[bytes, int]:
        """Return the first blocks of all kept spans of a feed, by the hash of the last block."""


class _Kept(NamedTuple):
    """A span that a machine was shown, as its store keeps it: its first block, and its last well-formed one."""

    first: int
    tip: bytes


class _SettledPlace(NamedTuple):
    """The place of a settled block in the checkpoint of its feed: the row, and how many blocks of it come before."""

    feed: bytes
    row: int
    number: int


class SettledBranches:
    """The settled blocks of one party machine, and the spans that it was shown since."""

    def __init__(
        self,
        machine: PartyMachine,
        lanes: MutableMapping[bytes, ControlLane],
        queue: CausalQueue,
        branches: Branches,
        strays: StrayActs,
    ) -> None:
        self._machine = machine
        self._lanes = lanes
        self._queue = queue
        self._branches = branches
        self._strays = strays
        self.source: BranchSource | None = None
        self.all_kept = True  # all branches that were shown are in the store: checkpoints can be bound to them
        self._parts: dict[bytes, BranchCheckpoint] = {}
        self._blocks: dict[bytes, _SettledPlace] | None = None  # by hash; made when it is asked for
        self._kept: dict[bytes, dict[bytes, _Kept]] = {}  # by feed and hash of the last block
        self._held: dict[bytes, tuple[int, bytes]] = {}  # by feed: blocks in the store, beyond a fork, too; the last

    def __bool__(self) -> bool:
        return bool(self._parts)

    # -- what is settled

    def _place(self, hash_: bytes) -> _SettledPlace | None:
        """Return the place of a settled block; None if it is held, or not known."""
        if not self._parts:
            return None
        if self._blocks is None:
            self._blocks = {}
            for feed, part in self._parts.items():
                for row, span in enumerate(part.spans()):
                    places = (_SettledPlace(feed, row, number) for number in range(len(span.hashes)))
                    self._blocks.update(zip(span.hashes, places, strict=True))
        found = self._blocks.get(hash_)
        return None if found is None or self._parts[found.feed].rows[found.row, SHOWN] == OPEN else found

    def holds(self, hash_: bytes) -> bool:
        """True if a block is settled."""
        return self._place(hash_) is not None

    def shown(self, entry: Entry) -> int | None:
        """Return the lamport of the settled block that an entry names, if that is shown; else None."""
        found = self._place(entry.hash)
        if found is None or found.feed != entry.feed:
            return None
        part = self._parts[found.feed]
        _, start, _, shown = part.rows[found.row].tolist()
        if found.number >= shown or entry.seq != start + found.number:
            return None
        return int(part.lamports[part.offsets[found.row] + found.number])

    def first_waiting(self, hash_: bytes) -> bytes:
        """Return the first block that waits, of those that lead to a settled block in its span; "" if none does."""
        found = self._place(hash_)
        if found is None:
            return b""
        part = self._parts[found.feed]
        shown = int(part.rows[found.row, SHOWN])
        return part.hash_at(found.row, shown) if found.number >= shown else b""

    def stamps(self) -> Iterator[Stamp]:
        """Yield the stamps of settled acts: all are void."""
        for feed, part in self._parts.items():
            for at in range(len(part.rows)):
                yield from part.stamps(feed, at)

    def admitted(self) -> dict[bytes, bytes]:
        """Return the data feeds that settled acts admit, each with the hash of a block that does."""
        found: dict[bytes, bytes] = {}
        for part in self._parts.values():
            found |= {feed: hash_ for feed, hash_ in part.admitted().items() if self.holds(hash_)}
        return found

    # -- reading blocks again

    def wake(self, chain: EpochChain) -> None:
        """Hold votes again that may count by this chain of epochs."""
        for part in self._parts.values():
            for number in part.votes.seqs[may_count(chain, part.votes)].tolist():
                self.recall(part.hash_of(number))

    def recall(self, hash_: bytes) -> None:
        """Hold a block again if it is settled, and those that lead to it."""
        way: list[tuple[ControlLane, list[BranchBlock], int]] = []
        while (found := self._place(hash_)) is not None:
            feed, at, _ = found
            span = self._parts[feed].span(at)
            self._parts[feed].rows[at, SHOWN] = OPEN
            self._kept.setdefault(feed, {})
            if span.last != NO_HASH:
                self._kept[feed].setdefault(span.last, _Kept(span.first, span.hashes[-1]))
            lane = self._lanes[feed]
            before, blocks = self._read(lane, span)
            way.append((lane, list(linked(blocks, before)), span.shown))
            if not span.shown:
                break
            hash_ = before
        for lane, again, shown in reversed(way):
            acts: list[Act] = []
            for block in again[:shown]:
                self._branches.hold(block, shown=True)
                if not block.whole.flags & Flag.MORE:
                    acts += self._machine.read_stray(lane, block)
            self._machine.know_again(acts)
            for at, block in enumerate(again[shown:]):
                self._branches.hold(block, shown=False)
                if at:
                    self._queue.sleep(block.hash, block.before)
                elif block.hash not in self._queue.waits_for:  # it has a fault, or what it waited for has come
                    self._queue.wake(block.hash)

    def recall_at(self, feed: bytes, seq: int) -> None:
        """Hold all shown blocks at a place again."""
        part = self._parts.get(feed)
        for at in range(0 if part is None else len(part.rows)):
            assert part is not None
            start, shown = int(part.rows[at, START]), int(part.rows[at, SHOWN])
            if start <= seq < start + shown:
                self.recall(part.hash_at(at, seq - start))

    def _read(self, lane: ControlLane, span: SettledSpan) -> tuple[bytes, Sequence[Block]]:
        """Read the settled blocks of a span. Return them, and the hash of the block before."""
        feed, stop = lane.feed, span.start + len(span.hashes)
        if span.last == NO_HASH:
            source = self._machine.checkpoints.source
            assert source is not None
            if span.start <= len(lane.blocks):
                return lane.hash_before(span.start), source(feed, span.start, stop)
            # since then the history was cut further back: the block before is in the store, as these are
            earlier, *blocks = source(feed, span.start - 1, stop)
            return earlier.hash, blocks
        found = None if self.source is None else self.source.branch_ending(feed, span.last)
        assert found is not None, "a kept span of a branch is never deleted"
        low = span.start - found.first
        before = found.hash_at(span.start - 1) if low else found.previous
        return before, list(found.blocks(low, stop - found.first))

    # -- at the next opening

    def fits(self, record: FeedRecord | None, saved: BranchCheckpoint) -> bool:
        """True if a store still has all blocks of a feed that a checkpoint was derived from."""
        blocks = self._machine.checkpoints.source
        if record is None or self.source is None or blocks is None or record.start or record.length < saved.held:
            return False
        if saved.held and blocks(record.feed, saved.held - 1, saved.held)[0].hash != saved.tip:
            return False
        kept = self.source.branch_firsts(record.feed)
        return all(kept.get(last, first + 1) <= first for last, first in saved.firsts(settled=False).items())

    def restore(self, feed: bytes, saved: BranchCheckpoint) -> bool:
        """Take a checkpoint that fits, if the history of its feed ends where it did; else the branches are read."""
        if not len(saved.lamports):
            return False
        lane = self._lanes.setdefault(feed, ControlLane(feed, known=True))  # nothing is settled of unknown feeds
        if len(lane.blocks) != saved.end or not self.is_frozen(lane):
            return False
        self._parts[feed] = saved
        self._blocks = None
        self._strays.named.update(dict.fromkeys(saved.admitted()))
        self._machine.taken.shown[feed].update(saved.firsts(settled=True))
        for at, entry in saved.waits.items():
            self._queue.sleep(saved.hash_at(at, int(saved.rows[at, SHOWN])), entry)
        if self.until(feed) > lane.held:
            lane.held, lane.tip = self.until(feed), saved.span(0).hashes[-1]
        return True

    def is_frozen(self, lane: ControlLane) -> bool:
        """True if the history of a feed ends for good, by what is known without its branches, and others know it."""
        feed, end = lane.feed, len(lane.blocks)
        if not lane.known or feed == self._machine.genesis_feed:
            return False
        if self._strays.reported.get(feed, NO_END) < self._machine.evident.get(feed, NO_END):
            return False  # an act on a branch alone says that it ends there
        return self._machine.known_forks.get(feed) == end or (lane.ended and lane.held > 0)

    def until(self, feed: bytes) -> int:
        """Return up to which block those that the store holds beyond a fork are settled; 0 if none is."""
        part = self._parts.get(feed)
        if part is None or not len(part.rows) or part.last(0) != NO_HASH:
            return 0
        return int(part.rows[0, START] + part.rows[0, COUNT])

    # -- to be saved

    def note(self, span: Span, count: int, *, kept: bool) -> None:
        """Note a span that was shown, and is kept in the store, or nowhere. Its first `count` are well-formed."""
        if not kept:
            self.all_kept = False
            return
        tip = span.hash_at(span.first + count - 1) if count else NO_HASH
        self._kept.setdefault(span.feed, {})[span.hash_at(span.end - 1)] = _Kept(span.first, tip)

    def note_held(self, feed: bytes, length: int, tip: bytes) -> None:
        """Note how many blocks of a feed the store holds, also those beyond a fork, and the hash of the last."""
        self._held[feed] = length, tip

    def collect(self, lane: ControlLane, live: Container[bytes]) -> BranchCheckpoint | None:
        """Return what is known of the branches of a feed; None if it has none. Blocks in `live` stay to be read."""
        feed, part = lane.feed, self._parts.get(lane.feed)
        length, tip = max((lane.held, lane.tip), self._held.get(feed, (0, NO_HASH)))
        if part is None and feed not in self._kept and length <= len(lane.blocks):
            return None
        if part is not None and feed not in self._kept and (part.end, part.held) == (len(lane.blocks), length):
            return part  # nothing is new
        rows = list(self._rows(lane, tip, live))
        subjects = set() if part is None else set(part.named())
        admissions = {} if part is None else part.admitted()
        for act in (self._strays.by_hash.get(hash_) for row in rows for hash_ in row.hashes[: max(row.shown, 0)]):
            if act is not None and admits(act):
                subjects.add(subject_of(act))
            elif act is not None and isinstance(act.claim, FeedAdmission) and act.claim.kind is FeedKind.DATA:
                admissions[act.claim.feed] = act.hash
        rows = [row for row in rows if row.last != NO_HASH or row.hashes]
        votes = BarrenActs.of(feed, self._votes(part, rows))
        return BranchCheckpoint.of(len(lane.blocks), length, tip, rows, subjects, admissions, votes)

    def _votes(self, part: BranchCheckpoint | None, rows: Iterable[SettledSpan]) -> Iterator[Row]:
        """Yield the idle votes in rows, each with the place of its block instead of a seq."""
        chain = self._machine.epochs()
        known = {} if part is None else {part.hash_of(row.seq): row for row in part.votes.rows()}
        for number, hash_ in enumerate(hash_ for row in rows for hash_ in row.hashes):
            act, row = self._strays.by_hash.get(hash_), known.get(hash_)
            if act is not None:
                kind = branch_kind(chain, act)
                row = row_of(act, kind=kind) if kind else None  # not refusals, which never count
            if row is not None:
                yield replace(row, seq=number)

    def _rows(self, lane: ControlLane, tip: bytes, live: Container[bytes]) -> Iterator[SettledSpan]:
        """Yield all kept spans of a feed. What a settled one shows follows the history, or another settled one."""
        feed, end, part = lane.feed, len(lane.blocks), self._parts.get(lane.feed)
        known = {} if part is None else {span.last: span for span in part.spans() if span.shown != OPEN}
        first = known.pop(NO_HASH, None)
        if first is not None and first.start != end:
            self.recall(first.hashes[-1])
            first = None
        row = self._extended(lane, first, tip, live)
        taken, safe = set(row.hashes), {lane.hash_before(end), *row.hashes[: row.shown]}
        yield row
        spans = {last: kept.first for last, kept in self._kept.get(feed, {}).items()}
        spans |= {last: span.start for last, span in known.items()}
        for last in sorted(spans, key=lambda last: (spans[last], last)):
            row = known.get(last, SettledSpan(last, 0, 0))
            kept = self._kept.get(feed, {}).get(last, _Kept(row.first, b""))
            if row.shown == OPEN or kept.first < row.first or (row.shown and row.before not in safe):
                self.recall(row.hashes[-1] if row.hashes else b"")
                row = self._settle(lane, last, self._kept.get(feed, {}).get(last, kept), live, taken)
                if row.shown > 0 and row.before not in safe:
                    row = SettledSpan(last, row.first, 0)
            taken.update(row.hashes)
            safe.update(row.hashes[: max(row.shown, 0)])
            yield row

    def _settle(
        self, lane: ControlLane, last: bytes, kept: _Kept, live: Container[bytes], taken: Container[bytes]
    ) -> SettledSpan:
        """Return a span as settled, if it is: all its blocks that are shown have plain acts, and the others wait."""
        again, end = SettledSpan(last, kept.first, 0), len(lane.blocks)
        if not self.is_frozen(lane) or (kept.first < end and lane.position < end):
            return again
        blocks = self._back_to(kept.tip, max(kept.first, end), taken)
        if blocks is None or (blocks and blocks[0].seq == end and blocks[0].previous != lane.hash_before(end)):
            return again
        shown = self._plain(blocks, live)
        rest = blocks[shown:]
        if rest and (rest[0].shown or not self._rests(rest[0])):
            return again
        waits = self._queue.waits_for.get(rest[0].hash) if rest else None
        return _row_of(last, kept.first, blocks, shown, waits)

    def _extended(
        self, lane: ControlLane, known: SettledSpan | None, tip: bytes, live: Container[bytes]
    ) -> SettledSpan:
        """Return the blocks that the store holds beyond a fork as settled, up to the first that must be read again."""
        end = len(lane.blocks)
        made = SettledSpan(NO_HASH, end, end, shown=0) if known is None else known
        blocks = self._back_to(tip, end, set(made.hashes)) if self.is_frozen(lane) else None
        if not blocks or blocks[0].seq != made.start + len(made.hashes):
            return made
        if made.shown < len(made.hashes):  # all that follows waits, too
            return _row_of(NO_HASH, end, blocks, 0, made.waits, made)
        shown = self._plain(blocks, live)
        rest = blocks[shown:]
        waits = self._queue.waits_for.get(rest[0].hash) if rest else None
        if rest and (rest[0].shown or not self._rests(rest[0])):
            blocks, waits = blocks[:shown], None
        return _row_of(NO_HASH, end, blocks, shown, waits, made)

    def _back_to(self, tip: bytes, start: int, known: Container[bytes]) -> list[BranchBlock] | None:
        """Return the held blocks that lead to one, from a place on, or after a settled one; None if one is missing."""
        found: list[BranchBlock] = []
        while tip not in known and not self.holds(tip):
            block = self._branches.blocks.get(tip)
            if block is None or block.seq < start:
                return None if block is None and (not found or found[-1].seq > start) else found[::-1]
            found.append(block)
            tip = block.previous
        return found[::-1]

    def _plain(self, blocks: Sequence[BranchBlock], live: Container[bytes]) -> int:
        """Return how many of the first blocks are shown, with acts that say nothing but whom they name, or idle votes.

        A body that is missing may come, and changes no hash: its block is read again until then.
        """
        for at, block in enumerate(blocks):
            act = None if block.whole.body is None else self._strays.by_hash.get(block.hash)
            if not block.shown or act is None or block.hash in live or not self._is_plain(act):
                return at
        return len(blocks)

    def _is_plain(self, act: Act) -> bool:
        """True for an act of a branch that says nothing but whom it names, and for an idle vote."""
        if isinstance(act.claim, EpochAct):
            return branch_kind(self._machine.epochs(), act) is not None
        return act.admission is None and not isinstance(act.claim, Equivocated | PartyGenesis)

    def _rests(self, block: BranchBlock) -> bool:
        """True if a block that is not shown has a fault, or waits for another one."""
        waits = self._queue.waits_for.get(block.hash)
        return bool(block.fault) or (waits is not None and waits.hash != block.hash)


def _row_of(
    last: bytes,
    first: int,
    blocks: Sequence[BranchBlock],
    shown: int,
    waits: Entry | None,
    before: SettledSpan | None = None,
) -> SettledSpan:
    start = blocks[0].seq if blocks else first
    hashes = tuple(block.hash for block in blocks)
    lamports = tuple(block.lamport for block in blocks)
    if before is None:
        before_it = blocks[0].previous if blocks else NO_HASH
        return SettledSpan(last, first, start, hashes, lamports, shown, waits, before_it)
    both = before.hashes + hashes, before.lamports + lamports
    return SettledSpan(last, first, before.start, *both, before.shown + shown, waits, before.before)
