"""Canonical JSON of a schema: one sorted text without spaces, and its digest.

>>> canonical_text({"type": "object", "required": ["é"]})
'{"required":["é"],"type":"object"}'
>>> read_text('{"a": 1}')
Traceback (most recent call last):
...
antiphon.core.errors.BadEncoding: the text of a schema is not canonical JSON
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge
from antiphon.schema.limits import SCHEMA_DEPTH_MAX, SCHEMA_SIZE_MAX

JsonSchema = dict[str, Any]


def canonical_text(schema: JsonSchema) -> str:
    """Return the canonical text of a schema, or raise `InvalidInput` if it is no JSON or above a limit."""
    if not isinstance(schema, dict):
        raise InvalidInput(f"a JSON Schema is a dict, and not a {type(schema).__name__}")
    _check_json(schema, 0)
    try:
        text = json.dumps(schema, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except ValueError as error:  # NaN, or text that is no Unicode
        raise InvalidInput(f"a schema that is no JSON: {error}") from None
    if size > SCHEMA_SIZE_MAX:
        raise TooLarge(f"a schema of {size} bytes; it has at most {SCHEMA_SIZE_MAX}")
    return text


def _check_json(value: Any, depth: int) -> None:
    if depth > SCHEMA_DEPTH_MAX:
        raise TooLarge(f"a schema nested more than {SCHEMA_DEPTH_MAX} deep")
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):  # json.dumps would convert it to text, and two keys could collide
                raise InvalidInput(f"a schema that is no JSON: the key {key!r} is no text")
            _check_json(part, depth + 1)
    elif isinstance(value, list):
        for part in value:
            _check_json(part, depth + 1)
    elif not (value is None or type(value) in (str, int, float, bool)):
        raise InvalidInput(f"a schema that is no JSON: it holds a {type(value).__name__}")


def read_text(text: str) -> JsonSchema:
    """Read a schema from its canonical text; hostile text raises `InvalidInput`."""
    if len(text) > SCHEMA_SIZE_MAX:
        raise TooLarge(f"a schema of {len(text)} characters; it has at most {SCHEMA_SIZE_MAX} bytes")
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        raise BadEncoding("the text of a schema is no JSON") from None
    if canonical_text(schema) != text:
        raise BadEncoding("the text of a schema is not canonical JSON")
    return schema  # type: ignore[no-any-return]  # canonical_text takes nothing but dicts


def digest_of(text: str) -> bytes:
    """The SHA-256 of a text."""
    return hashlib.sha256(text.encode()).digest()
