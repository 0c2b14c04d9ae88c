"""A liar cannot flush the quarantine: what it hands in displaces its own entries, and nobody else's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.core.errors import BadSignature, Equivocation
from antiphon.feed.limits import QUARANTINE_ENTRIES_MAX, QUARANTINE_FEED_MAX, QUARANTINE_SOURCE_MAX
from antiphon.feed.store.feed_store import FeedStore
from antiphon.testing.spans import SpanWriter, key_pair

PARTY = key_pair("party").key
LIAR, HONEST = bytes(key_pair("liar").key), bytes(key_pair("honest").key)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FeedStore]:
    with FeedStore.open(tmp_path / "feeds", durable=False) as made:
        yield made


def invalid(store: FeedStore, source: bytes, feed: str, first: int = 0) -> None:
    """Hand in a range whose head nobody signed."""
    span = SpanWriter(key_pair(feed), PARTY).write()
    with pytest.raises(BadSignature):
        store.ingest_bytes(replace(span, first=first, signature=bytes(64)).encode(), source=source)


def fork(store: FeedStore, name: str) -> bytes:
    """Let a writer be caught with two histories."""
    writer = SpanWriter(key_pair(name), PARTY)
    other = writer.fork()
    store.ingest(writer.write())
    with pytest.raises(Equivocation):
        store.ingest(other.write(size=21), source=HONEST)
    return bytes(writer.pair.key)


def test_a_flood_of_invalid_blocks_displaces_only_entries_of_who_sent_it(store: FeedStore) -> None:
    forked = fork(store, "equivocator")
    invalid(store, HONEST, "damaged on the way")
    for number in range(QUARANTINE_ENTRIES_MAX + 100):
        invalid(store, LIAR, f"invented {number}")

    listed = store.quarantine()
    count = Counter(refusal.source for refusal in listed.refusals)
    assert count == {LIAR: QUARANTINE_SOURCE_MAX, HONEST: 1, forked: 1}
    assert listed.dropped == QUARANTINE_ENTRIES_MAX + 100 - QUARANTINE_SOURCE_MAX


def test_a_flood_about_one_feed_leaves_room_for_what_the_same_peer_gave_of_others(store: FeedStore) -> None:
    invalid(store, LIAR, "another")
    for first in range(QUARANTINE_FEED_MAX + 10):
        invalid(store, LIAR, "one", first)

    listed = store.quarantine()
    assert Counter(refusal.feed for refusal in listed.refusals) == {
        bytes(key_pair("another").key): 1,
        bytes(key_pair("one").key): QUARANTINE_FEED_MAX,
    }
    assert listed.dropped == 10


def test_many_liars_together_displace_nobody_who_has_few(store: FeedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.feed.store.quarantine.QUARANTINE_ENTRIES_MAX", 40)
    forked = fork(store, "equivocator")
    for number in range(5):
        invalid(store, HONEST, f"damaged {number}")
    for number in range(20):
        for liar in range(6):
            invalid(store, bytes(key_pair(f"liar {liar}").key), f"invented {liar} {number}")

    count = Counter(refusal.source for refusal in store.quarantine().refusals)
    assert (count[forked], count[HONEST], count.total()) == (1, 5, 40)
    assert {count[bytes(key_pair(f"liar {liar}").key)] for liar in range(6)} <= {5, 6}
