"""`Object`: an item that behaves like a dict. Writing a key writes one message; other keys are not affected.

>>> import antiphon
>>> with antiphon.open("laptop", unprotected=True) as store:
...     task = store.create_party().object({"title": "Plan", "owner": {"name": "Ada"}})
...     task["done"] = False
...     task["owner"]["phone"] = "12"
...     task.add("tags", "urgent")
...     task.value
{'done': False, 'owner': {'name': 'Ada', 'phone': '12'}, 'tags': ['urgent'], 'title': 'Plan'}

A map inside an object writes through, as above. A list or a set inside it reads as a list that cannot be changed in
place: write it again, or use `add` and `discard`. For a list that several people change at once, create a `List` and
store a reference to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, cast

from antiphon.api.items.handle import Handle, plain, shown
from antiphon.api.items.properties import Keys, Properties
from antiphon.core.errors import InvalidInput
from antiphon.core.generics import TypeVar
from antiphon.core.stamp import Stamp
from antiphon.model.object.model import ObjectModel
from antiphon.model.value import Value
from antiphon.schema.definition import Schema
from antiphon.schema.errors import SchemaViolation
from antiphon.schema.reader import Read

if TYPE_CHECKING:
    from antiphon.api.party import Party
    from antiphon.party.live.item import Item

Record = TypeVar("Record", default=dict[str, Any])
T = TypeVar("T")


class Map(Properties):
    """A map inside an object. It writes through: `task["owner"]["name"] = "Ada"` writes that one path."""

    __slots__ = ("_object", "_path")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, object_: Object[Any], path: Keys) -> None:
        self._object = object_
        self._path = path

    @property
    def place(self) -> tuple[Object[Any], Keys]:
        return self._object, self._path

    def __repr__(self) -> str:
        return repr(self.plain())

    def __eq__(self, other: object) -> bool:
        """True if the other mapping has the same content, as for a dict."""
        return isinstance(other, Mapping) and self.plain() == plain(other, self._object.party)


class Object(Handle, Properties, Generic[Record]):
    """A dict with nested maps, sets and counters that several people can change at once.

    Concurrent writes to different keys are all kept. Concurrent writes to one key are all kept too: one of them is
    shown, and `conflicts` lists them. A path is a key, or a tuple of keys: `("owner", "name")`.

    `Object[Task]` is an object whose class is known, because it was created from a `Task` or found with `type=Task`.
    """

    __slots__ = ("_record",)
    __hash__ = Handle.__hash__
    __eq__ = Handle.__eq__

    def __init__(self, party: Party, item: Item, record: type[Record] | None = None) -> None:
        super().__init__(party, item)
        self._record = record

    @property
    def place(self) -> tuple[Object[Any], Keys]:
        return self, ()

    # -- paths

    def has_path(self, path: Keys) -> bool:
        """True if there is a value at a path of keys."""
        return bool(self.item.read(lambda model, state: model.has(state, path)))

    def plain_at(self, path: Keys) -> Value:
        """Return the plain value at a path of keys. `KeyError` if there is none."""

        def get(model: ObjectModel, state: Any) -> Value:
            if not path:
                return model.value(state)
            if not all(isinstance(key, str) for key in path) or not model.has(state, path):
                raise KeyError(" → ".join(map(str, path)))
            return model.get(state, path)

        return self.item.read(get)

    def at_path(self, path: Keys) -> Any:
        """Return the value at a path of keys, as `[]` returns it."""
        return self.show(self.plain_at(path), path)

    def show(self, value: Value, path: Keys) -> Any:
        """Convert a plain value to the form that `[]` returns: a dict becomes a `Map`, a reference a handle."""
        return Map(self, path) if isinstance(value, dict) else shown(value, self.party)

    def set(self, path: str | Keys, value: Any) -> None:
        """Write a value at a key, or at a path of keys."""
        self.item.edit("set", path[0] if isinstance(path, tuple) and len(path) == 1 else path, plain(value, self.party))

    def unset(self, path: str | Keys) -> None:
        """Delete the value at a path, and everything below it. `KeyError` if there is none."""
        with self.party.processor.locked():
            self.plain_at((path,) if isinstance(path, str) else path)  # raises KeyError before the batch is changed
            self.item.edit("delete", path)

    # -- as an object of a class

    def read(self) -> Record:
        """Return an instance of the class that this object was created from or found with; without a class, a dict.

        Values that do not fit the class are left out; `read_as` reports them. `SchemaViolation` if no instance can be
        created.
        """
        if self._record is None:
            return cast("Record", self.value)
        found = self.read_as(self._record)
        if found.object is None:
            schema = Schema.of(self._record)
            raise SchemaViolation(schema.name, schema.version, found.problems)
        return found.object

    def read_as(self, cls: type[T]) -> Read[T]:
        """Read any object as an instance of a class with a schema. The result also lists problems and unknown keys."""
        return self.party.schemas.read(self, cls)

    def save(self, thing: Any, since: Any = None) -> None:
        """Write the fields of an instance that changed since it was read from this object, and no others.

        An instance that was not read from this object, such as a changed copy, needs `since`: the instance that was
        read, or the result of `read_as`.

        >>> import antiphon
        >>> from dataclasses import dataclass
        >>> @antiphon.typed("book")
        ... @dataclass
        ... class Book:
        ...     title: str
        ...     lent: bool = False
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     item = store.create_party().object(Book("Emma"))
        ...     book = item.read()
        ...     book.lent = True
        ...     item.save(book)
        ...     item.value
        {'lent': True, 'title': 'Emma'}
        """
        self.party.schemas.save(self, thing, since)

    # -- sets, counters, conflicts

    def add(self, path: str | Keys, element: Any) -> None:
        """Add an element to the set at a path, or create the set.

        An element that one person adds while another discards it stays in the set.
        """
        self.item.edit("add", path, plain(element, self.party))

    def discard(self, path: str | Keys, element: Any) -> None:
        """Remove an element from the set at a path."""
        self.item.edit("remove", path, plain(element, self.party))

    def increment(self, path: str | Keys, by: int = 1) -> None:
        """Add to the counter at a path, or create the counter. Concurrent increments add up.

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     poll = store.create_party().object()
        ...     poll.increment("votes")
        ...     poll.increment("votes", 2)
        ...     poll["votes"]
        3
        """
        self.item.edit("increment", path, by)

    def conflicts(self, path: str | Keys) -> list[tuple[Stamp, Value]]:
        """List the concurrent values at a path with their stamps, the shown one first; empty if there is only one."""
        found: list[tuple[Stamp, Value]] = self.item.read(lambda model, state: model.conflicts(state, path))
        return found


def need_kind(handle: Handle, kind: type, record: type | None) -> Handle:
    """Check that a handle is of a kind, and of the type of a class with a schema if there is one."""
    if not isinstance(handle, kind):
        raise InvalidInput(f"item {handle.id} is of the kind {type(handle).__name__}, not {kind.__name__}")
    if record is not None and handle.type != (name := Schema.of(record).name):
        raise InvalidInput(f"item {handle.id} is of the type {handle.type!r}, not {name!r}; see `Object.read_as`")
    return handle
