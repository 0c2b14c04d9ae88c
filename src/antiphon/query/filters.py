"""Filters: what an item must be like. Plain, frozen values; `evaluate` says what they mean.

>>> prop("done").is_(False)
Compare(path=('done',), op='=', value=False)
>>> prop("done").is_(False) == (prop("done") == False)
True
>>> (prop("priority") >= 3) & ~prop("owner", "name").exists()
All(parts=(Compare(path=('priority',), op='>=', value=3), Not(part=Has(path=('owner', 'name')))))
>>> Fact.TYPE.is_("task")
Compare(path=<Fact.TYPE: 'type'>, op='=', value='task')

A path is a tuple of keys ("a.b" is one key); the empty path is the whole value, that of a text or an array say.
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
    """What the system knows of every item, whatever its model."""

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
        return Compare(self, "=", self._named(value))

    def in_(self, values: Iterable[AnyValue]) -> Filter:
        return Any(tuple(self.is_(value) for value in values))

    def compare(self, op: Op, value: AnyValue) -> Filter:
        return Compare(self, op, value)

    def has(self, value: AnyValue) -> Filter:
        """Of a list: that it holds this."""
        return Contains(self, self._named(value))

    def exists(self) -> Filter:
        return Has(self)

    def _named(self, value: AnyValue) -> AnyValue:
        bare = type(value) is bytes and len(value) == ITEM_ID_SIZE and self is not Fact.VIEW_KEY
        return Reference(value) if bare else _named(value)


Path = Keys | Fact


class Filter:
    """Combine with `&`, `|` and `~`."""

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
    """Every part holds; with none, everything does."""

    parts: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Any(Filter):
    """Some part holds; with none, nothing does."""

    parts: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Not(Filter):
    part: Filter


@dataclass(frozen=True, slots=True)
class Compare(Filter):
    """The value at a path, if it is there and of the same kind. Integers and reals are one kind; a bool is another."""

    path: Path
    op: Op
    value: AnyValue


@dataclass(frozen=True, slots=True)
class Has(Filter):
    """Something is at the path, None too."""

    path: Path


@dataclass(frozen=True, slots=True)
class Contains(Filter):
    """A list or set at the path has an element equal to the value, in the sense of `Compare`."""

    path: Path
    value: AnyValue


@dataclass(frozen=True, slots=True)
class Match(Filter):
    """Words in what an item says: all of them; `word*` for a beginning, `"two words"` for words in a row."""

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
        return Any(tuple(self.is_(value) for value in values))

    def has(self, value: AnyValue) -> Filter:
        return Contains(self.path, _named(value))

    def exists(self) -> Filter:
        return Has(self.path)


def prop(*keys: str) -> Prop:
    """The property at a path of keys."""
    return Prop(keys)


def _parts(kind: type[All] | type[Any], part: Filter) -> tuple[Filter, ...]:
    return part.parts if isinstance(part, kind) else (part,)


def _named(value: AnyValue) -> AnyValue:
    """An item, or its id, stands for a reference to it; one that knows its party, for one from anywhere."""
    reference = getattr(value, "reference", None)
    if isinstance(reference, Reference):
        return reference
    found = getattr(value, "id", value)
    return Reference(bytes(found)) if isinstance(found, ItemId) else value
