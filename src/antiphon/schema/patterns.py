"""Bounds on compiling the patterns of a schema. They come from peers, and the compiler cannot be stopped.

Two things cost: parsing the text, to which no limit of the engine applies, and expanding repetitions. The first is
bounded by the length of all patterns together, the second by the compiled size of each: the more patterns, the smaller.
A pattern that occurs in several places is compiled once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from antiphon.core.errors import TooLarge
from antiphon.schema.canonical_json import JsonSchema
from antiphon.schema.limits import PATTERN_FOLDED, PATTERN_SIZE_MAX, PATTERNS_LENGTH_MAX, PATTERNS_SIZE_MAX

_IGNORES_CASE = re.compile(r"\(\?[a-zA-Z-]*i")


def size_each(root: JsonSchema) -> int:
    """The limit for the compiled size of each pattern of a schema; `TooLarge` if the patterns are too long.

    >>> size_each({"pattern": "^[a-z]+$"}), size_each({"anyOf": [{"pattern": str(n)} for n in range(1000)]})
    (262144, 33554)
    """
    found = set(_patterns(root))
    length = sum(len(pattern) * (PATTERN_FOLDED if _IGNORES_CASE.search(pattern) else 1) for pattern in found)
    if length > PATTERNS_LENGTH_MAX:
        raise TooLarge(
            f"a schema with patterns of {length} characters together; they have at most {PATTERNS_LENGTH_MAX}, and one "
            f"that ignores case counts {PATTERN_FOLDED} times"
        )
    return min(PATTERN_SIZE_MAX, PATTERNS_SIZE_MAX // max(1, len(found)))


def _patterns(value: Any) -> Iterator[str]:
    """All texts that may be patterns, anywhere in a schema. `value` is bounded in depth."""
    if isinstance(value, dict):
        if isinstance(value.get("pattern"), str):
            yield value["pattern"]
        named = value.get("patternProperties")
        yield from named if isinstance(named, dict) else ()
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _patterns(part)
