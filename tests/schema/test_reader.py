"""Tolerant reading: whatever is there becomes an object; what does not fit is told and left out."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import pydantic
import pytest

from antiphon.schema import Problem, Schema

NOW = datetime(2026, 1, 2, tzinfo=UTC)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Owner:
    name: str
    age: int = 0


@dataclass
class Cat:
    lives: int
    kind: Literal["cat"] = "cat"


@dataclass
class Task:
    title: str
    done: bool = False
    due: datetime | None = None
    tags: set[str] = field(default_factory=set)
    colour: Colour = Colour.RED
    owner: Owner | None = None
    others: list[Owner] = field(default_factory=list)
    by_name: dict[str, Owner] = field(default_factory=dict)
    pet: Owner | Cat | None = None
    steps: tuple[int, ...] = ()
    children: list[Task] = field(default_factory=list)


TASK = Schema.of(Task)


def test_an_object_comes_back_as_it_was() -> None:
    task = Task(
        title="Plan",
        done=True,
        due=NOW,
        tags={"a", "b"},
        colour=Colour.BLUE,
        owner=Owner("Ada", 36),
        others=[Owner("Bob")],
        by_name={"c": Owner("Carol")},
        pet=Cat(9),
        steps=(1, 2),
        children=[Task("inside")],
    )
    found = TASK.read(TASK.write(task))

    assert found.object == task
    assert found.problems == []
    assert found.extra == {}


def test_a_set_is_read_from_the_list_that_the_object_model_shows() -> None:
    assert TASK.read({"title": "Plan", "tags": ["b", "a"]}).object.tags == {"a", "b"}


def test_what_is_missing_takes_its_default_or_none_with_a_problem() -> None:
    found = TASK.read({})

    assert found.object == Task(title=None)  # type: ignore[arg-type]
    assert found.problems == [Problem(("title",), "is missing")]


def test_what_does_not_fit_is_left_out_and_told() -> None:
    found = TASK.read(
        {
            "title": "Plan",
            "done": "yes",
            "due": "tomorrow",
            "colour": "green",
            "tags": ["a", 5],
            "owner": {"name": "Ada", "age": "old"},
            "others": [{"name": "Bob"}, 7, {"age": 3}],
            "by_name": {"x": {"name": "X"}, "y": None},
        }
    )

    assert found.object == Task(
        "Plan",
        tags={"a"},
        owner=Owner("Ada"),
        others=[Owner("Bob"), Owner(None, 3)],  # type: ignore[arg-type]
        by_name={"x": Owner("X")},
    )
    assert {problem.path for problem in found.problems} == {
        ("done",),
        ("due",),
        ("colour",),
        ("tags", 1),
        ("owner", "age"),
        ("others", 1),
        ("others", 2, "name"),
        ("by_name", "y"),
    }


def test_a_required_field_of_the_wrong_type_is_told_once() -> None:
    found = TASK.read({"title": 5})

    assert found.object.title is None
    assert found.problems == [Problem(("title",), "expected text, found int 5")]


def test_unknown_fields_are_kept_apart_also_inside() -> None:
    owner = {"name": "Ada", "nick": b"a"}
    found = TASK.read({"title": "Plan", "zoom": 5, "owner": owner, "by_name": {"q": {"name": "Q"}}})

    assert found.extra == {"zoom": 5, "owner": {"nick": b"a"}}
    assert found.problems == []


def test_a_union_is_told_apart_by_its_fields() -> None:
    assert TASK.read({"title": "", "pet": {"lives": 3, "kind": "cat"}}).object.pet == Cat(3)
    assert TASK.read({"title": "", "pet": {"name": "Rex"}}).object.pet == Owner("Rex")


def test_a_whole_float_is_read_as_an_int() -> None:
    found = TASK.read({"title": "", "owner": {"name": "Ada", "age": 36.0}}).object.owner
    assert found is not None
    assert type(found.age) is int


def test_a_class_that_refuses_is_a_problem_and_no_error() -> None:
    @dataclass
    class Even:
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise RuntimeError("odd")

    found = Schema.of(Even).read({"number": 3})

    assert found.object is None
    assert found.problems == [Problem((), "Even refuses it: odd")]


def test_a_value_that_is_no_map_is_read_as_an_empty_one() -> None:
    values: list[Any] = [None, 5, [], "text", b"", NOW]
    for value in values:
        found = TASK.read(value)
        assert found.object == Task(title=None)  # type: ignore[arg-type]
        assert found.problems


# -- pydantic


class Person(pydantic.BaseModel):
    name: str
    colour: Colour = Colour.RED


class Plan(pydantic.BaseModel):
    title: str = pydantic.Field(alias="Title")
    due: datetime | None = None
    tags: set[str] = pydantic.Field(default_factory=set)
    people: list[Person] = []
    raw: bytes = b""

    @pydantic.field_validator("title")
    @classmethod
    def _not_shouted(cls, value: str) -> str:
        if value.isupper():
            raise ValueError("do not shout")
        return value


PLAN = Schema.of(Plan)


def test_a_pydantic_model_comes_back_as_it_was() -> None:
    plan = Plan(Title="Plan", due=NOW, tags={"a"}, people=[Person(name="Ada", colour=Colour.BLUE)], raw=b"x")
    value = PLAN.write(plan)

    assert value["people"] == [{"name": "Ada", "colour": "blue"}]
    assert value["title"] == "Plan"
    PLAN.check(value)
    assert PLAN.read(value).object == plan


def test_a_pydantic_model_is_read_with_tolerance_too() -> None:
    found = PLAN.read({"title": "Plan", "raw": "text", "people": [{"colour": "red"}], "new": 1})

    assert found.object.title == "Plan"
    assert found.object.raw == b""
    assert found.object.people[0].name is None
    assert {problem.path for problem in found.problems} == {("raw",), ("people", 0, "name")}
    assert found.extra == {"new": 1}


def test_what_a_model_itself_refuses_is_told() -> None:
    found = PLAN.read({"title": "PLAN"})

    assert found.object.title == "PLAN"
    assert "do not shout" in found.problems[0].message


# -- JSON Schema


PLAIN = Schema.of(
    {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
            "owner": {"type": "object", "properties": {"name": {"default": "?"}}},
            "free": {"type": "object"},
        },
        "required": ["title"],
    },
    "plain",
)


def test_a_json_schema_reads_dicts() -> None:
    found = PLAIN.read({"title": 5, "owner": {"nick": 1}, "free": {"a": b""}, "new": 2})

    assert found.object == {"title": None, "tags": [], "owner": {"name": "?"}, "free": {"a": b""}}
    assert found.extra == {"new": 2, "owner": {"nick": 1}}
    assert [problem.path for problem in found.problems] == [("title",)]


def test_a_default_is_nobody_elses() -> None:
    PLAIN.read({"title": ""}).object["tags"].append("mine")
    assert PLAIN.read({"title": ""}).object["tags"] == []


def test_a_field_too_much_of_a_closed_schema_is_extra() -> None:
    closed = Schema.of({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, "closed")
    found = closed.read({"a": 1, "b": 2})

    assert found.object == {"a": 1}
    assert found.extra == {"b": 2}


@pytest.mark.parametrize(
    "node",
    [
        {"allOf": [{"properties": {"b": {}}}]},
        {"$ref": "#/$defs/base", "$defs": {"base": {"properties": {"b": {}}}}},
        {"patternProperties": {"^b": {}}},
        {"anyOf": [{"properties": {"b": {}}}, {"type": "null"}]},
    ],
)
def test_a_field_that_another_part_of_the_schema_knows_is_not_extra(node: dict[str, Any]) -> None:
    found = Schema.of({**node, "properties": {"a": {}}}, "composed").read({"a": 1, "b": 2})

    assert found.object == {"a": 1, "b": 2}
    assert found.extra == {}
