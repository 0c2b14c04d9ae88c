"""A snapshot of a text is made of parts that were made before, and has the same bytes as one that is made afresh."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings, strategies as st
from tests.model.text.test_convergence import World
from tests.model.text.test_leaves import tiny_leaves

from antiphon.core.errors import InvalidMutation
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2
from antiphon.model.text import clock_order, snapshot_tree, snapshot_writer
from antiphon.model.text.model import TextModel

TEXT = TextModel()
ALICE, BOB = b"a" * 32, b"b" * 32


@given(st.integers(0, 1 << 64), st.integers(1, 4), st.integers(5, 60))
@settings(max_examples=100)
def test_a_snapshot_after_each_message_has_the_bytes_of_one_made_afresh(seed: int, writers: int, steps: int) -> None:
    """Given blocks of two runs, so that all that can change near a cell does."""
    world = World(random.Random(seed), writers)
    for _ in range(steps):
        world.step()
    world.settle()
    chance = random.Random(seed)
    logs = [iter(log) for log in world.logs]
    left = [one for one, log in zip(logs, world.logs, strict=True) for _ in log]
    chance.shuffle(left)  # of each feed in order, and otherwise in any: so many insertions wait, and come in between
    messages = [next(log) for log in left]
    with pytest.MonkeyPatch.context() as patch, tiny_leaves():
        for module in (clock_order, snapshot_tree):
            patch.setattr(module, "BLOCK_MAX", 2)
        patch.setattr(clock_order, "COPIES_MIN", 2)
        state, afresh = TEXT.initial(), TEXT.initial()
        for message in messages:
            for text in (state, afresh):
                try:
                    TEXT.apply(text, message.mutation, message.stamp, void=message.void)
                except InvalidMutation:
                    assert not world.accepted[message.stamp]
            for writer in afresh.writers.values():
                writer.runs.cells = [None] * len(writer.runs.cells)
            if chance.random() < 0.7:
                assert TEXT.snapshot(state) == TEXT.snapshot(afresh)
            if chance.random() < 0.05:
                state = TEXT.restore(TEXT.snapshot(state))


def test_after_an_edit_a_snapshot_reads_the_runs_of_the_blocks_that_it_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a hostile text of many runs, when others type into it, then the next snapshot does not read it again."""
    state = TEXT.initial()
    proto = text_pb2.TextMutation()
    for nth in range(4096):
        place = text_pb2.TEXT_PLACE_LEFT if nth else text_pb2.TEXT_PLACE_ROOT
        proto.inserts.add(text="x", lamport=1 if nth else 0, offset=max(nth - 1, 0), place=place)
    TEXT.apply(state, proto.SerializeToString(), Stamp(1, ALICE, 0))
    TEXT.snapshot(state)
    read: list[int] = []
    made = snapshot_writer._Columns._made

    def counted(self, before, runs):  # type: ignore[no-untyped-def]
        read.append(len(runs))
        return made(self, before, runs)

    monkeypatch.setattr(snapshot_writer._Columns, "_made", counted)
    for seq, (index, word) in enumerate([(0, "a"), (2000, "b"), (TEXT.length(state), "c")]):
        TEXT.apply(state, TEXT.insert(state, index, word, feed=BOB), Stamp(seq + 2, BOB, seq))
    expected = TEXT.snapshot(state)
    assert sum(read) <= 2 * clock_order.BLOCK_MAX, "Bob's runs, and the last block of the others"
    read.clear()
    TEXT.apply(state, TEXT.delete(state, 1000, 1, feed=BOB), Stamp(9, BOB, 3))
    assert TEXT.snapshot(state) != expected
    assert sum(read) <= 3 * clock_order.BLOCK_MAX
    assert TEXT.snapshot(TEXT.restore(TEXT.snapshot(state))) == TEXT.snapshot(state)


def test_an_element_that_comes_in_before_others_moves_all_that_is_counted_from_it() -> None:
    """Given Bob's insertions that wait for Alice's, and what Carol typed beside Bob's later ones, when Alice's come."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock_order, "BLOCK_MAX", 4)
        state, afresh = TEXT.initial(), TEXT.initial()
        root, left = text_pb2.TEXT_PLACE_ROOT, text_pb2.TEXT_PLACE_LEFT
        insert, mutation = text_pb2.TextInsert, text_pb2.TextMutation
        messages = [(mutation(inserts=[insert(text="first", place=root)]), Stamp(3, BOB, 0))]
        for at in (1, 2):
            waits = insert(text="waits", feed=1, lamport=at)
            messages.append((mutation(inserts=[waits], feeds=[ALICE]), Stamp(at + 3, BOB, at)))
        messages += [(mutation(inserts=[insert(text="b", place=root)]), Stamp(at, BOB, at - 3)) for at in range(6, 18)]
        for at in range(18, 30):
            beside = insert(text="c", feed=1, lamport=at - 12, place=left)
            messages.append((mutation(inserts=[beside], feeds=[BOB]), Stamp(at, b"c" * 32, at - 18)))
        splits = insert(text="c", feed=1, lamport=3, offset=2, place=left)  # so a block is halved before that
        messages.append((mutation(inserts=[splits], feeds=[BOB]), Stamp(30, b"c" * 32, 12)))
        messages += [(mutation(inserts=[insert(text="a", place=root)]), Stamp(at, ALICE, at - 1)) for at in (1, 2)]
        for proto, stamp in messages:
            for text in (state, afresh):
                TEXT.apply(text, proto.SerializeToString(), stamp)
            TEXT.snapshot(state)
        assert not state.orphans
        assert TEXT.snapshot(state) == TEXT.snapshot(afresh)
