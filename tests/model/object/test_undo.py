"""Undo and redo of changes of an object, with others changing it meanwhile."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from antiphon.core.stamp import Stamp
from antiphon.model.object.model import ObjectModel
from antiphon.model.object.undo import Before

MODEL = ObjectModel()
ADA, BOB = b"a" * 32, b"b" * 32


class Desk:
    """One copy of an object at which Ada, who can undo, and Bob work in turns."""

    def __init__(self, start: dict[str, Any] | None = None) -> None:
        self.state = MODEL.initial()
        self.lamport = 0
        self.done: list[tuple[Before, bytes, Stamp]] = []
        if start:
            self.do("update", start)
            self.done.clear()

    def do(self, command: str, *args: Any, feed: bytes = ADA) -> None:
        self.send(getattr(MODEL, command)(self.state, *args, feed=feed), feed)

    def send(self, mutation: bytes, feed: bytes = ADA) -> None:
        self.lamport += 1
        stamp = Stamp(self.lamport, feed, self.lamport)
        captured = MODEL.capture(self.state, mutation, stamp)
        MODEL.apply(self.state, mutation, stamp)
        if feed == ADA:
            self.done.append((captured, mutation, stamp))

    def bob(self, command: str, *args: Any) -> None:
        self.do(command, *args, feed=BOB)

    def undo(self) -> None:
        captured, mutation, stamp = self.done.pop()
        for undoing in MODEL.revert(self.state, captured, mutation, stamp, ADA):
            self.send(undoing)

    redo = undo  # a redo is the undo of an undo

    @property
    def value(self) -> dict[str, Any]:
        return MODEL.value(self.state)


START = {"t": "old", "m": {"x": 1, "y": {"z": 2}}, "s": {1, 2}}
SHOWN = {"m": {"x": 1, "y": {"z": 2}}, "s": [1, 2], "t": "old"}


@pytest.mark.parametrize(
    ("command", "arguments", "after"),
    [
        ("set", ("t", "new"), {**SHOWN, "t": "new"}),
        ("set", ("u", "new"), {**SHOWN, "u": "new"}),
        ("set", (("u", "v", "w"), 1), {**SHOWN, "u": {"v": {"w": 1}}}),
        ("set", (("t", "v"), 1), {**SHOWN, "t": {"v": 1}}),
        ("set", ("m", 5), {**SHOWN, "m": 5}),
        ("set", ("m", {"y": 3}), {**SHOWN, "m": {"y": 3}}),
        ("set", ("s", {2, 3}), {**SHOWN, "s": [2, 3]}),
        ("update", ({"t": 1, ("m", "x"): {"w": 1}},), {**SHOWN, "t": 1, "m": {"x": {"w": 1}, "y": {"z": 2}}}),
        ("delete", ("t",), {"m": SHOWN["m"], "s": [1, 2]}),
        ("delete", ("m",), {"s": [1, 2], "t": "old"}),
        ("delete", (("m", "y"),), {**SHOWN, "m": {"x": 1}}),
        ("delete", ("s",), {"m": SHOWN["m"], "t": "old"}),
        ("add", ("s", 3), {**SHOWN, "s": [1, 2, 3]}),
        ("add", ("new", 3), {**SHOWN, "new": [3]}),
        ("remove", ("s", 2), {**SHOWN, "s": [1]}),
        ("increment", ("n", 4), {**SHOWN, "n": 4}),
        ("counter", ("m", 4), {**SHOWN, "m": 4}),
    ],
)
def test_undo_and_redo_of_every_command(command: str, arguments: tuple[Any, ...], after: dict[str, Any]) -> None:
    desk = Desk(START)
    assert desk.value == SHOWN
    desk.do(command, *arguments)
    assert desk.value == after
    for _ in range(2):
        desk.undo()
        assert desk.value == SHOWN
        desk.redo()
        assert desk.value == after


def test_an_increment_is_taken_off_whatever_others_counted() -> None:
    desk = Desk()
    desk.do("increment", "n", 5)
    desk.bob("increment", "n", 3)
    desk.undo()
    assert desk.value == {"n": 3}
    desk.redo()
    assert desk.value == {"n": 8}
    desk.do("increment", "n", 10)
    desk.bob("increment", "n", 1)
    desk.undo()
    assert desk.value == {"n": 9}


def test_what_others_counted_survives_the_undo_of_the_map_around_it() -> None:
    desk = Desk()
    desk.do("increment", ("m", "n"), 5)
    desk.bob("increment", ("m", "n"), 3)
    desk.undo()
    assert desk.value == {"m": {"n": 3}}


def test_an_increment_is_taken_off_the_counter_that_was_brought_back() -> None:
    desk = Desk()
    desk.do("increment", "n", 5)
    desk.do("increment", "n", 2)
    first, second = desk.done
    desk.do("delete", "n")
    desk.undo()
    desk.done = [first, second]
    desk.undo()
    assert desk.value == {"n": 5}
    desk.done = [first]
    desk.undo()
    assert desk.value == {}


def test_the_undo_of_an_increment_of_what_is_gone_is_nothing() -> None:
    desk = Desk()
    desk.do("increment", "n", 5)
    desk.do("increment", "n", 1)
    desk.bob("delete", "n")
    desk.undo()
    assert desk.value == {}


@pytest.mark.parametrize(
    ("mine", "theirs", "after"),
    [
        (("set", "t", "new"), ("set", "t", "bob"), {**SHOWN, "t": "bob"}),
        (("set", "m", 5), ("set", "m", 6), {**SHOWN, "m": 6}),
        (("delete", "t"), ("set", "t", "bob"), {**SHOWN, "t": "bob"}),
        (("delete", "m"), ("set", ("m", "x"), 9), {**SHOWN, "m": {"x": 9}}),
        (("delete", ("m", "y")), ("set", "m", 6), {**SHOWN, "m": 6}),
        (("set", "m", {"x": 7}), ("set", ("m", "x"), 9), {**SHOWN, "m": {"x": 9, "y": {"z": 2}}}),
        (("set", "m", {}), ("set", ("m", "y"), 9), {**SHOWN, "m": {"x": 1, "y": 9}}),
        (("set", "t", {"a": 1, "b": 2}), ("set", ("t", "a"), 9), {**SHOWN, "t": {"a": 9}}),
        (("add", "s", 3), ("add", "s", 3), {**SHOWN, "s": [1, 2, 3]}),
        (("add", "s", 3), ("remove", "s", 3), SHOWN),
        (("add", "new", 3), ("add", "new", 4), {**SHOWN, "new": [4]}),
        (("remove", "s", 2), ("add", "s", 2), SHOWN),
        (("remove", "s", 2), ("delete", "s"), {"m": SHOWN["m"], "s": [2], "t": "old"}),
        (("set", ("u", "v"), 1), ("set", ("u", "w"), 2), {**SHOWN, "u": {"w": 2}}),
    ],
)
def test_what_others_changed_since_is_left_alone(
    mine: tuple[Any, ...], theirs: tuple[Any, ...], after: dict[str, Any]
) -> None:
    desk = Desk(START)
    desk.do(*mine)
    desk.bob(*theirs)
    desk.undo()
    assert desk.value == after


def test_a_large_map_comes_back_in_several_mutations() -> None:
    desk = Desk()
    for part in range(3):
        desk.do("set", ("m", str(part)), {str(number): 1 for number in range(3000)})
    full = desk.value
    desk.do("delete", "m")
    captured, mutation, stamp = desk.done.pop()
    undoing = MODEL.revert(desk.state, captured, mutation, stamp, ADA)
    assert len(undoing) > 1
    for one in undoing:
        desk.send(one)
    assert desk.value == full


@given(st.randoms(use_true_random=False), st.integers(1, 12))
@settings(max_examples=100)
def test_undoing_everything_alone_gives_what_was_and_redoing_what_became(chance: random.Random, count: int) -> None:
    desk = Desk()
    shown = [desk.value]
    for _ in range(count):
        desk.send(MODEL.rehearse(desk.state, chance, ADA))
        shown.append(desk.value)
    changes, undone = list(desk.done), []
    for number, change in reversed(list(enumerate(changes))):
        desk.done = [change]
        desk.undo()
        undone.append(list(desk.done))
        assert desk.value == shown[number]
    for number, undoing in enumerate(reversed(undone), start=1):
        for change in reversed(undoing):
            desk.done = [change]
            desk.redo()
        assert desk.value == shown[number]


@given(st.randoms(use_true_random=False), st.integers(1, 12))
@settings(max_examples=50)
def test_undo_among_others_never_breaks(chance: random.Random, count: int) -> None:
    desk = Desk()
    for _ in range(count):
        if desk.done and chance.random() < 0.4:
            desk.done.append(desk.done.pop(chance.randrange(len(desk.done))))
            desk.undo()
        else:
            feed = chance.choice((ADA, BOB))
            desk.send(MODEL.rehearse(desk.state, chance, feed), feed)
    data = MODEL.snapshot(desk.state)
    assert MODEL.snapshot(MODEL.restore(data)) == data
