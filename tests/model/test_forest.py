"""A forest in which items move is what walking up would give, and does not walk."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

from antiphon.model.forest import Forest

IDS = [bytes([number]) * 16 for number in range(1, 9)]


class Naive:
    """The same, by walking."""

    def __init__(self) -> None:
        self.parents: dict[bytes, bytes] = {}

    def move(self, item: bytes, parent: bytes) -> bool:
        at = parent
        while at:
            if at == item:
                return False
            at = self.parents.get(at, b"")
        self.parents.pop(item, None)
        if parent:
            self.parents[item] = parent
        return True


moves = st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from([*IDS, b""])), max_size=60)


@given(moves, moves)
def test_it_moves_what_walking_would_move(before: list[tuple[bytes, bytes]], after: list[tuple[bytes, bytes]]) -> None:
    naive = Naive()
    for item, parent in before:
        naive.move(item, parent)
    forest = Forest(naive.parents)
    for item, parent in after:
        assert forest.move(item, parent) is naive.move(item, parent)
        assert forest.parents == naive.parents


@pytest.mark.parametrize("seed", range(5))
def test_long_chains_and_their_parts_move_alike(seed: int) -> None:
    chance = random.Random(seed)
    ids = [number.to_bytes(16, "big") for number in range(1, 400)]
    naive, forest = Naive(), Forest({})
    for _ in range(3000):
        at = chance.randrange(1, len(ids))
        near = ids[at - 1] if chance.random() < 0.7 else chance.choice([*ids, b""])
        assert forest.move(ids[at], near) is naive.move(ids[at], near)
    assert forest.parents == naive.parents


@pytest.mark.parametrize("shape", ["chain", "ring", "chances"])
def test_a_move_takes_a_few_steps_however_deep_it_is(shape: str) -> None:
    count = 10_000
    chance = random.Random(0)
    ids = [number.to_bytes(16, "big") for number in range(1, count + 1)]
    forest = Forest(dict(zip(ids[1:], ids, strict=False)) if shape != "chain" else {})
    built = forest.steps
    assert built == 0
    for number in range(1, count):
        if shape == "chances":
            forest.move(chance.choice(ids), chance.choice(ids))
        else:
            assert forest.move(ids[number], ids[number - 1])
            assert shape == "chain" or not forest.move(ids[0], ids[number])
    assert forest.steps < 150 * count  # walking would take count / 2 for each
