"""The state of an array: elements by id and by position key, and effects on elements that have not arrived."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.heard import Heard
from antiphon.model.value import Value

Writes = dict[Stamp, Value]  # the greatest stamp wins, the others are concurrent
_MANY = 32  # keys: from here on one pass over the whole order is faster than a step for each
_NONE: frozenset[Stamp] = frozenset()


class ElementId(NamedTuple):
    """The message that inserted an element, and the index of the element in it."""

    stamp: Stamp
    number: int


class Element:
    """The place and the values of an element. Before its own message arrives, it may have neither."""

    __slots__ = ("deleted", "id", "key", "placed", "waits", "writes")

    def __init__(self, name: ElementId, key: bytes, placed: Stamp | None, writes: Writes) -> None:
        self.id = name
        self.key = key
        self.placed = placed  # the message that put it there
        self.writes = writes
        self.waits: set[Stamp] | frozenset[Stamp] = _NONE  # writes that are replaced already and have not arrived
        self.deleted = False

    @property
    def winner(self) -> Value:
        """The value with the greatest stamp."""
        writes = self.writes
        return writes[max(writes)]


class ArrayState:
    """Elements that have arrived, and in `pending` effects on those to come. `due` finds what a message settles."""

    __slots__ = ("at", "copies", "due", "elements", "heard", "order", "pending")

    def __init__(self) -> None:
        self.heard = Heard()
        self.elements: dict[ElementId, Element] = {}
        self.order: list[bytes] = []
        self.at: dict[bytes, Element] = {}
        self.pending: dict[ElementId, Element] = {}
        # By feed, a heap of: the seq of a message that has not arrived, the element with an effect for it, its stamp.
        self.due: dict[bytes, list[tuple[int, ElementId, Stamp]]] = {}
        # By the feed that restored an element, and the element: its copy. Only undo uses it; no snapshot holds it.
        self.copies: dict[tuple[bytes, ElementId], ElementId] = {}

    # -- changes; each commutes with every other

    def insert(self, stamp: Stamp, first: int, keys: list[bytes], values: Sequence[Value]) -> None:
        """Insert the elements of a new message, at ascending keys."""
        elements, at = self.elements, self.at
        if len(keys) == 1 and not self.pending:  # the common case: one element
            name, key = ElementId(stamp, first), keys[0]
            elements[name] = at[key] = Element(name, key, stamp, {stamp: values[0]})
            insort(self.order, key)
            return
        if self.pending:
            keys = self._insert_said(stamp, first, keys, values)
        else:
            for number, key in enumerate(keys):
                name = ElementId(stamp, first + number)
                elements[name] = at[key] = Element(name, key, stamp, {stamp: values[number]})
        if keys:
            self._put_in(keys)

    def _insert_said(self, stamp: Stamp, first: int, keys: list[bytes], values: Sequence[Value]) -> list[bytes]:
        """Insert elements of which some have pending effects; return the keys that are still to be ordered."""
        placed = []
        for number, key in enumerate(keys):
            name = ElementId(stamp, first + number)
            said = self.pending.pop(name, None)
            if said is not None and said.deleted:
                continue
            element = Element(name, key, stamp, {stamp: values[number]})
            if said is not None and _merge(element, said):
                insort(self.order, element.key)
            else:
                placed.append(key)
            self.elements[name] = self.at[element.key] = element
        return placed

    def delete(self, names: Iterable[ElementId]) -> None:
        """Delete elements permanently, even if concurrent messages change them.

        No mark remains: an element is deleted if its message has arrived and it is not in `elements`.
        """
        keys = []
        for name in names:
            element = self.elements.pop(name, None)
            if element is not None:
                keys.append(element.key)
            elif (said := self._said(name)) is not None:
                said.deleted, said.key, said.placed, said.writes, said.waits = True, b"", None, {}, _NONE
        self._take_out(keys)

    def write(self, name: ElementId, stamp: Stamp, value: Value, replaces: Sequence[Stamp]) -> None:
        """Replace writes of an element by a new one."""
        element = self.elements.get(name) or self._said(name)
        if element is None or element.deleted:
            return
        for past in replaces:
            element.writes.pop(past, None)
            if not self.heard.has(past) and past not in element.waits:
                if isinstance(element.waits, frozenset):
                    element.waits = set()
                element.waits.add(past)
                self._owe(past, name)
        if stamp not in element.waits:
            element.writes[stamp] = value

    def move(self, names: Iterable[ElementId], stamp: Stamp, keys: Iterable[bytes]) -> None:
        """Move elements. The greatest stamp wins, so an element is at one place."""
        moved: list[Element] = []
        places: list[bytes] = []
        for name, key in zip(names, keys, strict=True):
            element = self.elements.get(name) or self._said(name)
            if element is None or element.deleted or (element.placed is not None and element.placed > stamp):
                continue
            if name in self.elements:
                moved.append(element)
                places.append(key)
            else:
                element.key, element.placed = key, stamp
        if not moved:
            return
        self._take_out([element.key for element in moved])
        for element, key in zip(moved, places, strict=True):
            element.key, element.placed, self.at[key] = key, stamp, element
        self._put_in(places)

    def _put_in(self, keys: list[bytes]) -> None:
        """Insert ascending keys into the order. Usually all of them go to one place."""
        order = self.order
        place = bisect_left(order, keys[0])
        if place == len(order) or keys[-1] < order[place]:
            order[place:place] = keys
        elif len(keys) < _MANY:
            for key in keys:
                insort(order, key)
        else:
            order += keys
            order.sort()  # which merges two sorted parts in linear time

    def _take_out(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            del self.at[key]
            if len(keys) < _MANY:
                del self.order[bisect_left(self.order, key)]
        if len(keys) >= _MANY:
            self.order = [key for key in self.order if key in self.at]

    # -- effects on elements that have not arrived

    def _said(self, name: ElementId) -> Element | None:
        """Return the pending entry of an element that has not arrived; None if it was deleted or never existed."""
        said = self.pending.get(name)
        if said is None and not self.heard.has(name.stamp):
            said = self.pending[name] = Element(name, b"", None, {})
            self._owe(name.stamp, name)
        return said

    def _owe(self, stamp: Stamp, name: ElementId) -> None:
        heappush(self.due.setdefault(stamp.feed, []), (stamp.seq, name, stamp))

    def settle(self, stamp: Stamp) -> None:
        """Drop the effects kept for a message and for earlier ones of its feed: they took effect, or never will."""
        due = self.due.get(stamp.feed)
        if not due:
            return
        while due and due[0][0] <= stamp.seq:
            _, name, past = heappop(due)
            if self.heard.has(name.stamp):
                self.pending.pop(name, None)
            element = self.elements.get(name) or self.pending.get(name)
            if element is not None and isinstance(element.waits, set):
                element.waits.discard(past)
                element.waits = element.waits or _NONE
        if not due:
            del self.due[stamp.feed]

    def index(self) -> None:
        """Rebuild the derived parts after a restore."""
        self.order = sorted(self.at)
        for element in (*self.elements.values(), *self.pending.values()):
            for past in element.waits:
                self._owe(past, element.id)
        for name in self.pending:
            self._owe(name.stamp, name)

    def position(self, name: ElementId) -> int | None:
        """Return the present index of an element."""
        element = self.elements.get(name)
        return None if element is None else bisect_left(self.order, element.key)


def _merge(element: Element, said: Element) -> bool:
    """Apply pending effects to an element that arrives. True if they move it to another place."""
    element.waits = said.waits
    if element.id.stamp in said.waits:
        element.writes = {}
    element.writes |= said.writes
    if said.placed is None:
        return False
    element.key, element.placed = said.key, said.placed
    return True
