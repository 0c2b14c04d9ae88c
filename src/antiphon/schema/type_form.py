"""`Form`: a Python type, analysed once: how its values are built, and what they contain."""

from __future__ import annotations

import dataclasses
import enum
import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

from antiphon.core.errors import InvalidInput
from antiphon.model.value import Reference
from antiphon.schema.acceptance import KEYWORD
from antiphon.schema.canonical_json import JsonSchema, canonical_text, read_text

#: Constraints by their names in annotated-types and pydantic: of numbers, texts, lists and maps.
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"} | {
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
_LENGTHS = {
    str: {"min_length": "minLength", "max_length": "maxLength"},
    list: {"min_length": "minItems", "max_length": "maxItems"},
    dict: {"min_length": "minProperties", "max_length": "maxProperties"},
}
_LISTS = (list, tuple, set, frozenset)
SCALARS = (str, int, float, bool, type(None), bytes, datetime, Reference)


class Kind(enum.Enum):
    """The ways in which values of a form are built."""

    ANY = enum.auto()
    SCALAR = enum.auto()
    LITERAL = enum.auto()
    ENUM = enum.auto()
    RECORD = enum.auto()
    UNION = enum.auto()
    LIST = enum.auto()
    MAP = enum.auto()


class Keywords:
    """Keywords of JSON Schema for a field: `Annotated[str, Keywords(maxLength=200)]`."""

    __slots__ = ("_text",)

    def __init__(self, **words: Any) -> None:
        self._text = canonical_text(words)  # immutable, since `Annotated` requires hashable metadata

    def __repr__(self) -> str:
        return f"Keywords(**{self._text})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keywords) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    @property
    def words(self) -> JsonSchema:
        """The keywords, as a copy."""
        return read_text(self._text)


#: An int to which several peers may add concurrently.
Counter = Annotated[int, Keywords(**{KEYWORD: "counter"})]


@dataclass(frozen=True, slots=True)
class Form:
    """A type: its kind, its class, the forms inside it, its allowed values, and further keywords."""

    kind: Kind
    python: Any = None
    parts: tuple[Form, ...] = ()
    options: tuple[Any, ...] = ()
    words: tuple[Keywords, ...] = ()

    @property
    def is_plain(self) -> bool:
        """True if its values are plain already."""
        return self.kind in (Kind.ANY, Kind.LITERAL) or (self.kind is Kind.SCALAR and self.python is not int)


ANYTHING = Form(Kind.ANY)


def is_model(cls: Any) -> bool:
    """True if a class is a pydantic model. A program with such a class has imported pydantic, so we need not."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(cls, type) and issubclass(cls, pydantic.BaseModel)


def is_record(cls: Any) -> bool:
    """True if a class has fields. A reference has fields too, but is a value."""
    return isinstance(cls, type) and cls is not Reference and (dataclasses.is_dataclass(cls) or is_model(cls))


def form_of(annotation: Any) -> Form:
    """Return the form of a type, or raise `InvalidInput` if no values are of that type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = form_of(arguments[0])
        return replace(inner, words=(*inner.words, *_keywords(inner, arguments[1:])))
    if isinstance(annotation, NewType):
        return form_of(annotation.__supertype__)
    if annotation is None or annotation in SCALARS:
        return Form(Kind.SCALAR, annotation or type(None))
    if annotation in (Any, object):
        return ANYTHING
    if origin in (Union, types.UnionType):
        return Form(Kind.UNION, parts=tuple(map(form_of, arguments)))
    if origin is Literal:
        return Form(Kind.LITERAL, options=_plain_options(arguments, annotation))
    if is_record(annotation):
        return Form(Kind.RECORD, annotation)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        options = _plain_options([member.value for member in annotation], annotation)
        return Form(Kind.ENUM, annotation, options=options)
    return _container(annotation, origin or annotation, arguments)


def _container(annotation: Any, kind: Any, arguments: tuple[Any, ...]) -> Form:
    if kind in _LISTS and (kind is not tuple or arguments[1:] == (...,)):
        inside = form_of(arguments[0]) if arguments else ANYTHING
        if kind in (set, frozenset) and inside.kind in (Kind.RECORD, Kind.LIST, Kind.MAP):
            raise InvalidInput(f"a set holds plain values, and not {_show(arguments[0])}")
        return Form(Kind.LIST, kind, (inside,))
    if kind is dict and (not arguments or arguments[0] is str):
        return Form(Kind.MAP, dict, (form_of(arguments[1]) if arguments else ANYTHING,))
    hint = " (the keys of a map are text)" if kind is dict else ""
    raise InvalidInput(f"no values are of the type {_show(annotation)}{hint}")


def _keywords(form: Form, metadata: Iterable[Any]) -> Iterator[Keywords]:
    """The keywords in `Annotated`: `Keywords`, and the bounds of other metadata."""
    names = _BOUNDS | _LENGTHS.get(list if form.python in _LISTS else form.python, {})
    for entry in metadata:
        if isinstance(entry, Keywords):
            yield entry
            continue
        for inner in getattr(entry, "metadata", None) or [entry]:  # pydantic's Field has its bounds there
            found = {word: getattr(inner, name, None) for name, word in names.items()}
            yield Keywords(**{word: bound for word, bound in found.items() if type(bound) in (int, float, str)})


def _plain_options(options: Iterable[Any], annotation: Any) -> tuple[Any, ...]:
    made = tuple(options)
    for option in made:
        if not (option is None or type(option) in (str, int, float, bool)):
            raise InvalidInput(f"the option {option!r} of {_show(annotation)} is neither text nor number")
    return made


def _show(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)
