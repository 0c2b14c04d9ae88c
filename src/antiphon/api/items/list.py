"""`List`: an item that behaves like a list. Elements that two people insert at the same place are both kept, in runs.

>>> import antiphon
>>> with antiphon.open("laptop", unprotected=True) as store:
...     books = store.create_party().list(["Emma", "Ulysses"])
...     books.insert(1, "Middlemarch")
...     books.move(2, 0)
...     books[1] = "Persuasion"
...     books.value
['Ulysses', 'Persuasion', 'Middlemarch']

Each method is one batch: it sees the list at one moment, and others see all of its changes or none.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, MutableSequence
from typing import Any, SupportsIndex, TypeVar, overload

from antiphon.api.inputs import need_room
from antiphon.api.items.handle import Handle, each, plain, shown
from antiphon.api.items.reorder import moves, moves_count, runs
from antiphon.core.errors import MovedOn
from antiphon.core.stamp import Stamp
from antiphon.model.value import Value

T = TypeVar("T")
_TRIES_MAX = 16


class List(Handle, MutableSequence[Any]):
    """A list of values, or of other items, that several people can change at once.

    `==` compares identity: two handles are equal if they are of the same item. Compare `value` for the content.
    """

    __slots__ = ()
    __hash__ = Handle.__hash__
    __eq__ = Handle.__eq__

    # -- reading

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return list(each(self.item.value[index], self.party))
        with self.party.processor.locked():
            place = self._index(index)
            found = self.item.read(lambda model, state: model.get(state, place))
        return shown(found, self.party)

    def __len__(self) -> int:
        return int(self.item.read(lambda model, state: model.length(state)))

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the current elements. The list may be changed during the iteration."""
        return each(self.item.value, self.party)

    def __reversed__(self) -> Iterator[Any]:
        return each(self.item.value[::-1], self.party)

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """Return the index of the first element that equals a value. `ValueError` if there is none."""
        found = list(self)
        return found.index(value, start, len(found) if stop is None else stop)

    def conflicts(self, index: SupportsIndex) -> list[tuple[Stamp, Value]]:
        """List the concurrent values of an element with their stamps, the shown one first; empty if only one."""
        with self.party.processor.locked():
            place = self._index(index)
            found: list[tuple[Stamp, Value]] = self.item.read(lambda model, state: model.conflicts(state, place))
        return found if len(found) > 1 else []

    # -- writing

    @overload
    def __setitem__(self, index: SupportsIndex, value: Any) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[Any]) -> None: ...
    def __setitem__(self, index: SupportsIndex | slice, value: Any) -> None:
        several = isinstance(index, slice)
        found = [plain(one, self.party) for one in value] if several else plain(value, self.party)
        with self.party.processor.batch():
            if isinstance(index, slice):
                self._set_slice(index, found)
            else:
                self.item.edit("set", self._index(index), found)

    def _set_slice(self, index: slice, values: list[Value]) -> None:
        start, stop, step = index.indices(len(self))
        if step == 1:
            del self[start : max(start, stop)]
            if values:
                self.item.edit("insert", start, values)
            return
        places = range(start, stop, step)
        if len(places) != len(values):
            raise ValueError(f"{len(values)} values for the {len(places)} places of {index}")
        need_room(self.party, len(places), f"setting {len(places)} elements one by one")
        for place, value in zip(places, values, strict=True):
            self.item.edit("set", place, value)

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        with self.party.processor.batch():
            if not isinstance(index, slice):
                self.item.edit("delete", self._index(index))
                return
            deleted = runs(range(*index.indices(len(self))))
            need_room(self.party, len(deleted), f"deleting elements at {len(deleted)} places")
            for first, count in deleted:
                self.item.edit("delete", first, count)

    def insert(self, index: SupportsIndex, value: Any) -> None:
        """Insert a value before an index."""
        found, wanted = plain(value, self.party), operator.index(index)
        with self.party.processor.batch():
            length = len(self)
            place = max(0, wanted + length) if wanted < 0 else min(wanted, length)
            self.item.edit("insert", place, [found])

    def append(self, value: Any) -> None:
        """Add a value at the end."""
        self.item.edit("append", plain(value, self.party))

    def extend(self, values: Iterable[Any]) -> None:
        """Add values at the end in one message: others see all of them or none."""
        found = [plain(value, self.party) for value in values]
        if found:
            self.item.edit("append", *found)

    def pop(self, index: SupportsIndex = -1) -> Any:
        """Delete an element, by default the last, and return it."""
        with self.party.processor.batch():
            place = self._index(index)
            found = self.item.read(lambda model, state: model.get(state, place))
            self.item.edit("delete", place)
        return shown(found, self.party, detached=True)

    def remove(self, value: Any) -> None:
        """Delete the first element that equals a value. `ValueError` if there is none."""
        self._decide(lambda found: found.index(value), lambda place: self.item.edit("delete", place))

    def clear(self) -> None:
        """Delete all elements."""
        del self[:]

    # -- order

    def move(self, start: SupportsIndex, to: SupportsIndex) -> None:
        """Move an element to another index. It keeps its identity: concurrent changes of the element are kept.

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     days = store.create_party().list(["Tue", "Wed", "Mon"])
        ...     days.move(2, 0)
        ...     days.value
        ['Mon', 'Tue', 'Wed']
        """
        with self.party.processor.batch():
            self.item.edit("move", self._index(start), self._index(to))

    def reverse(self) -> None:
        """Reverse the order of the elements."""
        with self.party.processor.batch():
            self._arrange(list(range(len(self)))[::-1])

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
        """Sort in place with the fewest moves. Concurrent changes of elements are kept."""

        def order(found: list[Any]) -> list[int]:
            ranks = found if key is None else [key(value) for value in found]
            return sorted(range(len(found)), key=lambda place: ranks[place], reverse=reverse)

        self._decide(order, self._arrange)

    def _arrange(self, wanted: list[int]) -> None:
        """Bring the elements into an order. `wanted` lists their current indices."""
        count = moves_count(wanted)
        need_room(self.party, count, f"bringing {len(wanted)} elements into this order")
        for start, to in moves(wanted):
            self.item.edit("move", start, to)

    def _decide(self, decide: Callable[[list[Any]], T], act: Callable[[T], object]) -> None:
        """Call a function of the application with the elements, without a lock; then act on its result.

        If the list was changed meanwhile, try again.
        """
        for _ in range(_TRIES_MAX):
            with self.party.processor.locked():
                seen, values = self.item.timeframe, self.item.value
            decision = decide(list(each(values, self.party)))
            with self.party.processor.locked():
                if self.item.timeframe == seen:
                    with self.party.processor.batch():
                        act(decision)
                    return
        raise MovedOn(f"item {self.id} was changed during each of {_TRIES_MAX} attempts; try again")

    def _index(self, index: SupportsIndex) -> int:
        length, wanted = len(self), operator.index(index)
        if not -length <= wanted < length:
            raise IndexError(f"index {wanted} of a list of {length}")
        return wanted % length
