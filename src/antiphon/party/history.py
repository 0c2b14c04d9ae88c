"""The past of an item: its messages one by one, and its state at any earlier timeframe that feeds still hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antiphon.core.errors import UnknownItem
from antiphon.core.ids import ItemId
from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.feed.header import Kind
from antiphon.model import itemcodec
from antiphon.model.envelope import Note, content
from antiphon.model.interface import Discard
from antiphon.model.item import ItemState, fold
from antiphon.party.base import EpochBase
from antiphon.party.epochfold import EpochFold, EpochPlan
from antiphon.party.retrace import lanes_at

if TYPE_CHECKING:
    from antiphon.party.engine import Engine
    from antiphon.party.processor import PartyProcessor


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


class Shown:
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
        return itemcodec.snapshot(self.state)


@dataclass(frozen=True, slots=True)
class Past(Shown):
    """An item as it was. Judged by what is known now: a message that was void later is void here too."""

    id: ItemId
    timeframe: Timeframe
    state: ItemState

    @classmethod
    def of(cls, party: PartyProcessor, item: bytes, timeframe: Timeframe) -> Past:
        with party.locked() as engine:
            state = state_at(engine, item, timeframe)
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


def state_at(engine: Engine, item: bytes, timeframe: Timeframe) -> ItemState | None:
    """An item at a timeframe: on the newest epoch that lies inside it, with the messages since."""
    base, following = engine.base, None
    while base is not None and not _inside_of(base, timeframe):
        previous = base.root.previous
        base, following = (None if previous is None else EpochBase.load(previous, base.blobs, party=engine.party)), base
    if following is None:
        notes = (note for note in engine.history(item) if timeframe.includes(note.feed, note.seq))
        outside = [note for note in notes if not engine.is_based(note)]
        return fold(engine.party, item, engine.based(item), outside, engine.models, engine.author, whole=True).item
    return fold_between(engine, item, base, following, timeframe)


def fold_between(
    engine: Engine, item: bytes, base: EpochBase | None, following: EpochBase, timeframe: Timeframe
) -> ItemState | None:
    """An item at a timeframe between two epochs, judged as the later one did."""
    root = following.root
    cut = {feed: min(known.length, timeframe.get(feed, -1) + 1) for feed, known in following.feeds.items()}
    if base is not None:
        cut = {feed: max(length, base.length(feed)) for feed, length in cut.items()}
    plan = EpochPlan(root.number, cut, root.control, root.created_ms, root.models, Discard(0))
    data = EpochFold(
        engine.party,
        plan,
        base,
        lanes_at(engine.store, engine.authority.is_control, base, cut),
        None,
        engine.store,
        engine.models,
        engine.authority.epoch_judge(root.control),
        following.blobs,
    ).one(item)
    return None if data is None else itemcodec.restore(data, engine.models)


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
        """The ids of the items that existed, by their geneses."""
        found = []
        with self._party.locked() as engine:
            for item in self._party.items():
                state = engine.entry(item).item
                if state is not None and self.timeframe.includes(state.genesis.feed, state.genesis.seq):
                    found.append(item)
        return found
