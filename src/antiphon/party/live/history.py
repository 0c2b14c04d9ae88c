"""The past of an item: its messages, and its state at any earlier timeframe whose messages or snapshots are held."""

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
    """One message to an item. `refused` is the reason if the message is void, else empty."""

    stamp: Stamp
    kind: Kind
    created_ms: int
    mutation: bytes
    refused: str


def history(party: PartyProcessor, item: bytes) -> list[Event]:
    """Return all messages to an item that are held, in the total order."""
    with party.locked() as engine:
        notes = engine.history(item)
        if not notes and engine.based(item) is None:
            raise UnknownItem(f"party {party.key.short} holds no message to item {item.hex()}")
        outside = [note for note in notes if not engine.is_based(note)]
        verdicts = engine.fold_whole(item, outside).verdicts
    return [
        Event(note.stamp, Kind(note.kind), note.created_ms, _inside(note), verdicts.get(note.stamp, ""))
        for note in notes
    ]


def _inside(note: Note) -> bytes:
    """Return a mutation's own bytes, or the whole message of any other kind."""
    if note.message is None:
        return b""
    plain = note.kind in (Kind.MUTATION, Kind.METADATA) and not note.void
    try:
        return content(note.kind, note.message) if plain else note.message
    except ValueError:  # a refused message is shown as it arrived
        return note.message


class PastItem:
    """Properties of an item's past state."""

    __slots__ = ()
    state: ItemState

    @property
    def value(self) -> Any:
        """The item's content as plain Python values."""
        return self.state.value

    @property
    def metadata(self) -> dict[str, Any]:
        """The item's metadata."""
        return self.state.metadata

    @property
    def name(self) -> str:
        """The item's display name."""
        return self.state.display_name

    @property
    def type(self) -> str:
        """The item's type."""
        return self.state.type

    @property
    def parent(self) -> bytes:
        """The id of the item's parent; empty if it had none."""
        return self.state.parent

    @property
    def deleted(self) -> bool:
        """True if the item was deleted."""
        return self.state.is_deleted

    def snapshot(self) -> bytes:
        """Return the canonical bytes of the state."""
        return item_codec.snapshot(self.state)


@dataclass(frozen=True, slots=True)
class Past(PastItem):
    """An item at an earlier timeframe, judged by current knowledge: a message that is void now is void there too."""

    id: ItemId
    timeframe: Timeframe
    state: ItemState

    @classmethod
    def of(cls, party: PartyProcessor, item: bytes, timeframe: Timeframe) -> Past:
        """Fold an item at a timeframe, or raise `UnknownItem` if it did not exist."""
        state = state_at(party, item, timeframe)
        if state is None:
            raise UnknownItem(f"party {party.key.short}: at that timeframe there was no item {item.hex()}")
        return cls(ItemId(item), timeframe, state)


def before(party: PartyProcessor, item: bytes, notes: Iterable[Note], *, whole: bool = False) -> ItemState | None:
    """Fold some messages of an item: on the base, without those inside it; with `whole`, all of them from nothing."""
    engine = party.engine
    if whole:
        given = list(notes)
        beyond = engine.beyond(item, given)
        return fold(party.key, item, None, given, party.models, engine.author, whole=True, beyond=beyond).item
    return engine.fold_whole(item, [note for note in notes if not engine.is_based(note)]).item


def state_at(party: PartyProcessor, item: bytes, timeframe: Timeframe) -> ItemState | None:
    """Return an item's state at a timeframe: fold from the newest epoch inside it, epoch by epoch, then the tail.

    A timeframe may include messages that a later epoch left out. They are ordered after that epoch's messages, as
    everywhere. Messages inside epochs are read without the lock, since they may be many.
    """
    while True:
        with party.locked() as engine:
            based_on = engine.base
            base, later = epochs_around(engine, timeframe)
            judges = [engine.authority.epoch_judge(epoch.root.control) for epoch in later]
        data = None if base is None or not later else _kept(base, item)
        for epoch, judge in zip(later, judges, strict=True):
            data = _fold_upto(engine, item, base, epoch, timeframe, data, judge)
            base = epoch
        with party.locked() as engine:
            if engine.base is not based_on:  # the party moved onto another epoch meanwhile
                continue
            kept = None if later else engine.based(item)
            state = kept if data is None else item_codec.restore(data, engine.models)
            notes = (note for note in engine.history(item) if timeframe.includes(note.feed, note.seq))
            outside = [note for note in notes if not engine.is_based(note)]
            beyond = engine.beyond(item, outside)
            return fold(
                engine.party, item, state, outside, engine.models, engine.author, whole=True, beyond=beyond
            ).item


def epochs_around(engine: Engine, timeframe: Timeframe) -> tuple[EpochBase | None, list[EpochBase]]:
    """Return the newest epoch that lies inside a timeframe, and the later ones, in order."""
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
    return MissingBlob(f"the snapshot of epoch {number}, which that moment needs, is not here: {error}", cid=error.cid)


class _PatchedBase(EpochBase):
    """A snapshot in which one item is replaced by its state at a later moment."""

    def __init__(self, base: EpochBase, data: bytes | None) -> None:
        super().__init__(base.cid, base.root, base.blobs)
        self._data = data

    def item(self, item: bytes) -> bytes | None:
        return self._data

    def require_items(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
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
    """Fold an epoch's messages to an item inside a timeframe, judged as that epoch did. Nothing is discarded."""
    root = epoch.root
    cut = {feed: min(known.length, timeframe.get(feed, -1) + 1) for feed, known in epoch.feeds.items()}
    if base is not None:
        cut = {feed: max(length, base.length(feed)) for feed, length in cut.items()}
    plan = EpochPlan(root.number, cut, root.control, root.created_ms, root.models, Discard(0))
    return EpochFold(
        engine.party,
        plan,
        None if base is None else _PatchedBase(base, data),
        lanes_at(engine.store, engine.authority.is_control_block, base, cut),
        None,
        engine.store,
        engine.models,
        judge,
        epoch.blobs,
    ).one(item)


def _inside_of(base: EpochBase, timeframe: Timeframe) -> bool:
    return all(not cut.length or timeframe.includes(feed, cut.length - 1) for feed, cut in base.feeds.items())


class PartyPast:
    """A whole party at an earlier timeframe. Each item is folded when it is read."""

    def __init__(self, party: PartyProcessor, timeframe: Timeframe) -> None:
        self._party = party
        self.timeframe = timeframe

    def item(self, item: bytes) -> Past:
        """Return one item as it was."""
        return Past.of(self._party, item, self.timeframe)

    def items(self) -> list[bytes]:
        """Return the ids of all items that existed, also of those that were dropped since."""
        with self._party.locked() as engine:
            base, later = epochs_around(engine, self.timeframe)
        found = {item for item in self._party.items() if self._begun(self._now(item))}
        before = None
        for epoch in (base, *later) if later else ():  # a later epoch may have an item that an earlier one left out
            if epoch is not None:
                found |= self._new_in(epoch, before, found)
                before = epoch.root.items
        return sorted(found)

    def _now(self, item: bytes) -> ItemState | None:
        with self._party.locked() as engine:  # one item at a time, so that writers get the lock
            return engine.find(item)

    def _new_in(self, epoch: EpochBase, before: Cid | None, known: set[bytes]) -> set[bytes]:
        """The items that an epoch has and the previous one has not, if they existed at the timeframe."""
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
        return state is not None and not state.hidden and self.timeframe.includes(state.genesis.feed, state.genesis.seq)
