"""Arrow batches hold what the iterator yields, column for column."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import InvalidInput
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed import arrow
from antiphon.feed.block import Block
from antiphon.feed.header import encode_entries
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.testing.feed_strategies import histories
from antiphon.testing.spans import SpanWriter, drafts, joined, key_pair

FEED = key_pair("alice").key


def row(block: Block) -> dict[str, object]:
    return {
        "seq": block.seq,
        "lamport": block.lamport,
        "kind": int(block.kind),
        "flags": int(block.flags),
        "created_ms": block.created_ms,
        "item": block.item,
        "hash": block.hash,
        "body_hash": block.body_hash,
        "advance": encode_entries(block.advance),
        "state": int(block.state),
        "body": block.body,
    }


def rows(batches: Iterator[pa.RecordBatch]) -> list[dict[str, object]]:
    read = list(batches)
    for batch in read:
        batch.validate(full=True)
    return [row for batch in read for row in batch.to_pylist()]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FeedStore]:
    """Alice's feed with entries, batches, erased bodies and bodies that were left out."""
    party = key_pair("party").key
    writer, other = SpanWriter(key_pair("alice"), party), SpanWriter(key_pair("bob"), party)
    with FeedStore.open(tmp_path_factory.mktemp("mixed"), durable=False) as store:
        for at, size in enumerate([3, 900, 2500, 9000, 10]):
            seen = [other.write(1).block(0).entry]
            store.ingest(writer.write(3, size=size, seen=seen))
            bare = writer.write(4, size=size, atomic=True)
            store.ingest(bare.without_bodies() if at % 2 else bare)
        for seq in (0, 9, 22):
            store.erase(FEED, seq)
        yield store


@given(start=st.integers(0, 36), stop=st.integers(0, 36))
def test_arrow_equals_the_iterator(mixed: FeedStore, start: int, stop: int) -> None:
    assert rows(mixed.arrow(FEED, start, stop)) == [row(block) for block in mixed.read(FEED, start, stop)]


def test_the_schema_is_the_documented_one(mixed: FeedStore) -> None:
    for batch in mixed.arrow(FEED):
        assert batch.schema == arrow.SCHEMA


@pytest.mark.parametrize("columns", [["seq"], ["body", "seq"], ["state", "advance", "hash"], arrow.SCHEMA.names[::-1]])
def test_only_the_columns_asked_for_come_in_the_order_asked_for(mixed: FeedStore, columns: list[str]) -> None:
    batches = list(mixed.arrow(FEED, columns=columns))

    assert all(batch.schema.names == columns for batch in batches)
    wanted = [row(block) for block in mixed.read(FEED)]
    assert rows(iter(batches)) == [{name: values[name] for name in columns} for values in wanted]


def test_a_body_that_is_not_here_is_null(mixed: FeedStore) -> None:
    (column,) = {batch.column("body").null_count for batch in mixed.arrow(FEED)}

    assert column == 3 + 8  # erased, and left out
    assert {values["body"] is None for values in rows(mixed.arrow(FEED, 0, 1))} == {True}
    assert next(mixed.arrow(FEED, 1, 3)).column("body").null_count == 0


def test_an_empty_range_has_no_batches(mixed: FeedStore, store: FeedStore, bob: KeyPair, party: PublicKey) -> None:
    store.create(bob.key, party)

    assert list(mixed.arrow(FEED, 5, 5)) == []
    assert list(store.arrow(bob.key)) == []


def test_batches_have_a_bounded_size(store: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    store.create(alice.key, party)
    store.append(alice, party, drafts(20_000, 1))
    store.append(alice, party, drafts(40, 1 << 19))

    batches = list(store.arrow(alice.key))

    assert sum(batch.num_rows for batch in batches) == 20_040
    assert all(batch.num_rows < 2 * arrow.BATCH_ROWS for batch in batches)
    assert all(batch.nbytes < 2 * arrow.BATCH_SIZE for batch in batches)
    assert len(batches) < 7


@given(histories())
def test_spans_joined_or_not_give_the_same_rows(history: list[Span]) -> None:
    assert rows(arrow.batches(history)) == rows(arrow.batches([joined(*history)]))


@pytest.mark.parametrize("columns", [[], ["seq", "colour"]])
def test_columns_that_blocks_do_not_have_are_named(columns: list[str]) -> None:
    with pytest.raises(InvalidInput, match="choose from seq, lamport"):
        next(arrow.batches([], columns))
