"""`ObjectModel`: nested properties, sets and counters that several people may change at once.

>>> from antiphon.core.stamp import Stamp
>>> model = ObjectModel()
>>> state = model.initial()
>>> model.apply(state, model.set(state, "title", "Plan"), Stamp(1, b"a" * 32, 0))
>>> model.apply(state, model.set(state, ("owner", "name"), "Ada"), Stamp(2, b"a" * 32, 1))
>>> model.apply(state, model.add(state, "tags", "urgent"), Stamp(3, b"a" * 32, 2))
>>> model.value(state)
{'owner': {'name': 'Ada'}, 'tags': ['urgent'], 'title': 'Plan'}

Commands (`set`, `delete`, `add`, ...) do not change the state. They return the bytes of a mutation, which names the
messages whose entries it replaces. `feed` is the writer's own, and makes the bytes shorter. A path is a key or a list
of keys: "a.b" is one key.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.model.model import Model
from antiphon.model.object.edit import Edit, as_path, quick_set
from antiphon.model.object.fast_mutation import make_plain, perform_plain, take_plain, take_run
from antiphon.model.object.mutation_codec import read_mutation, write_mutation
from antiphon.model.object.snapshot_codec import read_snapshot, write_snapshot
from antiphon.model.object.state import ObjectState
from antiphon.model.object.undo import Before, pack, remember, undo
from antiphon.model.object.view import look, read_map, render, seek, shown, standing
from antiphon.model.value import Value

if TYPE_CHECKING:
    from antiphon.model.message import Note

__all__ = ["ObjectModel", "ObjectState"]

AnyPath = str | Sequence[str]


class ObjectModel(Model[ObjectState]):
    """Registers by path, add-wins sets and counters. See docs/models/object.md."""

    name = "antiphon/object"
    commands = frozenset({"set", "update", "delete", "add", "remove", "counter", "increment"})

    # -- the model

    def initial(self) -> ObjectState:
        return ObjectState()

    def apply(self, state: ObjectState, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        if not void and take_plain(state, mutation, stamp):
            return
        ops = read_mutation(mutation, stamp)
        if not void:
            state.take(ops, stamp)
        state.hear(stamp)

    def apply_run(
        self, state: ObjectState, frame: dict[bytes, Stamp], notes: Sequence[Note], at: int, since: int
    ) -> int:
        return take_run(state, frame, notes, at, since)

    def perform(self, state: ObjectState, command: str, arguments: Sequence[Any], stamp: Stamp) -> bytes | None:
        if command != "set" or len(arguments) != 2:
            return None
        path, value = arguments
        plain = type(path) is str and (type(value) is str or type(value) is int)
        return perform_plain(state, path, value, stamp) if plain else None

    def snapshot(self, state: ObjectState) -> bytes:
        return write_snapshot(state)

    def restore(self, data: bytes) -> ObjectState:
        return read_snapshot(data)

    def value(self, state: ObjectState) -> dict[str, Any]:
        """Return the object: maps as dicts with sorted keys, sets as lists sorted by their bytes, counters as ints."""
        return read_map(state.root)

    def capture(self, state: ObjectState, mutation: bytes, stamp: Stamp) -> Before:
        return remember(state, read_mutation(mutation, stamp))

    def revert(self, state: ObjectState, captured: Before, mutation: bytes, stamp: Stamp, feed: bytes) -> list[bytes]:
        return pack(undo(state, captured, read_mutation(mutation, stamp), stamp), feed)

    # -- reading

    def get(self, state: ObjectState, path: AnyPath) -> Value:
        """Return the value that shows at a path, or raise `InvalidInput` if there is none."""
        node = look(state.root, as_path(path))
        return render(node, shown(node))

    def has(self, state: ObjectState, path: AnyPath) -> bool:
        """True if a value shows at a path."""
        return seek(state.root, as_path(path)) is not None

    def conflicts(self, state: ObjectState, path: AnyPath) -> list[tuple[Stamp, Value]]:
        """Return all concurrent values at a path, the one that shows first; empty if there is only one."""
        node = look(state.root, as_path(path))
        found = standing(node)
        return [(stamp, render(node, content)) for stamp, content in found] if len(found) > 1 else []

    # -- commands

    def set(self, state: ObjectState, path: AnyPath, value: Value, *, feed: bytes = b"") -> bytes:
        """Write a value. A dict becomes a map and a Python set becomes a set, which others can change inside."""
        if type(path) is str and not isinstance(value, dict | set | frozenset):
            plain = make_plain(state, path, value, feed) if type(value) in (str, int) else b""
            return plain or write_mutation((quick_set(state.root, path, value),), feed)
        edit = Edit(state.root)
        edit.write(as_path(path), value)
        return write_mutation(edit.ops.values(), feed)

    def update(self, state: ObjectState, values: Mapping[str | tuple[str, ...], Value], *, feed: bytes = b"") -> bytes:
        """Write several paths in one mutation: readers see all of them or none."""
        if not values:
            raise InvalidInput("an update of no path")
        edit = Edit(state.root)
        for path, value in values.items():
            edit.write(as_path(path), value)
        return write_mutation(edit.ops.values(), feed)

    def delete(self, state: ObjectState, path: AnyPath, *, feed: bytes = b"") -> bytes:
        """Delete the values at a path and below it. Concurrent writes of others stay."""
        edit = Edit(state.root)
        edit.delete(as_path(path))
        return write_mutation(edit.ops.values(), feed)

    def add(self, state: ObjectState, path: AnyPath, element: Value, *, feed: bytes = b"") -> bytes:
        """Add an element to the set at a path, which is created if missing. It wins over a concurrent removal."""
        edit = Edit(state.root)
        edit.add(as_path(path), element)
        return write_mutation(edit.ops.values(), feed)

    def remove(self, state: ObjectState, path: AnyPath, element: Value, *, feed: bytes = b"") -> bytes:
        """Remove an element from the set at a path."""
        edit = Edit(state.root)
        edit.remove(as_path(path), element)
        return write_mutation(edit.ops.values(), feed)

    def counter(self, state: ObjectState, path: AnyPath, start: int = 0, *, feed: bytes = b"") -> bytes:
        """Create a counter, which replaces the values at a path."""
        edit = Edit(state.root)
        edit.counter(as_path(path), start)
        return write_mutation(edit.ops.values(), feed)

    def increment(self, state: ObjectState, path: AnyPath, by: int = 1, *, feed: bytes = b"") -> bytes:
        """Add to the counter at a path, which is created if the path is empty."""
        edit = Edit(state.root)
        edit.increment(as_path(path), by)
        return write_mutation(edit.ops.values(), feed)

    # -- the test kit

    def rehearse(self, state: ObjectState, chance: random.Random, feed: bytes) -> bytes:
        """Return a change in a small set of keys, where parents, children, sets and counters collide."""
        path = [chance.choice("abc") for _ in range(chance.choice((1, 1, 2, 3)))]
        value = chance.choice(
            [None, True, chance.randrange(9), 0.5, "x", b"y", [1, {"z": 2}], {"a": 1, "b": {}}, {"c"}]
        )
        act = chance.randrange(8)
        try:
            if act == 0:
                return self.delete(state, path, feed=feed)
            if act == 1:
                return self.add(state, path, chance.randrange(3), feed=feed)
            if act == 2:
                return self.remove(state, path, chance.choice(self.get(state, path) or [0]), feed=feed)
            if act == 3:
                return self.increment(state, path, chance.randrange(-3, 9), feed=feed)
            if act == 4:
                return self.update(state, {"a": value, ("b", "c"): chance.random()}, feed=feed)
            return self.set(state, path, value, feed=feed)
        except (InvalidInput, TypeError, KeyError):  # the path holds nothing of that kind
            return self.set(state, path[0], chance.randrange(99), feed=feed)
