"""Chunks: where they end follows from the bytes alone, and an edit moves only what is near it."""

from __future__ import annotations

import io
import random
from hashlib import sha256

import pytest
from hypothesis import given, strategies as st

from antiphon.core.cid import Cid
from antiphon.core.errors import InvalidInput
from antiphon.snapshot.chunks import FILE_CHUNKS, ITEM_CHUNKS, ChunkRule, chunks, cut, gear

RULES = pytest.mark.parametrize("rule", [ITEM_CHUNKS, FILE_CHUNKS])
TINY = ChunkRule(64, 100, 400)


def table() -> list[int]:
    """From the description of the format, not from the code."""
    return [int.from_bytes(sha256(b"antiphon.gear.v1" + bytes([byte])).digest()[:4], "little") for byte in range(256)]


def plain_cut(data: bytes, rule: ChunkRule) -> list[bytes]:
    """The same, byte by byte."""
    values, pieces, start, hashed = table(), [], 0, 0
    for at, byte in enumerate(data):
        hashed = ((hashed << 1) + values[byte]) % (1 << 32)
        size = at + 1 - start
        if (size >= rule.size_min and hashed < (1 << 32) // rule.size_cut) or size == rule.size_max:
            pieces.append(data[start : at + 1])
            start = at + 1
    return [*pieces, data[start:]] if start < len(data) else pieces


class Dribble(io.RawIOBase):
    """A stream that gives as much at a time as it likes."""

    def __init__(self, data: bytes, chance: random.Random) -> None:
        self._data, self._at, self._chance = data, 0, chance

    def read(self, size: int = -1) -> bytes:
        piece = self._data[self._at : self._at + self._chance.randrange(1, min(size, 5000) + 1)]
        self._at += len(piece)
        return piece


def test_the_hash_is_the_sum_over_the_last_32_bytes() -> None:
    data, values = random.Random(1).randbytes(300), table()
    hashes = gear(data).tolist()
    assert hashes == [
        sum(values[data[at - age]] << age for age in range(min(32, at + 1))) % (1 << 32) for at in range(300)
    ]


@given(st.binary(max_size=3000), st.integers(0, 3), st.randoms(use_true_random=False))
def test_chunks_are_those_of_the_plain_rule_however_they_are_read(
    data: bytes, zeros: int, chance: random.Random
) -> None:
    data = data + bytes(zeros * 500) + data
    pieces = plain_cut(data, TINY)
    assert cut(data, TINY) == pieces
    assert list(chunks(io.BytesIO(data), TINY, read_size=chance.randrange(1, 4000))) == pieces
    assert list(chunks(Dribble(data, chance), TINY)) == pieces  # type: ignore[arg-type]


@RULES
def test_large_streams_are_cut_as_in_memory(rule: ChunkRule) -> None:
    data = random.Random(2).randbytes(3 << 20)
    pieces = cut(data, rule)
    assert b"".join(pieces) == data
    assert pieces == list(chunks(io.BytesIO(data), rule, read_size=100_000)) == plain_cut(data, rule)


@RULES
def test_sizes_are_what_they_should_be(rule: ChunkRule) -> None:
    """About four times the least size, never outside of the bounds but for the last."""
    data = random.Random(3).randbytes(1000 * rule.size_min)
    sizes = [len(piece) for piece in cut(data, rule)]
    assert all(rule.size_min <= size <= rule.size_max for size in sizes[:-1])
    assert 0.85 < sum(sizes) / len(sizes) / (4 * rule.size_min) < 1.15
    assert sum(size == rule.size_max for size in sizes) < len(sizes) / 40


@RULES
@pytest.mark.parametrize("kind", ["zeros", "text", "numbers"])
def test_dull_bytes_are_cut_within_the_bounds(rule: ChunkRule, kind: str) -> None:
    data = {
        "zeros": bytes(1 << 20),
        "text": b"the quick brown fox jumps over the lazy dog. " * 20_000,
        "numbers": b"".join(number.to_bytes(4, "little") for number in range(1 << 18)),
    }[kind]
    pieces = cut(data, rule)
    assert b"".join(pieces) == data
    assert all(rule.size_min <= len(piece) <= rule.size_max for piece in pieces[:-1])


@RULES
@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_an_insertion_changes_few_chunks(rule: ChunkRule, place: float) -> None:
    data = random.Random(4).randbytes(300 * rule.size_min)
    at = int(place * len(data))
    before = {Cid.of(piece) for piece in cut(data, rule)}
    after = {Cid.of(piece) for piece in cut(data[:at] + b"inserted" + data[at:], rule)}
    assert len(after - before) <= 3


def test_a_stream_of_text_is_refused() -> None:
    with pytest.raises(InvalidInput, match="binary stream"):
        list(chunks(io.StringIO("text"), ITEM_CHUNKS))  # type: ignore[arg-type]


def test_a_stream_that_has_nothing_yet_is_refused() -> None:
    """One that does not block says None for "later". Taken for the end, that would cut a file short."""

    class Later(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(10) if not self.tell() else None  # type: ignore[return-value]

    with pytest.raises(InvalidInput, match="that blocks"):
        list(chunks(Later(bytes(100)), FILE_CHUNKS))
