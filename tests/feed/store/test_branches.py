"""Branches in the store: what must come with them, and what is known of their feed when they come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import permutations
from pathlib import Path

import pytest

from antiphon.core.errors import Equivocation, MissingBlocks, RefusedBlocks
from antiphon.core.reasons import Reason
from antiphon.feed.encoder import Draft
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.fork import Fork
from antiphon.feed.header import NO_END, Kind
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.ingest import Outcome
from antiphon.feed.store.tables import Tables
from antiphon.testing.spans import SpanWriter, key_pair

PARTY, PAIR = key_pair("party").key, key_pair("mallory")
FEED = bytes(PAIR.key)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FeedStore]:
    with FeedStore.open(tmp_path, durable=False) as opened:
        yield opened


def write(writer: SpanWriter, kind: Kind) -> Span:
    (span,) = writer.extend([Draft(kind, bytes(16), b"a body of some size")])
    return span


def test_a_branch_that_shows_a_fork_and_lacks_bodies_is_refused_and_the_fork_is_known(store: FeedStore) -> None:
    """It counted as taken, though nothing of it was kept: whoever had asked for it believed that it had come."""
    writer = SpanWriter(PAIR, PARTY)
    store.ingest(write(writer, Kind.CREDENTIAL))
    twin = writer.fork()
    store.ingest(write(writer, Kind.CREDENTIAL))
    branch = write(twin, Kind.CREDENTIAL)
    with pytest.raises(RefusedBlocks, match="without the bodies") as refused:
        store.ingest_branch([branch.without_bodies()])
    assert refused.value.code is Reason.NO_BODY
    assert store.fork(FEED) is not None
    assert store.branches(FEED) == []
    store.ingest_branch([branch])
    assert [found.hashes for found in store.branches(FEED)] == [branch.hashes]


@pytest.mark.parametrize("held", [Kind.CREDENTIAL, Kind.MUTATION])
@pytest.mark.parametrize("first", [Kind.CREDENTIAL, Kind.MUTATION])
def test_credentials_and_geneses_are_kept_of_every_branch(store: FeedStore, held: Kind, first: Kind) -> None:
    """A writer may sign two first blocks. If one was of data, control on the other branch was kept without bodies."""
    store.ingest(write(SpanWriter(PAIR, PARTY, 1), held))
    twin = SpanWriter(PAIR, PARTY, 2)
    kinds = [first, Kind.MUTATION, Kind.CREDENTIAL, Kind.GENESIS]
    spans = [write(twin, kind) for kind in kinds]
    for span in reversed(spans):  # a branch comes from its end on
        store.ingest_branch([span])
    kept = {found.first: not found.states for found in store.branches(FEED)}
    assert kept == {at: kind is not Kind.MUTATION for at, kind in enumerate(kinds)}
    assert store.first_kind(FEED) is held


def test_a_branch_without_its_credentials_is_refused_before_its_beginning_is_known(store: FeedStore) -> None:
    writer = SpanWriter(PAIR, PARTY)
    first, later = write(writer, Kind.CREDENTIAL), write(writer, Kind.CREDENTIAL)
    with pytest.raises(RefusedBlocks, match="without the bodies"):
        store.ingest_branch([later.without_bodies()])
    store.ingest_branch([later])
    store.ingest_branch([first])
    assert all(not found.states for found in store.branches(FEED))


def test_a_credential_in_a_branch_is_not_erased(store: FeedStore) -> None:
    """An erasure names a seq of a data feed. On its branch of control there is an act at that seq."""
    store.ingest(write(SpanWriter(PAIR, PARTY, 1), Kind.MUTATION))
    twin = SpanWriter(PAIR, PARTY, 2)
    store.ingest_branch([write(twin, Kind.CREDENTIAL), write(twin, Kind.GENESIS)])
    assert store.erase_in_branches(FEED, [0, 1]) == 1
    assert {found.first: bool(found.states) for found in store.branches(FEED)} == {0: False, 1: True}


def test_a_branch_that_was_kept_is_no_news_when_it_comes_again(store: FeedStore) -> None:
    """Each time it counted as a new fork, so that a session asked for it again at once, without end."""
    writer = SpanWriter(PAIR, PARTY)
    store.ingest(write(writer, Kind.CREDENTIAL))
    twin = writer.fork()
    store.ingest(write(writer, Kind.CREDENTIAL))
    branch = write(twin, Kind.CREDENTIAL)
    assert [done.outcome for done in store.ingest_branch([branch])] == [Outcome.FORK]
    assert [done.outcome for done in store.ingest_branch([branch])] == [Outcome.KNOWN]
    longer = write(twin, Kind.CREDENTIAL)
    assert [done.outcome for done in store.ingest_branch([longer])] == [Outcome.STORED]


@pytest.mark.parametrize("kind", [Kind.CREDENTIAL, Kind.MUTATION], ids=["control", "data"])
@pytest.mark.parametrize("longer_first", [True, False])
def test_of_two_spans_that_end_alike_the_longer_one_is_kept(store: FeedStore, kind: Kind, longer_first: bool) -> None:
    """Spans are kept by their last block. The first to come stayed, or a shorter one with all bodies replaced it."""
    writer = SpanWriter(PAIR, PARTY)
    store.ingest(write(writer, kind))
    twin = writer.fork()
    store.ingest(write(writer, kind))
    last = Kind.CREDENTIAL if kind is Kind.CREDENTIAL else Kind.GENESIS
    (longer,) = twin.extend([Draft(one, bytes(16), b"a body of some size") for one in (kind, kind, last)])
    shorter = longer.tail(longer.end - 1)
    for span in (longer, shorter) if longer_first else (shorter, longer):
        store.ingest_branch([span])
    (found,) = store.branches(FEED)
    assert found.hashes == longer.hashes
    assert store.branches(FEED, {shorter.hash_at(shorter.end - 1): shorter.first}) == [found]
    assert store.branches(FEED, {longer.hash_at(longer.end - 1): longer.first}) == []


def test_a_longer_span_has_the_bodies_of_a_shorter_one_and_an_erased_one_stays_erased(store: FeedStore) -> None:
    writer = SpanWriter(PAIR, PARTY)
    (whole,) = writer.extend([Draft(Kind.GENESIS, bytes(16), bytes([n]) * 20) for n in range(4)])
    store.ingest_branch([whole.tail(2)])
    store.erase_in_branches(FEED, [3])
    store.ingest_branch([whole])
    (found,) = store.branches(FEED)
    assert found.body_list() == [*whole.body_list()[:3], None]


def test_what_is_missing_of_a_feed_is_found_by_reading_each_span_once(
    store: FeedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer may tell of a thousand blocks, all of them in one span of some MB."""
    writer = SpanWriter(PAIR, PARTY)
    spans = [writer.write(5), writer.write(5)]
    twin = writer.fork()
    (begun, branch), missing = [twin.write(2) for _ in range(2)], twin.write(2)
    for span in spans:
        store.ingest(span)
    store.ingest_branch([branch])
    here = [(seq, span.hash_at(seq)) for span in (*spans, branch) for seq in range(span.first, span.end)]
    gone = [(seq, span.hash_at(seq)) for span in (begun, missing) for seq in range(span.first, span.end)]
    lies = [(2, bytes(32)), (7, spans[0].hash_at(2))]
    read: list[int] = []
    span_at = Tables.span_at

    def counted(tables: Tables, record: FeedRecord, seq: int) -> Span:
        read.append(seq)
        return span_at(tables, record, seq)

    monkeypatch.setattr(Tables, "span_at", counted)
    assert store.missing(FEED, [*gone, *here, *lies]) == sorted([*gone, *lies])
    assert len(read) <= len(spans)
    assert store.missing(bytes(32), gone) == gone


@pytest.mark.parametrize("common", [0, 1, 2])
def test_two_blocks_after_the_same_one_are_a_fork_in_any_order(tmp_path: Path, common: int) -> None:
    """Whether they are kept as branches or came as history, and whether what is before them is here."""
    writer = SpanWriter(PAIR, PARTY)
    begun = [write(writer, Kind.CREDENTIAL) for _ in range(common)]
    twin = writer.fork()
    one, other = [write(writer, Kind.CREDENTIAL) for _ in range(2)], [write(twin, Kind.CREDENTIAL) for _ in range(2)]
    for number, order in enumerate(permutations([*begun, one[0], *other])):
        for history in (False, True):
            with FeedStore.open(tmp_path / f"{number} {history}", durable=False) as store:
                for span in order:
                    if history and span not in other:
                        with suppress(Equivocation, MissingBlocks):
                            store.ingest(span)
                    store.ingest_branch([span])
                record, evidence = store.record(FEED), store.fork(FEED)
                assert evidence is not None
                assert Fork.decode(evidence).seq == record.end == common
                assert store.ingest_branch([other[0]])[0].outcome is not Outcome.FORK


def test_a_fork_that_was_known_before_the_history_does_not_divide_a_batch(store: FeedStore) -> None:
    writer = SpanWriter(PAIR, PARTY)
    batch = writer.write(3, atomic=True)
    whole, other = SpanWriter(PAIR, PARTY), SpanWriter(PAIR, PARTY)
    assert whole.write(3, atomic=True).hashes == batch.hashes
    parts = [other.write(3, atomic=True), write(whole, Kind.GENESIS), write(other.fork(), Kind.GENESIS)]
    store.ingest_branch([parts[1]])
    assert store.record(FEED).end == NO_END
    store.ingest_branch([parts[2]])
    assert store.record(FEED).end == 3
    store.ingest(batch)
    assert (store.record(FEED).valid_length, store.record(FEED).length) == (3, 3)
