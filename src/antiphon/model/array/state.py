"""The state of an array: elements by id and by position key, and effects on elements that have not arrived."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import pairwise

from antiphon.core.stamp import Stamp
from antiphon.model.array.pieces import ElementId, Piece, PieceOrder, Writes
from antiphon.model.array.position import Span
from antiphon.model.bounds import Bounds, Waits, covers, is_waited, still_waited, waited
from antiphon.model.heard import Heard
from antiphon.model.value import Value


class Said:
    """The effects on an element that has not arrived."""

    __slots__ = ("deleted", "id", "span", "waits", "writes")

    def __init__(self, name: ElementId) -> None:
        self.id = name
        self.span: Span | None = None  # where a move puts it
        self.writes: Writes = {}
        self.waits: Waits | None = None
        self.deleted = False

    def delete(self) -> None:
        """Delete the element: nothing else of it matters any more."""
        self.deleted, self.span, self.writes, self.waits = True, None, {}, None


class ArrayState:
    """Elements that have arrived, and in `pending` effects on those to come. `due` finds what a message settles."""

    __slots__ = ("copies", "due", "heard", "order", "pending", "pieces")

    def __init__(self) -> None:
        self.heard = Heard()
        self.order = PieceOrder(self._add_piece)
        self.pieces: dict[Stamp, list[Piece]] = {}  # by the message that inserted them, ascending
        self.pending: dict[ElementId, Said] = {}
        # By feed, a heap of: the seq of a message that has not arrived, and an element with an effect for it.
        self.due: dict[bytes, list[tuple[int, ElementId]]] = {}
        # By the feed that restored an element, and the element: its copy. Only undo uses it; no snapshot holds it.
        self.copies: dict[tuple[bytes, ElementId], ElementId] = {}

    # -- elements

    def find(self, name: ElementId) -> tuple[Piece, int] | None:
        """Return the piece that holds an element, and the index of the element in it."""
        pieces = self.pieces.get(name.stamp)
        if pieces is None:
            return None
        at = bisect_right(pieces, name.number, key=_number) - 1
        if at < 0 or name.number >= pieces[at].end:
            return None
        return pieces[at], name.number - pieces[at].number

    def position(self, name: ElementId) -> int | None:
        """Return the present index of an element."""
        found = self.find(name)
        return None if found is None else self.order.index(found[0]) + found[1]

    def _add_piece(self, before: Piece, piece: Piece) -> None:
        """Register the second part of a piece that was split."""
        pieces = self.pieces[piece.origin]
        pieces.insert(bisect_right(pieces, piece.number, key=_number), piece)

    def _drop(self, piece: Piece) -> None:
        pieces = self.pieces[piece.origin]
        del pieces[bisect_right(pieces, piece.number, key=_number) - 1]
        if not pieces:
            del self.pieces[piece.origin]

    def _isolated(self, stamp: Stamp, first: int, end: int) -> Iterator[Piece]:
        """Yield pieces of exactly the elements of a message with these numbers that are here, ascending."""
        while first < end and (pieces := self.pieces.get(stamp)) is not None:
            at = max(bisect_right(pieces, first, key=_number) - 1, 0)
            if pieces[at].end <= first:
                at += 1
            if at == len(pieces) or pieces[at].number >= end:
                return
            piece = pieces[at]
            if piece.number < first:
                piece = self.order.split(piece, first - piece.number)
            if piece.end > end:
                self.order.split(piece, end - piece.number)
            first = piece.end
            yield piece

    # -- changes; each commutes with every other

    def insert(self, stamp: Stamp, first: int, span: Span, values: Sequence[Value]) -> None:
        """Insert the elements of a new message, at ascending keys."""
        start = 0
        if self.pending:
            for at in range(span.size):
                said = self.pending.pop(ElementId(stamp, first + at), None)
                if said is not None:
                    self._insert(stamp, first, span, values, start, at)
                    if not said.deleted:
                        self._insert_said(
                            Piece(stamp, first + at, said.span or span.part(at, at + 1), values, at), said
                        )
                    start = at + 1
        self._insert(stamp, first, span, values, start, span.size)

    def _insert(self, stamp: Stamp, first: int, span: Span, values: Sequence[Value], start: int, stop: int) -> None:
        if start < stop:
            whole = start == 0 and stop == span.size
            piece = Piece(stamp, first + start, span if whole else span.part(start, stop), values, start)
            self.pieces.setdefault(stamp, []).append(piece)
            self.order.add(piece)

    def _insert_said(self, piece: Piece, said: Said) -> None:
        """Insert an element with the effects that arrived before it."""
        stamp = piece.origin
        piece.waits = said.waits
        if said.writes:
            own = {} if is_waited(said.waits, stamp) else piece.written()
            piece.writes = own | said.writes
        self.pieces.setdefault(stamp, []).append(piece)
        self.order.add(piece)

    def delete(self, names: Sequence[ElementId]) -> None:
        """Delete elements permanently, even if concurrent messages change them.

        No mark remains: an element is deleted if its message has arrived and it is not in `pieces`.
        """
        for start, stop in _series(names):
            stamp, first = names[start]
            for piece in [*self._isolated(stamp, first, first + stop - start)]:
                self.order.remove(piece)
                self._drop(piece)
            if not self.heard.has(stamp):
                for name in names[start:stop]:
                    said = self._said(name)
                    if said is not None:
                        said.delete()

    def write(self, name: ElementId, stamp: Stamp, value: Value, replaces: Sequence[Stamp]) -> None:
        """Replace writes of an element by a new one."""
        target: Piece | Said | None = next(self._isolated(name.stamp, name.number, name.number + 1), None)
        if target is None:
            target = self._said(name)
        if target is None or (isinstance(target, Said) and target.deleted):
            return
        writes = target.own_values() if isinstance(target, Piece) else target.writes
        writes.pop(stamp.feed, None)  # a writer has always seen its own
        for past in replaces:
            known = writes.get(past.feed)
            if known is not None and covers(past, known[0]):
                del writes[past.feed]
            if not self.heard.has(past):
                if target.waits is None:
                    target.waits = {}
                if target.waits.setdefault(past.feed, Bounds()).add(past) >= 0:
                    self._owe(past, name)
        if not is_waited(target.waits, stamp):
            writes[stamp.feed] = stamp, value

    def move(self, names: Sequence[ElementId], stamp: Stamp, span: Span) -> None:
        """Move elements. The greatest stamp wins, so an element is at one place."""
        for start, stop in _series(names):
            origin, first = names[start]
            moved = [
                piece for piece in self._isolated(origin, first, first + stop - start) if piece.span.stamp <= stamp
            ]
            for piece in moved:
                self.order.remove(piece)
            for piece in moved:
                at = start + piece.number - first
                piece.place(span.part(at, at + piece.count))
                self.order.add(piece)
            if not self.heard.has(origin):
                for at in range(start, stop):
                    said = self._said(names[at])
                    if said is not None and not said.deleted and (said.span is None or said.span.stamp <= stamp):
                        said.span = span.part(at, at + 1)

    # -- effects on elements that have not arrived

    def _said(self, name: ElementId) -> Said | None:
        """Return the pending entry of an element that has not arrived; None if it was deleted or never existed."""
        said = self.pending.get(name)
        if said is None and not self.heard.has(name.stamp):
            said = self.pending[name] = Said(name)
            self._owe(name.stamp, name)
        return said

    def _owe(self, stamp: Stamp, name: ElementId) -> None:
        heappush(self.due.setdefault(stamp.feed, []), (stamp.seq, name))

    def settle(self, stamp: Stamp) -> None:
        """Drop the effects kept for a message and for earlier ones of its feed: they took effect, or never will."""
        due = self.due.get(stamp.feed)
        if not due:
            return
        while due and due[0][0] <= stamp.seq:
            _, name = heappop(due)
            if self.heard.has(name.stamp):
                self.pending.pop(name, None)
            found = self.find(name)
            target = found[0] if found is not None else self.pending.get(name)
            if target is not None:
                target.waits = still_waited(target.waits, stamp)
        if not due:
            del self.due[stamp.feed]

    def adopt(self, pieces: Iterable[Piece]) -> bool:
        """Take over the pieces of a snapshot, in their order, after what is pending. False if an element is twice."""
        waiting = []
        for piece in pieces:
            self.order.append(piece)
            self.pieces.setdefault(piece.origin, []).append(piece)
            if piece.waits:
                waiting.append((piece.name(), piece.waits))
        for some in self.pieces.values():
            some.sort(key=_number)
            if any(one.end > other.number for one, other in pairwise(some)):
                return False
        for said in self.pending.values():
            self._owe(said.id.stamp, said.id)
            waiting.append((said.id, said.waits or {}))
        for name, waits in waiting:
            for past in waited(waits):
                self._owe(past, name)
        return True


def _number(piece: Piece) -> int:
    return piece.number


def _series(names: Sequence[ElementId]) -> Iterable[tuple[int, int]]:
    """Yield the parts of a list, start and stop, in which the names are those of consecutive elements."""
    ends = [0]
    ends += [
        at
        for at, (one, other) in enumerate(pairwise(names), start=1)
        if other.number != one.number + 1 or other.stamp != one.stamp
    ]
    return pairwise([*ends, len(names)])


__all__ = ["ArrayState", "ElementId", "Said"]
