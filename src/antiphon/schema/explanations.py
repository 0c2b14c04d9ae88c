"""Errors of the validator in plain words: the path, the expected and the found value."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jsonschema_rs import ValidationError, ValidationErrorKind

from antiphon.model.value import Value
from antiphon.schema.acceptance import KEYWORD
from antiphon.schema.errors import Problem, Step
from antiphon.schema.limits import INT_BITS_MAX
from antiphon.schema.stand_in import TAG, extra_kind

_WORDS = {
    "string": "text",
    "integer": "an int",
    "number": "a number",
    "boolean": "a bool",
    "null": "None",
    "object": "a map",
    "array": "a list",
}
_EXTRA_WORDS = {"bytes": "bytes", "datetime": "a datetime", "reference": "a reference"}
#: Errors about a stand-in, which is a map only for the validator.
_OF_STAND_INS = frozenset(
    {"required", "additionalProperties", "minProperties", "maxProperties", "propertyNames", "dependentRequired"}
)

_OPTIONS_MAX = 20
_DIGITS_MAX = 400
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 40


def explain(errors: Iterable[ValidationError], value: Value) -> Iterator[Problem]:
    """The problems of a value, from the errors of the validator."""
    for error in errors:
        yield from _explain_one(error, value)


def describe(value: Value) -> str:
    """A value in a few words."""
    if value is None or isinstance(value, bool):
        return repr(value)
    extra = extra_kind(value)
    if extra:
        return f"{_EXTRA_WORDS[extra]} ({len(value) if extra == 'bytes' else value})"
    if isinstance(value, dict):
        return f"a map of {len(value)}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, set | frozenset):
        return f"a set of {len(value)}"
    if isinstance(value, int) and value.bit_length() > INT_BITS_MAX:
        return f"an int of {value.bit_length()} bits"
    if isinstance(value, str | int | float):
        return f"{'text' if isinstance(value, str) else type(value).__name__} {_SHORT.repr(value)}"
    return f"a {type(value).__name__}"


def locate(value: Value, way: Sequence[Step]) -> tuple[tuple[Step, ...], Value]:
    """The path in an error of the validator, and the value there, as far as the path can be followed."""
    path: list[Step] = []
    for step in way:
        if isinstance(value, dict):
            key = _key(value, step)
            if key is None:  # after an empty key, which the validator omits
                break
            step, value = key, value[key]
        else:
            value = (list(value) if isinstance(value, set | frozenset) else value)[int(step)]
        path.append(step)
    return tuple(path), value


def _key(value: dict[str, Any], step: Step) -> str | None:
    """The key for a step. The validator converts keys that look like numbers: "7", but also "07" and "+7"."""
    exact = str(step)
    return exact if exact in value else next((key for key in value if _number(key) == step), None)


def _number(key: str) -> int | None:
    digits = key.removeprefix("+")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= _DIGITS_MAX else None


def _explain_one(error: ValidationError, value: Value) -> Iterator[Problem]:
    kind, way = error.kind, error.instance_path
    path, found = locate(value, way[: way.index(TAG)] if TAG in way else way)
    if extra_kind(found) and kind.name in _OF_STAND_INS:
        return
    if isinstance(kind, ValidationErrorKind.AnyOf | ValidationErrorKind.OneOfNotValid):
        yield from _of_choice(error, kind.context, value)
    elif isinstance(kind, ValidationErrorKind.Required):
        yield Problem((*path, kind.property), "is missing")
    elif isinstance(kind, ValidationErrorKind.AdditionalProperties):
        for name in kind.unexpected:
            yield Problem((*path, name), "is no field of the schema")
    else:
        yield Problem(path, _message(error, found))


def _wanted(error: ValidationError) -> list[str]:
    """The expected values, where they fit in a few words."""
    kind = error.kind
    if TAG in error.instance_path:
        return ["a map"]
    if isinstance(kind, ValidationErrorKind.Type):
        return [_WORDS.get(name, name) for name in kind.types]
    if isinstance(kind, ValidationErrorKind.Constant):
        return [_SHORT.repr(kind.expected_value)]
    if isinstance(kind, ValidationErrorKind.Custom):
        return [_EXTRA_WORDS[kind.message]]
    if isinstance(kind, ValidationErrorKind.Enum):
        return [_SHORT.repr(option) for option in kind.options[:_OPTIONS_MAX]]
    return []


def _message(error: ValidationError, found: Value) -> str:
    kind, wanted = error.kind, _wanted(error)
    if wanted:
        return _expected(wanted, found)
    if isinstance(kind, ValidationErrorKind.Pattern):
        return f"expected text that matches {_SHORT.repr(kind.pattern)}, found {describe(found)}"
    if isinstance(kind, ValidationErrorKind.FalseSchema):
        return f"nothing may be here, found {describe(found)}"
    details = kind.as_dict()
    limit = details.get("limit", details.get("multiple_of"))
    told = kind.name if limit is None else f"{kind.name} {limit}"
    return f"expected a value that satisfies {told}, found {describe(found)}"


def _expected(options: Sequence[str], found: Value) -> str:
    return f"expected {' or '.join(options) or 'something else'}, found {describe(found)}"


def _of_choice(choice: ValidationError, branches: list[list[ValidationError]], value: Value) -> Iterator[Problem]:
    """Explain the alternative that is probably meant: of the right type, with the fewest errors."""
    way = choice.instance_path
    near = [errors for errors in branches if not any(_is_of_type(error, way) for error in errors)]
    if near:
        yield from explain(sorted(near, key=len)[0], value)
        return
    wanted = [words for errors in branches for error in errors if _is_of_type(error, way) for words in _wanted(error)]
    path, found = locate(value, way)
    yield Problem(path, _expected(list(dict.fromkeys(wanted)), found))


def _is_of_type(error: ValidationError, way: list[Step]) -> bool:
    """True if an error says that the value at a path is of another type."""
    at_it = error.instance_path in (way, [*way, TAG])
    return at_it and error.kind.name in ("type", "const", "enum", "falseSchema", KEYWORD)
