"""Elements that are inserted together stay one piece, and cost what they weigh, until somebody touches them."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from antiphon.core.stamp import Stamp
from antiphon.core.v1 import array_pb2 as pb
from antiphon.model.array.codec import ELEMENTS_MAX
from antiphon.model.array.model import ArrayModel, ArrayState
from antiphon.model.array.pieces import CHUNK_MAX, Piece, PieceOrder
from antiphon.model.array.position import AFTER, KEY_SIZE_MAX, Span, encode_int
from antiphon.model.value import to_proto

ARRAY = ArrayModel()
ALICE, BOB = b"a" * 32, b"b" * 32


def deep_path() -> bytes:
    """A path of nearly a KiB, as no honest writer has it."""
    step = encode_int(1) + ALICE[:4] + encode_int(0) + encode_int(0) + AFTER
    return step * ((KEY_SIZE_MAX - 96) // len(step))


def bulk(path: bytes, count: int) -> bytes:
    proto = pb.ArrayMutation()
    insert = proto.ops.add().insert
    insert.place.path = path
    insert.values.extend([to_proto(None)] * count)
    return proto.SerializeToString()


def check(order: PieceOrder, keys: list[bytes]) -> None:
    held = [key for piece in order for key in piece.span.all_keys()]
    assert held == sorted(keys)
    assert order.length == len(keys)
    for index in range(0, len(held), 7):
        piece, at = order.at(index)
        assert piece.span.key(at) == held[index]
        assert order.index(piece) + at == order.bisect(held[index]) == index
    parts = [(piece, at) for piece, low, high in order.between(3, 12) for at in range(low, high)]
    assert [piece.span.key(at) for piece, at in parts] == held[3:12]


@given(st.randoms(use_true_random=False), st.integers(1, 60))
@settings(max_examples=60)
def test_pieces_are_split_where_keys_of_others_lie_between_theirs(chance: random.Random, count: int) -> None:
    pieces: list[Piece] = []
    order = PieceOrder(lambda _, rest: pieces.append(rest))
    for lamport in range(1, count):
        run = b"\x81abcd\x81"
        if pieces and chance.random() < 0.6:
            other = chance.choice(pieces)
            run = (
                other.span.run + encode_int(other.span.offset + chance.randrange(other.count)) + AFTER + b"\x82abcd\x81"
            )
        size = chance.choice([1, 3, 40])
        span = Span(run, chance.randrange(-50, 50), size, Stamp(lamport, ALICE, lamport))
        piece = Piece(span.stamp, 0, span, list(range(size)))
        pieces.append(piece)
        order.add(piece)
        if chance.random() < 0.2:
            gone = chance.choice(pieces)
            pieces.remove(gone)
            order.remove(gone)
    check(order, [key for piece in pieces for key in piece.span.all_keys()])
    for piece in order:
        values = list(piece.winners())
        assert values == list(range(values[0], values[0] + piece.count)), "a split keeps values with their elements"


def test_chunks_stay_small() -> None:
    order = PieceOrder(lambda _, rest: None)
    spans = [Span(b"\x81abcd\x81", 2 * number, 1, Stamp(1, ALICE, 0)) for number in range(5 * CHUNK_MAX)]
    chance = random.Random(1)
    for span in chance.sample(spans, len(spans)):
        order.add(Piece(span.stamp, span.offset, span, [0]))
    check(order, [span.key(0) for span in spans])
    assert all(len(chunk.pieces) <= CHUNK_MAX for chunk in order._chunks)
    for piece in list(order)[:-10]:
        order.remove(piece)
    check(order, [span.key(0) for span in spans[-10:]])


def test_thousands_of_elements_at_long_keys_take_memory_in_proportion_to_their_bytes() -> None:
    """20 mutations of 135 kB took over 1 GB: each element had a key of its own, of nearly a KiB."""
    path = deep_path()
    mutations = [bulk(path, 4096) for _ in range(8)]
    received = sum(map(len, mutations))
    tracemalloc.start()
    try:
        state = ARRAY.initial()
        for seq, mutation in enumerate(mutations, start=1):
            ARRAY.apply(state, mutation, Stamp(seq + 9, ALICE, seq))
        applied, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert applied < 5 * received
    assert peak < 10 * received
    assert len(list(state.order)) == 8
    again = ARRAY.restore(ARRAY.snapshot(state))
    assert len(list(again.order)) == 8, "what is read from a snapshot is in pieces, too"
    assert len({id(piece.span.run) for piece in again.order}) <= 8


@pytest.mark.parametrize("path", [b"", deep_path()], ids=["short", "long"])
def test_a_change_of_one_element_splits_its_piece_and_no_other(path: bytes) -> None:
    state = ARRAY.initial()
    ARRAY.apply(state, bulk(path, 1000), Stamp(9, ALICE, 1))
    ARRAY.apply(state, bulk(path, 1000), Stamp(10, ALICE, 2))
    plain: list[Any] = [None] * 2000
    ARRAY.apply(state, ARRAY.set(state, 500, "set", feed=BOB), Stamp(11, BOB, 0))
    plain[500] = "set"
    ARRAY.apply(state, ARRAY.move(state, 500, 3, feed=BOB), Stamp(12, BOB, 1))
    plain.insert(3, plain.pop(500))
    ARRAY.apply(state, ARRAY.delete(state, 100, 1700, feed=BOB), Stamp(13, BOB, 2))
    del plain[100:1800]
    ARRAY.apply(state, ARRAY.insert(state, 50, ["new"], feed=BOB), Stamp(14, BOB, 3))
    plain.insert(50, "new")
    assert ARRAY.value(state) == plain
    assert len(list(state.order)) < 10
    restored: ArrayState = ARRAY.restore(ARRAY.snapshot(state))
    assert ARRAY.value(restored) == plain
    assert len(list(restored.order)) == len(list(state.order))


def test_more_elements_are_deleted_at_once_than_an_operation_names() -> None:
    state = ARRAY.initial()
    for seq in range(2):
        ARRAY.apply(state, bulk(b"", ELEMENTS_MAX), Stamp(9 + seq, ALICE, seq))
    mutation = ARRAY.delete(state, 1, 2 * ELEMENTS_MAX - 1, feed=BOB)
    assert len(pb.ArrayMutation.FromString(mutation).ops) == 2
    ARRAY.apply(state, mutation, Stamp(20, BOB, 0))
    assert ARRAY.value(state) == [None]
