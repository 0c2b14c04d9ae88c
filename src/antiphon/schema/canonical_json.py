"""Canonical JSON of a schema: one text for each, sorted and without spaces, and the digest of that text.

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
    """The one text of a schema, or `InvalidInput`: it is no JSON, or above a limit."""
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
            if not isinstance(key, str):  # json.dumps would make text of it, and two keys could become one
                raise InvalidInput(f"a schema that is no JSON: the key {key!r} is no text")
            _check_json(part, depth + 1)
    elif isinstance(value, list):
        for part in value:
            _check_json(part, depth + 1)
    elif not (value is None or type(value) in (str, int, float, bool)):
        raise InvalidInput(f"a schema that is no JSON: it holds a {type(value).__name__}")


def read_text(text: str) -> JsonSchema:
    """The schema of a canonical text; hostile text raises `InvalidInput`."""
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
    return hashlib.sha256(text.encode()).digest()
