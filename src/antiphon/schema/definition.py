"""`Schema`: the structure of the values of a type, made from a class or from JSON Schema. A plain value itself.

>>> from dataclasses import dataclass
>>> @typed("task", version=2)
... @dataclass
... class Task:
...     title: str
...     done: bool = False
>>> task = Schema.of(Task)
>>> print(task)
the schema task 2
>>> task.check(task.write(Task("Plan")))
>>> task.check({"title": 5})
Traceback (most recent call last):
...
antiphon.schema.errors.SchemaViolation: does not fit the schema task 2: at title: expected text, found int 5
>>> task.read({"done": True, "colour": "red"})
Read(object=Task(title=None, done=True), problems=[Problem(path=('title',), message='is missing')], \
extra={'colour': 'red'})
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from antiphon.core.errors import InvalidInput
from antiphon.model.value import Value
from antiphon.schema.canonical_json import JsonSchema, canonical_text, digest_of, read_text
from antiphon.schema.changes import Changes, changes
from antiphon.schema.checker import checker_of
from antiphon.schema.errors import Problem, SchemaViolation
from antiphon.schema.json_schema import json_schema_of
from antiphon.schema.limits import NAME_LENGTH_MAX, PROBLEMS_MAX, VERSION_MAX
from antiphon.schema.plain_values import plain
from antiphon.schema.reader import Read, read
from antiphon.schema.shape import Shape
from antiphon.schema.type_form import is_record
from antiphon.schema.unknown_fields import carry

T = TypeVar("T")
_MARK = "__antiphon_schema__"


@overload
def typed(cls: type[T], /) -> type[T]: ...
@overload
def typed(name: str | None = None, *, version: int = 1) -> Callable[[type[T]], type[T]]: ...
def typed(name: Any = None, *, version: int = 1) -> Any:
    """Give a class the name and version of its schema.

    Without a name, the name of the class is taken, in lower case and with hyphens.

    >>> @typed
    ... @dataclass
    ... class ShoppingList:
    ...     title: str
    >>> print(Schema.of(ShoppingList))
    the schema shopping-list 1
    """

    def mark(cls: type[T]) -> type[T]:
        if not isinstance(cls, type):
            raise InvalidInput(f"`typed` decorates a class, and {cls!r:.80} is none")
        own = _kebab(cls.__name__) if name is None else name
        _check_name(own, version)
        setattr(cls, _MARK, (own, version))
        return cls

    if name is None or isinstance(name, str):
        return mark
    decorated, name = name, None  # `@typed` alone, without a call
    return mark(decorated)


@dataclass(frozen=True, slots=True)
class Schema(Generic[T]):
    """A schema: its name, its version, the canonical text of its JSON Schema, and the class that it was made from."""

    name: str
    version: int
    text: str
    python: type[T] | None = None

    def __post_init__(self) -> None:
        _check_name(self.name, self.version)
        checker_of(self.text)  # a schema that cannot be used is refused at once

    def __str__(self) -> str:
        return f"the schema {self.name} {self.version}"

    @overload
    @classmethod
    def of(cls, source: type[T], name: str | None = None, version: int | None = None) -> Schema[T]: ...
    @overload
    @classmethod
    def of(cls, source: JsonSchema, name: str | None = None, version: int | None = None) -> Schema[dict[str, Any]]: ...
    @classmethod
    def of(cls, source: Any, name: str | None = None, version: int | None = None) -> Schema[Any]:
        """The schema of a dataclass, pydantic model or JSON Schema. A given name overrides that of the class."""
        if isinstance(source, dict):
            title = source.get("title")
            return Schema(name or (title if isinstance(title, str) else ""), version or 1, canonical_text(source))
        if not is_record(source):
            raise InvalidInput(f"{source!r} is neither a dataclass, nor a pydantic model, nor a JSON Schema")
        own_name, own_version = vars(source).get(_MARK, (_kebab(source.__name__), 1))
        return Schema(name or own_name, version or own_version, canonical_text(json_schema_of(source)), source)

    @property
    def json_schema(self) -> JsonSchema:
        """The JSON Schema, as a copy: changing it does not change the schema."""
        return read_text(self.text)

    @property
    def digest(self) -> bytes:
        """SHA-256 over the canonical text."""
        return digest_of(self.text)

    def problems(self, value: Value) -> list[Problem]:
        """The problems of a value, at most ten; an empty list if it fits."""
        return checker_of(self.text).problems(value, PROBLEMS_MAX)

    def check(self, value: Value) -> None:
        """Raise `SchemaViolation` unless a value fits."""
        problems = self.problems(value)
        if problems:
            raise SchemaViolation(self.name, self.version, problems)

    def read(self, value: Value) -> Read[T]:
        """Read an object from any value, with its problems and unknown fields. Never raises."""
        return read(checker_of(self.text), self.python, value)

    def write(self, thing: T) -> dict[str, Value]:
        """The plain values of an object, without a check: an object need not fit until it is written."""
        kind = self.python or dict
        if not isinstance(thing, kind):
            raise InvalidInput(f"{self} writes a {kind.__name__}, and this is a {type(thing).__name__}")
        return plain(thing)  # type: ignore[no-any-return]  # a record or a dict gives a dict

    def changes(self, before: dict[str, Value], after: dict[str, Value]) -> Changes:
        """The minimal changes that turn one plain value into another.

        To save an object that was read and then changed, pass its values as read (`Read.before`) as `before`: then
        neither unchanged defaults nor values that did not fit are written.
        """
        return changes(Shape(checker_of(self.text).root), before, after)

    def keep(self, made: Changes, value: Value) -> None:
        """Add unknown fields to the lists that the changes write whole, so that they are not lost.

        `value` is the current value, to which the changes will be applied.
        """
        lists = [path for path, part in made.writes.items() if isinstance(part, list) and isinstance(path, tuple)]
        if lists:
            shape, typed = Shape(checker_of(self.text).root), self.read(value).before
            made.writes.update({path: carry(shape, path, value, typed, made.writes[path]) for path in lists})


def _check_name(name: str, version: int) -> None:
    if not name.strip() or not name.isprintable() or len(name) > NAME_LENGTH_MAX:
        raise InvalidInput(f"{name[:140]!r} is no name for a schema: that is printable text, at most {NAME_LENGTH_MAX}")
    if type(version) is not int or not 1 <= version <= VERSION_MAX:
        raise InvalidInput(f"the version {version} of the schema {name}; versions are integers from 1")


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
