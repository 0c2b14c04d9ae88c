"""Migrations: from each version to the next, checked at the end; what is missing or fails says so."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.core.errors import InvalidInput
from antiphon.schema import Migrations, Schema, SchemaViolation

TASK = Schema.of(
    {
        "type": "object",
        "properties": {"title": {"type": "string"}, "done": {"type": "boolean"}, "at": {"x-antiphon": "bytes"}},
        "required": ["title", "done"],
    },
    "task",
    3,
)


def make() -> Migrations:
    migrations = Migrations(TASK)

    @migrations.step(1)
    def rename(value: dict[str, Any]) -> dict[str, Any]:
        value["title"] = value.pop("name")
        return value

    @migrations.step(2)
    def add_done(value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "done": value.get("state") == "done"}

    return migrations


def test_a_value_goes_through_all_steps() -> None:
    assert make().upgrade({"name": "Plan", "state": "done"}, 1) == {"title": "Plan", "state": "done", "done": True}
    assert make().upgrade({"title": "Plan"}, 2) == {"title": "Plan", "done": False}


def test_the_value_handed_in_is_left_alone() -> None:
    value = {"name": "Plan", "inside": {"a": [1]}}
    make().upgrade(value, 1)
    assert value == {"name": "Plan", "inside": {"a": [1]}}


def test_a_value_of_this_version_or_a_newer_one_is_left_to_the_reader() -> None:
    for version in (3, 4, 10**12):
        assert make().upgrade({"anything": 1}, version) == {"anything": 1}


def test_the_result_is_checked() -> None:
    with pytest.raises(SchemaViolation, match="at title: expected text, found int 5"):
        make().upgrade({"name": 5}, 1)


@pytest.mark.parametrize("version", [1, 0, -(10**12)])
def test_a_missing_step_is_named(version: int) -> None:
    with pytest.raises(InvalidInput, match=f"the schema task 3 has no step from version {version} to {version + 1}"):
        Migrations(TASK).upgrade({}, version)


def test_a_step_that_fails_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"the step from version 1 of the schema task 3 failed: KeyError\('name'\)"):
        make().upgrade({}, 1)


def test_a_step_must_give_a_dict() -> None:
    migrations = make()
    other = Migrations(Schema.of({}, "task", 2))
    other.step(1)(lambda value: None)  # type: ignore[arg-type,return-value]

    with pytest.raises(InvalidInput, match="gave no dict"):
        other.upgrade({}, 1)
    assert migrations.schema is TASK


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_step_from_nowhere_or_beyond_is_refused(version: int) -> None:
    with pytest.raises(InvalidInput, match="a step from version"):
        make().step(version)


def test_a_second_step_from_the_same_version_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a second step"):
        make().step(1)
