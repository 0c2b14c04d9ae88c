"""A block by itself: its stamp, its entry in other feeds, and its message."""

from __future__ import annotations

from antiphon.core.keys import KeyPair
from antiphon.core.stamp import Stamp
from antiphon.feed.block import BodyState
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Entry, Kind
from antiphon.feed.limits import SALT_SIZE
from antiphon.testing.spans import SpanWriter


def test_a_block_names_itself_by_stamp_and_entry(writer: SpanWriter, alice: KeyPair) -> None:
    span = writer.write(2)

    block = span.block(1)

    assert block.stamp == Stamp(2, alice.key, 1)
    assert block.entry == Entry(alice.key, 1, 2, span.hash_at(1))


def test_a_message_is_the_body_without_its_salt(writer: SpanWriter) -> None:
    (span,) = writer.extend([Draft(Kind.GENESIS, b"i" * 16, b"hello"), Draft(Kind.CHANGE, b"j" * 16, b"")])

    first, second = span.block(0), span.block(1)

    assert (first.kind, first.item, first.message) == (Kind.GENESIS, b"i" * 16, b"hello")
    assert (second.kind, second.item, second.message) == (Kind.CHANGE, b"j" * 16, b"")
    assert first.body is not None
    assert len(first.body) == SALT_SIZE + 5


def test_a_body_that_is_not_here_is_none_and_its_hash_stays(writer: SpanWriter) -> None:
    span = writer.write()

    block = span.without_bodies().block(0)

    assert (block.body, block.message, block.state) == (None, None, BodyState.LEFT_OUT)
    assert block.body_hash == span.block(0).body_hash
