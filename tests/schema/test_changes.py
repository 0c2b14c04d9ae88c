"""Changes between two plain values: the least of them, so that what others do meanwhile survives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from antiphon.core.stamp import Stamp
from antiphon.model.object.model import ObjectModel
from antiphon.schema import Changes, Counter, Schema

FEED = b"f" * 32


@dataclass
class Owner:
    name: str
    nick: str = ""


@dataclass
class Task:
    title: str
    tags: set[str] = field(default_factory=set)
    votes: Counter = 0
    owner: Owner | None = None
    sizes: dict[str, float] = field(default_factory=dict)
    steps: list[int] = field(default_factory=list)


TASK = Schema.of(Task)


class Live:
    """An object item, as the live pipeline would hold it."""

    def __init__(self) -> None:
        self.model = ObjectModel()
        self.state = self.model.initial()
        self.seq = 0

    @property
    def value(self) -> dict[str, Any]:
        return self.model.value(self.state)

    def run(self, mutation: bytes) -> None:
        self.seq += 1
        self.model.apply(self.state, mutation, Stamp(self.seq, FEED, self.seq - 1))

    def save(self, changes: Changes) -> None:
        model, state = self.model, self.state
        if changes.writes:
            self.run(model.update(state, changes.writes))
        for path in changes.deletes:
            self.run(model.delete(state, path))
        for path, element in changes.adds:
            self.run(model.add(state, path, element))
        for path, element in changes.removes:
            self.run(model.remove(state, path, element))
        for path, by in changes.increments:
            self.run(model.increment(state, path, by))


def test_nothing_changed_is_nothing_to_write() -> None:
    value = TASK.write(Task("Plan", {"a"}, 3, Owner("Ada"), {"x": float("nan")}, [1]))
    assert not TASK.changes(value, TASK.write(TASK.read(value).object))


def test_only_what_changed_is_written() -> None:
    before = Task("Plan", {"a", "b"}, 3, Owner("Ada", "A"), {"x": 1.0, "y": 2.0}, [1, 2])
    after = Task("Plan B", {"b", "c"}, 5, Owner("Ada", "B"), {"x": 1.0, "z": 3.0}, [1, 3])

    assert TASK.changes(TASK.write(before), TASK.write(after)) == Changes(
        writes={("title",): "Plan B", ("owner", "nick"): "B", ("sizes", "z"): 3.0, ("steps",): [1, 3]},
        deletes=[("sizes", "y")],
        adds=[(("tags",), "c")],
        removes=[(("tags",), "a")],
        increments=[(("votes",), 2)],
    )


def test_values_that_python_takes_for_equal_are_told_apart() -> None:
    free = Schema.of({"type": "object"}, "free")
    assert free.changes({"a": 1, "b": [1], "c": 0.0}, {"a": True, "b": [1.0], "c": -0.0}).writes == {
        ("a",): True,
        ("b",): [1.0],
        ("c",): -0.0,
    }


def test_a_map_in_the_place_of_something_else_is_written_whole() -> None:
    changes = TASK.changes({"owner": None}, {"owner": {"name": "Ada"}})
    assert changes == Changes(writes={("owner",): {"name": "Ada"}})
    assert TASK.changes({"owner": {"name": "Ada"}}, {"owner": None}) == Changes(writes={("owner",): None})


def test_fields_that_the_schema_does_not_know_stay() -> None:
    before = {"title": "Plan", "new": 5, "owner": {"name": "Ada", "born": 1815}, "sizes": {"x": 1.0}}
    after = {"title": "Plan", "owner": {"name": "Ada"}, "sizes": {}}

    assert TASK.changes(before, after) == Changes(deletes=[("sizes", "x")])


def test_a_typed_object_is_saved_into_an_object_item() -> None:
    live, task = Live(), Task("Plan", {"a"}, 3, Owner("Ada"))
    live.save(TASK.changes({}, TASK.write(task)))
    assert TASK.read(live.value).object == task

    task.tags.add("b")
    task.votes += 4
    task.owner = Owner("Ada", "Countess")
    live.save(TASK.changes(TASK.write(TASK.read(live.value).object), TASK.write(task)))

    assert TASK.read(live.value).object == task
    live.run(live.model.increment(live.state, "votes"))  # it is a counter still
    live.run(live.model.add(live.state, "tags", "c"))  # and this a set
    assert (live.value["votes"], live.value["tags"]) == (8, ["a", "b", "c"])


def test_saving_does_not_touch_what_did_not_fit() -> None:
    live = Live()
    live.run(live.model.update(live.state, {"title": 5, "zoom": 2}))

    found = TASK.read(live.value).object
    before = TASK.write(found)
    found.votes = 1
    live.save(TASK.changes(before, TASK.write(found)))

    assert live.value == {"title": 5, "zoom": 2, "votes": 1}
