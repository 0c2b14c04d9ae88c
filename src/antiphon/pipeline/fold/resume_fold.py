"""Folds new messages onto the states in the table `items`, where that gives the same result as folding all messages.

A snapshot has everything that most items need to continue. It lacks three things: when each feed last wrote, which a
change of an access list needs; the messages that ORDERED models keep; and messages that came before the item existed.
Items that need one of these get a `REFOLD` row: they are folded again from all their messages.
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
from antiphon.pipeline.fold.item_fold import SCHEMA, ItemFold, refusal_rows

REFOLD = "refold"  # instead of a reason, in a row without a feed: the item must be folded from all messages
NO_CODE = b""  # instead of a state: the code of the model is missing


@dataclass(slots=True)
class ResumeFold(ItemFold):
    """Folds new messages onto the states of the last run."""

    counts: Mapping[tuple[bytes, bytes], int] = field(default_factory=dict)  # of stored items: how many messages count
    refused: Collection[tuple[bytes, bytes]] = ()  # unknown items with refused messages

    def fold(self, party: bytes, item: bytes, base: bytes | None, notes: list[Note]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of one item from its stored state and new messages; or one `REFOLD` row."""
        if base is None and ((party, item) in self.refused or self._may_be_hidden(party, notes)):
            yield _refold(party, item)  # the genesis may be new, or built on only now: then the old messages count
            return
        if base is None:  # the item is new: these are all its messages
            yield from ItemFold.fold(self, party, item, None, notes)
            return
        state = self.restore_base(party, base, notes)
        if state is None:
            yield _refold(party, item)
            return
        made = fold(party, item, state, notes, self.models, self.authors(party))
        if made.late or made.item is None:
            yield _refold(party, item)
            return
        count = self.counts[party, item] + len(notes) - sum(map(bool, made.verdicts.values()))
        yield self.row(party, made.item, count)
        yield from refusal_rows(party, item, made.verdicts)

    def _may_be_hidden(self, party: bytes, notes: Sequence[Note]) -> bool:
        """True if an item without a row may be hidden in the base epoch of its party: new messages may show it."""
        return bool(self.plans[party].base) and not any(note.kind == Kind.GENESIS for note in notes)

    def restore_base(self, party: bytes, base: bytes, notes: Sequence[Note]) -> ItemState | None:
        """Decode the item that new messages are folded onto; None if it must be folded from all messages."""
        # A fold wrote these bytes, so canonical form is not checked again; that would double the time.
        state = None if base == NO_CODE else item_codec.decode(item_codec.record_of(base), self.models)
        if state is None or not _can_resume(state, notes):
            return None
        if len(self.plans[party].branch_geneses.get(bytes(state.id), ())) > 1:
            return None  # new messages may choose another genesis
        state.based = self._based(party, state)
        return state

    def ambiguous(self) -> set[tuple[bytes, bytes]]:
        """Return the items, by party, of which several geneses beyond a fork are known: new messages may choose."""
        return {
            (party, item)
            for party, plan in self.plans.items()
            for item, geneses in plan.branch_geneses.items()
            if len(geneses) > 1
        }

    def _based(self, party: bytes, state: ItemState) -> bool:
        """True if the genesis of an item is inside the base epoch of its party; the snapshot does not contain that."""
        lane = self.plans[party].lane(state.genesis.feed)
        return lane is not None and state.genesis.seq < lane.base


def _can_resume(state: ItemState, notes: Sequence[Note]) -> bool:
    if state.model is None or keeps_tail(state.model):
        return False
    return not any(note.kind == Kind.CHANGE and _changes_access(note) for note in notes)


def _changes_access(note: Note) -> bool:
    """True if a message changes the access list."""
    if note.message is None or note.void:
        return False
    try:
        return read_change(note.message).access is not None
    except InvalidMutation:
        return False


def _refold(party: bytes, item: bytes) -> tuple[Any, ...]:
    said = {"party": party, "item": item, "reason": REFOLD}
    return tuple(said.get(name) for name in SCHEMA.names)
