"""Stages `folded`, `items` and `refused`: one streaming pass over sorted messages, with the fold of the live engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, functions as f
from pyspark.sql.types import BinaryType, BooleanType, IntegerType, LongType, StringType, StructField, StructType

from antiphon.core.errors import AntiphonError
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.model import item_codec
from antiphon.model.access import Author
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import ItemState, fold
from antiphon.model.message import Note
from antiphon.party.engine.branch_geneses import choose
from antiphon.party.engine.demux import void_kind
from antiphon.pipeline.order.messages import BASE_STATE
from antiphon.pipeline.order.total_order import Group
from antiphon.pipeline.plan.party_plan import PartyPlan
from antiphon.pipeline.source.block_columns import arrow_of, batch_of
from antiphon.query.codec.facts import encode_facts
from antiphon.query.facts import facts_of

Models = Callable[[], ModelFactory]
ROWS_MAX = 2_000  # rows of an output batch
SIZE_MAX = 16 << 20  # bytes of snapshots in an output batch

#: A row is an item, or a refused message: the latter has feed, seq and reason.
SCHEMA = StructType(
    [
        StructField("party", BinaryType(), nullable=False),
        StructField("item", BinaryType(), nullable=False),
        StructField("model", StringType(), nullable=True),
        StructField("version", LongType(), nullable=True),
        StructField("parent", BinaryType(), nullable=True),
        StructField("deleted", BooleanType(), nullable=True),
        StructField("guarded", BooleanType(), nullable=True),
        StructField("created_ms", LongType(), nullable=True),
        StructField("snapshot", BinaryType(), nullable=True),
        StructField("messages", IntegerType(), nullable=True),
        StructField("feed", BinaryType(), nullable=True),
        StructField("seq", LongType(), nullable=True),
        StructField("reason", StringType(), nullable=True),
        StructField("facts", BinaryType(), nullable=True),
    ]
)


#: Column numbers.
MODEL, DELETED, STATE, MESSAGES, FEED, SEQ, REASON = (
    SCHEMA.names.index(name) for name in ("model", "deleted", "snapshot", "messages", "feed", "seq", "reason")
)
_ARROW = arrow_of(SCHEMA)
_ITEM = (*SCHEMA.names[:FEED], "facts")  # the columns of an item row


def folded(messages: DataFrame, plans: Iterable[PartyPlan], models: Models = ModelFactory.standard) -> DataFrame:
    """Fold messages, item by item in the total order, as stage `messages` yields them, into items and refusals."""
    known = messages.sparkSession.sparkContext.broadcast({plan.party: plan for plan in plans})

    def act(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return row_batches(ItemFold(known.value, load_models(models)).rows(group_messages(given)))

    return messages.mapInArrow(act, SCHEMA)


def items(folded: DataFrame) -> DataFrame:
    """Select the items. `snapshot` is null where the code of the model is missing; only then `facts` is set, to what
    queries can ask of the item without its model.
    """
    return folded.where(f.col("reason").isNull()).select(*_ITEM)


def refused(folded: DataFrame) -> DataFrame:
    """Select the refused messages and their reasons: the same list that a live peer has."""
    return folded.where(f.col("reason").isNotNull()).select("party", "feed", "seq", "item", "reason")


@dataclass(slots=True)
class ItemFold:
    """Folds items one by one into rows of `SCHEMA`."""

    plans: dict[bytes, PartyPlan]
    models: ModelFactory
    extra_columns: Callable[[ItemState], tuple[Any, ...]] | None = None  # adds columns at the end of an item row

    def rows(self, groups: Iterable[Group]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of all items, from messages that are grouped by item."""
        return (row for (party, item), base, notes in groups for row in self.fold(party, item, base, notes))

    def fold(self, party: bytes, item: bytes, base: bytes | None, notes: list[Note]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of one item: the item, if it has a valid genesis, and the refused messages to it."""
        state = None if base is None else item_codec.restore(base, self.models)
        beyond = self.beyond(party, item, base, notes)
        made = fold(party, item, state, notes, self.models, self.authors(party), whole=True, beyond=beyond)
        if made.late:
            raise AntiphonError(f"item {item.hex()}: its messages did not come in the total order")
        if made.item is not None:
            yield self.row(party, made.item, len(notes) - sum(map(bool, made.verdicts.values())))
        yield from refusal_rows(party, item, made.verdicts)

    def row(self, party: bytes, item: ItemState, count: int, state: bytes | None = None) -> tuple[Any, ...]:
        """Return the row of an item in which `count` messages count; `state` is its model state, if not in the item."""
        data = None if item.model is None else item_codec.snapshot(item, state)
        facts = encode_facts(facts_of(item)) if item.model is None else None
        row = (*item_columns(party, item), data, count, None, None, None, facts)
        if self.extra_columns is None:
            return row
        if state is not None and item.model is not None:  # the columns are computed from the item
            item.state = item.model.restore(state)
        return (*row, *self.extra_columns(item))

    def beyond(self, party: bytes, item: bytes, base: bytes | None, notes: list[Note]) -> Note | None:
        """Return the genesis beyond a fork that may begin an item with these messages; None for none."""
        return None if base is not None else choose(self.plans[party].branch_geneses, item, notes)

    def authors(self, party: bytes) -> Callable[[bytes, int], Author]:
        """Return the function that finds the author of a message, by the plan of its party."""
        plan = self.plans[party]

        def author(feed: bytes, seq: int) -> Author:
            lane = plan.lane(feed)
            return Author(feed) if lane is None else lane.author(seq)

        return author


def item_columns(party: bytes, item: ItemState) -> tuple[Any, ...]:
    """Return the first columns of an item row, up to the snapshot."""
    about = (item.parent, item.is_deleted, item.access is not None, item.created_ms)
    return party, bytes(item.id), item.name, item.version, *about


def load_models(models: Models) -> ModelFactory:
    """Return the models for one task. The standard models are loaded once in a process: that takes as long as folding
    some thousand messages."""
    return _standard() if models == ModelFactory.standard else models()


@cache
def _standard() -> ModelFactory:
    return ModelFactory.standard()


def row_batches(found: Iterable[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    """Group rows into Arrow batches, bounded in rows and bytes."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in found:
        rows.append(row)
        size += len(row[8] or b"")
        if len(rows) >= ROWS_MAX or size >= SIZE_MAX:
            yield batch_of(rows, _ARROW)
            rows, size = [], 0
    if rows:
        yield batch_of(rows, _ARROW)


def refusal_rows(party: bytes, item: bytes, verdicts: Mapping[Stamp, str]) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each refused message, from the verdicts on the messages to an item."""
    for stamp, reason in verdicts.items():
        if reason:
            yield (party, item, *(None,) * 8, stamp.feed, stamp.seq, reason, None)


def group_messages(given: Iterator[pa.RecordBatch]) -> Iterator[Group]:
    """Group message rows by item: yield each item with its base state and its messages. An item may span batches."""
    key: tuple[bytes, bytes] | None = None
    base: bytes | None = None
    notes: list[Note] = []
    for batch in given:
        for party, item, lamport, feed, seq, kind, created_ms, message, reason in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            if (party, item) != key:
                if key is not None:
                    yield key, base, notes
                key, base, notes = (party, item), None, []
            if kind == BASE_STATE:
                base = message
            else:
                void = reason or (void_kind(kind) if kind == Kind.CREDENTIAL else "")
                notes.append(Note(kind, lamport, feed, seq, created_ms, message, void))
    if key is not None:
        yield key, base, notes
