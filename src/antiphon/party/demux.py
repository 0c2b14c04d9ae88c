"""`ItemDemuxer`: runs of blocks in, each item's messages out. Columns become Python values here, all at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from antiphon.feed.block import BodyState
from antiphon.feed.header import Kind
from antiphon.feed.limits import SALT_SIZE
from antiphon.model.envelope import Note
from antiphon.party.judge import reason_at
from antiphon.party.lane import Run
from antiphon.party.ports import Void

Indexes = npt.NDArray[np.intp]
PREFIXES = 1 << 64
NOTES_MAX = 200_000
SIZE_MAX = 64 << 20
_CREDENTIAL = int(Kind.CREDENTIAL)
_COLUMNS = ["kind", "lamport", "seq", "created_ms", "item"]
NOT_AN_ITEM_MESSAGE = "a data feed holds item messages only"


Groups = dict[bytes, list[Note]]


class Gathered:
    """Blocks that wait to be folded. They stay columns until somebody asks for the messages of some items."""

    def __init__(self, parts: list[tuple[Run, list[Void]]], count: int) -> None:
        self._parts = parts
        self.count = count

    def items(self) -> set[bytes]:
        found: set[bytes] = set()
        for run, _ in self._parts:
            found.update(run.span.columns["item"][run.low : run.high].tolist())
        return found

    def groups(self, start: int = 0, stop: int = PREFIXES) -> Groups:
        """The messages of each item whose prefix is in [start, stop), in the order of delivery."""
        groups: Groups = defaultdict(list)
        for run, reasons in self._parts:
            which = None if (start, stop) == (0, PREFIXES) else _within(run, start, stop)
            for item, note in notes_of(run, which):
                if reasons and (reason := reason_at(reasons, note.seq)):
                    note = note._replace(void=reason)
                groups[item].append(note)
        return groups


class ItemDemuxer:
    """Gathers blocks until there are enough to fold; bounded in number and bytes."""

    def __init__(self) -> None:
        self._parts: list[tuple[Run, list[Void]]] = []
        self._count = 0
        self._size = 0

    @property
    def full(self) -> bool:
        return self._count >= NOTES_MAX or self._size >= SIZE_MAX

    def take(self, run: Run, voids: Iterable[Void]) -> None:
        self._parts.append((run, list(voids)))
        self._count += run.high - run.low
        self._size += int(run.span.body_offsets[run.high] - run.span.body_offsets[run.low])

    def drain(self) -> Gathered:
        gathered = Gathered(self._parts, self._count)
        self._parts, self._count, self._size = [], 0, 0
        return gathered


def prefix(item: bytes) -> int:
    """What items are divided by: the first bytes of their ids, which are in the order of the ids."""
    return int.from_bytes(item[:8], "big")


def _within(run: Run, start: int, stop: int) -> Indexes:
    ids = np.ascontiguousarray(run.span.columns["item"][run.low : run.high])
    prefixes = ids.view(">u8")[::2]
    fits = prefixes >= start if stop == PREFIXES else (prefixes >= start) & (prefixes < stop)
    return np.flatnonzero(fits)


def void_kind(kind: int) -> str:
    """Why a block of this kind is void wherever it stands in a data feed."""
    return NOT_AN_ITEM_MESSAGE if kind == Kind.CREDENTIAL else ""


def notes_of(run: Run, which: Indexes | None = None) -> list[tuple[bytes, Note]]:
    """The messages of a run, or those at some places of it, each with its item."""
    feed, span, low, high = run
    bodies, columns = span.bodies, span.columns[_COLUMNS][low:high]
    starts, ends = span.body_offsets[low:high] + SALT_SIZE, span.body_offsets[low + 1 : high + 1]
    states = span.states[low:high] if span.states else b""
    if which is not None:
        columns, starts, ends = columns[which], starts[which], ends[which]
        states = bytes(np.frombuffer(states, dtype=np.uint8)[which]) if states else b""
    found = []
    new = tuple.__new__  # half the price of calling the class, for every message
    rows = zip(columns.tolist(), starts.tolist(), ends.tolist(), strict=True)
    for i, ((kind, lamport, seq, created_ms, item), start, end) in enumerate(rows):
        message = bodies[start:end] if not states or states[i] == BodyState.PRESENT else None
        void = void_kind(kind) if kind == _CREDENTIAL else ""
        found.append((item, new(Note, (kind, lamport, feed, seq, created_ms, message, void))))
    return found
