"""The state of an array: elements by id and in the order of their position keys, and what came too early."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.heard import Heard
from antiphon.model.value import Value

Writes = dict[Stamp, Value]  # the greatest stamp wins, the others are concurrent
_MANY = 32  # keys: from here on one pass over the whole order is quicker than a step for each
_NONE: frozenset[Stamp] = frozenset()


class ElementId(NamedTuple):
    """The message that inserted an element, and which of its elements it is."""

    stamp: Stamp
    number: int


class Element:
    """Where an element is and what it holds. Before its own message came, it may have no place and no value."""

    __slots__ = ("deleted", "id", "key", "placed", "waits", "writes")

    def __init__(self, name: ElementId, key: bytes, placed: Stamp | None, writes: Writes) -> None:
        self.id = name
        self.key = key
        self.placed = placed  # the message that put it there
        self.writes = writes
        self.waits: set[Stamp] | frozenset[Stamp] = _NONE  # writes that are replaced already, and have not come
        self.deleted = False

    @property
    def winner(self) -> Value:
        writes = self.writes
        return writes[max(writes)]


class ArrayState:
    """Elements that are there, and in `pending` those whose message did not come yet. `due` finds what one settles."""

    __slots__ = ("at", "copies", "due", "elements", "heard", "order", "pending")

    def __init__(self) -> None:
        self.heard = Heard()
        self.elements: dict[ElementId, Element] = {}
        self.order: list[bytes] = []
        self.at: dict[bytes, Element] = {}
        self.pending: dict[ElementId, Element] = {}
        # By feed, a heap: the seq of a message that has not come, an element that something was said of for it, and it.
        self.due: dict[bytes, list[tuple[int, ElementId, Stamp]]] = {}
        # By who brought an element back, and which: the new one. For undo alone, and in no snapshot.
        self.copies: dict[tuple[bytes, ElementId], ElementId] = {}

    # -- changes; each commutes with every other

    def insert(self, stamp: Stamp, first: int, keys: list[bytes], values: Sequence[Value]) -> None:
        """Elements of a new message, at ascending keys."""
        elements, at = self.elements, self.at
        if len(keys) == 1 and not self.pending:  # somebody types
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
        """The same where something was said of elements that had not come; the keys that are still to be ordered."""
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
        """What is deleted stays so, whatever was concurrent: it is not there and was heard, so nothing finds it."""
        keys = []
        for name in names:
            element = self.elements.pop(name, None)
            if element is not None:
                keys.append(element.key)
            elif (said := self._said(name)) is not None:
                said.deleted, said.key, said.placed, said.writes, said.waits = True, b"", None, {}, _NONE
        self._take_out(keys)

    def write(self, name: ElementId, stamp: Stamp, value: Value, replaces: Sequence[Stamp]) -> None:
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
        """The greatest stamp wins, so an element is at one place."""
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
        """Ascending keys into the order: mostly all of them at one place."""
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

    # -- what comes too early

    def _said(self, name: ElementId) -> Element | None:
        """The element that is not here yet; none if it was here, or never will be."""
        said = self.pending.get(name)
        if said is None and not self.heard.has(name.stamp):
            said = self.pending[name] = Element(name, b"", None, {})
            self._owe(name.stamp, name)
        return said

    def _owe(self, stamp: Stamp, name: ElementId) -> None:
        heappush(self.due.setdefault(stamp.feed, []), (stamp.seq, name, stamp))

    def settle(self, stamp: Stamp) -> None:
        """After a message: what was kept for it, or for any before it in its feed, has taken effect or never will."""
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
        """Everything that is derived, after a restore."""
        self.order = sorted(self.at)
        for element in (*self.elements.values(), *self.pending.values()):
            for past in element.waits:
                self._owe(past, element.id)
        for name in self.pending:
            self._owe(name.stamp, name)

    def position(self, name: ElementId) -> int | None:
        """The index at which an element is now."""
        element = self.elements.get(name)
        return None if element is None else bisect_left(self.order, element.key)


def _merge(element: Element, said: Element) -> bool:
    """Give an element what was said of it before it came; whether it goes to another place."""
    element.waits = said.waits
    if element.id.stamp in said.waits:
        element.writes = {}
    element.writes |= said.writes
    if said.placed is None:
        return False
    element.key, element.placed = said.key, said.placed
    return True
