"""A text whose leaves are packed is the same text: runs are read, changed and saved as if they had never been bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings, strategies as st
from tests.model.text.sequences import ascending, put
from tests.model.text.test_convergence import World, check_structure

from antiphon.core.errors import InvalidMutation
from antiphon.core.stamp import Stamp
from antiphon.model.text import fugue, leaves, snapshot_tree
from antiphon.model.text.leaves import Leaf
from antiphon.model.text.marks import TextState
from antiphon.model.text.model import TextModel
from antiphon.model.text.packed_runs import Fields, pack, read_run, unpack
from antiphon.model.text.runs import LAMPORT, Edge, Run
from antiphon.model.text.siblings import FEW_MAX, ManySiblings, Siblings, next_child, outermost, with_child

TEXT = TextModel()
ALICE = b"a" * 32


@contextmanager
def tiny_leaves() -> Iterator[None]:
    """Leaves of a few runs, of which two are open."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaves, "OPEN_MIN", 2)
        patch.setattr(leaves, "OPEN_MAX", 2)
        for module in (leaves, fugue, snapshot_tree):
            patch.setattr(module, "LEAF_MAX", 4)
        yield


def packed_leaves(state: TextState) -> list[Leaf]:
    found = []
    leaf: Leaf | None = state.head
    while leaf is not None:
        if not leaf.runs:
            found.append(leaf)
        leaf = leaf.after
    return found


@given(st.integers(0, 1 << 64), st.integers(1, 4), st.integers(5, 60))
@settings(max_examples=60)
def test_packed_texts_are_equal_to_open_ones(seed: int, writers: int, steps: int) -> None:
    """Given a history with lies, when one text has tiny leaves and another has not, then nothing tells them apart."""
    world = World(random.Random(seed), writers)
    for _ in range(steps):
        world.step()
    world.settle()
    open_ = world.replicas[0]
    messages = sorted((message for log in world.logs for message in log), key=lambda message: message.stamp)
    with tiny_leaves():
        state = TEXT.initial()
        chance = random.Random(seed)
        for message in messages:
            try:
                TEXT.apply(state, message.mutation, message.stamp, void=message.void)
            except InvalidMutation:
                assert not world.accepted[message.stamp]
            if chance.random() < 0.2:
                assert len(TEXT.value(state)) == TEXT.length(state)
            if chance.random() < 0.05:
                state = TEXT.restore(TEXT.snapshot(state))
        state.leaves.tidy()
        assert len(state.leaves.open) <= 4
        assert TEXT.snapshot(state) == TEXT.snapshot(open_)
        assert TEXT.value(state) == TEXT.value(open_)
        assert TEXT.spans(state) == TEXT.spans(open_)
        length = TEXT.length(state)
        for index in range(length):
            assert TEXT.index_of(state, TEXT.cursor(open_, index)) == index
            assert TEXT.cursor(state, index) == TEXT.cursor(open_, index)
        if length:
            low = chance.randrange(length)
            high = chance.randint(low + 1, length)
            assert TEXT.read(state, low, high) == TEXT.read(open_, low, high)
            value = TEXT.value(open_)
            TEXT.apply(state, TEXT.delete(state, low, high - low, feed=ALICE), Stamp(1000, ALICE, 1000))
            assert TEXT.value(state) == value[:low] + value[high:]
        check_structure(state)


@given(st.randoms(use_true_random=False), st.integers(2, 80))
@settings(max_examples=60)
def test_undo_in_a_packed_text_is_that_in_an_open_one(chance: random.Random, count: int) -> None:
    feeds = [ALICE, b"b" * 32]
    open_, packed = TEXT.initial(), TEXT.initial()
    with tiny_leaves():
        packed = TEXT.initial()
        for lamport in range(1, count):
            feed = chance.choice(feeds)
            mutation, stamp = TEXT.rehearse(open_, chance, feed), Stamp(lamport, feed, lamport)
            wanted, found = TEXT.capture(open_, mutation, stamp), TEXT.capture(packed, mutation, stamp)
            assert wanted == found
            for state in (open_, packed):
                TEXT.apply(state, mutation, stamp)
            if chance.random() < 0.3:
                undone = TEXT.revert(open_, wanted, mutation, stamp, feed)
                assert undone == TEXT.revert(packed, found, mutation, stamp, feed)
        assert TEXT.value(open_) == TEXT.value(packed)


@given(st.randoms(use_true_random=False))
def test_runs_come_out_of_their_packed_form_as_they_went_in(chance: random.Random) -> None:
    state = TextState()
    feeds = [bytes([letter]) * 32 for letter in b"abc"]
    names: list[tuple[bytes, int]] = []
    far = 1 << chance.choice([20, 40, 63, 83])  # clocks beyond 64 bits, too
    for nth in range(1, 20):
        feed, clock = chance.choice(feeds), far + nth * LAMPORT
        text = chance.choice(["x", "xyz", "é", "😀", "\N{OBJECT REPLACEMENT CHARACTER}"])
        put(state, feed, clock, text, chance.choice(names) if names else None, left=bool(names) and nth % 3 == 0)
        names.append((feed, clock))
        if chance.random() < 0.3:
            state.delete(state.writer(feed), [(clock, clock + chance.choice([0, 9]))], own=True)
    runs = [run for run in state.runs() if run is not state.root]
    runs[0].item = b"i" * 16
    again = unpack(pack(runs, state.writers), state.leaves.writers)
    assert [fields(run) for run in again] == [fields(run) for run in runs]


@given(st.randoms(use_true_random=False))
def test_one_run_of_a_packed_leaf_is_read_and_changed_like_an_open_one(chance: random.Random) -> None:
    """Given packed runs, of ASCII or other text, when a run is put between them and hung below one of them."""
    state, far = TextState(), 1 << chance.choice([20, 40, 63, 83])
    feeds = [bytes([letter]) * 32 for letter in b"abc"]
    names: list[tuple[bytes, int]] = []
    for nth in range(1, chance.randint(2, 12)):
        feed, clock = chance.choice(feeds), far + nth * LAMPORT
        text = chance.choice(["x", "xyz", chance.choice(["é", "😀"])])
        put(state, feed, clock, text, chance.choice(names) if names else None, left=bool(names) and nth % 3 == 0)
        names.append((feed, clock))
        if chance.random() < 0.2:
            state.delete(state.writer(feed), [(clock, clock + chance.choice([0, 9]))], own=True)
    runs = [run for run in state.runs() if run is not state.root]
    if chance.random() < 0.5:
        runs[0].text, runs[0].item = "i", b"i" * 16
        runs[0].length = 1
    runs[-1].left_edge = Edge(runs[-1].name)
    packed, writers = pack(runs, state.writers), state.leaves.writers
    for at, run in enumerate(runs):
        assert packed.find(run.writer.number, run.start) == at
        assert [getattr(read_run(packed, at, writers), name) for name in CONTENT] == [
            getattr(run, name) for name in CONTENT
        ]
        for left, siblings in ((True, run.lefts), (False, run.rights)):
            found = [(writers[number].feed, run.start + distance) for number, distance in packed.children(at, left)]
            assert found == ascending(siblings)
    parent, at = chance.choice(runs), chance.randint(0, len(runs))
    new = Run(state.writer(ALICE), far + 99 * LAMPORT, 2, chance.choice(["zz", "éé", None]), None, None, 0, False)
    new.above, new.above_clock, new.left = parent.writer, parent.start, chance.random() < 0.5
    numbers = Fields(new.start, new.writer.number, 2, 1, parent.writer.number, new.start - parent.start)
    children = [*ascending(parent.lefts), new.name]
    distances = [(state.writers[feed].number, clock - parent.start) for feed, clock in children]
    changed = packed.with_children(runs.index(parent), True, distances)
    if changed is not None:
        packed, parent.lefts = changed, tuple(children)
    changed = packed.with_run(at, numbers, new.text, new.left)
    if changed is not None:
        packed = changed
        runs.insert(at, new)
    assert [fields(run) for run in unpack(packed, writers)] == [fields(run) for run in runs]


CONTENT = ("writer", "start", "length", "stride", "text", "item", "above", "above_clock", "left")


def fields(run: Run) -> list[object]:
    return [getattr(run, name) for name in Run.__slots__ if name != "leaf"]


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.integers(0, 1 << 70)), unique=True), st.randoms())
def test_few_and_many_siblings_are_in_order(children: list[tuple[bytes, int]], chance: random.Random) -> None:
    siblings: Siblings | None = None
    known: list[tuple[bytes, int]] = []
    for child in children:
        siblings = with_child(siblings, child)
        known = sorted([*known, child])
        assert (outermost(siblings, True), outermost(siblings, False)) == (known[0], known[-1])
        at = known.index(child)
        assert next_child(siblings, child, 1) == (known[at + 1] if at + 1 < len(known) else None)
        assert next_child(siblings, child, -1) == (known[at - 1] if at else None)
    if known:
        assert ascending(siblings) == known == ascending(ManySiblings(known))


def test_thousands_of_siblings_are_in_order_whoever_comes_first() -> None:
    """Those of a feed with a greater key came first, so that each of the others was inserted before thousands."""
    children = [(feed, clock) for feed in (b"b", b"a", b"c") for clock in [*range(0, 6000, 2), *range(5999, 0, -2)]]
    siblings: Siblings | None = None
    for child in children:
        siblings = with_child(siblings, child)
    assert len(children) > FEW_MAX
    assert ascending(siblings) == sorted(children)


def test_typing_packs_nothing() -> None:
    """Given a text that somebody typed, here and there, one character a message, then all its leaves are open."""
    state, chance, index = TEXT.initial(), random.Random(1), 0
    for lamport in range(1, 20_000):
        if lamport % 12 == 0:
            index = chance.randint(0, state.length)
        TEXT.apply(state, TEXT.insert(state, index, "x", feed=ALICE), Stamp(lamport, ALICE, lamport))
        index += 1
    assert len(state.leaves.open) > 50
    assert not packed_leaves(state)
