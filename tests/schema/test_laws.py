"""Laws, for all objects and values: what is written is read again, reading never fails, changes lead where they say."""

from __future__ import annotations

import copy
import enum
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import InvalidInput
from antiphon.model.value import Reference, value_bytes
from antiphon.schema import Changes, Counter, Schema, from_document, same, to_document

pytestmark = pytest.mark.slow

REFERENCES = st.builds(Reference, st.binary(min_size=16, max_size=16), st.sampled_from([b"", b"p" * 32]))
INTS = st.integers(-(1 << 63), (1 << 63) - 1)
TIMES = st.datetimes(timezones=st.just(UTC))
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
SCALARS = (st.none() | st.booleans() | INTS | st.floats() | TEXTS | st.binary(max_size=4)) | (TIMES | REFERENCES)
FIELDS = ["text", "number", "real", "data", "at", "to", "tags", "colour", "owner", "owners", "sizes", "free", "votes"]


def maps(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(TEXTS | st.sampled_from([*FIELDS, "name", "kind"]), inner, max_size=4)


VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | maps(inner), max_leaves=8)


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


@dataclass
class Owner:
    name: str
    kind: Literal["person", "robot"] = "person"
    boss: Owner | None = None


@dataclass
class Everything:
    text: str
    number: int
    real: float
    data: bytes
    at: datetime | None
    to: Reference | None
    tags: set[str]
    colour: Colour
    owner: Owner | None
    owners: list[Owner]
    sizes: dict[str, int | str]
    free: Any = None
    votes: Counter = 0
    steps: tuple[bool, ...] = ()
    marks: frozenset[bytes] = field(default_factory=frozenset)


EVERYTHING = Schema.of(Everything)
OWNERS = st.recursive(
    st.builds(Owner, TEXTS, st.sampled_from(["person", "robot"]), st.none()),
    lambda inner: st.builds(Owner, TEXTS, st.just("person"), inner),
    max_leaves=3,
)
OBJECTS = st.builds(
    Everything,
    text=TEXTS,
    number=INTS,
    real=st.floats(allow_nan=False),
    data=st.binary(max_size=9),
    at=st.none() | TIMES,
    to=st.none() | REFERENCES,
    tags=st.sets(TEXTS, max_size=3),
    colour=st.sampled_from(Colour),
    owner=st.none() | OWNERS,
    owners=st.lists(OWNERS, max_size=3),
    sizes=st.dictionaries(TEXTS, INTS | TEXTS, max_size=3),
    free=VALUES.filter(lambda value: value == value),
    votes=INTS,
    steps=st.lists(st.booleans(), max_size=3).map(tuple),
    marks=st.frozensets(st.binary(max_size=3), max_size=3),
)


def has_no_nan(value: Any) -> bool:  # which equals nothing
    return "nan" not in repr(value)


@given(OBJECTS.filter(has_no_nan))
def test_what_is_written_fits_and_is_read_again(thing: Everything) -> None:
    value = EVERYTHING.write(thing)

    EVERYTHING.check(value)
    found = EVERYTHING.read(value)

    assert found.object == thing
    assert not found.problems
    assert not found.extra
    assert not EVERYTHING.changes(value, EVERYTHING.write(found.object))


SCHEMAS = [
    EVERYTHING,
    Schema.of(Owner),
    Schema.of({**EVERYTHING.json_schema, "additionalProperties": False}, "closed"),
    Schema.of({"anyOf": [{"type": "array"}, {"required": ["name"], "maxProperties": 1}]}, "odd"),
    Schema.of({"not": {}}, "nothing"),
    Schema.of({"oneOf": [{"properties": {"text": {"$ref": "#"}}}, {"type": "object", "minProperties": 2}]}, "ring"),
]


@given(st.sampled_from(SCHEMAS), VALUES | maps(VALUES))
def test_reading_never_fails_and_leaves_a_good_value_alone(schema: Schema[Any], value: Any) -> None:
    before = copy.deepcopy(value)
    problems = schema.problems(value)

    found = schema.read(value)

    assert bool(found.problems) == bool(problems)
    assert value_bytes(value) == value_bytes(before)
    for problem in problems:
        assert problem.message


class Strange:
    def __repr__(self) -> str:
        raise RuntimeError("nobody looks at me")


@given(st.recursive(st.builds(Strange) | SCALARS, lambda inner: st.lists(inner) | maps(inner), max_leaves=6))
def test_reading_what_is_no_value_never_fails_either(value: Any) -> None:
    found = EVERYTHING.read(value)
    assert found.problems
    assert isinstance(found.object, Everything)


# -- changes


def apply(value: dict[str, Any], changes: Changes) -> dict[str, Any]:
    """What the object model makes of changes, on plain values."""
    made = copy.deepcopy(value)

    def at(path: tuple[str, ...]) -> dict[str, Any]:
        place = made
        for key in path[:-1]:
            place = place[key]
        return place

    for path, new in changes.writes.items():
        assert isinstance(path, tuple)
        at(path)[path[-1]] = new
    for path in changes.deletes:
        del at(path)[path[-1]]
    for path, element in changes.removes:
        at(path)[path[-1]] = [each for each in at(path)[path[-1]] if value_bytes(each) != value_bytes(element)]
    for path, element in changes.adds:
        at(path)[path[-1]] = [*at(path)[path[-1]], element]
    for path, by in changes.increments:
        at(path)[path[-1]] = at(path).get(path[-1], 0) + by
    return made


def encoded(value: Any) -> Any:
    """For comparing: what the object model tells apart, and sets as what they hold."""
    if isinstance(value, dict):
        return {key: encoded(part) for key, part in value.items()}
    return sorted(map(value_bytes, value)) if isinstance(value, set | frozenset) else value_bytes(value)


FREE = Schema.of({"type": "object"}, "free")


@given(maps(VALUES), maps(VALUES))
def test_changes_lead_from_any_value_to_any_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert encoded(apply(before, FREE.changes(before, after))) == encoded(after)
    assert not FREE.changes(after, copy.deepcopy(after))


@given(OBJECTS, OBJECTS)
def test_changes_lead_from_any_object_to_any_other(before: Everything, after: Everything) -> None:
    was, now = EVERYTHING.write(before), EVERYTHING.write(after)
    made = apply(was, EVERYTHING.changes(was, now))
    for name in ("tags", "marks"):
        made[name], now[name] = set(made[name]), set(now[name])
    made["votes"], now["votes"] = str(made["votes"]), str(now["votes"])

    assert encoded(made) == encoded(now)


# -- documents


@given(VALUES | maps(VALUES) | st.fixed_dictionaries({"name": TEXTS, "version": st.integers(1, 9), "schema": TEXTS}))
def test_a_document_is_a_schema_or_refused(value: Any) -> None:
    try:
        schema = from_document(value)
    except InvalidInput:
        return
    assert same(schema, from_document(to_document(schema)))


WORDS = ["type", "$ref", "$defs", "a", "properties", "items", "anyOf", "not", "enum", "x-antiphon", "required", "const"]
SAID = ["object", "array", "string", "#", "#/$defs/a", "#/properties/a", "set", "bytes"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS | st.sampled_from(SAID),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, VALUES)
def test_any_json_is_a_schema_or_refused(node: Any, value: Any) -> None:
    try:
        schema = Schema.of({"properties": {"a": node}, "$defs": {"a": node}}, "any")
    except InvalidInput:
        return
    assert bool(schema.problems({"a": value})) == bool(schema.read({"a": value}).problems)
    assert same(schema, from_document(to_document(schema)))
