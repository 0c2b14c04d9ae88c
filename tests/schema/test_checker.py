"""Checking values: what fits, what does not, and what the error says."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import pytest

from antiphon.core.errors import InvalidInput
from antiphon.core.ids import ItemId
from antiphon.model.value import Reference
from antiphon.schema import Problem, Schema, SchemaViolation
from antiphon.schema.limits import VALUE_SIZE_MAX

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LINK = Reference(b"i" * 16)


@dataclass
class Owner:
    name: str
    kind: Literal["person"] = "person"


@dataclass
class Task:
    title: str
    done: bool = False
    priority: int = 0
    due: datetime | None = None
    tags: set[str] = field(default_factory=set)
    owner: Owner | None = None
    raw: bytes = b""
    parts: list[Owner] = field(default_factory=list)


TASK = Schema.of(Task)


def only(node: dict[str, Any]) -> Schema[dict[str, Any]]:
    return Schema.of({"type": "object", "properties": {"x": node}}, "only")


@pytest.mark.parametrize(
    ("node", "good", "bad"),
    [
        ({"x-antiphon": "bytes"}, [b"", b"a", bytearray(b"a")], ["a", None, [97], {}, NOW, ItemId(b"i" * 16)]),
        ({"x-antiphon": "datetime"}, [NOW, NOW.astimezone(timezone(timedelta(hours=5)))], ["2026-01-02", 1, b"", {}]),
        ({"x-antiphon": "reference"}, [LINK, ItemId(b"i" * 16)], [b"i" * 16, "69" * 16, {}, None]),
        ({"type": "object"}, [{}, {"a": b"x"}], [b"", NOW, LINK, [], None]),
        ({"type": ["object", "null"]}, [{}, None], [b"", NOW, LINK]),
        ({"type": "string"}, ["", "é"], [b"", NOW, 1, None]),
        ({"type": "integer"}, [0, -1, 2**70, -(2**70), 1.0], [True, 1.5, "1"]),
        ({"type": "number"}, [0, 1.5, float("nan"), float("inf")], [True, "1", None]),
        ({"type": "number", "maximum": 5}, [5, -float("inf")], [6, float("inf")]),
        ({"type": "boolean"}, [True, False], [0, 1, None]),
        ({"type": "null"}, [None], [0, "", b"", {}]),
        ({"type": "array", "items": {"type": "string"}}, [[], ("a",), {"a"}], [b"", "a", [b"a"], {"a": 1}]),
        ({"uniqueItems": True}, [[b"a", b"b"], [NOW, LINK], {b"a", b"b"}], [[b"a", b"a"], [LINK, LINK]]),
        ({"enum": [1, None]}, [1, None], [True, 2, b""]),
        ({"const": {"a": 1}}, [{"a": 1}], [{"a": 2}, b""]),
        ({}, [b"", NOW, LINK, 1, {"a": [b"x"]}], []),
        ({"type": "string", "const": "a", "x-antiphon": "bytes"}, [], ["a", b"a"]),
        ({"anyOf": [{"x-antiphon": "bytes"}, {"type": "object", "required": ["a"]}]}, [b"", {"a": 1}], [{}, NOW]),
    ],
)
def test_a_value_is_exactly_of_its_type(node: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    schema = only(node)
    for value in good:
        assert schema.problems({"x": value}) == [], value
    for value in bad:
        assert schema.problems({"x": value}), value


def test_a_violation_names_schema_path_what_was_found_and_what_was_expected() -> None:
    with pytest.raises(SchemaViolation) as caught:
        TASK.check({"title": 5, "done": "yes", "owner": {"name": None, "kind": "cat"}, "parts": [{"name": "a"}, {}]})

    assert str(caught.value) == (
        "does not fit the schema task 1: at title: expected text, found int 5; at done: expected a bool, found text "
        "'yes'; at owner/name: expected text, found None; at owner/kind: expected 'person', found text 'cat'; "
        "at parts[1]/name: is missing"
    )
    assert caught.value.problems[0] == Problem(("title",), "expected text, found int 5")
    assert (caught.value.name, caught.value.version) == ("task", 1)
    assert isinstance(caught.value, InvalidInput)


@pytest.mark.parametrize(
    ("field_name", "value", "message"),
    [
        ("title", b"abc", "expected text, found bytes (3)"),
        ("due", "tomorrow", "expected a datetime or None, found text 'tomorrow'"),
        ("owner", b"abc", "expected a map or None, found bytes (3)"),
        ("raw", NOW, "expected bytes, found a datetime (2026-01-02 00:00:00+00:00)"),
        ("tags", ["a", "a"], "expected a value that satisfies uniqueItems, found a list of 2"),
        ("priority", True, "expected an int, found True"),
        ("parts", {}, "expected a list, found a map of 0"),
        ("due", datetime(2026, 1, 2), "the datetime 2026-01-02 00:00:00 has no time zone"),  # noqa: DTZ001
        ("raw", 5j, "a complex is no value"),
        ("title", "\ud800", "text that is not valid Unicode"),
    ],
)
def test_what_a_problem_says(field_name: str, value: Any, message: str) -> None:
    (problem,) = TASK.problems({"title": "Plan", field_name: value})

    assert problem.path == (field_name,)
    assert problem.message.startswith(message)


@pytest.mark.parametrize(
    ("node", "value", "message"),
    [
        ({"maxLength": 2}, "abc", "expected a value that satisfies maxLength 2, found text 'abc'"),
        ({"pattern": "^a"}, "b", "expected text that matches '^a', found text 'b'"),
        ({"minimum": 3}, 2, "expected a value that satisfies minimum 3, found int 2"),
        ({"multipleOf": 3}, 4, "expected a value that satisfies multipleOf 3, found int 4"),
        ({"enum": ["a", 1]}, "b", "expected 'a' or 1, found text 'b'"),
        (False, 1, "nothing may be here, found int 1"),
        ({"not": {}}, 1, "expected a value that satisfies not, found int 1"),
        ({"oneOf": [{}, {}]}, 1, "expected a value that satisfies oneOf, found int 1"),
    ],
)
def test_what_a_problem_with_a_constraint_says(node: Any, value: Any, message: str) -> None:
    assert only(node).problems({"x": value}) == [Problem(("x",), message)]


def test_a_field_too_much_is_named() -> None:
    closed = Schema.of({"properties": {"a": {}}, "additionalProperties": False}, "closed")
    assert closed.problems({"a": 1, "b": 2}) == [Problem(("b",), "is no field of the schema")]


def test_at_most_ten_problems_are_told() -> None:
    many = Schema.of({"additionalProperties": {"type": "string"}}, "many")
    assert len(many.problems({str(number): number for number in range(50)})) == 10


@pytest.mark.parametrize("key", ["0", "7", "07", "+7", "-7", "a/b", "~1", "18446744073709551616", "é"])
def test_a_key_of_any_look_is_named(key: str) -> None:
    texts = Schema.of({"additionalProperties": {"additionalProperties": {"type": "string"}}}, "texts")
    assert [problem.path for problem in texts.problems({key: {key: 1, "b": "b"}})] == [(key, key)]


def test_a_map_cannot_pass_for_the_stand_in_of_another_value() -> None:
    assert TASK.problems({"title": "Plan", "raw": {"\0antiphon": "bytes"}})
    assert only({}).problems({"\0antiphon": "bytes"})


def test_the_whole_value_may_be_of_the_wrong_type() -> None:
    values: list[Any] = [None, 5, b"", [], "text", NOW]
    for value in values:
        (problem,) = TASK.problems(value)
        assert problem.path == ()
        assert problem.message.startswith("expected a map, found ")


def test_a_value_that_goes_in_circles_is_refused() -> None:
    ring: dict[str, Any] = {}
    ring["a"] = ring

    assert only({}).problems(ring)[0].message == "nested more than 64 deep"


def test_a_value_that_is_too_large_is_refused() -> None:
    (problem,) = only({}).problems({"x": [0] * VALUE_SIZE_MAX})
    assert problem.message.startswith("too large to be checked")


def test_an_int_beyond_all_counters_is_refused() -> None:
    assert TASK.problems({"title": "Plan", "priority": 10**5000}) == [
        Problem(("priority",), "an int of 16610 bits; keep it as text or bytes")
    ]


def test_of_a_large_value_the_fields_that_are_wrong_are_told() -> None:
    owners = [{"name": "Ada"}] * 5000

    assert [problem.path for problem in TASK.problems({"done": 5, "parts": owners})] == [("done",), ("title",)]
    found = TASK.read({"title": "Plan", "done": 5, "parts": owners}).object
    assert (found.title, found.done, len(found.parts)) == ("Plan", False, 5000)
