"""The past of an item: its messages one by one, and its state at any earlier timeframe that feeds still hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antiphon.core.cid import Cid
from antiphon.core.errors import MissingBlob, UnknownItem
from antiphon.core.ids import ItemId
from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.feed.header import Kind
from antiphon.model import item_codec
from antiphon.model.fold import ItemState, fold
from antiphon.model.message import Note, content
from antiphon.model.model import Discard
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.lanes_at_cut import lanes_at
from antiphon.party.engine.ports import EpochJudge
from antiphon.party.epochs.snapshot_fold import EpochFold, EpochPlan
from antiphon.snapshot import tree, tree_values

if TYPE_CHECKING:
    from antiphon.party.engine.engine import Engine
    from antiphon.party.live.processor import PartyProcessor


@dataclass(frozen=True, slots=True)
class Event:
    """One message to an item. `refused` says why it does not count, if it does not."""

    stamp: Stamp
    kind: Kind
    created_ms: int
    mutation: bytes
    refused: str


def history(party: PartyProcessor, item: bytes) -> list[Event]:
    with party.locked() as engine:
        notes = engine.history(item)
        if not notes and engine.based(item) is None:
            raise UnknownItem(f"party {party.key.short} holds no message to item {item.hex()}")
        outside = [note for note in notes if not engine.is_based(note)]
        verdicts = fold(party.key, item, engine.based(item), outside, party.models, engine.author, whole=True).verdicts
    return [
        Event(note.stamp, Kind(note.kind), note.created_ms, _inside(note), verdicts.get(note.stamp, ""))
        for note in notes
    ]


def _inside(note: Note) -> bytes:
    """A mutation's own bytes; a whole message of another kind."""
    if note.message is None:
        return b""
    plain = note.kind in (Kind.MUTATION, Kind.METADATA) and not note.void
    try:
        return content(note.kind, note.message) if plain else note.message
    except ValueError:  # refused, and shown as it came
        return note.message


class PastItem:
    """What can be seen of an item in the past."""

    __slots__ = ()
    state: ItemState

    @property
    def value(self) -> Any:
        return self.state.value

    @property
    def metadata(self) -> dict[str, Any]:
        """What was known about it besides what it held."""
        return self.state.metadata

    @property
    def name(self) -> str:
        """Its display name then."""
        return self.state.display_name

    @property
    def type(self) -> str:
        return self.state.type

    @property
    def parent(self) -> bytes:
        """The id of the item that it was last hung under; empty if none."""
        return self.state.parent

    @property
    def deleted(self) -> bool:
        return self.state.is_deleted

    def snapshot(self) -> bytes:
        return item_codec.snapshot(self.state)


@dataclass(frozen=True, slots=True)
class Past(PastItem):
    """An item as it was. Judged by what is known now: a message that was void later is void here too."""

    id: ItemId
    timeframe: Timeframe
    state: ItemState

    @classmethod
    def of(cls, party: PartyProcessor, item: bytes, timeframe: Timeframe) -> Past:
        state = state_at(party, item, timeframe)
        if state is None:
            raise UnknownItem(f"party {party.key.short}: at that timeframe there was no item {item.hex()}")
        return cls(ItemId(item), timeframe, state)


def before(party: PartyProcessor, item: bytes, notes: Iterable[Note], *, whole: bool = False) -> ItemState | None:
    """The state that some of an item's messages make: those outside the base, on it, or the `whole` from nothing."""
    engine = party.engine
    if whole:
        return fold(party.key, item, None, list(notes), party.models, engine.author, whole=True).item
    outside = [note for note in notes if not engine.is_based(note)]
    return fold(party.key, item, engine.based(item), outside, party.models, engine.author, whole=True).item


def state_at(party: PartyProcessor, item: bytes, timeframe: Timeframe) -> ItemState | None:
    """An item at a timeframe: on the newest epoch that lies inside it, with the messages since, epoch by epoch.

    A timeframe may have messages that a later epoch left out; they come after those that it holds, as everywhere.
    What epochs hold is gone through without the lock: that may be all their messages.
    """
    while True:
        with party.locked() as engine:
            stands_on = engine.base
            base, later = epochs_around(engine, timeframe)
            judges = [engine.authority.epoch_judge(epoch.root.control) for epoch in later]
        data = None if base is None or not later else _kept(base, item)
        for epoch, judge in zip(later, judges, strict=True):
            data = _fold_upto(engine, item, base, epoch, timeframe, data, judge)
            base = epoch
        with party.locked() as engine:
            if engine.base is not stands_on:  # another epoch became final
                continue
            kept = None if later else engine.based(item)
            state = kept if data is None else item_codec.restore(data, engine.models)
            notes = (note for note in engine.history(item) if timeframe.includes(note.feed, note.seq))
            outside = [note for note in notes if not engine.is_based(note)]
            return fold(engine.party, item, state, outside, engine.models, engine.author, whole=True).item


def epochs_around(engine: Engine, timeframe: Timeframe) -> tuple[EpochBase | None, list[EpochBase]]:
    """The newest epoch that lies inside a timeframe, and those after it, in order."""
    base, later = engine.base, list[EpochBase]()
    while base is not None and not _inside_of(base, timeframe):
        later.insert(0, base)
        base = _before(engine, base)
    return base, later


def _before(engine: Engine, base: EpochBase) -> EpochBase | None:
    previous = base.root.previous
    if previous is None:
        return None
    try:
        found = EpochBase.load(previous, base.blobs, party=engine.party)
        _ = found.feeds
    except MissingBlob as error:
        raise _lacking(base.number - 1, error) from None
    return found


def _kept(base: EpochBase, item: bytes) -> bytes | None:
    try:
        return base.item(item)
    except MissingBlob as error:
        raise _lacking(base.number, error) from None


def _lacking(number: int, error: MissingBlob) -> MissingBlob:
    return MissingBlob(
        f"the snapshot of epoch {number}, on which that moment stands, is not here: {error}", cid=error.cid
    )


class _PatchedBase(EpochBase):
    """A snapshot in which one item is as it was at some moment after it."""

    def __init__(self, base: EpochBase, data: bytes | None) -> None:
        super().__init__(base.cid, base.root, base.blobs)
        self._data = data

    def item(self, item: bytes) -> bytes | None:
        return self._data

    def sure(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        return {} if self._data is None else dict.fromkeys(ids, self._data)


def _fold_upto(
    engine: Engine,
    item: bytes,
    base: EpochBase | None,
    epoch: EpochBase,
    timeframe: Timeframe,
    data: bytes | None,
    judge: EpochJudge,
) -> bytes | None:
    """Go on with what an epoch has of an item inside a timeframe, judged as that epoch did. Nothing is let go."""
    root = epoch.root
    cut = {feed: min(known.length, timeframe.get(feed, -1) + 1) for feed, known in epoch.feeds.items()}
    if base is not None:
        cut = {feed: max(length, base.length(feed)) for feed, length in cut.items()}
    plan = EpochPlan(root.number, cut, root.control, root.created_ms, root.models, Discard(0))
    return EpochFold(
        engine.party,
        plan,
        None if base is None else _PatchedBase(base, data),
        lanes_at(engine.store, engine.authority.is_control, base, cut),
        None,
        engine.store,
        engine.models,
        judge,
        epoch.blobs,
    ).one(item)


def _inside_of(base: EpochBase, timeframe: Timeframe) -> bool:
    return all(not cut.length or timeframe.includes(feed, cut.length - 1) for feed, cut in base.feeds.items())


class PartyPast:
    """A whole party as it was at a timeframe. Items are folded when they are asked for."""

    def __init__(self, party: PartyProcessor, timeframe: Timeframe) -> None:
        self._party = party
        self.timeframe = timeframe

    def item(self, item: bytes) -> Past:
        return Past.of(self._party, item, self.timeframe)

    def items(self) -> list[bytes]:
        """The ids of the items that existed, by their geneses; those too that have gone since."""
        with self._party.locked() as engine:
            base, later = epochs_around(engine, self.timeframe)
        found = {item for item in self._party.items() if self._begun(self._now(item))}
        before = None
        for epoch in (base, *later) if later else ():  # also in one that holds what an earlier one left out
            if epoch is not None:
                found |= self._new_in(epoch, before, found)
                before = epoch.root.items
        return sorted(found)

    def _now(self, item: bytes) -> ItemState | None:
        with self._party.locked() as engine:  # for one at a time: writers go on
            return engine.find(item)

    def _new_in(self, epoch: EpochBase, before: Cid | None, known: set[bytes]) -> set[bytes]:
        """The items that an epoch has, and one before it has not, if they had begun."""
        try:
            return {
                item
                for item, old, new in tree.leaf_diff(before, epoch.root.items, epoch.blobs)
                if old is None and new is not None and item not in known and self._begun(self._read(epoch, new))
            }
        except MissingBlob as error:
            raise _lacking(epoch.number, error) from None

    def _read(self, epoch: EpochBase, held: bytes | Cid) -> ItemState:
        return item_codec.restore(tree_values.load(held, epoch.blobs), self._party.models)

    def _begun(self, state: ItemState | None) -> bool:
        return state is not None and self.timeframe.includes(state.genesis.feed, state.genesis.seq)
