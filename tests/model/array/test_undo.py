"""Undo of arrays step by step: one's own edits are taken back one after the other, and done again."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from antiphon.core.stamp import Stamp
from antiphon.core.v1 import array_pb2 as pb
from antiphon.model.array.model import ArrayModel
from antiphon.model.model import InvalidMutation

ARRAY = ArrayModel()
ALICE, BOB = b"a" * 32, b"b" * 32


class User:
    """One writer with a stack of undos, like `UndoStack`: a step that does nothing any more is passed over."""

    def __init__(self) -> None:
        self.state = ARRAY.initial()
        self.stamp = Stamp(0, ALICE, -1)
        self.done: list[Any] = []
        self.undone: list[Any] = []

    def write(self, mutation: bytes, feed: bytes = ALICE) -> Any:
        self.stamp = Stamp(self.stamp.lamport + 1, ALICE, self.stamp.seq + 1)
        stamp = self.stamp._replace(feed=feed)
        captured = ARRAY.capture(self.state, mutation, stamp)
        ARRAY.apply(self.state, mutation, stamp)
        return captured, mutation, stamp

    def do(self, command: str, *arguments: Any) -> None:
        self.done.append(self.write(getattr(ARRAY, command)(self.state, *arguments, feed=ALICE)))
        self.undone.clear()

    def undo(self) -> list[Any]:
        return self._step(self.done, self.undone)

    def redo(self) -> list[Any]:
        return self._step(self.undone, self.done)

    def revert(self, step: Any) -> list[bytes]:
        captured, mutation, stamp = step
        return ARRAY.revert(self.state, captured, mutation, stamp, ALICE)

    def _step(self, source: list[Any], target: list[Any]) -> list[Any]:
        while source:
            if made := self.revert(source.pop()):
                [mutation] = made
                target.append(self.write(mutation))
                break
        return self.value

    @property
    def value(self) -> list[Any]:
        return ARRAY.value(self.state)


@pytest.mark.parametrize(
    "commands",
    [
        [("append", "keep"), ("append", "x"), ("delete", 1)],
        [("append", 1), ("set", 0, 2), ("set", 0, 3)],
        [("append", 1), ("set", 0, 2), ("delete", 0)],
        [("append", 1, 2, 3), ("move", 0, 2), ("move", 2, 1)],
        [("append", 1, 2, 3), ("move", 0, 2), ("move", 0, 2), ("delete", 0, 3)],
        [("append", 1, 2, 3), ("move", 0, 2), ("delete", 2), ("set", 0, 5)],
        [("append", 1, 2, 3), ("delete", 1), ("delete", 0), ("insert", 0, ["x"]), ("move", 0, 1)],
    ],
)
def test_edits_are_undone_and_done_again_one_by_one(commands: list[Any]) -> None:
    user = User()
    values = [user.value]
    for command in commands:
        user.do(*command)
        values.append(user.value)
    for _ in range(3):
        assert [user.undo() for _ in commands] == values[-2::-1]
        assert [user.redo() for _ in commands] == values[1:]


def rehearse(user: User, chance: random.Random) -> None:
    user.done.append(user.write(ARRAY.rehearse(user.state, chance, ALICE)))
    user.undone.clear()


@settings(max_examples=150)
@given(st.integers(0, 1 << 32), st.integers(1, 25))
@example(3, 60)
def test_all_of_any_edits_is_undone_and_done_again(seed: int, count: int) -> None:
    user, chance = User(), random.Random(seed)
    for _ in range(count):
        if chance.random() < 0.2:  # an undo now and then, and other edits after it
            for _ in range(chance.randint(1, 4)):
                user.undo()
            if chance.random() < 0.5:
                user.redo()
        rehearse(user, chance)
    end = user.value
    while user.done:
        user.undo()
    assert user.value == []
    while user.undone:
        user.redo()
    assert user.value == end


@pytest.mark.parametrize("seed", range(20))
def test_undo_works_where_keys_had_to_be_made_anew(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.model.array.model.KEY_SIZE_MAX", 80)
    monkeypatch.setattr("antiphon.model.array.model.REKEY_SIZE_MAX", 76)
    user, chance = User(), random.Random(seed)
    values = [user.value]
    for _ in range(60):
        rehearse(user, chance)
        values.append(user.value)
    in_place = [op for _, data, _ in user.done for op in pb.ArrayMutation.FromString(data).ops if op.move.in_place]
    assert in_place, "otherwise this test is about nothing"
    assert [user.undo() for _ in values[1:]] == values[-2::-1]
    assert [user.redo() for _ in values[1:]] == values[1:]


def test_what_others_did_since_still_stands() -> None:
    for command in (("set", 1, 5), ("move", 1, 0)):
        user = User()
        user.do("append", 1, 2, 3)
        user.do(*command)
        user.do("delete", 2)
        index = user.value.index(5 if command[0] == "set" else 2)
        theirs = ARRAY.set(user.state, index, 6, feed=BOB) if command[0] == "set" else None
        user.write(theirs or ARRAY.move(user.state, index, 1, feed=BOB), BOB)
        value = user.value
        assert [one for one in user.undo() if one != 3] == value
        assert user.revert(user.done[-1]) == [], command


def test_a_delete_that_was_undone_is_not_undone_again() -> None:
    user = User()
    user.do("append", 1, 2)
    user.do("delete", 0)
    deleted = user.done[-1]
    assert user.undo() == [1, 2]
    assert user.revert(deleted) == []


def test_a_revert_out_of_order_goes_by_the_neighbour_that_stayed() -> None:
    user = User()
    user.do("append", *"abcd")
    user.do("delete", 1)
    deleted = user.done[-1]
    user.do("move", 0, 2)
    assert user.value == ["c", "d", "a"]
    [mutation] = user.revert(deleted)
    user.write(mutation)
    assert user.value == ["b", "c", "d", "a"]


def test_nobody_can_say_for_another_what_is_a_copy() -> None:
    """Bob claims that his element is what came back of Alice's. That is seen by his own undos alone, if at all."""
    user = User()
    user.do("append", "hers")
    claim = pb.ArrayMutation.FromString(ARRAY.append(user.state, "his", feed=BOB))
    claim.feeds.append(ALICE)
    claim.ops[0].insert.copies.add(name={"feed": 1, "lamport": 1, "seq": 0}, indexes=[0])
    plain = ARRAY.restore(ARRAY.snapshot(user.state))
    ARRAY.apply(plain, ARRAY.append(plain, "his", feed=BOB), Stamp(2, BOB, 1))
    user.write(claim.SerializeToString(), BOB)
    assert ARRAY.snapshot(user.state) == ARRAY.snapshot(plain), "the state's bytes do not depend on it"
    assert user.undo() == ["his"]
    assert user.redo() == ["hers", "his"]
    claim.ops[0].insert.copies[0].indexes.append(1)
    with pytest.raises(InvalidMutation, match="more or less"):
        ARRAY.apply(user.state, claim.SerializeToString(), Stamp(99, BOB, 99))
