"""The quarantine's list: what was refused and why, once each, bounded, and never unreadable."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import BadEncoding, BadSignature, InvalidInput
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.core.reasons import Reason, because, text_of
from antiphon.feed.store import quarantine
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.quarantine import Refusal
from antiphon.testing.spans import SpanWriter

FEED = b"f" * 32
refusals = st.builds(
    Refusal,
    st.binary(min_size=32, max_size=32),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**63 - 1),
    st.text(max_size=1500),
    st.binary(min_size=32, max_size=32),
)


def refusal(seq: int, reason: str = "wrong") -> Refusal:
    return Refusal(FEED, seq, 1, 1_000, reason)


@given(refusals)
def test_a_refusal_comes_back_with_its_reason_cut_to_a_bound(refused: Refusal) -> None:
    back = Refusal.decode(refused.encode())

    assert replace(back, reason="") == replace(refused, reason="")
    assert refused.reason.startswith(back.reason)
    assert len(back.reason.encode()) > 1020 or back.reason == refused.reason
    assert len(back.reason.encode()) <= 1024
    assert back.digest() == refused.digest()


@given(st.text(min_size=900, max_size=1500))
def test_a_reason_that_is_cut_keeps_its_code(text: str) -> None:
    back = Refusal.decode(refusal(3, because(Reason.CHAIN, text)).encode())

    assert back.code is Reason.CHAIN
    assert len(back.reason.encode()) <= 1024
    assert text.startswith(text_of(back.reason))


@given(refusals, st.data())
def test_a_cut_refusal_is_refused(refused: Refusal, data: st.DataObject) -> None:
    encoded = refused.encode()
    with pytest.raises(BadEncoding):
        Refusal.decode(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


def test_refusals_are_listed_oldest_first(store: FeedStore) -> None:
    for seq in (5, 3, 9):
        store.refuse(refusal(seq))

    listed = store.quarantine()

    assert [entry.seq for entry in listed.refusals] == [5, 3, 9]
    assert listed.refusals[0] == refusal(5)
    assert listed.dropped == 0


def test_the_same_refusal_is_kept_once_whenever_it_comes(store: FeedStore) -> None:
    store.refuse(refusal(5))
    store.refuse(replace(refusal(5), at_ms=2_000))
    store.refuse(refusal(5, "wrong in another way"))
    store.refuse(refusal(6))

    assert [(entry.seq, entry.at_ms) for entry in store.quarantine().refusals] == [(5, 1_000), (5, 1_000), (6, 1_000)]


def test_the_list_is_bounded_and_counts_what_went(store: FeedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "QUARANTINE_ENTRIES_MAX", 4)
    for seq in range(10):
        store.refuse(refusal(seq, f"wrong{'!' * 2000}"))

    listed = store.quarantine()

    assert [entry.seq for entry in listed.refusals] == [6, 7, 8, 9]
    assert listed.dropped == 6
    with store._env.read() as tables:
        transaction, table = tables.raw("quarantine")
        assert transaction.stat(table)["entries"] == 12  # four numbers, digests, sources: no others


def test_a_refusal_that_was_dropped_is_listed_again_when_it_comes_again(
    store: FeedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "QUARANTINE_ENTRIES_MAX", 2)
    for seq in (1, 2, 3, 1):
        store.refuse(refusal(seq, "ä" * 800))

    assert [entry.seq for entry in store.quarantine().refusals] == [3, 1]


def test_the_reason_names_what_is_wrong_in_words(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    with pytest.raises(BadSignature):
        store.ingest(replace(writer.write(2), signature=bytes(64)))

    (entry,) = store.quarantine().refusals

    assert (entry.feed, entry.seq, entry.at_ms) == (alice.key, 1, 1_000)
    assert "the head is not signed by the feed's key; ask another peer" in entry.reason


def test_no_sender_can_make_the_list_unreadable(store: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    """A range at the end of all positions, with a bad signature: its seq must still fit into the list."""
    span = SpanWriter(alice, party).write(2)
    for first in (2**63 - 4, 2**63 - 3, 2**63 - 2, 2**63 - 1):
        with pytest.raises((BadSignature, InvalidInput)):
            store.ingest_bytes(replace(span, first=first).encode())

    assert [entry.seq for entry in store.quarantine().refusals] == [2**63 - 3, 2**63 - 2, 0]


def test_what_a_batch_refuses_is_listed_too(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    begun = writer.write(2)
    other = writer.fork()
    store.ingest(joined := begun.joined(writer.write(2)))
    other.write(1)

    with pytest.raises(BadSignature), store.batch() as batch:
        batch.ingest(replace(joined, signature=bytes(64)))
    with pytest.raises(Exception, match="differs from the one held here"), store.batch() as batch:
        batch.ingest(other.write(1))

    assert [(entry.feed, entry.seq) for entry in store.quarantine().refusals] == [(alice.key, 3), (alice.key, 3)]
