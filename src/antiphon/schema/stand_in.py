"""Stand-ins: values in the form that the validator gets, which knows only JSON.

A value of a kind that JSON lacks is replaced by a map with a key that no other value may have. `x-antiphon` in a schema
requires that key, and schemas are rewritten so that a schema for maps refuses it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from antiphon.core.ids import ItemId
from antiphon.model.value import Reference, Value
from antiphon.schema.acceptance import EXTRAS, KEYWORD, parts
from antiphon.schema.canonical_json import JsonSchema
from antiphon.schema.errors import Problem, Step
from antiphon.schema.limits import INT_BITS_MAX, VALUE_DEPTH_MAX, VALUE_SIZE_MAX

TAG = "\0antiphon"
_INT_END = 1 << INT_BITS_MAX
_NO_VALUE = {TAG: "no value"}
_KINDS = {str: "", int: "", bool: "", float: "", dict: "", list: "", bytes: "bytes", Reference: "reference"}
_EQUAL = "equal"  # stand-ins are equal exactly for equal values, as sets require


def extra_kind(value: Value) -> str:
    """The kind of a value that JSON lacks; empty for values of JSON."""
    known = _KINDS.get(type(value))
    if known is not None:
        return known
    if isinstance(value, Reference | ItemId):  # an item id is written as a reference
        return "reference"
    if isinstance(value, bytes | bytearray | memoryview):
        return "bytes"
    if isinstance(value, datetime) and value.utcoffset() is not None:
        return "datetime"
    return ""


class StandIn:
    """Makes the stand-in of a value, and counts the values in it."""

    __slots__ = ("bad", "depth", "size")

    def __init__(self) -> None:
        self.size = 0
        self.depth = 0
        self.bad = False  # it contains an unsupported value

    def of(self, value: Value, depth: int = 0) -> Any:
        """The stand-in of a value."""
        kind = type(value)
        self.size += 1
        if kind is str:
            self.size += len(value) >> 6
            return value if value.isascii() or _is_unicode(value) else self._refuse()
        if kind is bool or value is None:
            return value
        if kind is int:
            return value if -_INT_END < value < _INT_END else self._refuse()
        if kind is float:
            return value if math.isfinite(value) else _finite(value)
        if kind is dict or kind is list:
            self.depth = max(self.depth, depth)
            if depth >= VALUE_DEPTH_MAX or self.size > VALUE_SIZE_MAX or (kind is dict and not _has_good_keys(value)):
                return self._refuse()
            if kind is dict:
                return {key: self.of(part, depth + 1) for key, part in value.items()}
            return [self.of(part, depth + 1) for part in value]
        return self._of_other(value, depth)

    def _of_other(self, value: Value, depth: int) -> Any:
        extra = extra_kind(value)
        if extra:
            return {TAG: extra, _EQUAL: hash(bytes(value) if extra == "bytes" else value)}
        if isinstance(value, tuple | set | frozenset):
            return self.of(list(value), depth)
        for kind in (str, int, float, dict, list):  # subclasses, for example of an enum
            if isinstance(value, kind):
                return self.of(plain_of(value, kind), depth)
        return self._refuse()

    def _refuse(self) -> Any:
        self.bad = True
        return _NO_VALUE


def plain_of(value: Any, kind: type) -> Any:
    """The base value of an instance of a subclass, without calling overridden methods."""
    return str.__str__(value) if kind is str else kind(value)


def _finite(number: float) -> float:
    """A finite number for the validator, since JSON has neither infinity nor NaN. Infinities exceed every bound."""
    return 0.5 if math.isnan(number) else math.copysign(sys.float_info.max, number)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _has_good_keys(value: dict[Any, Any]) -> bool:
    try:
        keys = "".join(value)
    except TypeError:  # some key is no text
        return False
    return TAG not in value and (keys.isascii() or all(map(_is_unicode, value)))


def no_values(value: Any, path: tuple[Step, ...] = ()) -> Iterator[Problem]:
    """The parts of a value without a stand-in, and why."""
    if isinstance(value, dict | list | tuple | set | frozenset):
        if len(path) >= VALUE_DEPTH_MAX:
            yield Problem(path, f"nested more than {VALUE_DEPTH_MAX} deep")
        elif isinstance(value, dict):
            yield from _in_map(value, path)
        else:
            for number, part in enumerate(value):
                yield from no_values(part, (*path, number))
    elif isinstance(value, str):
        if not _is_unicode(str.__str__(value)):
            yield Problem(path, "text that is not valid Unicode")
    elif isinstance(value, datetime) and value.utcoffset() is None:
        yield Problem(path, f"the datetime {value} has no time zone; give it one, say datetime.now(UTC)")
    elif isinstance(value, int) and int(value).bit_length() > INT_BITS_MAX:
        yield Problem(path, f"an int of {int(value).bit_length()} bits; keep it as text or bytes")
    elif not (value is None or isinstance(value, int | float) or extra_kind(value)):
        yield Problem(path, f"a {type(value).__name__} is no value")


def _in_map(value: dict[Any, Any], path: tuple[Step, ...]) -> Iterator[Problem]:
    if not _has_good_keys(value):
        yield Problem(path, "the keys of a map are text, and valid Unicode")
        return
    for key, part in value.items():
        yield from no_values(part, (*path, key))


class Extra:
    """The keyword `x-antiphon` for the validator, where it requires a kind of value."""

    def __init__(self, parent_schema: JsonSchema, value: str, schema_path: list[Step]) -> None:
        self._kind = value

    def validate(self, instance: Any) -> None:
        """Raise `ValueError` unless a stand-in is of the kind."""
        if not isinstance(instance, dict) or instance.get(TAG) != self._kind:
            raise ValueError(self._kind)


def for_stand_ins(node: Any) -> Any:
    """The schema for the validator: schemas for maps refuse stand-ins, and roles are removed."""
    if not isinstance(node, dict):
        return node
    made = {word: inside for word, inside in node.items() if word != "$id" and (word != KEYWORD or inside in EXTRAS)}
    for step, part in parts(node):
        word = step[0]
        if len(step) == 1:
            made[word] = for_stand_ins(part)
            continue
        if made[word] is node[word]:
            made[word] = node[word].copy()
        made[word][int(step[1]) if isinstance(made[word], list) else step[1]] = for_stand_ins(part)
    if _takes_maps(node):
        made["properties"] = {**made.get("properties", {}), TAG: False}
    return made


def _takes_maps(node: JsonSchema) -> bool:
    kinds = node.get("type")
    known = isinstance(node.get("properties", {}), dict)
    return known and (kinds == "object" or (isinstance(kinds, list) and "object" in kinds))
