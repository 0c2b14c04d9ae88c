"""Objects from plain values, by the forms of the fields of a class. Parts that do not fit were left out before.

This never raises: an exception in the code of a class, caused by a value from a peer, is reported as a problem.
"""

from __future__ import annotations

from typing import Any

from antiphon.model.value import Value
from antiphon.schema.errors import Problem, Step
from antiphon.schema.fields import fields_of
from antiphon.schema.stand_in import extra_kind
from antiphon.schema.type_form import Form, Kind, is_model

_LOOK_DEPTH_MAX = 3  # into the options of a union: enough to distinguish them, and bounded
_LISTS = (list, tuple, set, frozenset)


class Builder:
    """Builds one object, and collects problems."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def record(self, cls: Any, value: dict[str, Any], path: tuple[Step, ...] = ()) -> Any:
        """An instance of a class; if the class refuses, an unvalidated pydantic model, or None for a dataclass."""
        given: dict[str, Any] = {}
        missing = False
        for field in fields_of(cls):
            if field.name in value:
                part = value[field.name]
                given[field.name] = part if field.form.is_plain else self.build(field.form, part, (*path, field.name))
            elif field.required:
                given[field.name], missing = None, True
        try:
            return cls.model_validate(given, by_name=True) if is_model(cls) else cls(**given)
        except Exception as error:
            if not missing:  # the checker has reported that already
                self.problems.append(Problem(path, f"{cls.__name__} refuses it: {error}"))
            return cls.model_construct(**given) if is_model(cls) else None

    def build(self, form: Form, value: Value, path: tuple[Step, ...]) -> Any:
        """A value of a form."""
        if form.kind is Kind.UNION:
            chosen = [option for option in form.parts if fits(option, value)]
            chosen = chosen or [option for option in form.parts if is_alike(option, value)]
            return self.build(chosen[0], value, path) if chosen else None
        if form.kind is Kind.RECORD and isinstance(value, dict):
            return self.record(form.python, value, path)
        if form.kind is Kind.ENUM:
            return self._call(form.python, value, path)
        if form.kind is Kind.MAP and isinstance(value, dict):
            return {key: self.build(form.parts[0], part, (*path, key)) for key, part in value.items()}
        if form.kind is Kind.LIST and isinstance(value, _LISTS):
            made = [self.build(form.parts[0], part, (*path, number)) for number, part in enumerate(value)]
            return made if form.python is list else self._call(form.python, made, path)
        if form.python is int and isinstance(value, float):
            return int(value)  # JSON Schema takes 1.0 for an integer
        return value

    def _call(self, kind: Any, value: Value, path: tuple[Step, ...]) -> Any:
        try:
            return kind(value)
        except (TypeError, ValueError) as error:  # an unhashable element of a set, or an unknown member of an enum
            self.problems.append(Problem(path, str(error)))
            return kind() if kind in _LISTS else None


def is_alike(form: Form, value: Value) -> bool:
    """True if a value is of the kind of a form."""
    if form.kind in (Kind.RECORD, Kind.MAP):
        return isinstance(value, dict)
    return isinstance(value, _LISTS) if form.kind is Kind.LIST else fits(form, value)


def fits(form: Form, value: Value, depth: int = 0) -> bool:
    """True if a value may be meant for a form, by a shallow check."""
    if form.kind is Kind.SCALAR:
        return _fits_scalar(form.python, value)
    if form.kind is Kind.ANY or depth > _LOOK_DEPTH_MAX:
        return True
    if form.kind is Kind.UNION:
        return any(fits(option, value, depth + 1) for option in form.parts)
    if form.kind in (Kind.LITERAL, Kind.ENUM):
        return any(value == option and isinstance(value, bool) == isinstance(option, bool) for option in form.options)
    if form.kind is Kind.RECORD:
        return isinstance(value, dict) and _fits_record(form.python, value, depth + 1)
    if form.kind is Kind.MAP:
        return isinstance(value, dict)
    return isinstance(value, _LISTS) and all(fits(form.parts[0], part, depth + 1) for part in value)


def _fits_scalar(kind: Any, value: Value) -> bool:
    extra = extra_kind(value)
    if extra or kind.__name__.lower() in ("bytes", "datetime", "reference"):
        return bool(extra == kind.__name__.lower())
    if isinstance(value, bool) or kind not in (int, float):
        return isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
    return isinstance(value, int) or (isinstance(value, float) and (kind is float or value.is_integer()))


def _fits_record(cls: type, value: dict[str, Any], depth: int) -> bool:
    return all(
        fits(field.form, value[field.name], depth) if field.name in value else not field.required
        for field in fields_of(cls)
    )
