"""Plain values of objects: a dataclass, a pydantic model or a dict as it is written."""

from __future__ import annotations

import enum
from typing import Any

from antiphon.core.errors import TooLarge
from antiphon.model.value import Value
from antiphon.schema.fields import fields_of
from antiphon.schema.limits import VALUE_DEPTH_MAX
from antiphon.schema.type_form import SCALARS, is_record


def plain(thing: Any, depth: int = 0) -> Value:
    """The plain value of an object. Sets stay sets, so that they are written as sets; unsupported values stay too."""
    if depth > VALUE_DEPTH_MAX:
        raise TooLarge(f"an object nested more than {VALUE_DEPTH_MAX} deep")
    kind: type = type(thing)
    if kind in SCALARS:  # most things are
        return thing
    if is_record(kind):
        return {field.name: plain(getattr(thing, field.name), depth + 1) for field in fields_of(kind)}
    if isinstance(thing, enum.Enum):
        return thing.value
    if isinstance(thing, dict):
        return {key: plain(part, depth + 1) for key, part in thing.items()}
    if isinstance(thing, list | tuple):
        return [plain(part, depth + 1) for part in thing]
    if isinstance(thing, set | frozenset):
        return {plain(part, depth + 1) for part in thing}
    return thing
