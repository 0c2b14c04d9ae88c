"""`List`: an item that behaves like a list. Elements that two people insert at one place both stay, and do not mix.

>>> import antiphon
>>> with antiphon.open("laptop") as store:
...     books = store.create_party().list(["Emma", "Ulysses"])
...     books.insert(1, "Middlemarch")
...     books.move(2, 0)
...     books[1] = "Persuasion"
...     books.value
['Ulysses', 'Persuasion', 'Middlemarch']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSequence
from typing import Any, overload

from antiphon.api.handle import Handle, each, plain, shown
from antiphon.model.value import Value


class List(Handle, MutableSequence[Any]):
    """Values, or other items, in an order that everybody may change at once."""

    __slots__ = ()
    __hash__ = Handle.__hash__
    __eq__ = Handle.__eq__

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        found = self.item.value[index]
        return list(each(found, self.party)) if isinstance(index, slice) else shown(found, self.party)

    @overload
    def __setitem__(self, index: int, value: Any) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[Any]) -> None: ...
    def __setitem__(self, index: int | slice, value: Any) -> None:
        if isinstance(index, int):
            self.item.edit("set", self._index(index), plain(value, self.party))
            return
        start, stop, step = index.indices(len(self))
        values = list(value)
        with self.party.batch():
            if step != 1:
                places = range(start, stop, step)
                if len(places) != len(values):
                    raise ValueError(f"{len(values)} values for {len(places)} places")
                for place, one in zip(places, values, strict=True):
                    self[place] = one
                return
            del self[start : max(start, stop)]
            if values:
                self.item.edit("insert", start, [plain(one, self.party) for one in values])

    def __delitem__(self, index: int | slice) -> None:
        if isinstance(index, int):
            self.item.edit("delete", self._index(index))
            return
        places = sorted(range(*index.indices(len(self))), reverse=True)
        if places and places[0] - places[-1] == len(places) - 1:
            self.item.edit("delete", places[-1], len(places))
            return
        with self.party.batch():
            for place in places:
                self.item.edit("delete", place)

    def __len__(self) -> int:
        return int(self.item.read(lambda model, state: model.length(state)))

    def __iter__(self) -> Iterator[Any]:
        return each(self.item.value, self.party)

    def insert(self, index: int, value: Any) -> None:
        length = len(self)
        place = max(0, index + length) if index < 0 else min(index, length)
        self.item.edit("insert", place, [plain(value, self.party)])

    def append(self, value: Any) -> None:
        self.item.edit("append", plain(value, self.party))

    def extend(self, values: Iterable[Any]) -> None:
        """All of them in one message: others see all or none."""
        found = [plain(value, self.party) for value in values]
        if found:
            self.item.edit("append", *found)

    def move(self, start: int, to: int) -> None:
        """Move an element; it keeps its identity, so what others write to it meanwhile goes along."""
        self.item.edit("move", self._index(start), self._index(to))

    def conflicts(self, index: int) -> list[tuple[Any, Value]]:
        found: list[tuple[Any, Value]] = self.item.read(lambda model, state: model.conflicts(state, self._index(index)))
        return found if len(found) > 1 else []

    def _index(self, index: int) -> int:
        length = len(self)
        if not -length <= index < length:
            raise IndexError(f"index {index} of a list of {length}")
        return index % length
