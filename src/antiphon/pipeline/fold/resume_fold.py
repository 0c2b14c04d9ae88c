"""Folds new messages onto the states that the tables have, where that comes to what a fold of all messages would.

A snapshot has all that most models need to go on. What it lacks is when each feed last wrote, which a change of an
access list asks for; the messages that ORDERED models keep; and what came to an item before there was one. Such items
are `late`: they are folded from all their messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from antiphon.core.errors import InvalidMutation
from antiphon.feed.header import Kind
from antiphon.model import item_codec
from antiphon.model.fold import fold, keeps_tail
from antiphon.model.item_state import ItemState
from antiphon.model.message import Note, read_change
from antiphon.pipeline.fold.item_fold import SCHEMA, Folding, refusals

LATE = "late"
UNKNOWN = b""  # instead of a state: there is no code for it


@dataclass(slots=True)
class GoingOn(Folding):
    """Folds items onto the states of the last run."""

    counts: Mapping[tuple[bytes, bytes], int] = field(default_factory=dict)  # how many messages count in each of them
    refused: Collection[tuple[bytes, bytes]] = ()  # items, by party and id: of these messages came that do not count

    def fold(self, party: bytes, item: bytes, base: bytes | None, notes: list[Note]) -> Iterator[tuple[Any, ...]]:
        if base is None and (party, item) in self.refused:  # the genesis may be among the new ones
            yield _late(party, item)
            return
        if base is None:  # nothing ever came to it: these are all its messages
            yield from Folding.fold(self, party, item, None, notes)
            return
        state = self.begin(party, base, notes)
        if state is None:
            yield _late(party, item)
            return
        made = fold(party, item, state, notes, self.models, self.authors(party))
        if made.late or made.item is None:
            yield _late(party, item)
            return
        count = self.counts[party, item] + len(notes) - sum(map(bool, made.verdicts.values()))
        yield self.row(party, made.item, count)
        yield from refusals(party, item, made.verdicts)

    def begin(self, party: bytes, base: bytes, notes: Sequence[Note]) -> ItemState | None:
        """The item that messages are folded onto; None if that does not come to what a fold of all comes to."""
        # These bytes were written by a fold: whether they are canonical is not asked again, which takes as long again.
        state = None if base == UNKNOWN else item_codec.decode(item_codec.record_of(base), self.models)
        if state is None or not _can_go_on(state, notes):
            return None
        state.based = self._based(party, state)
        return state

    def _based(self, party: bytes, state: ItemState) -> bool:
        """Whether an item began in the epoch that its party stands on: the bytes do not tell."""
        lane = self.plans[party].lane(state.genesis.feed)
        return lane is not None and state.genesis.seq < lane.base


def _can_go_on(state: ItemState, notes: Sequence[Note]) -> bool:
    if state.model is None or keeps_tail(state.model):
        return False
    return not any(note.kind == Kind.CHANGE and _guards(note) for note in notes)


def _guards(note: Note) -> bool:
    """Whether a message changes who may write."""
    if note.message is None or note.void:
        return False
    try:
        return read_change(note.message).access is not None
    except InvalidMutation:
        return False


def _late(party: bytes, item: bytes) -> tuple[Any, ...]:
    said = {"party": party, "item": item, "reason": LATE}
    return tuple(said.get(name) for name in SCHEMA.names)
