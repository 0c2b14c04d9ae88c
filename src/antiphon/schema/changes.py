"""`Changes`: the minimal difference of two plain values, so that concurrent changes by others survive.

Maps are compared key by key, sets element by element, and counters by difference; other values are written whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from antiphon.model.object.register import PATH_LENGTH_MAX
from antiphon.model.value import Reference, Value, value_bytes
from antiphon.schema.shape import Shape

Path = tuple[str, ...]
_SIMPLE = frozenset({str, int, bool, bytes, type(None), Reference})  # where equal values have equal bytes


@dataclass(frozen=True, slots=True)
class Changes:
    """Commands of the object model: `update(writes)`, `delete`, `add`, `remove` and `increment`."""

    writes: dict[str | Path, Value] = field(default_factory=dict)
    deletes: list[Path] = field(default_factory=list)
    adds: list[tuple[Path, Value]] = field(default_factory=list)
    removes: list[tuple[Path, Value]] = field(default_factory=list)
    increments: list[tuple[Path, int]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any((self.writes, self.deletes, self.adds, self.removes, self.increments))


def changes(shape: Shape, before: dict[str, Any], after: dict[str, Any]) -> Changes:
    """The changes between two values. Fields of `before` that the schema does not know stay."""
    made = Changes()
    _compare_maps(made, shape, (), before, after)
    return made


def _compare_maps(made: Changes, shape: Shape, path: Path, before: dict[str, Any], after: dict[str, Any]) -> None:
    made.deletes.extend((*path, key) for key in before if key not in after and not shape.is_extra(key))
    for key, value in after.items():
        inside = shape.inside(key)
        if key in before:
            _compare(made, inside, (*path, key), before[key], value)
        elif inside.role == "counter" and _is_int(value):
            made.increments.append(((*path, key), value))  # creates the counter; a plain value cannot be incremented
        else:
            made.writes[(*path, key)] = value


def _compare(made: Changes, shape: Shape, path: Path, before: Value, after: Value) -> None:
    if isinstance(before, dict) and isinstance(after, dict) and len(path) < PATH_LENGTH_MAX:
        _compare_maps(made, shape, path, before, after)
    elif shape.role == "set" and _is_several(before) and _is_several(after):
        was, now = dict(_elements(before)), dict(_elements(after))
        made.adds.extend((path, now[key]) for key in sorted(now.keys() - was.keys()))
        made.removes.extend((path, was[key]) for key in sorted(was.keys() - now.keys()))
    elif shape.role == "counter" and _is_int(before) and _is_int(after):
        if before != after:
            made.increments.append((path, after - before))
    elif not equal(before, after):
        made.writes[path] = after


def equal(one: Value, other: Value) -> bool:
    """True if two plain values have the same encoding; 1, True and 1.0 differ."""
    if isinstance(one, set | frozenset) or isinstance(other, set | frozenset):
        return type(one) is type(other) and dict(_elements(one)).keys() == dict(_elements(other)).keys()
    kind = type(one)
    if kind is type(other) and kind in _SIMPLE:  # most values are
        return bool(one == other)
    if kind is list and type(other) is list:
        return len(one) == len(other) and all(map(equal, one, other))
    return value_bytes(one) == value_bytes(other)


def _elements(values: Any) -> Iterator[tuple[bytes, Value]]:
    return ((value_bytes(value), value) for value in values)


def _is_several(value: Value) -> bool:
    return isinstance(value, list | tuple | set | frozenset)


def _is_int(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
