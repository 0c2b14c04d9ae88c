"""Fields that a schema does not know, for example of a newer version: found on reading, kept on saving.

In maps they stay, since maps are written key by key. A list is written whole: there they are copied from the current
list, to the elements that are otherwise equal, and, if the list has the same length, to those at the same place.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from antiphon.model.value import Value, value_bytes
from antiphon.schema.limits import VALUE_DEPTH_MAX
from antiphon.schema.shape import Shape

Path = tuple[str, ...]


def extra_of(shape: Shape, value: Value, depth: int = 0) -> dict[Any, Any]:
    """The fields that a schema does not know, nested as in the value; elements of a list by number.

    >>> steps = {"items": {"properties": {"what": {}}}}
    >>> extra_of(Shape({"properties": {"steps": steps}}), {"steps": [{"what": "a"}, {"what": "b", "by": "Bob"}]})
    {'steps': {1: {'by': 'Bob'}}}
    """
    found: dict[Any, Any] = {}
    if depth > VALUE_DEPTH_MAX:
        return found
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if _is_list(value) else ():
        if isinstance(key, str) and shape.is_extra(key):
            found[key] = part
        elif isinstance(part, dict) or _is_list(part):
            below = extra_of(shape.element if isinstance(key, int) else shape.inside(key), part, depth + 1)
            if below:
                found[key] = below
    return found


def carry(shape: Shape, path: Path, raw: Value, typed: Value, after: Value) -> Value:
    """The value to write at a path, with the unknown fields of the current value.

    `raw` is the whole current value, and `typed` the plain values of the object read from it.
    """
    for key in path:
        if not isinstance(raw, dict) or not isinstance(typed, dict):
            return after
        shape, raw, typed = shape.inside(key), raw.get(key), typed.get(key)
    return _carried(shape, raw, typed, after) if _is_list(after) else after


def _carried(shape: Shape, raw: Value, typed: Value, after: Value) -> Value:
    if isinstance(after, dict) and isinstance(raw, dict):
        known = typed if isinstance(typed, dict) else {}
        kept = {key: part for key, part in raw.items() if key not in after and shape.is_extra(key)}
        return kept | {key: _carried(shape.inside(key), raw.get(key), known.get(key), at) for key, at in after.items()}
    if not (_is_list(after) and _is_list(raw) and _is_list(typed)) or len(raw) != len(typed) or shape.role == "set":
        return after
    if not any(isinstance(part, dict | list) for part in raw):
        return after
    inside = shape.element
    pairs = zip(after, _sources(typed, after), strict=True)
    return [part if at is None else _carried(inside, raw[at], typed[at], part) for part, at in pairs]


def _sources(typed: Sequence[Value], after: Sequence[Value]) -> list[int | None]:
    """For each element of a list, the index of the current element that it comes from."""
    places: Mapping[bytes, deque[int]] = defaultdict(deque)
    for number, part in enumerate(typed):
        places[value_bytes(part)].append(number)
    keys = [value_bytes(part) for part in after]
    found = [places[key].popleft() if places[key] else None for key in keys]
    left = set(range(len(typed))).difference(found) if len(typed) == len(after) else ()
    return [number if at is None and number in left else at for number, at in enumerate(found)]


def _is_list(value: Value) -> bool:
    return isinstance(value, list | tuple)
