"""The column `state`: the value of an item as JSON for analysts. Maps are objects; bytes, times, references are text.

>>> state_json({"size": 1.5, "name": "δ"})
StateJson(text='{"size":1.5,"name":"δ"}', exact=True)
>>> state_json({"raw": b"x", "far": float("inf")})
StateJson(text='{"raw":"78","far":"inf"}', exact=False)
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any, NamedTuple

from antiphon.model.value import Reference, Value


class StateJson(NamedTuple):
    """A value as JSON."""

    text: str
    exact: bool  # `packed_json.unpack` returns exactly the value


def state_json(value: Value) -> StateJson:
    """Convert a value to JSON."""
    try:
        return StateJson(_exactly(value), exact=True)
    except (ValueError, TypeError):  # a type that JSON lacks
        pass
    try:
        return StateJson(_to_json(value), exact=False)
    except ValueError:  # infinity or NaN
        return StateJson(_to_json(_finite(value)), exact=False)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Reference):
        return str(value)
    raise TypeError(f"a {type(value).__name__} is no value that an item can hold")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


_exactly = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_text).encode
