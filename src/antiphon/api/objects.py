"""`Object`: an item that behaves like a dict. Writing a key writes one message; what others write elsewhere stays.

>>> import antiphon
>>> with antiphon.open("laptop") as store:
...     task = store.create_party().object({"title": "Plan", "owner": {"name": "Ada"}})
...     task["done"] = False
...     task["owner"]["phone"] = "12"
...     task.add("tags", "urgent")
...     task.value
{'done': False, 'owner': {'name': 'Ada', 'phone': '12'}, 'tags': ['urgent'], 'title': 'Plan'}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, TypeVar

from antiphon.api.handle import Handle, plain, shown
from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.model.object import ObjectModel
from antiphon.model.value import Value
from antiphon.schema.reader import Read

Keys = tuple[str, ...]
T = TypeVar("T")


class Map(MutableMapping[str, Any]):
    """A map inside an object. It writes through: `task["owner"]["name"] = "Ada"` writes that one path."""

    __slots__ = ("_object", "_path")

    def __init__(self, object_: Object, path: Keys) -> None:
        self._object = object_
        self._path = path

    def __getitem__(self, key: str) -> Any:
        return self._object.at_path((*self._path, key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._object.set((*self._path, key), value)

    def __delitem__(self, key: str) -> None:
        self._object.unset((*self._path, key))

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._value()))

    def __len__(self) -> int:
        return len(self._value())

    def _value(self) -> dict[str, Value]:
        found = self._object.plain_at(self._path)
        if not isinstance(found, dict):
            raise KeyError(" → ".join(self._path))
        return found

    def __repr__(self) -> str:
        return repr(self._value())

    def __eq__(self, other: object) -> bool:
        return self._value() == (other._value() if isinstance(other, Map) else other)

    __hash__ = None  # type: ignore[assignment]


class Object(Handle, MutableMapping[str, Any]):
    """Properties, maps, sets and counters that everybody may change at once."""

    __slots__ = ()
    __hash__ = Handle.__hash__
    __eq__ = Handle.__eq__

    def __getitem__(self, key: str) -> Any:
        return self.at_path((key,))

    def __setitem__(self, key: str, value: Any) -> None:
        self.set((key,), value)

    def __delitem__(self, key: str) -> None:
        self.unset((key,))

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.item.value))

    def __len__(self) -> int:
        return len(self.item.value)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and bool(self.item.read(lambda model, state: model.has(state, key)))

    # -- paths

    def plain_at(self, path: Keys) -> Value:
        """The plain value at a path of keys; KeyError if nothing is there."""

        def get(model: ObjectModel, state: Any) -> Value:
            if not model.has(state, path):
                raise KeyError(" → ".join(path))
            return model.get(state, path)

        return self.item.read(get)

    def at_path(self, path: Keys) -> Any:
        found = self.plain_at(path)
        return Map(self, path) if isinstance(found, dict) else shown(found, self.party)

    def set(self, path: str | Keys, value: Any) -> None:
        """Write a value at a key, or at a path of keys."""
        self.item.edit("set", path[0] if isinstance(path, tuple) and len(path) == 1 else path, plain(value, self.party))

    def unset(self, path: str | Keys) -> None:
        """Take away what is at a path and below it."""
        try:
            self.item.edit("delete", path)
        except InvalidInput:
            self.plain_at((path,) if isinstance(path, str) else path)  # the usual KeyError, if that is what it was
            raise

    def update(self, values: Any = (), /, **more: Any) -> None:
        """Write several keys in one message: others see all of them or none."""
        found = {**dict(values.items() if isinstance(values, Mapping) else values), **more}
        if found:
            self.item.edit("update", {key: plain(value, self.party) for key, value in found.items()})

    # -- as an object of a class

    def read_as(self, cls: type[T]) -> Read[T]:
        """A Python object of a class with a schema, from whatever is here; with what is wrong, and what is unknown."""
        return self.party.schemas.read(self, cls)

    def save(self, thing: Any) -> None:
        """Write what differs from a Python object that was read from this one."""
        self.party.schemas.save(self, thing)

    # -- sets, counters, conflicts

    def add(self, path: str | Keys, element: Any) -> None:
        """Put an element into the set at a path."""
        self.item.edit("add", path, plain(element, self.party))

    def discard(self, path: str | Keys, element: Any) -> None:
        """Take an element out of the set at a path."""
        self.item.edit("remove", path, plain(element, self.party))

    def increment(self, path: str | Keys, by: int = 1) -> None:
        """Add to the counter at a path; concurrent increments all count."""
        self.item.edit("increment", path, by)

    def conflicts(self, path: str | Keys) -> list[tuple[Stamp, Value]]:
        """The concurrent values at a path, the one that shows first; nothing if there is just one."""
        found: list[tuple[Stamp, Value]] = self.item.read(lambda model, state: model.conflicts(state, path))
        return found
