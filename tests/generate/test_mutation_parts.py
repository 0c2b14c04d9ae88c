"""The short way to the mutations of plain objects gives the bytes of the model."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

from antiphon.core.stamp import Stamp
from antiphon.generate.mutation_parts import KEYS, VALUES, Names, Parts
from antiphon.model.object.model import ObjectModel, ObjectState

MINE, OTHERS = b"m" * 32, b"o" * 32
PARTS = Parts(random.Random(1))
MODEL = ObjectModel()


def state_with(key: str, names: list[Stamp]) -> ObjectState:
    """An object at whose key these messages stand, none of which has seen another."""
    state = MODEL.initial()
    for stamp in names:
        MODEL.apply(state, MODEL.set(MODEL.initial(), key, "before", feed=stamp.feed), stamp)
    return state


def stamps() -> st.SearchStrategy[Stamp]:
    return st.builds(Stamp, st.integers(1, 1 << 39), st.sampled_from([MINE, OTHERS]), st.integers(0, 1 << 40))


@given(
    st.integers(0, len(KEYS) - 1),
    st.integers(0, VALUES - 1),
    st.lists(stamps(), max_size=3, unique_by=lambda stamp: stamp.feed),
)
def test_the_bytes_are_those_of_the_model(key: int, value: int, before: list[Stamp]) -> None:
    before.sort(key=lambda stamp: stamp.seq)
    names: Names = None if not before else before[0] if len(before) == 1 else list(before)

    written = PARTS.write(key, value, names, MINE)

    assert written == MODEL.set(state_with(KEYS[key], before), KEYS[key], PARTS.values[key][value], feed=MINE)


@pytest.mark.parametrize("names", [None, (5, MINE, 0), (5, OTHERS, 3)])
def test_what_is_named_is_replaced(names: Names) -> None:
    before = [] if names is None else [Stamp(*names)]
    state = state_with("title", before)

    MODEL.apply(state, PARTS.write(0, 7, names, MINE), Stamp(9, MINE, 4))

    assert MODEL.value(state) == {"title": PARTS.values[0][7]}
    assert not MODEL.conflicts(state, "title")
