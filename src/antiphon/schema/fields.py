"""The fields of a class: of a dataclass, or of a pydantic model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, get_type_hints

from antiphon.core.errors import InvalidInput
from antiphon.schema.type_form import Form, form_of, is_model

MISSING = dataclasses.MISSING


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its form, and its default (`MISSING`: it is required)."""

    name: str
    form: Form
    default: Any = MISSING
    factory: Callable[..., Any] | None = None

    @property
    def required(self) -> bool:
        """True if the field has no default."""
        return self.default is MISSING and self.factory is None


@lru_cache(maxsize=512)
def fields_of(cls: Hashable) -> tuple[Field, ...]:
    """The fields of a class, or `InvalidInput` that names the field whose type is not supported."""
    return tuple(_model_fields(cls) if is_model(cls) else _dataclass_fields(cls))


def _field(cls: Any, name: str, annotation: Any, default: Any, factory: Any) -> Field:
    try:
        return Field(name, form_of(annotation), default, None if factory is MISSING else factory)
    except InvalidInput as error:
        raise InvalidInput(f"the field {name} of {cls.__qualname__}: {error}") from None


def _dataclass_fields(cls: Any) -> list[Field]:
    try:
        hints = get_type_hints(cls, localns={cls.__name__: cls}, include_extras=True)
    except NameError as error:
        raise InvalidInput(f"a type of {cls.__qualname__} is not known where the class is defined: {error}") from None
    return [
        _field(cls, field.name, hints[field.name], field.default, field.default_factory)
        for field in dataclasses.fields(cls)
        if field.init
    ]


def _model_fields(cls: Any) -> list[Field]:
    return [
        _field(
            cls,
            name,
            Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation,
            MISSING if info.is_required() or info.default_factory else info.default,
            info.default_factory,
        )
        for name, info in cls.model_fields.items()
    ]
