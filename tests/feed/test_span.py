"""A span's bytes: they come back as they were, and no size in them is believed."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed import span as spans
from antiphon.feed.block import BodyState
from antiphon.feed.chain import verify_span
from antiphon.feed.header import ENTRY_SIZE, HASH_SIZE, HEADER_SIZE, Entry
from antiphon.feed.limits import BODY_SIZE_MAX, SPAN_BLOCKS_MAX, SPAN_HEADERS_SIZE_MAX, SPAN_SIZE_MAX
from antiphon.feed.span import FIXED_SIZE, Span, decode
from antiphon.testing.feed_strategies import histories
from antiphon.testing.spans import Forged, SpanWriter, hostile_span, joined, on_the_wire

FIRST_AT, COUNT_AT, ADVANCE_AT, BODIES_AT = 69, 77, 81, 85  # in the fixed part
BODY_SIZE_AT = FIXED_SIZE + 44  # of the first header
ENTRIES_AT = FIXED_SIZE + 80


def patched(data: bytes, at: int, kind: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(kind, changed, at, value)
    return bytes(changed)


@st.composite
def partial_spans(draw: st.DrawFn) -> Span:
    """Spans of which some bodies are left out or erased."""
    span = joined(*draw(histories()))
    states = draw(st.lists(st.sampled_from(BodyState), min_size=span.count, max_size=span.count))
    bodies = [
        body if state is BodyState.PRESENT else None for body, state in zip(span.body_list(), states, strict=True)
    ]
    return span.with_bodies(bodies, bytes(states))


@given(partial_spans())
def test_a_span_comes_back_as_it_was_sent(span: Span) -> None:
    assert decode(span.encode()) == on_the_wire(span)


@given(partial_spans(), st.binary(min_size=40, max_size=40))
def test_a_span_comes_back_as_it_was_stored(span: Span, key: bytes) -> None:
    stored = span.encode_stored(key)

    assert decode(stored[:-4]) == span
    assert len(stored) <= SPAN_SIZE_MAX


@given(partial_spans(), st.booleans())
def test_every_truncation_and_every_addition_is_refused(span: Span, stored: bool) -> None:
    data = span.encode_stored(b"key")[:-4] if stored else span.encode()

    for size in {*range(0, len(data), 1 + len(data) // 97), len(data) - 1}:
        with pytest.raises(InvalidInput):
            decode(data[:size])
    with pytest.raises(BadEncoding):
        decode(data + b"\0")


@given(st.binary(max_size=600))
def test_rubbish_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode(data)
    with pytest.raises(InvalidInput):
        decode(spans.MAGIC + data.ljust(FIXED_SIZE, b"\0"))


@given(partial_spans(), st.sampled_from([COUNT_AT, ADVANCE_AT, BODIES_AT]), st.integers(0, 2**32 - 1))
def test_a_lie_about_a_size_is_refused(span: Span, at: int, value: int) -> None:
    data = span.encode()
    lie = patched(data, at, "<I", value)

    if lie != data:
        with pytest.raises(InvalidInput):
            decode(lie)


@given(histories(), st.integers(0, 2**32 - 1))
def test_a_lie_about_a_body_in_a_header_is_refused(history: list[Span], value: int) -> None:
    data = history[0].encode()
    lie = patched(data, BODY_SIZE_AT, "<I", value)

    if lie != data:
        with pytest.raises(InvalidInput):
            decode(lie)


@given(histories(), st.integers(0, 65535))
def test_a_lie_about_entries_in_a_header_is_refused(history: list[Span], value: int) -> None:
    data = history[0].encode()
    lie = patched(data, ENTRIES_AT, "<H", value)

    if lie != data:
        with pytest.raises(BadEncoding, match="do not add up"):
            decode(lie)


def test_positions_stay_below_two_to_the_63(alice: KeyPair, party: PublicKey) -> None:
    last = 2**63 - 3
    span = hostile_span(alice, party, [Forged(seq=0), Forged(seq=0)], first=last)

    assert decode(span.encode()).end == 2**63 - 1
    for first in (last + 1, last + 2, 2**63, 2**64 - 1):
        with pytest.raises(BadEncoding, match="begin as a span"):
            decode(patched(span.encode(), FIRST_AT, "<Q", first))


@pytest.mark.parametrize(("at", "value"), [(0, ord("x")), (3, ord("2")), (4, 4), (4, 128)])
def test_another_magic_version_or_flag_is_refused(writer: SpanWriter, at: int, value: int) -> None:
    with pytest.raises(BadEncoding, match="version 1"):
        decode(patched(writer.write().encode(), at, "<B", value))


def test_a_head_covers_so_many_blocks_and_no_more(alice: KeyPair, party: PublicKey) -> None:
    most = hostile_span(alice, party, [Forged()] * SPAN_BLOCKS_MAX)

    assert decode(most.encode()).count == SPAN_BLOCKS_MAX
    with pytest.raises(TooLarge, match="a signed head covers"):
        decode(hostile_span(alice, party, [Forged()] * (SPAN_BLOCKS_MAX + 1)).encode())
    with pytest.raises(TooLarge, match="a signed head covers"):
        decode(patched(Span(party, alice.key, 0, bytes(32), bytes(64), b"", b"", b"").encode(), COUNT_AT, "<I", 0))


def test_a_head_covers_so_many_bytes_of_headers_and_no_more(alice: KeyPair, party: PublicKey) -> None:
    entries = tuple(Entry(at.to_bytes(32, "big"), 1, 1, bytes(32)) for at in range(4096))
    more = (SPAN_HEADERS_SIZE_MAX - HEADER_SIZE - 4096 * ENTRY_SIZE) // HEADER_SIZE

    assert decode(hostile_span(alice, party, [Forged(advance=entries), *[Forged()] * more]).encode()).count == more + 1
    with pytest.raises(TooLarge):
        decode(hostile_span(alice, party, [Forged(advance=entries), *[Forged()] * (more + 1)]).encode())


def test_a_body_above_the_limit_is_refused_even_if_it_is_left_out(alice: KeyPair, party: PublicKey) -> None:
    fits = hostile_span(alice, party, [Forged(body_size=BODY_SIZE_MAX)]).without_bodies()
    above = hostile_span(alice, party, [Forged(body_size=BODY_SIZE_MAX + 1)]).without_bodies()

    assert decode(fits.encode()).count == 1
    with pytest.raises(TooLarge, match="a body above"):
        decode(above.encode())


def test_what_would_not_fit_on_the_disk_with_hashes_is_refused(alice: KeyPair, party: PublicKey) -> None:
    """On the wire it is below the limit; stored, with hashes, it would be above it and could not be read again."""
    bodies = [bytes(BODY_SIZE_MAX)] * 7
    rest = SPAN_SIZE_MAX - FIXED_SIZE - sum(map(len, bodies)) - 8 * (HEADER_SIZE + HASH_SIZE + 1)
    fits = hostile_span(alice, party, [Forged(body=body) for body in [*bodies, bytes(rest)]])
    above = hostile_span(alice, party, [Forged(body=body) for body in [*bodies, bytes(rest + 1)]])

    assert decode(fits.encode()) == on_the_wire(fits)
    assert decode(fits.encode_stored(b"key")[:-4]) == fits
    assert len(above.encode()) < SPAN_SIZE_MAX
    with pytest.raises(TooLarge, match="with every hash and body"):
        decode(above.encode())


def test_bodies_that_could_never_all_come_in_are_refused(alice: KeyPair, party: PublicKey) -> None:
    span = hostile_span(alice, party, [Forged(body_size=BODY_SIZE_MAX)] * 8).without_bodies()

    with pytest.raises(TooLarge, match="with every hash and body"):
        decode(span.encode())


def test_states_have_one_form_only(writer: SpanWriter) -> None:
    span = writer.write(2)

    with pytest.raises(BadEncoding, match="not canonical"):
        decode(replace(span, states=bytes(2)).encode())
    with pytest.raises(BadEncoding, match="not canonical"):
        decode(replace(span, states=b"\0\3").encode())


@given(partial_spans(), st.data())
def test_a_tail_holds_the_blocks_from_there_on_under_the_same_head(span: Span, data: st.DataObject) -> None:
    at = data.draw(st.integers(span.first, span.end - 1))

    tail = span.tail(at)

    assert (tail.first, tail.end, tail.signature) == (at, span.end, span.signature)
    assert [tail.block(i) for i in range(tail.count)] == [span.block(i) for i in range(at - span.first, span.count)]
    assert verify_span(decode(tail.encode())) == tail
    assert span.tail(span.first) == span


@given(histories(spans_max=3))
def test_joined_spans_hold_the_blocks_of_both_under_the_latter_head(history: list[Span]) -> None:
    whole = joined(*history)

    assert [whole.block(i) for i in range(whole.count)] == [s.block(i) for s in history for i in range(s.count)]
    assert verify_span(decode(whole.encode())) == whole
    assert whole.tail(history[-1].first) == history[-1]


@given(partial_spans(), st.data())
def test_a_tail_and_its_rest_join_to_the_whole(span: Span, data: st.DataObject) -> None:
    one = data.draw(st.integers(span.first, span.end - 1))
    two = data.draw(st.integers(one, span.end - 1))

    assert span.tail(one).tail(two) == span.tail(two)


@given(partial_spans())
def test_without_bodies_only_bodies_are_missing(span: Span) -> None:
    bare = span.without_bodies()

    assert bare.bodies == b""
    assert (bare.headers, bare.advance, bare.hashes) == (span.headers, span.advance, span.hashes)
    assert bare.body_list() == [None] * span.count
    for before, after in zip(span.states or bytes(span.count), bare.states, strict=True):
        assert after == (BodyState.ERASED if before == BodyState.ERASED else BodyState.LEFT_OUT)
    assert bare.whole_size - bare.count == joined(span).whole_size - len(span.states)


@given(partial_spans())
def test_columns_say_what_blocks_say(span: Span) -> None:
    blocks = [span.block(i) for i in range(span.count)]

    assert span.columns["seq"].tolist() == [block.seq for block in blocks] == list(range(span.first, span.end))
    assert span.columns["lamport"].tolist() == [block.lamport for block in blocks]
    assert span.present.tolist() == [block.body is not None for block in blocks]
    assert span.body_list() == [block.body for block in blocks]
    assert int(np.diff(span.advance_offsets).sum()) == sum(len(block.advance) for block in blocks) * ENTRY_SIZE


@given(partial_spans(), st.binary(min_size=40, max_size=40), st.data())
def test_the_stored_checksum_covers_every_byte_and_the_key(span: Span, key: bytes, data: st.DataObject) -> None:
    stored = span.encode_stored(key)
    other = bytearray(key)
    other[data.draw(st.integers(0, 39))] ^= data.draw(st.integers(1, 255))

    assert stored[:-4] == b"".join(span._parts(hashes=True))
    assert stored[-4:] != span.encode_stored(bytes(other))[-4:]
