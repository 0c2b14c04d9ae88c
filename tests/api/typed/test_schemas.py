"""Typed objects: schemas are items, writes are checked, and the writes of peers are read with tolerance."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.api.conftest import Task

import antiphon
from antiphon import InvalidInput, Object, Party, Schema, SchemaViolation, Store, sync
from antiphon.api.typed.schemas import SCHEMA_TYPE
from antiphon.schema import Migrations


@antiphon.typed("task", version=2)
@dataclass
class NewTask:
    title: str
    state: str = "open"
    tags: set[str] = field(default_factory=set)


def migrations() -> Migrations:
    steps = Migrations(Schema.of(NewTask))

    @steps.step(1)
    def done_to_state(value: dict[str, Any]) -> dict[str, Any]:
        value["state"] = "done" if value.pop("done", False) else "open"
        return value

    return steps


def test_an_object_of_a_class_has_its_type_and_schema(party: Party) -> None:
    board = party.object()
    task = party.object(Task("Plan", tags={"urgent"}), name="The plan", parent=board)
    assert (task.type, task.name, task.parent) == ("task", "The plan", board)
    assert task.value == {"title": "Plan", "done": False, "tags": ["urgent"]}
    assert list(party.query(type=Task)) == [task]
    schema = party.schemas.of(task)
    assert schema is not None
    assert (schema.name, schema.version) == ("task", 1)
    assert [str(known) for known in party.schemas.all()] == ["the schema task 1"]
    assert party.schemas.of(board) is None
    with pytest.raises(InvalidInput, match="leave `type` out"):
        party.object(Task("Plan"), type="other")
    with pytest.raises(InvalidInput, match="neither a dataclass"):
        party.object(5)


def test_a_schema_is_registered_once(party: Party) -> None:
    first = party.schemas.register(Task)
    assert first.type == SCHEMA_TYPE
    assert party.schemas.register(Task) == party.schemas.register(Schema.of(Task)) == first
    party.object(Task("Plan"))
    assert len(party.query(type=SCHEMA_TYPE)) == 1
    assert party.schemas.register(NewTask) != first


def test_a_schema_whose_batch_failed_is_registered_again(party: Party) -> None:
    def fail() -> None:
        with party.batch():
            party.object(Task("Plan"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert party.object(Task("Plan")).type == "task"
    assert len(party.query(type=SCHEMA_TYPE)) == 1


def test_what_does_not_fit_is_not_written(party: Party) -> None:
    task = party.object(Task("Plan"))
    with pytest.raises(SchemaViolation, match="at done: expected") as refused:
        task["done"] = "soon"
    assert refused.value.problems[0].path == ("done",)
    with pytest.raises(SchemaViolation, match="title"):
        del task["title"]
    with pytest.raises(SchemaViolation, match="title"):
        task.clear()
    assert task.value == {"title": "Plan", "done": False, "tags": []}
    task["colour"] = "red"
    with pytest.raises(SchemaViolation):
        party.object(Task(5))  # type: ignore[arg-type]
    assert len(party.query(type="task")) == 1


def test_a_batch_is_checked_at_its_end(party: Party) -> None:
    task = party.object(Task("Plan"))
    with party.batch():
        del task["title"]
        task["title"] = "Draft"
    assert task["title"] == "Draft"


def test_a_device_without_the_class_checks_as_well(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    task = party.object(Task("Plan"))
    sync(ada, bob)
    there = theirs.item(task.id, Object)
    with pytest.raises(SchemaViolation):
        there["done"] = "soon"
    assert [schema.python for schema in theirs.schemas.all()] == [None]


def test_what_peers_wrote_is_tolerated(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    """Bob's program checks nothing, as one of another make may not."""
    task = party.object(Task("Plan"))
    sync(ada, bob)
    theirs.processor.checks.clear()
    there = theirs.item(task.id, Object)
    there.update(done="soon", colour="red")
    sync(ada, bob)

    assert task["done"] == "soon"
    read = task.read_as(Task)
    assert read.object == Task("Plan")
    assert [problem.path for problem in read.problems] == [("done",)]
    assert read.extra == {"colour": "red"}
    task["title"] = "Draft"
    with pytest.raises(SchemaViolation):
        task["done"] = "later"
    task["done"] = True
    assert task.read_as(Task).problems == []


def test_a_class_is_assigned_to_an_object_that_fits(party: Party) -> None:
    task, note = party.object({"title": "Plan"}), party.object({"done": 5})
    party.schemas.assign(task, Task)
    assert task.type == "task"
    with pytest.raises(SchemaViolation):
        party.schemas.assign(note, Task)
    assert (note.type, party.schemas.of(note)) == ("", None)
    with pytest.raises(SchemaViolation):
        task["title"] = 5


def test_saving_writes_only_what_was_changed(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    item = party.object(Task("Plan", tags={"a"}))
    sync(ada, bob)
    task = item.read_as(Task).object

    theirs.item(item.id, Object).update(done=True, colour="red")
    theirs.item(item.id, Object).add("tags", "b")
    sync(ada, bob)
    task.title = "Draft"
    task.tags.add("c")
    item.save(task)

    assert item.value == {"title": "Draft", "done": True, "tags": ["a", "b", "c"], "colour": "red"}
    before = len(item.history())
    item.save(task)
    assert len(item.history()) == before, "nothing was changed since"
    task.title = "Final"
    item.save(task)
    assert (item["title"], item["done"]) == ("Final", True)


def test_what_was_read_is_kept_as_long_as_its_object_lives(party: Party) -> None:
    item = party.object(Task("Plan"))
    known = party.schemas._readings
    gc.collect()
    assert len(known) == 0
    task = item.read_as(Task).object
    item.save(task)
    assert len(known) == 1
    del task
    gc.collect()
    assert len(known) == 0


def test_a_class_with_slots_is_saved_too(party: Party) -> None:
    @dataclass(slots=True)
    class Slotted:
        title: str

    item = party.object(Slotted("Plan"))
    thing = item.read_as(Slotted).object
    thing.title = "Draft"
    item.save(thing)
    assert item.value == {"title": "Draft"}


def test_what_was_read_of_another_item_is_not_saved(party: Party) -> None:
    item, other = party.object(Task("Plan", done=True)), party.object(Task("Other"))
    with pytest.raises(InvalidInput, match="this Task was not read from it"):
        other.save(item.read())
    assert other.value == {"title": "Other", "done": False, "tags": []}


def test_references_of_typed_objects_are_found(party: Party) -> None:
    @dataclass
    class Card:
        about: antiphon.Reference | None = None

    task = party.object(Task("Plan"))
    card = party.object(Card(task.reference))
    assert card["about"] == task
    assert task.referrers == [card]
    kept = card.read_as(Card).object
    kept.about = None
    card.save(kept)
    assert card["about"] is None
    kept.about = task.reference
    card.save(kept)
    assert task.referrers == [card]


def test_two_devices_register_the_same_schema_at_once(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    mine, his = party.object(Task("Plan")), theirs.object(Task("Draft"))
    sync(ada, bob)
    for where in (party, theirs):
        assert [schema.name for schema in where.schemas.all()] == ["task", "task"]
        assert {bytes(item.id) for item in where.query(type=Task)} == {bytes(mine.id), bytes(his.id)}
        for item in where.query(type=Task).of(Object):
            assert item.read_as(Task).problems == []
            with pytest.raises(SchemaViolation):
                item["done"] = "soon"
        where.object(Task("More"))
    sync(ada, bob)
    assert len(party.query(type=SCHEMA_TYPE)) == 2, "no third one is made"


def test_a_schema_that_somebody_broke_checks_nothing(party: Party) -> None:
    task = party.object(Task("Plan"))
    schema = party.schemas.register(Task)
    schema.clear()
    assert party.schemas.of(task) is None
    task["done"] = "soon"
    assert task["done"] == "soon"
    assert party.schemas.all() == []


def test_older_objects_are_read_and_brought_to_a_newer_version(party: Party) -> None:
    old = party.object(Task("Plan", done=True))
    new = party.object(NewTask("New"))
    party.schemas.register(NewTask, migrations())
    assert old.read_as(NewTask).object == NewTask("Plan", "done")

    assert party.schemas.migrate(migrations()) == 1
    assert old.value == {"title": "Plan", "state": "done", "tags": []}
    schema = party.schemas.of(old)
    assert schema is not None
    assert schema.version == 2
    assert party.schemas.migrate(migrations()) == 0
    assert new.value["state"] == "open"


def test_one_object_that_cannot_be_migrated_keeps_no_other(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    broken, fine = party.object(Task("Broken")), party.object(Task("Fine", done=True))
    sync(ada, bob)
    theirs.processor.checks.clear()
    theirs.item(broken.id, Object)["title"] = 5
    sync(ada, bob)

    with pytest.raises(InvalidInput, match=f"1 objects were upgraded.* 1 could not be: item {broken.id}"):
        party.schemas.migrate(migrations())

    assert fine.value == {"title": "Fine", "state": "done", "tags": []}
    assert broken["title"] == 5
    read = broken.read_as(NewTask)
    assert read.problems
    assert read.object.state == "open"


def test_migrations_to_another_schema_are_refused(party: Party) -> None:
    with pytest.raises(InvalidInput, match="these migrations lead to"):
        party.schemas.register(Task, migrations())


def test_an_item_is_opened_as_its_class_only(party: Party) -> None:
    task, other = party.object(Task("Plan")), party.object({"title": "Plan"})
    assert party.item(task.id, Task).read() == Task("Plan")
    with pytest.raises(InvalidInput, match=r"is of the type '', not 'task'; see `Object.read_as`"):
        party.item(other.id, Task)
