"""Classes as JSON Schema: every type that values have, in dataclasses and in pydantic models alike."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, NewType

import annotated_types
import pydantic
import pytest

from antiphon.core.errors import InvalidInput
from antiphon.model.value import Reference
from antiphon.schema import Counter, Keywords, Schema, typed

Mail = NewType("Mail", str)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Owner:
    name: str
    parent: Owner | None = None


@dataclass
class Everything:
    text: str
    number: int
    real: float
    flag: bool
    nothing: None
    data: bytes
    at: datetime
    to: Reference
    anything: Any
    words: list[str]
    pair: tuple[int, ...]
    tags: set[str]
    marks: frozenset[int]
    sizes: dict[str, float]
    bare: list  # type: ignore[type-arg]
    either: int | str
    level: Literal["low", "high", 3]
    colour: Colour
    owner: Owner
    others: list[Everything]
    votes: Counter
    mail: Mail
    short: Annotated[str, Keywords(maxLength=5, pattern="^a")]
    shared: ClassVar[int] = 5
    made: int = field(default=1, init=False)


EXPECTED = {
    "text": {"type": "string"},
    "number": {"type": "integer"},
    "real": {"type": "number"},
    "flag": {"type": "boolean"},
    "nothing": {"type": "null"},
    "data": {"x-antiphon": "bytes"},
    "at": {"x-antiphon": "datetime"},
    "to": {"x-antiphon": "reference"},
    "anything": {},
    "words": {"type": "array", "items": {"type": "string"}},
    "pair": {"type": "array", "items": {"type": "integer"}},
    "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "x-antiphon": "set"},
    "marks": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "x-antiphon": "set"},
    "sizes": {"type": "object", "additionalProperties": {"type": "number"}},
    "bare": {"type": "array", "items": {}},
    "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    "level": {"enum": ["low", "high", 3]},
    "colour": {"enum": ["red", "blue"]},
    "owner": {"$ref": "#/$defs/Owner"},
    "others": {"type": "array", "items": {"$ref": "#"}},
    "votes": {"type": "integer", "x-antiphon": "counter"},
    "mail": {"type": "string"},
    "short": {"type": "string", "maxLength": 5, "pattern": "^a"},
}


def test_every_type_has_its_schema() -> None:
    made = Schema.of(Everything).json_schema

    assert made["properties"] == EXPECTED
    assert set(made["required"]) == set(EXPECTED)
    assert made["$defs"] == {
        "Owner": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "parent": {"anyOf": [{"$ref": "#/$defs/Owner"}, {"type": "null"}], "default": None},
            },
            "required": ["name"],
        }
    }


def test_a_field_with_a_default_is_not_required() -> None:
    @dataclass
    class Task:
        title: str = "?"
        colour: Colour = Colour.RED
        tags: set[str] = field(default_factory=set)
        sizes: dict[str, int] = field(default_factory=dict)
        made: list[int] = field(default_factory=lambda: [1])
        raw: bytes = b""

    made = Schema.of(Task).json_schema

    assert "required" not in made
    defaults = {name: node["default"] for name, node in made["properties"].items() if "default" in node}
    assert defaults == {"title": "?", "colour": "red", "tags": [], "sizes": {}}


def test_a_pydantic_model_is_mapped_like_a_dataclass() -> None:
    class Person(pydantic.BaseModel):
        name: str

    class Task(pydantic.BaseModel):
        title: str = pydantic.Field(min_length=1, max_length=20, pattern="^[a-z]")
        priority: Annotated[int, pydantic.Field(ge=0, lt=10)] = 3
        due: datetime | None = None
        tags: set[str] = pydantic.Field(default_factory=set)
        words: Annotated[list[str], annotated_types.MaxLen(3)] = []
        owner: Person

    made = Schema.of(Task, "task").json_schema

    assert made["required"] == ["title", "owner"]
    assert made["properties"] == {
        "title": {"type": "string", "minLength": 1, "maxLength": 20, "pattern": "^[a-z]"},
        "priority": {"type": "integer", "minimum": 0, "exclusiveMaximum": 10, "default": 3},
        "due": {"anyOf": [{"x-antiphon": "datetime"}, {"type": "null"}], "default": None},
        "tags": {
            "type": "array",
            "items": {"type": "string"},
            "uniqueItems": True,
            "x-antiphon": "set",
            "default": [],
        },
        "words": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "owner": {"$ref": "#/$defs/Person"},
    }


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (Decimal, "Decimal"),
        (dict[int, str], "the keys of a map are text"),
        (tuple[int, str], "tuple"),
        (set[Owner], "a set holds plain values"),
        (Literal[b"x"], "neither text nor number"),
        (list[complex], "complex"),
    ],
)
def test_a_type_that_no_value_has_is_refused_by_the_name_of_its_field(annotation: Any, reason: str) -> None:
    class Task:
        pass

    Task.__annotations__ = {"odd": annotation}
    task = dataclass(Task)

    with pytest.raises(InvalidInput, match=r"the field odd of .*Task: ") as caught:
        Schema.of(task)
    assert reason in str(caught.value)


def test_what_is_no_source_of_a_schema_is_refused() -> None:
    sources: list[Any] = [int, 5, "task", Reference, None]
    for source in sources:
        with pytest.raises(InvalidInput, match="neither a dataclass"):
            Schema.of(source)


def test_two_classes_of_one_name_are_two_definitions() -> None:
    def other() -> type:
        @dataclass
        class Owner:
            age: int

        return Owner

    task: Any = dataclass(type("Task", (), {"__annotations__": {"one": Owner, "two": other()}}))

    assert set(Schema.of(task).json_schema["$defs"]) == {"Owner", "Owner2"}


# -- names and versions


def test_the_decorator_names_a_class_and_not_its_subclasses() -> None:
    @typed("task", version=2)
    @dataclass
    class Task:
        title: str

    @dataclass
    class SubTask(Task):
        step: int

    assert (Schema.of(Task).name, Schema.of(Task).version) == ("task", 2)
    assert (Schema.of(SubTask).name, Schema.of(SubTask).version) == ("sub-task", 1)
    assert (Schema.of(Task, "chore", 5).name, Schema.of(Task, "chore", 5).version) == ("chore", 5)


def test_the_decorator_alone_takes_the_name_of_the_class() -> None:
    @typed
    @dataclass
    class ShoppingList:
        title: str

    @typed(version=3)
    @dataclass
    class Task:
        title: str

    found = Schema.of(ShoppingList)
    assert (found.name, found.version, found.python) == ("shopping-list", 1, ShoppingList)
    assert (Schema.of(Task).name, Schema.of(Task).version) == ("task", 3)


@pytest.mark.parametrize("thing", [5, len, {"title": "task"}])
def test_the_decorator_refuses_what_is_no_class(thing: Any) -> None:
    with pytest.raises(InvalidInput, match=r"`typed` decorates a class, and .* is none"):
        typed(thing)
    with pytest.raises(InvalidInput, match="`typed` decorates a class"):
        typed("task")(thing)


def test_the_decorator_refuses_a_class_whose_name_is_no_schemas() -> None:
    long: Any = dataclass(type("T" * 500, (), {}))
    with pytest.raises(InvalidInput, match="is no name for a schema"):
        typed(long)
    assert Schema.of(typed("task")(long)).name == "task"


def test_a_json_schema_is_named_by_its_title() -> None:
    assert Schema.of({"title": "task"}).name == "task"
    assert Schema.of({"title": "task"}, "chore").name == "chore"


@pytest.mark.parametrize(("name", "version"), [("", 1), (" ", 1), ("a\nb", 1), ("x" * 129, 1), ("a", -1), ("a", 2**31)])
def test_a_bad_name_or_version_is_refused(name: str, version: int) -> None:
    with pytest.raises(InvalidInput):
        Schema.of({}, name, version)


def test_nobody_can_change_a_schema_through_its_json() -> None:
    task = Schema.of({"properties": {}}, "task")
    task.json_schema["properties"]["title"] = False
    assert task.json_schema == {"properties": {}}
