"""Filters: conditions on items, as frozen values. `evaluate` defines what they mean.

>>> prop("done").is_(False)
Compare(path=('done',), op='=', value=False)
>>> prop("done").is_(False) == (prop("done") == False)
True
>>> (prop("priority") >= 3) & ~prop("owner", "name").exists()
All(parts=(Compare(path=('priority',), op='>=', value=3), Not(part=Has(path=('owner', 'name')))))
>>> Fact.TYPE.is_("task")
Compare(path=<Fact.TYPE: 'type'>, op='=', value='task')

A path is a tuple of keys ("a.b" is one key); the empty path is the whole value, for example of a text or an array.
`prop("done").is_(False)` is `prop("done") == False` in a form that linters accept. There is no `~prop("done")`: it
could mean "false" or "not true", which differ where an item lacks it; write `.is_(False)` or `~prop("done").is_(True)`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any as AnyValue, Literal

from antiphon.core.ids import ITEM_ID_SIZE, ItemId
from antiphon.model.value import Reference

Keys = tuple[str, ...]
Op = Literal["=", "<", "<=", ">", ">="]


class Fact(enum.Enum):
    """Properties that the system knows of every item of any model."""

    ID = "id"
    TYPE = "type"  # the name of its schema
    MODEL = "model"
    VERSION = "version"  # of the model
    NAME = "name"  # its display name
    CREATED = "created"  # a datetime, as its writer's clock had it
    PARENT = "parent"
    SOURCE = "source"  # of a link
    TARGET = "target"
    VIEW_CLASS = "view_class"
    VIEW_KEY = "view_key"  # bytes
    EMBEDS = "embeds"  # a list of references
    REFERENCES = "references"  # a list of references, all that its value holds

    def is_(self, value: AnyValue) -> Filter:
        """Items whose fact equals a value."""
        return Compare(self, "=", self._named(value))

    def in_(self, values: Iterable[AnyValue]) -> Filter:
        """Items that have one of these values."""
        return Any(tuple(self.is_(value) for value in values))

    def compare(self, op: Op, value: AnyValue) -> Filter:
        """Items whose fact compares so with a value."""
        return Compare(self, op, value)

    def has(self, value: AnyValue) -> Filter:
        """Items whose list holds this value."""
        return Contains(self, self._named(value))

    def exists(self) -> Filter:
        """Items that have anything here, None too."""
        return Has(self)

    def _named(self, value: AnyValue) -> AnyValue:
        bare = type(value) is bytes and len(value) == ITEM_ID_SIZE and self is not Fact.VIEW_KEY
        return Reference(value) if bare else _named(value)


Path = Keys | Fact


class Filter:
    """A condition on items. Combine filters with `&`, `|` and `~`."""

    __slots__ = ()

    def __and__(self, other: Filter) -> Filter:
        return All((*_parts(All, self), *_parts(All, other)))

    def __or__(self, other: Filter) -> Filter:
        return Any((*_parts(Any, self), *_parts(Any, other)))

    def __invert__(self) -> Filter:
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError("a filter has no truth of its own; combine filters with &, | and ~, not with and, or and not")


@dataclass(frozen=True, slots=True)
class All(Filter):
    """Every part holds. Without parts, every item passes."""

    parts: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Any(Filter):
    """Some part holds. Without parts, no item passes."""

    parts: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Not(Filter):
    """The part does not hold."""

    part: Filter


@dataclass(frozen=True, slots=True)
class Compare(Filter):
    """The value at a path compares so with `value`, and is of its kind. Ints and floats are one kind; bools another."""

    path: Path
    op: Op
    value: AnyValue


@dataclass(frozen=True, slots=True)
class Has(Filter):
    """Any value is at the path, None too."""

    path: Path


@dataclass(frozen=True, slots=True)
class Contains(Filter):
    """A list or set at the path has an element equal to the value, in the sense of `Compare`."""

    path: Path
    value: AnyValue


@dataclass(frozen=True, slots=True)
class Match(Filter):
    """All these words are in the texts of an item; `word*` matches a prefix, `"two words"` words in a row."""

    text: str


EVERYTHING = All()


class Prop:
    """A property, to be compared: `prop("priority") >= 3`."""

    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("path",)

    def __init__(self, path: Keys) -> None:
        self.path = path

    def __eq__(self, value: object) -> Filter:  # type: ignore[override]
        return self.is_(value)

    def __ne__(self, value: object) -> Filter:  # type: ignore[override]
        return Not(self.is_(value))

    def __lt__(self, value: AnyValue) -> Filter:
        return Compare(self.path, "<", value)

    def __le__(self, value: AnyValue) -> Filter:
        return Compare(self.path, "<=", value)

    def __gt__(self, value: AnyValue) -> Filter:
        return Compare(self.path, ">", value)

    def __ge__(self, value: AnyValue) -> Filter:
        return Compare(self.path, ">=", value)

    def is_(self, value: AnyValue) -> Filter:
        """The same as `==`; linters accept it for True, False and None too."""
        return Compare(self.path, "=", _named(value))

    def in_(self, values: Iterable[AnyValue]) -> Filter:
        """Items that have one of these values."""
        return Any(tuple(self.is_(value) for value in values))

    def has(self, value: AnyValue) -> Filter:
        """Items whose list or set holds this value."""
        return Contains(self.path, _named(value))

    def exists(self) -> Filter:
        """Items that have anything here, None too."""
        return Has(self.path)


def prop(*keys: str) -> Prop:
    """The property at a path of keys."""
    return Prop(keys)


def _parts(kind: type[All] | type[Any], part: Filter) -> tuple[Filter, ...]:
    return part.parts if isinstance(part, kind) else (part,)


def _named(value: AnyValue) -> AnyValue:
    """A value, where an item or its id becomes a reference to it, with the party if the item knows its party."""
    reference = getattr(value, "reference", None)
    if isinstance(reference, Reference):
        return reference
    found = getattr(value, "id", value)
    return Reference(bytes(found)) if isinstance(found, ItemId) else value
