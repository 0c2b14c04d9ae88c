"""The chain: a span is verified by its own bytes and the hash before it, with or without bodies, in one party only."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given, strategies as st

from antiphon.core.codec import Reader
from antiphon.core.errors import AntiphonError, BadSignature, BrokenChain
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.block import BodyState
from antiphon.feed.chain import HEAD_TAG, Head, sign_head, verify_span
from antiphon.feed.header import NO_HASH
from antiphon.feed.span import BLOCK_TAG, Span, decode
from antiphon.testing.feed_strategies import histories
from antiphon.testing.spans import SpanWriter, joined, key_pair, on_the_wire


@given(histories())
def test_each_span_is_verified_by_the_hash_before_it_alone(history: list[Span]) -> None:
    previous = NO_HASH
    for span in history:
        received = decode(span.encode())

        checked = verify_span(received)

        assert received.previous == previous
        assert checked == span
        previous = checked.hash_at(checked.end - 1)


def test_the_hash_is_the_documented_one(writer: SpanWriter, alice: KeyPair, party: PublicKey) -> None:
    span = writer.write(2)

    first = sha256(BLOCK_TAG + party + alice.key + NO_HASH + span.header_bytes(0)).digest()
    second = sha256(BLOCK_TAG + party + alice.key + first + span.header_bytes(1)).digest()

    assert b"antiphon.block.1" + bytes(48) == BLOCK_TAG
    assert span.hashes == first + second
    assert span.signature == alice.sign(HEAD_TAG + party + alice.key + (2).to_bytes(8, "little") + second)


@given(histories(), st.data())
def test_bodies_may_be_left_out_or_erased(history: list[Span], data: st.DataObject) -> None:
    span = joined(*history)
    states = data.draw(st.lists(st.sampled_from(BodyState), min_size=span.count, max_size=span.count))
    bodies = [
        body if state is BodyState.PRESENT else None for body, state in zip(span.body_list(), states, strict=True)
    ]

    partial = verify_span(decode(span.with_bodies(bodies, bytes(states)).encode()))

    assert partial.hashes == span.hashes
    assert [partial.block(i).body for i in range(span.count)] == bodies


@given(histories(), st.booleans(), st.data())
def test_one_flipped_bit_anywhere_is_refused(history: list[Span], bare: bool, data: st.DataObject) -> None:
    """Nothing in a span's bytes is without meaning, so no flip is left unseen."""
    span = joined(*history)
    encoded = bytearray((span.without_bodies() if bare else span).encode())
    at = data.draw(st.integers(0, 8 * len(encoded) - 1))
    encoded[at // 8] ^= 1 << at % 8

    with pytest.raises(AntiphonError):
        verify_span(decode(bytes(encoded)))


def test_each_single_bit_of_a_small_span_is_refused(writer: SpanWriter) -> None:
    encoded = writer.write(2, size=3).encode()

    for at in range(8 * len(encoded)):
        changed = bytearray(encoded)
        changed[at // 8] ^= 1 << at % 8
        with pytest.raises(AntiphonError):
            verify_span(decode(bytes(changed)))


def test_blocks_are_worthless_in_another_party(alice: KeyPair, party: PublicKey) -> None:
    """Rule 4: a member of two parties cannot be made to serve one party's blocks in the other."""
    other = key_pair("other party").key
    span = SpanWriter(alice, party).write(3)

    with pytest.raises(BadSignature, match="not signed by the feed's key"):
        verify_span(on_the_wire(replace(span, party=other)))
    with pytest.raises(BrokenChain, match="not those of the headers"):
        verify_span(replace(span, party=other))
    assert SpanWriter(alice, other).write(3).hashes != span.hashes


def test_blocks_are_worthless_in_another_feed(writer: SpanWriter, bob: KeyPair) -> None:
    with pytest.raises(BadSignature):
        verify_span(on_the_wire(replace(writer.write(3), feed=bytes(bob.key))))


def test_another_hash_before_it_breaks_the_chain(writer: SpanWriter) -> None:
    writer.write(2)
    span = writer.write(2)

    with pytest.raises(BadSignature):
        verify_span(on_the_wire(replace(span, previous=b"x" * 32)))


def test_a_body_that_is_not_the_one_named_is_refused_by_its_seq(writer: SpanWriter) -> None:
    writer.write(2)
    span = writer.write(3)
    bodies = span.body_list()
    bodies[1] = bodies[0]

    with pytest.raises(BrokenChain, match="the body of block 3 is not") as raised:
        verify_span(span.with_bodies(bodies, b""))
    assert raised.value.seq == 3
    with pytest.raises(BrokenChain, match="the body of block 3 is not"):
        verify_span(span.with_bodies([None, bodies[1], None], b"\1\0\2"))


def test_hashes_that_are_sent_along_are_not_believed(writer: SpanWriter) -> None:
    span = writer.write(2)

    with pytest.raises(BrokenChain, match="the hashes sent"):
        verify_span(replace(span, hashes=bytes(64)))


@pytest.mark.parametrize("length", [0, 1, 3, 4])
def test_a_head_is_for_one_length_only(writer: SpanWriter, alice: KeyPair, party: PublicKey, length: int) -> None:
    span = writer.write(2)
    moved = replace(span, signature=sign_head(alice, party, length, span.hash_at(1)))

    with pytest.raises(BadSignature):
        verify_span(moved)


def test_a_head_is_signed_for_one_party_and_one_feed(
    writer: SpanWriter, alice: KeyPair, bob: KeyPair, party: PublicKey
) -> None:
    span = writer.write(2)
    head = Head(2, span.hash_at(1), span.signature)

    assert head.signed_by(party, alice.key)
    assert not head.signed_by(party, bob.key)
    assert not head.signed_by(alice.key, alice.key)
    assert not replace(head, length=3).signed_by(party, alice.key)
    assert Head.read(Reader(head.encode(), "head")) == head
