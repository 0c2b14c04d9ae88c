"""`ItemDemuxer`: runs of blocks in, messages grouped by item out. Columns become Python values here.

In a lazy engine, messages wait here as columns until their item is opened (`claim`), or until all are folded (`drain`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from antiphon.core.reasons import Reason, because
from antiphon.feed.block import BodyState
from antiphon.feed.header import Kind
from antiphon.feed.limits import SALT_SIZE
from antiphon.model.message import Note
from antiphon.party.engine.judge import mark_void
from antiphon.party.engine.lane import Run
from antiphon.party.engine.ports import Void

Indexes = npt.NDArray[np.intp]
PREFIXES = 1 << 64
NOTES_MAX = 200_000
SIZE_MAX = 64 << 20
RUNS_MAX = 4096
NOTES_AT_ONCE = 16_384  # messages made of columns at once: each takes some 500 bytes
_CREDENTIAL = int(Kind.CREDENTIAL)
_COLUMNS = ["kind", "lamport", "seq", "created_ms", "item"]
NOT_AN_ITEM_MESSAGE = because(Reason.ITEM_MESSAGES_ONLY, "a data feed holds item messages only")


Groups = dict[bytes, list[Note]]
Part = tuple[Run, list[Void]]


class Gathered:
    """Runs that wait to be folded. They stay columns until `groups` makes messages of them."""

    def __init__(self, parts: Sequence[Part], count: int, taken: Mapping[bytes, int] | None = None) -> None:
        self._parts = parts
        self.count = count
        self._taken = taken or {}  # by item: its messages in so many of the first parts were claimed

    def items(self, since: int = 0) -> set[bytes]:
        """Return the items with messages in the parts from `since` on."""
        found: set[bytes] = set()
        taken = self._taken
        for place, (run, _) in enumerate(self._parts[since:], since):
            items = _ids(run)
            found.update(item for item in items if taken.get(item, 0) <= place) if taken else found.update(items)
        return found

    def groups(self, start: int = 0, stop: int = PREFIXES) -> Groups:
        """Group the messages by item, in the order of delivery, for items whose `prefix` is in [start, stop)."""
        groups: Groups = defaultdict(list)
        for place, (run, reasons) in enumerate(self._parts):
            which = None if (start, stop) == (0, PREFIXES) else _within(run, start, stop)
            self._add(groups, place, _judged(run, reasons, which))
        return groups

    def steps(self) -> Iterator[Groups]:
        """Yield what `groups` returns a few runs after the other, so that few messages are in memory at once."""
        groups: Groups = defaultdict(list)
        count = 0
        for place, (run, reasons) in enumerate(self._parts):
            self._add(groups, place, _judged(run, reasons, None))
            count += run.high - run.low
            if count >= NOTES_AT_ONCE:
                yield groups
                groups, count = defaultdict(list), 0
        yield groups

    def _add(self, groups: Groups, place: int, notes: Iterable[tuple[bytes, Note]]) -> None:
        """Add the messages of a part that were not claimed."""
        taken = self._taken
        for item, note in notes:
            if not taken or taken.get(item, 0) <= place:
                groups[item].append(note)


def _judged(run: Run, voids: list[Void], which: Indexes | None) -> list[tuple[bytes, Note]]:
    found = notes_of(run, which)
    return [(item, mark_void(voids, note)) for item, note in found] if voids else found


def _ids(run: Run) -> list[bytes]:
    ids: list[bytes] = run.span.columns["item"][run.low : run.high].tolist()
    return ids


class ItemDemuxer:
    """Gathers runs until there are enough to fold; bounded by messages, bytes and runs."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._parts: list[Part] = []
        self._taken: dict[bytes, int] = {}  # by item: how many of the first parts were claimed
        self._where: dict[bytes, list[tuple[int, int]]] = defaultdict(list)  # by item: (part, index)
        self._indexed = 0  # parts in `_where`; filled by the first `claim`
        self._told = 0
        self.count = 0
        self._size = 0

    @property
    def full(self) -> bool:
        """True if the gathered messages should be folded now."""
        return self.count >= NOTES_MAX or self._size >= SIZE_MAX or len(self._parts) >= RUNS_MAX

    def take(self, run: Run, voids: Iterable[Void]) -> None:
        """Add a run, with its void ranges."""
        self._parts.append((run, list(voids)))
        self.count += run.high - run.low
        self._size += int(run.span.body_offsets[run.high] - run.span.body_offsets[run.low])

    def news(self) -> set[bytes]:
        """Return the items of the runs that were added since the last call."""
        found = Gathered(self._parts, self.count, self._taken).items(self._told)
        self._told = len(self._parts)
        return found

    def claim(self, items: Iterable[bytes]) -> Groups:
        """Take the waiting messages of some items."""
        for place in range(self._indexed, len(self._parts)):
            for index, item in enumerate(_ids(self._parts[place][0])):
                self._where[item].append((place, index))
        self._indexed = len(self._parts)
        wanted: dict[int, list[int]] = defaultdict(list)
        for item in items:
            since = self._taken.get(item, 0)
            for place, index in self._where.get(item, ()):
                if place >= since:
                    wanted[place].append(index)
            self._taken[item] = len(self._parts)
        groups: Groups = defaultdict(list)
        for place in sorted(wanted):
            run, reasons = self._parts[place]
            for item, note in _judged(run, reasons, np.array(sorted(wanted[place]), dtype=np.intp)):
                groups[item].append(note)
        return groups

    def drain(self) -> Gathered:
        """Take everything."""
        gathered = Gathered(self._parts, self.count, self._taken)
        self._clear()
        return gathered


def prefix(item: bytes) -> int:
    """Return the first bytes of an item id as a number. Work is divided by it, because it sorts as ids do."""
    return int.from_bytes(item[:8], "big")


def _within(run: Run, start: int, stop: int) -> Indexes:
    ids = np.ascontiguousarray(run.span.columns["item"][run.low : run.high])
    prefixes = ids.view(">u8")[::2]
    fits = prefixes >= start if stop == PREFIXES else (prefixes >= start) & (prefixes < stop)
    return np.flatnonzero(fits)


def void_kind(kind: int) -> str:
    """Return why a block of this kind is void in any data feed; empty if it is not."""
    return NOT_AN_ITEM_MESSAGE if kind == Kind.CREDENTIAL else ""


def notes_of(run: Run, which: Indexes | None = None) -> list[tuple[bytes, Note]]:
    """Make the messages of a run, or of some of its indexes, each with its item."""
    feed, span, low, high = run
    bodies, columns = span.bodies, span.columns[_COLUMNS][low:high]
    starts, ends = span.body_offsets[low:high] + SALT_SIZE, span.body_offsets[low + 1 : high + 1]
    states = span.states[low:high] if span.states else b""
    if which is not None:
        columns, starts, ends = columns[which], starts[which], ends[which]
        states = bytes(np.frombuffer(states, dtype=np.uint8)[which]) if states else b""
    found = []
    new = tuple.__new__  # half the cost of calling the class, per message
    rows = zip(columns.tolist(), starts.tolist(), ends.tolist(), strict=True)
    for i, ((kind, lamport, seq, created_ms, item), start, end) in enumerate(rows):
        message = bodies[start:end] if not states or states[i] == BodyState.PRESENT else None
        void = void_kind(kind) if kind == _CREDENTIAL else ""
        found.append((item, new(Note, (kind, lamport, feed, seq, created_ms, message, void))))
    return found
