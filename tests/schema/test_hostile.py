"""Schemas that peers wrote to harm: they are refused, or they cost no more than others. Nothing is ever fetched."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import Any

import pytest

from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge
from antiphon.schema import Problem, Schema, from_document, to_document
from antiphon.schema.limits import SCHEMA_SIZE_MAX

pytestmark = pytest.mark.slow

SECONDS_MAX = 5.0  # a generous second; what is refused here would take hours


def quick(schema: Schema[Any], value: Any) -> bool:
    """Whether a value fits; and the answer must not take long."""
    begun = time.perf_counter()
    fits = not schema.problems(value)
    schema.read(value)
    assert time.perf_counter() - begun < SECONDS_MAX
    return fits


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def nested(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = {"c": value}
    return value


@pytest.mark.parametrize(
    "node",
    [
        {"$ref": "http://example.com/schema"},
        {"$ref": "file:///etc/hostname"},
        {"$ref": "other.json#/a"},
        {"$ref": "//example.com"},
        {"$ref": "#anchor"},
        {"$ref": "#/$defs/missing"},
        {"$ref": "#/properties/x/default"},
        {"$ref": 5},
        {"$dynamicRef": "#a"},
        {"$id": "http://example.com/"},
        {"$anchor": "a"},
        {"unevaluatedProperties": False},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"x-antiphon": "counter"},
        {"x-antiphon": "set", "type": "object"},
        {"x-antiphon": "future"},
        {"x-antiphon": ["bytes"]},
    ],
)
def test_nothing_leads_out_of_a_schema(node: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Schema.of({"properties": {"x": {**node, "default": {}}}}, "bad")


def test_words_that_are_data_are_no_references() -> None:
    data = {"$ref": "http://example.com/", "x-antiphon": 5}
    assert Schema.of({"$id": "http://example.com/", "const": data}, "data").problems(data) == []
    assert Schema.of({"properties": {"$ref": {"type": "string"}, "$id": {}}}, "names").problems({"$ref": 5})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"minLength": -1},
        {"properties": []},
        {"required": "title"},
        {"pattern": "("},
        {"pattern": "(?=a)b"},
        {"pattern": "(a{1000}){1000}"},
        {"items": 5},
        {"allOf": {}},
    ],
)
def test_what_is_no_json_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="no schema of JSON Schema's"):
        Schema.of(schema, "bad")


@pytest.mark.parametrize("schema", [{"a": {1: 2}}, {"a": b""}, {"a": float("nan")}, {"a": "\ud800"}, {"a": (1,)}])
def test_what_is_no_json_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="no JSON"):
        Schema.of(schema, "bad")


def test_a_schema_is_bounded_in_size_and_depth() -> None:
    with pytest.raises(TooLarge, match="bytes"):
        Schema.of({"description": "é" * (SCHEMA_SIZE_MAX // 2)}, "large")
    deep: dict[str, Any] = {}
    for _ in range(70):
        deep = {"not": deep}
    with pytest.raises(TooLarge, match="deep"):
        Schema.of(deep, "deep")


# -- schemas that would take for ever


@pytest.mark.parametrize(
    "patterns",
    [
        [f"^.{{200}}$|{number}" for number in range(1200)],  # took seconds, in 41 kB
        [f"^.{{200}}$|{number}" for number in range(500)],
        ["(?i)" + "[\0-\U0010ffff]" * 1000],  # each of these classes takes milliseconds
        ["a|(?s-u:b)|(?mi)" + "[\0-\U0010ffff]" * 1000],
    ],
)
def test_patterns_that_take_long_to_compile_are_refused_before(patterns: list[str]) -> None:
    fields = {f"k{number}": {"pattern": pattern} for number, pattern in enumerate(patterns)}
    for schema in ({"properties": fields}, {"patternProperties": dict.fromkeys(patterns, True)}):
        begun = time.process_time()
        with pytest.raises(InvalidInput):
            Schema.of(schema, "slow")
        assert time.process_time() - begun < 1


def test_patterns_as_people_write_them_are_taken() -> None:
    fields = {f"k{number}": {"pattern": f"^[A-Za-z0-9_.-]{{1,64}}@{number}$"} for number in range(200)}
    same = {f"same{number}": {"pattern": "^.{1,100}$"} for number in range(1000)}
    assert Schema.of({"properties": fields | same}, "many").problems({"k1": "a@1", "k2": "a@1", "same1": ""}) == [
        Problem(("k2",), "expected text that matches '^[A-Za-z0-9_.-]{1,64}@2$', found text 'a@1'"),
        Problem(("same1",), "expected text that matches '^.{1,100}$', found text ''"),
    ]


@pytest.mark.parametrize("word", ["anyOf", "oneOf", "allOf"])
def test_definitions_that_name_the_next_one_twice_are_refused(word: str) -> None:
    names = [f"a{number}" for number in range(40)]
    steps = {one: {word: [ref(next_one), ref(next_one)]} for one, next_one in pairwise(names)}
    with pytest.raises(TooLarge, match="times"):
        Schema.of({**ref("a0"), "$defs": {**steps, names[-1]: {"type": "string"}}}, "laughs")

    inside = {name: {"properties": {"c": node}} for name, node in steps.items()}
    with pytest.raises(TooLarge, match="times"):
        Schema.of({**ref("a0"), "$defs": {**inside, names[-1]: {"type": "string"}}}, "laughs")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}, {"type": "string"}]},
        {"not": {"$ref": "#"}},
        {"properties": {"a": {"if": {"$ref": "#/properties/a"}}}},
        {**ref("a"), "$defs": {"a": {"oneOf": [ref("b")]}, "b": {"dependentSchemas": {"x": ref("a")}}}},
    ],
)
def test_a_schema_that_leads_back_to_itself_in_place_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="leads back to itself"):
        Schema.of(schema, "ring")


def test_definitions_that_multiply_in_place_are_refused_also_where_they_are_recursive() -> None:
    names = [f"a{number}" for number in range(40)]
    steps: dict[str, Any] = {one: {"allOf": [ref(next_one), ref(next_one)]} for one, next_one in pairwise(names)}
    with pytest.raises(TooLarge, match="times"):
        Schema.of({**ref("a0"), "$defs": {**steps, names[-1]: {"properties": {"c": ref("a0")}}}}, "laughs")


def test_a_schema_may_be_recursive_in_many_ways() -> None:
    kinds = [f"kind{number}" for number in range(20)]
    whole = {"anyOf": [ref(kind) for kind in kinds]}
    inside = {kind: {"properties": {"is": {"const": kind}, "parts": {"items": ref("any")}}} for kind in kinds}
    schema = Schema.of({**ref("any"), "$defs": {"any": whole, **inside}}, "expressions")

    value: dict[str, Any] = {"is": "kind19"}
    for number in range(20):
        value = {"is": kinds[number], "parts": [value]}
    assert quick(schema, value)
    assert not quick(schema, {"is": "kind3", "parts": [{"is": "none"}]})


@pytest.mark.parametrize("word", ["anyOf", "oneOf", "allOf"])
@pytest.mark.parametrize("leaf", ["text", 1])
def test_a_recursive_schema_costs_no_more_for_being_wrong_deep_inside(word: str, leaf: Any) -> None:
    one = {"type": "object", "properties": {"c": ref("e"), "x": False}}
    other = {"type": "object", "properties": {"c": ref("e"), "x": {"type": "string"}}}
    schema = Schema.of({**ref("e"), "$defs": {"e": {word: [ref("a"), ref("b")]}, "a": one, "b": other}}, "twice")

    assert quick(schema, nested(50, {"x": leaf})) == (word == "anyOf" and leaf == "text")


def test_a_recursive_schema_still_says_where() -> None:
    node = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "name": {"type": "string"}}}
    tree = Schema.of(node, "tree")

    assert [problem.path for problem in tree.problems({"left": {"right": {"name": 5}}})] == [("left", "right", "name")]


def test_a_large_value_is_not_checked_against_a_large_schema() -> None:
    wide = Schema.of({"additionalProperties": {"enum": [f"{number}" for number in range(5000)]}}, "wide")

    (problem,) = wide.problems({str(number): "x" for number in range(20_000)})

    assert "too large" in problem.message
    assert quick(wide, {str(number): "17" for number in range(100)})


@pytest.mark.parametrize(
    ("node", "value"),
    [
        ({"type": "array", "items": {"type": "string"}}, [5] * 200_000),
        ({"items": {"anyOf": [{"minLength": number} for number in range(1000)]}}, [5] * 2000 + ["x"] * 2000),
        ({"items": {"anyOf": [{"minLength": number} for number in range(9, 1000)]}}, ["x"] * 4000),
        ({"uniqueItems": True}, [{"a": [number]} for number in range(50_000)]),
    ],
)
def test_many_mistakes_take_no_longer_than_few(node: dict[str, Any], value: list[Any]) -> None:
    schema = Schema.of({"type": "object", "properties": {"x": node}}, "many")
    assert quick(schema, {"x": value}) == (node.get("type") is None and value[0] != "x")


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "^(a+)+$", "(?:[ab]*a[ab]{300}c|x)"])
def test_a_pattern_takes_linear_time(pattern: str) -> None:
    schema = Schema.of({"properties": {"x": {"pattern": pattern}}}, "slow")
    assert not quick(schema, {"x": "a" * 200_000 + "!"})


# -- documents


GOOD = to_document(Schema.of({"type": "object"}, "good"))


@pytest.mark.parametrize(
    "change",
    [
        {"name": 5},
        {"name": ""},
        {"name": "x" * 1000},
        {"version": 0},
        {"version": True},
        {"version": 2**70},
        {"version": "1"},
        {"schema": {"type": "object"}},
        {"schema": "{"},
        {"schema": "[]"},
        {"schema": "5"},
        {"schema": '{"type": "object"}'},
        {"schema": '{"a":1,"a":1}'},
        {"schema": "[" * SCHEMA_SIZE_MAX},
        {"schema": '{"a":' * 5000 + "1" + "}" * 5000},
        {"schema": '{"a":' + "1" * 5000 + "}"},
        {"schema": '{"a":NaN}'},
        {"schema": '{"a":"\\ud800"}'},
        {"schema": '{"$ref":"http://example.com"}'},
        {"schema": '{"type":"string"}'},
        {"digest": b"d" * 32},
        {"digest": None},
    ],
)
def test_a_hostile_document_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        from_document({**GOOD, **change})


def test_what_is_no_document_is_refused() -> None:
    values: list[Any] = [None, 5, [], "text", b"", {}, {"name": "task"}]
    for value in values:
        with pytest.raises(BadEncoding):
            from_document(value)


def test_a_document_may_hold_more_than_we_know() -> None:
    assert from_document({**GOOD, "colour": "red"}).json_schema == json.loads(GOOD["schema"])
