"""Tolerant reading of any value: parts that do not fit the schema are left out and reported."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from antiphon.model.value import Value
from antiphon.schema.builder import Builder
from antiphon.schema.checker import Checker
from antiphon.schema.errors import Problem, Step
from antiphon.schema.limits import READ_PROBLEMS_MAX, READ_ROUNDS_MAX, VALUE_DEPTH_MAX, VALUE_SIZE_MAX
from antiphon.schema.plain_values import plain
from antiphon.schema.shape import Shape
from antiphon.schema.unknown_fields import extra_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """The result of reading: the object, the problems of the value, and the fields that the schema does not know.

    `before` has the plain values of the object as it was read, unaffected by later changes; None without an object.
    """

    object: T
    problems: list[Problem]
    extra: dict[str, Any]
    before: dict[str, Value] | None = field(default=None, repr=False, compare=False)


def read(checker: Checker, cls: type | None, value: Value) -> Read[Any]:
    """Build an object from any value. Never raises; `object` is None only if the class itself refuses."""
    shape = Shape(checker.root)
    cleaned, problems = _clean(checker, value)
    extra = extra_of(shape, value)
    if cls is None:
        filled = _filled(shape, cleaned)
        return Read(filled, problems[:READ_PROBLEMS_MAX], extra, _plain(filled))
    builder = Builder()
    made = builder.record(cls, cleaned if isinstance(cleaned, dict) else {})
    return Read(made, [*problems, *builder.problems][:READ_PROBLEMS_MAX], extra, _plain(made))


def _plain(made: Any) -> dict[str, Value] | None:
    try:
        found = plain(made)
    except Exception:  # code of the class, in a property for example
        return None
    return found if isinstance(found, dict) else None


def _clean(checker: Checker, value: Value) -> tuple[Value, list[Problem]]:
    """A value without the parts that do not fit, and the problems. Missing fields stay missing."""
    told: dict[Problem, None] = {}  # as an ordered set
    gone: set[tuple[Step, ...]] = set()
    for _ in range(READ_ROUNDS_MAX):
        found = checker.problems(value, VALUE_SIZE_MAX)
        # Later rounds report the removed parts as missing, and shifted list indexes.
        told |= {problem: None for problem in found if not gone or _is_new(problem.path, gone)}
        wrong = {problem.path for problem in found if _is_there(value, problem.path)}
        if not wrong:
            return value, list(told)
        value = _without(value, wrong)
        gone |= wrong
    return {}, list(told)


def _is_new(path: tuple[Step, ...], gone: set[tuple[Step, ...]]) -> bool:
    return path not in gone and not any(isinstance(step, int) for step in path)


def _is_there(value: Value, path: tuple[Step, ...]) -> bool:
    for step in path:
        if isinstance(value, dict):
            if step not in value:
                return False
            value = value[step]
        elif isinstance(value, list | tuple | set | frozenset) and isinstance(step, int) and step < len(value):
            value = (list(value) if isinstance(value, set | frozenset) else value)[step]
        else:
            return False
    return bool(path) or value != {}


def _without(value: Value, paths: Iterable[tuple[Step, ...]]) -> Value:
    """A copy without the values at some paths. Without the root, an empty map remains."""
    inside: dict[Step, list[tuple[Step, ...]]] = {}
    for path in paths:
        if not path:
            return {}
        inside.setdefault(path[0], []).append(path[1:])
    gone = {step for step, rests in inside.items() if () in rests}
    if isinstance(value, dict):
        kept = {key: part for key, part in value.items() if key not in gone}
        return {key: _without(part, inside[key]) if key in inside else part for key, part in kept.items()}
    return [
        _without(part, inside[number]) if number in inside else part
        for number, part in enumerate(value)
        if number not in gone
    ]


def _filled(shape: Shape, value: Value, depth: int = 0) -> Value:
    """A map with its defaults, None for missing required fields, and without unknown fields."""
    if not isinstance(value, dict) or depth > VALUE_DEPTH_MAX:
        return value
    made = {key: _filled(shape.inside(key), part, depth + 1) for key, part in value.items() if not shape.is_extra(key)}
    for key, node in shape.properties.items():
        if key not in made and isinstance(node, dict) and "default" in node:
            made[key] = deepcopy(node["default"])
    return made | {key: None for key in shape.required if key not in made}
