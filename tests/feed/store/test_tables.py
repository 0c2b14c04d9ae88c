"""The tables: small appends are gathered into spans, and a changed byte is told by the block that it belongs to."""

from __future__ import annotations

import pytest

from antiphon.core.errors import CorruptBlock
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.block import BodyState
from antiphon.feed.span import Span
from antiphon.feed.store import tables as tables_module
from antiphon.feed.store.feed_store import FeedStore
from antiphon.testing.spans import SpanWriter, byte_owners, drafts


def stored(span: Span) -> bytes:
    return span.encode_stored(span.feed + span.first.to_bytes(8, "big"))


def test_small_appends_are_gathered_under_the_last_head(store: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    store.create(alice.key, party)
    for _ in range(300):
        store.append(alice, party, drafts(1))

    spans = list(store.spans(alice.key))

    assert 4 < len(spans) < 12
    assert all(len(stored(span)) <= 8 << 10 for span in spans)
    assert [span.first for span in spans[1:]] == [span.end for span in spans[:-1]]
    assert store.verify(alice.key).length == 300


def test_large_appends_stay_as_they_were_signed(store: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    store.create(alice.key, party)
    for count, size in [(1, 10), (2, 9000), (1, 10), (1, 10), (100, 100)]:
        store.append(alice, party, drafts(count, size))

    assert [span.end for span in store.spans(alice.key)] == [1, 3, 5, 105]


def test_gathering_keeps_what_was_erased(store: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    store.create(alice.key, party)
    store.append(alice, party, drafts(2))
    store.erase(alice.key, 0)

    store.append(alice, party, drafts(2))

    assert [block.state for block in store.read(alice.key)] == [BodyState.ERASED, *[BodyState.PRESENT] * 3]
    assert len(list(store.spans(alice.key))) == 1


def test_feeds_do_not_see_each_others_tables(store: FeedStore, alice: KeyPair, bob: KeyPair, party: PublicKey) -> None:
    for pair, count in ((alice, 3), (bob, 5)):
        store.create(pair.key, party)
        store.append(pair, party, drafts(count), seen=[SpanWriter(bob, party).write(1).block(0).entry])

    assert [len(list(store.read(pair.key))) for pair in (alice, bob)] == [3, 5]
    assert list(store.frontier(alice.key)) == [bob.key]
    assert store.frontier(bob.key) == {}
    assert [span.feed for span in store.spans(alice.key)] == [alice.key]


@pytest.mark.parametrize("bare", [False, True], ids=["bodies", "left-out"])
def test_each_changed_byte_is_told_by_its_block(writer: SpanWriter, bob: KeyPair, party: PublicKey, bare: bool) -> None:
    """Where a byte belongs to one block's header, entries, hash or body, that block is named."""
    writer.write(4)
    seen = [SpanWriter(bob, party).write(1).block(0).entry]
    span = writer.write(2, size=5, seen=seen).joined(writer.write(2, size=9, atomic=True))
    if bare:
        whole = span.body_list()
        span = span.with_bodies([whole[0], None, whole[2], None], bytes((0, BodyState.LEFT_OUT, 0, BodyState.ERASED)))
    right = stored(span)
    owners = byte_owners(span)
    assert len(owners) == len(right)

    for at, owner in enumerate(owners):
        for mask in (0x01, 0x80, 0xFF):
            wrong = bytearray(right)
            wrong[at] ^= mask
            with pytest.raises(CorruptBlock) as raised:
                tables_module.decode_span(span.feed, span.first, bytes(wrong))
            assert raised.value.feed == span.feed
            assert span.first <= raised.value.seq < span.end
            if owner is not None:
                assert raised.value.seq == owner, f"byte {at}"
    assert tables_module.decode_span(span.feed, span.first, right) == span


def test_a_span_under_another_key_is_not_taken(store: FeedStore, writer: SpanWriter, bob: KeyPair) -> None:
    """Its bytes are right, and they stand at the wrong place."""
    mine, theirs = writer.write(2, size=9000), SpanWriter(bob, writer.party).write(2, size=9000)
    store.ingest_all([mine, theirs])
    key = theirs.feed + bytes(8)

    def misplace(tables: tables_module.Tables) -> None:
        transaction, table = tables.raw("spans")
        transaction.put(key, stored(mine), db=table)

    store._change(misplace)

    for read in (lambda: store.block(bob.key, 1), lambda: list(store.read(bob.key)), lambda: store.verify(bob.key)):
        with pytest.raises(CorruptBlock, match="labelled as another") as raised:
            read()
        assert raised.value.feed == bob.key
