"""`Object`: an item that behaves like a dict. Writing a key writes one message; what others write elsewhere stays.

>>> import antiphon
>>> with antiphon.open("laptop", unprotected=True) as store:
...     task = store.create_party().object({"title": "Plan", "owner": {"name": "Ada"}})
...     task["done"] = False
...     task["owner"]["phone"] = "12"
...     task.add("tags", "urgent")
...     task.value
{'done': False, 'owner': {'name': 'Ada', 'phone': '12'}, 'tags': ['urgent'], 'title': 'Plan'}

A map inside it writes through, as above. A list or a set inside it is read as a list of its own: to change it, write it
again, or use `add` and `discard`; for one that several people change at once, make a `List` and refer to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, cast

from antiphon.api.items.handle import Handle, plain, shown
from antiphon.api.items.properties import Keys, Properties
from antiphon.core.stamp import Stamp
from antiphon.model.object.model import ObjectModel
from antiphon.model.value import Value
from antiphon.schema.definition import Schema
from antiphon.schema.errors import SchemaViolation
from antiphon.schema.reader import Read

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from antiphon.api.party import Party
    from antiphon.party.live.item import Item

    Record = TypeVar("Record", default=dict[str, Any])
else:
    from typing import TypeVar

    Record = TypeVar("Record")
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
        """Whether it holds the same, as a dict does."""
        return isinstance(other, Mapping) and self.plain() == plain(other, self._object.party)


class Object(Handle, Properties, Generic[Record]):
    """Properties, maps, sets and counters that everybody may change at once.

    `Object[Task]` is an object whose class is known, because it was made from a `Task` or found with `type=Task`.
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
        """The plain value at a path of keys; KeyError if nothing is there."""

        def get(model: ObjectModel, state: Any) -> Value:
            if not path:
                return model.value(state)
            if not all(isinstance(key, str) for key in path) or not model.has(state, path):
                raise KeyError(" → ".join(map(str, path)))
            return model.get(state, path)

        return self.item.read(get)

    def at_path(self, path: Keys) -> Any:
        """What is at a path of keys, as `[]` shows it."""
        return self.show(self.plain_at(path), path)

    def show(self, value: Value, path: Keys) -> Any:
        """A value as `[]` shows it: a dict writes through, a reference is a handle."""
        return Map(self, path) if isinstance(value, dict) else shown(value, self.party)

    def set(self, path: str | Keys, value: Any) -> None:
        """Write a value at a key, or at a path of keys."""
        self.item.edit("set", path[0] if isinstance(path, tuple) and len(path) == 1 else path, plain(value, self.party))

    def unset(self, path: str | Keys) -> None:
        """Take away what is at a path and below it."""
        with self.party.processor.locked():
            self.plain_at((path,) if isinstance(path, str) else path)  # KeyError before a batch is spoilt
            self.item.edit("delete", path)

    # -- as an object of a class

    def read(self) -> Record:
        """Return an instance of the class that this object was made from or found with; without one, a dict.

        What does not fit the class is left out, as `read_as` reports. `SchemaViolation` if no instance can be made.
        """
        if self._record is None:
            return cast("Record", self.value)
        found = self.read_as(self._record)
        if found.object is None:
            schema = Schema.of(self._record)
            raise SchemaViolation(schema.name, schema.version, found.problems)
        return found.object

    def read_as(self, cls: type[T]) -> Read[T]:
        """Read any object as an instance of a class with a schema; with what is wrong, and what the class lacks."""
        return self.party.schemas.read(self, cls)

    def save(self, thing: Any, since: Any = None) -> None:
        """Write the fields of an instance that changed since it was read from this object, and no others.

        An instance that was not read from this object, a changed copy say, needs `since`: the instance that was read,
        or what `read_as` returned.
        """
        self.party.schemas.save(self, thing, since)

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
