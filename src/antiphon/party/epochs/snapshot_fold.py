"""`EpochFold`: compute the snapshot of an epoch from the previous snapshot and the messages in the cut.

The fold reads what was captured when it began: the lanes, a read view of the item store, and the control state that
the epoch names. It holds no lock, so writers are not blocked, and later messages cannot change the resulting bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import InvalidInput
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.timeframe import Timeframe
from antiphon.feed.header import HASH_SIZE
from antiphon.feed.span import Span
from antiphon.feed.store.reader import FeedReader
from antiphon.model import item_codec
from antiphon.model.access import Author
from antiphon.model.epoch_fold import fold_on
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import keeps_tail
from antiphon.model.message import Note
from antiphon.model.model import Discard, Model
from antiphon.party.engine.authors import Authors, differing, touched
from antiphon.party.engine.branch_geneses import Candidates, choose, find_at_cut
from antiphon.party.engine.demux import PREFIXES, Gathered, prefix
from antiphon.party.engine.epoch_base import EpochBase, States
from antiphon.party.engine.gc_pause import gc_paused
from antiphon.party.engine.judge import Judge, changed, mark_void
from antiphon.party.engine.lane import Lane, Run
from antiphon.party.engine.message_lookup import read_run
from antiphon.party.engine.ports import AuthorRun, EpochJudge, ItemRow, Items, LaneState, Void
from antiphon.party.engine.rejudge import decisive_in
from antiphon.party.engine.yielding import in_order
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.root import FeedCut, ModelPin, SnapshotRoot, decode_death, encode_death

_ROWS_AT_ONCE = 1_000
_READ_AT_ONCE = 100  # rows, or states of the base, between two checks for cancellation and waiting writers
_NOTES_AT_ONCE = 200_000
_LOOKED_UP_MAX = 5_000
_SPANS_SIZE_MAX = 4 << 20  # bytes of spans in the cut that are kept from the first pass to the second
_STATES_MAX = 1_024  # decoded states that are kept for the next epoch


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """The inputs of a snapshot, besides the messages and the previous snapshot."""

    number: int
    cut: Mapping[bytes, int]  # how many messages of each data feed
    control: Timeframe
    created_ms: int
    models: tuple[ModelPin, ...]  # items of these models are reified; items of all others are kept raw
    discard: Discard
    deleted_epochs: int = 0  # a deleted item is dropped after this many epochs; 0: never
    control_hash: bytes = b""  # which blocks the control timeframe names, if a control feed is forked


@dataclass(slots=True)
class EpochSnapshot:
    """A computed snapshot, and how it differs from the states that the live party had at the cut."""

    cid: Cid
    root: SnapshotRoot
    stale: set[bytes] = field(default_factory=set)  # items that must be folded again on the new base
    gone: list[bytes] = field(default_factory=list)  # deleted items that the snapshot has dropped
    voids: dict[bytes, list[Void]] = field(default_factory=dict)  # void ranges in the cut, by feed
    authors: dict[bytes, list[AuthorRun]] = field(default_factory=dict)  # in the cut, if any item has an access list
    positions: dict[bytes, int] = field(default_factory=dict)  # how far each feed was delivered when it was computed
    states: States = field(default_factory=dict)  # decoded states of some items, for the next epoch


class Cancelled(InvalidInput):
    """Epoch work was cancelled."""


class EpochFold:
    """One computation of a snapshot. `items` has the states at the positions of `lanes`, at or after the cut.

    Without `items` every touched item is folded from its messages, as a verifier does.
    """

    def __init__(
        self,
        party: bytes,
        plan: EpochPlan,
        base: EpochBase | None,
        lanes: Sequence[LaneState],
        items: Items | None,
        store: FeedReader,
        models: ModelFactory,
        judge: EpochJudge,
        blobs: Blobs,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        if items is not None and items.ready_items is not None:
            raise InvalidInput(f"epoch {plan.number}: one view alone is held here, so no snapshot can be computed")
        self._party = party
        self._plan = plan
        self._base = base
        self._lanes = [Lane(state) for state in lanes]
        self._items = items
        self._store = store
        self._models = models
        self._blobs = blobs
        self._cancelled = cancelled
        self._judge = Judge(judge)
        self._geneses: Candidates | None = None  # beyond forks, once they are needed
        self._authors = Authors(judge)
        self._listed = frozenset((name, version) for name, version, _ in plan.models)
        self._by_feed = {lane.feed: lane for lane in self._lanes}
        self._stale: set[bytes] = set()
        self._beyond: set[bytes] = set()  # items with messages beyond the cut
        self._unlike: set[bytes] = set()  # items whose states may differ from base + tail, by messages beyond the cut
        self._dying: dict[bytes, bool] = {}  # by changed item: it is deleted or hidden
        self._scan = False
        self._found: dict[bytes, list[Void]] = {}
        self._authored: dict[bytes, list[AuthorRun]] = {}
        self._read: dict[bytes, list[tuple[Span, int, int]]] = {}  # spans in the cut by feed, unless they are large
        self._read_size = 0
        self._states: States = {}

    def run(self) -> EpochSnapshot:
        """Compute the snapshot and put its blobs. Raises `Cancelled` if the caller cancels it."""
        with gc_paused():
            return self._run()

    def _run(self) -> EpochSnapshot:
        touched, slow = self._touched()
        self._states = {} if self._base is None else self._base.take_states()
        previous = self._base.root if self._base is not None else None
        items = tree.update(previous.items if previous else None, self._changes(touched, slow), self._blobs)
        deaths, gone = self._bury(previous.deaths if previous else None)
        items = tree.update(items, ((item, None) for item in gone), self._blobs)
        feeds = tree.build(self._feeds(), self._blobs)
        root = SnapshotRoot(
            party=self._party,
            number=self._plan.number,
            previous=None if self._base is None else self._base.cid,
            created_ms=self._plan.created_ms,
            control=self._plan.control,
            models=self._plan.models,
            item_count=tree.count(items, self._blobs),
            feed_count=len(self._plan.cut),
            items=items,
            feeds=feeds,
            deaths=deaths,
        )
        cid = self._blobs.put(root.encode(), DAG_CBOR)
        positions = {lane.feed: lane.state.position for lane in self._lanes}
        stale = self._stale - set(gone)
        return EpochSnapshot(cid, root, stale, gone, self._found, self._authored, positions, self._states)

    def one(self, item: bytes) -> bytes | None:
        """Return the bytes that the snapshot would have of one item. Nothing is written."""
        self._scan = True
        made = self._fold_again([item], {})
        return made[item] if item in made else None if self._base is None else self._base.item(item)

    # -- which items change

    def _touched(self) -> tuple[set[bytes], set[bytes]]:
        """Return the items with messages in the cut, and those of them whose rows here differ from the cut's state."""
        touched: set[bytes] = set()
        for lane in self._lanes:
            end = self._plan.cut.get(lane.feed, 0)
            self._sort(lane, end, touched)
            self._found[lane.feed] = found = list(self._judge.voids(lane, lane.state.base, end))
            for start, stop in judged_differently(lane.state.voids, found, end):
                self._unlike |= self._ids(lane.feed, start, stop)
        self._unlike |= self._authored_differently()
        slow = self._beyond | self._unlike
        return touched, slow if self._items is not None else touched

    def _authored_differently(self) -> set[bytes]:
        """Return items with access lists that have messages whose authors differ from those that rows follow from.

        Roles count in an access list, and this device may know newer ones than the control timeframe of the epoch.
        """
        guarded = [] if self._items is None else self._items.guarded()
        if self._items is None or not guarded:
            return set()
        parts = []
        for lane in self._lanes:
            runs = self._authors.runs(lane, lane.state.base, self._plan.cut.get(lane.feed, 0))
            self._authored[lane.feed] = runs
            parts += [(lane.state.number, low, high) for low, high in differing(lane.state.authors, runs)]
            self._check()
        return touched(parts, ((item, self._items.postings(item)) for item in guarded)) if parts else set()

    def _sort(self, lane: Lane, end: int, touched: set[bytes]) -> None:
        """Note which items have messages in the cut, and which beyond it."""
        start, stop = lane.state.base, max(end, lane.state.position)
        for span, low, high in self._store.runs(lane.feed, start, stop) if start < stop else ():
            middle = min(max(end - span.first, low), high)
            if low < middle:
                self._keep(lane.feed, span, low, middle)
            ids = span.columns["item"]
            touched.update(ids[low:middle].tolist())
            if middle < high:
                self._beyond.update(ids[middle:high].tolist())
                self._unlike.update(decisive_in(span, middle, high))
            self._check()

    def _keep(self, feed: bytes, span: Span, low: int, high: int) -> None:
        self._read_size += span.size
        if self._read_size <= _SPANS_SIZE_MAX:
            self._read.setdefault(feed, []).append((span, low, high))
        else:
            self._read.clear()

    def _in_cut(self, lane: Lane) -> Iterable[tuple[Span, int, int]]:
        """The stored spans of a feed in the cut: kept from the first pass, or read again."""
        start, stop = lane.state.base, self._plan.cut.get(lane.feed, 0)
        if start >= stop:
            return ()
        return self._read.get(lane.feed) or self._store.runs(lane.feed, start, stop)

    def _ids(self, feed: bytes, start: int, stop: int) -> set[bytes]:
        """The items with messages in a part of a feed."""
        found: set[bytes] = set()
        for span, low, high in self._store.runs(feed, start, stop) if start < stop else ():
            found.update(span.columns["item"][low:high].tolist())
            self._check()
        return found

    def _check(self) -> None:
        if self._cancelled():
            raise Cancelled(f"epoch {self._plan.number} was cancelled")

    def _steps(self, ids: list[bytes]) -> Iterator[list[bytes]]:
        """Split ids into groups small enough that a waiting writer is let in soon."""
        for start in range(0, len(ids), _READ_AT_ONCE):
            self._check()
            yield ids[start : start + _READ_AT_ONCE]

    # -- states

    def _changes(self, touched: set[bytes], slow: set[bytes]) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield each item whose bytes may have changed, by ascending id."""
        ids = in_order(touched | self._renewed(touched), self._check)
        # Looking up one message costs about 30 times as much as passing it in a scan of all messages.
        self._scan = len(slow) > min(_LOOKED_UP_MAX, len(touched) // 32)
        count = sum(self._plan.cut.get(lane.feed, 0) - lane.state.base for lane in self._lanes)
        at_once = max(_ROWS_AT_ONCE, len(ids) // (1 + count // _NOTES_AT_ONCE)) if self._scan else _ROWS_AT_ONCE
        for start in range(0, len(ids), at_once):
            some = ids[start : start + at_once]
            for change in self._some(some, [item for item in some if item in slow]):
                self._check()
                yield change

    def _some(self, ids: list[bytes], slow: list[bytes]) -> Iterator[tuple[bytes, bytes | None]]:
        again = set(slow)
        rows: dict[bytes, ItemRow] = {}
        if self._items is not None:
            for some in self._steps(ids):
                rows.update((row.id, row) for row in self._items.rows(some))
        made: dict[bytes, bytes | None] = {}
        for item in ids:
            self._check()
            row = rows.get(item)
            if item in again or row is None or not self._plain(row):
                again.add(item)
            elif row.record is not None:
                made[item] = item_codec.snapshot_of_record(row.record)
                self._dying[item] = row.deleted
            else:
                made[item] = None
        made |= self._fold_again(sorted(again), rows)
        yield from sorted(made.items())

    def _plain(self, row: ItemRow) -> bool:
        """True if an item's row has exactly the bytes that the epoch needs."""
        if not row.model:  # the item is hidden, has no genesis, or is in the base and was not fetched
            return self._base is None and row.record is None
        model = self._models.find(row.model, row.version)
        if model is None or row.opaque or (row.model, row.version) not in self._listed:
            return False
        if keeps_tail(model) or self._discards(model):
            return False
        # The row may have been written by code with another snapshot format.
        return row.record is None or item_codec.summary(item_codec.snapshot_of_record(row.record)).codec == model.codec

    def _renewed(self, touched: set[bytes]) -> set[bytes]:
        """Items without new messages whose bytes change all the same.

        Their model discards by age, or the previous epoch did not list it, or listed it with another format.
        """
        if self._base is None:
            return set()
        names = {name for name, _, _ in set(self._plan.models).difference(self._base.root.models)}
        for name, version in self._listed:
            model = self._models.find(name, version)
            if model is not None and self._discards(model):
                names.add(name)
        return self._based_of(names) - touched if names else set()

    def _based_of(self, names: set[str]) -> set[bytes]:
        """The items of these models in the base: found by their rows if every item has one, else by reading all."""
        assert self._base is not None
        mark = None if self._items is None else self._items.base()
        if self._items is not None and mark is not None and mark.whole:
            # Rows of hidden items tell no model, and are among the orphans. The system item is not among the ids, and
            # may have a row although it is not in the base: all its messages were beyond a fork.
            root = [item for item in (bytes(SYSTEM_ITEM),) if self._base.item(item) is not None]
            return set(root).union(self._items.orphans(), *map(self._items.ids, names))
        return {item for item, data in self._base.all() if item_codec.summary(data).name in names}

    def _fold_again(self, ids: list[bytes], rows: Mapping[bytes, ItemRow]) -> dict[bytes, bytes | None]:
        made: dict[bytes, bytes | None] = {}
        if not ids:
            return made
        bases: dict[bytes, bytes] = {}
        if self._base is not None:
            for some in self._steps(ids):
                bases |= self._base.require_items(some)
        groups = self._scanned(set(ids)) if self._scan or self._items is None else self._looked_up(ids)
        for item in ids:
            self._check()
            base = bases.get(item)
            known, state = self._states.pop(item, (None, None))
            data, _, state = fold_on(
                state if known == base else None,
                self._party,
                item,
                base,
                groups.get(item, []),
                self._models,
                self._listed,
                self._author,
                self._plan.discard,
                None if base is not None else self._beyond_fork(item, groups.get(item, [])),
            )
            if data is not None and state is not None and len(self._states) < _STATES_MAX:
                self._states[item] = data, state
            if data != base or item in groups:
                made[item] = data
                if not self._stands(item, data, rows.get(item)):
                    self._stale.add(item)
                self._dying[item] = data is not None and item_codec.summary(data).is_dying
        return made

    def _beyond_fork(self, item: bytes, notes: Sequence[Note]) -> Note | None:
        """Return the genesis beyond a fork that may begin an item with these messages; None for none."""
        if self._geneses is None:
            bounds = {lane.feed: (lane.state.base, self._plan.cut.get(lane.feed, 0)) for lane in self._lanes}
            self._geneses = find_at_cut(self._store, bounds)
        return choose(self._geneses, item, notes)

    def _stands(self, item: bytes, data: bytes | None, row: ItemRow | None) -> bool:
        """True if an item's row is already the new base plus the messages outside the cut, so it need not be refolded.

        Mutations beyond the cut commute with those inside it, so they only matter to models that keep messages.
        """
        if data is None or row is None or row.record is None or row.opaque or row.guarded or item in self._unlike:
            return False
        model = self._models.find(row.model, row.version)
        if model is None or keeps_tail(model) or (row.model, row.version) not in self._listed:
            return False
        return item_codec.snapshot_of_record(row.record) == data or (item in self._beyond and not self._discards(model))

    def _discards(self, model: Model[object]) -> bool:
        """True if this epoch may discard part of a model's states."""
        return self._plan.discard.limits and forgets(model)

    def _looked_up(self, ids: list[bytes]) -> dict[bytes, list[Note]]:
        """The messages in the cut to some items, in the total order, found through the item store's postings."""
        assert self._items is not None
        numbers = {lane.state.number: lane for lane in self._lanes}
        groups: dict[bytes, list[Note]] = {}
        for item in ids:
            notes: list[Note] = []
            for number, start, stop in self._items.postings(item):
                self._check()
                lane = numbers[number]
                low, high = max(start, lane.state.base), min(stop, self._plan.cut.get(lane.feed, 0))
                if low < high:
                    voids = list(self._judge.voids(lane, low, high))
                    found = read_run(self._store, lane.feed, low, high)
                    notes += [mark_void(voids, note) for note in found]
            if notes:
                groups[item] = sorted(notes, key=_total)
        return groups

    def _scanned(self, ids: set[bytes]) -> dict[bytes, list[Note]]:
        """The same as `_looked_up`, by scanning all messages in the cut."""
        groups: dict[bytes, list[Note]] = defaultdict(list)
        first, last = prefix(min(ids)), prefix(max(ids))
        for lane in self._lanes:
            for span, low, high in self._in_cut(lane):
                self._check()
                run = Run(lane.feed, span, low, high)
                voids = list(self._judge.voids(lane, run.start, run.stop))
                found = Gathered([(run, voids)], high - low).groups(first, min(last + 1, PREFIXES))
                for item, notes in found.items():
                    if item in ids:
                        groups[item] += notes
        for notes in groups.values():
            notes.sort(key=_total)
        return groups

    def _author(self, feed: bytes, seq: int) -> Author:
        return self._authors.of(self._by_feed[feed], seq)

    # -- the rest of the root

    def _bury(self, before: Cid | None) -> tuple[Cid | None, list[bytes]]:
        """Update the tree of deleted and hidden items, and return it with the items to drop.

        If policy never drops them, only the changed ones are read.
        """
        number, limit = self._plan.number, self._plan.deleted_epochs
        if self._base is not None and limit:
            known = dict(self._base.deaths())
        else:
            known = {}
            for some in self._steps([] if before is None else in_order(self._dying, self._check)):
                held = tree.get_many(before, some, self._blobs)
                known.update((item, decode_death(value)) for item, value in held.items())
        since = {item: known.get(item, number) for item, deleted in self._dying.items() if deleted}
        ages = {item: at for item, at in {**known, **since}.items() if self._dying.get(item, True)}
        gone = sorted(item for item, at in ages.items() if limit and number - at >= limit)
        kept = {item: encode_death(at) for item, at in since.items()}
        ended = dict.fromkeys([*gone, *(item for item in known if not self._dying.get(item, True))])
        return tree.update(before, sorted((kept | ended).items()), self._blobs), gone

    def _feeds(self) -> Iterator[tuple[bytes, bytes]]:
        for feed, length in sorted(self._plan.cut.items()):
            lane = self._by_feed.get(feed)
            known = self._base.feeds.get(feed) if self._base is not None else None
            if known is not None and known.length == length:
                yield feed, known.encode()
            elif not length or lane is None:
                yield feed, FeedCut(0, bytes(HASH_SIZE), 0, 0, Timeframe()).encode()
            else:
                last = self._store.block(feed, length - 1)
                # What the cut holds is data. A branch of control of such a feed is known to some peers, and void.
                seen = Timeframe({at: seq for at, seq in lane.seen_at(length - 1).items() if at not in self._plan.cut})
                yield feed, FeedCut(length, last.hash, last.lamport, last.created_ms, seen).encode()


def judged_differently(mine: Iterable[Void], epochs: Iterable[Void], end: int) -> list[tuple[int, int]]:
    """The ranges of a feed before `end` whose verdict in an epoch differs from this device's current verdict."""
    clipped = [void._replace(stop=min(void.stop, end)) for void in mine if void.start < end]
    return changed(clipped, epochs)


def _total(note: Note) -> tuple[int, bytes, int]:
    return note.lamport, note.feed, note.seq


def forgets(model: Model[object]) -> bool:
    """True if a model discards something at an epoch."""
    return type(model).discard is not Model.discard
