"""`ItemDemuxer`: runs of blocks in, each item's messages out. Columns become Python values here, all at once."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.feed.block import BodyState
from antiphon.feed.header import Kind
from antiphon.feed.limits import SALT_SIZE
from antiphon.model.envelope import Note
from antiphon.party.judge import reason_at
from antiphon.party.lane import Run
from antiphon.party.ports import Void

NOTES_MAX = 200_000
SIZE_MAX = 64 << 20
NOT_AN_ITEM_MESSAGE = "a data feed holds item messages only"


class ItemDemuxer:
    """Gathers messages by item until there are enough to fold; bounded in number and bytes."""

    def __init__(self) -> None:
        self.groups: dict[bytes, list[Note]] = {}
        self.count = 0
        self._size = 0

    @property
    def full(self) -> bool:
        return self.count >= NOTES_MAX or self._size >= SIZE_MAX

    def take(self, run: Run, voids: Iterable[Void]) -> None:
        reasons = list(voids)
        groups = self.groups
        for item, note in notes_of(run):
            if reasons and (reason := reason_at(reasons, note.seq)):
                note = note._replace(void=reason)
            known = groups.get(item)
            if known is None:
                groups[item] = [note]
            else:
                known.append(note)
        self.count += run.high - run.low
        self._size += int(run.span.body_offsets[run.high] - run.span.body_offsets[run.low])

    def drain(self) -> dict[bytes, list[Note]]:
        groups, self.groups = self.groups, {}
        self.count = self._size = 0
        return groups


def void_kind(kind: int) -> str:
    """Why a block of this kind is void wherever it stands in a data feed."""
    return NOT_AN_ITEM_MESSAGE if kind == Kind.CREDENTIAL else ""


def notes_of(run: Run) -> list[tuple[bytes, Note]]:
    """The messages of a run, each with its item."""
    feed, span, low, high = run
    bodies, states = span.bodies, span.states
    offsets = span.body_offsets[low : high + 1].tolist()
    found = []
    new = tuple.__new__  # half the price of calling the class, for every message
    for i, row in enumerate(span.columns[low:high].tolist()):
        _, kind, _, seq, lamport, created_ms, item, _, _, _ = row
        here = not states or states[low + i] == BodyState.PRESENT
        message = bodies[offsets[i] + SALT_SIZE : offsets[i + 1]] if here else None
        void = void_kind(kind)
        found.append((item, new(Note, (kind, lamport, feed, seq, created_ms, message, void))))
    return found
