"""Saving Python objects: changed fields are written, and concurrent changes by others stay."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pydantic
import pytest

from antiphon import InvalidInput, Object, Party, Store, sync
from antiphon.api.typed import read_values


@dataclass
class Task:
    title: str


@dataclass(slots=True)
class Slotted:
    x: int = 0
    y: int = 0


@dataclass(frozen=True)
class Frozen:
    x: int = 0
    y: int = 0


class Model(pydantic.BaseModel):
    x: int = 0
    y: int = 0


def _set_x(thing: Any) -> Any:
    thing.x = 5
    return thing


@pytest.mark.parametrize(
    ("cls", "change"),
    [
        (Slotted, _set_x),
        (Model, _set_x),
        (Slotted, lambda thing: replace(thing, x=5)),
        (Frozen, lambda thing: replace(thing, x=5)),
        (Model, lambda thing: thing.model_copy(update={"x": 5})),
        (Model, lambda thing: _set_x(copy.copy(thing))),
    ],
)
def test_what_others_wrote_since_survives_saving(
    ada: Store, bob: Store, party: Party, theirs: Party, cls: Any, change: Callable[[Any], Any]
) -> None:
    """Objects that cannot be watched, and copies, which are saved with what was read."""
    item = party.object(cls(x=1, y=1))
    sync(ada, bob)
    ways: tuple[Callable[[Any], Any], ...] = (lambda read: read, lambda read: read.object)
    for since in ways:
        item.update(x=1, y=1)
        sync(ada, bob)
        read = item.read_as(cls)
        theirs.item(item.id, Object)["y"] = 9
        sync(ada, bob)
        item.save(change(read.object), since(read))
        assert item.value == {"x": 5, "y": 9}


def test_a_copy_of_an_older_reading_is_saved_with_what_was_read(party: Party) -> None:
    item = party.object(Frozen(1, 1))
    older = item.read_as(Frozen)
    item["y"] = 9
    item.read_as(Frozen)
    item.save(replace(older.object, x=5), since=older)
    assert item.value == {"x": 5, "y": 9}


def test_what_cannot_be_known_is_not_guessed(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    item = party.object({"x": 1, "y": 1})
    with pytest.raises(InvalidInput, match="this Frozen was not read from it"):
        item.save(Frozen(5, 5))
    item.save(Frozen(5, 5), since=item.read_as(Frozen))
    assert item.value == {"x": 5, "y": 5}
    with pytest.raises(InvalidInput, match="this Frozen was not read from it"):
        item.save(Frozen(), since=Frozen())

    monkeypatch.setattr(read_values, "HELD_MAX", 2)
    several = [party.object(Slotted(number)) for number in range(3)]
    read = [one.read_as(Slotted).object for one in several]
    several[1]["y"] = 9
    several[1].save(_set_x(read[1]))
    assert several[1].value == {"x": 5, "y": 9}
    with pytest.raises(InvalidInput, match="this Slotted was not read from it"):
        several[0].save(_set_x(read[0]))


def test_an_instance_that_was_never_read_overwrites_nothing(party: Party) -> None:
    item = party.object(Frozen(3, 4))
    with pytest.raises(InvalidInput, match="so it is not known which fields were changed"):
        item.save(Frozen(x=5))
    assert item.value == {"x": 3, "y": 4}
    read = item.read()
    item.save(replace(read, x=5), since=read)
    assert item.value == {"x": 5, "y": 4}


def test_what_was_read_in_a_batch_is_let_go_with_it(party: Party) -> None:
    item = party.object(Task("Plan"))
    with party.batch():
        task = item.read_as(Task).object
    gone = weakref.ref(task)
    del task
    gc.collect()
    assert gone() is None


# -- fields of newer versions in lists


@dataclass
class Step:
    what: str
    done: bool = False
    parts: list[Step] = field(default_factory=list)


@dataclass
class Steps:
    steps: list[Step] = field(default_factory=list)


def test_fields_of_newer_versions_in_lists_are_told_and_kept(party: Party) -> None:
    item = party.object(Steps([Step("a"), Step("b")]))
    inner = {"what": "x", "done": False, "parts": [], "by": "Cleo"}
    item["steps"] = [{"what": "a", "by": "Bob", "parts": [inner]}, {"what": "b", "by": "Eve"}, {"what": "b"}]
    read = item.read_as(Steps)
    assert read.extra == {"steps": {0: {"by": "Bob", "parts": {0: {"by": "Cleo"}}}, 1: {"by": "Eve"}}}

    steps = read.object.steps
    steps[0].done = True  # in its place
    item.save(read.object)
    assert [(step["what"], step["done"], step.get("by")) for step in item["steps"]] == [
        ("a", True, "Bob"),
        ("b", False, "Eve"),
        ("b", False, None),
    ]
    assert item["steps"][0]["parts"] == [inner]

    steps.insert(0, steps.pop(1))  # elsewhere, and one more
    steps.append(Step("new"))
    item.save(read.object)
    found = [(step["what"], step.get("by")) for step in item["steps"]]
    assert found == [("b", "Eve"), ("a", "Bob"), ("b", None), ("new", None)]
    assert item["steps"][1]["parts"] == [inner]
