"""Stages `folded` and `items`: one streaming pass over sorted messages, with the very fold of the live pipeline."""

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
from antiphon.party.engine.demux import void_kind
from antiphon.pipeline.order.messages import BASE_STATE
from antiphon.pipeline.order.total_order import Group
from antiphon.pipeline.plan.party_plan import PartyPlan
from antiphon.pipeline.source.block_columns import arrow_of, batch_of
from antiphon.query.codec.facts import encode_facts
from antiphon.query.facts import facts_of

Models = Callable[[], ModelFactory]
ROWS_MAX = 2_000  # of a batch that goes out
SIZE_MAX = 16 << 20

#: An item, or a message that was refused: those have feed, seq and reason.
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


#: Where a row of it has what.
MODEL, DELETED, STATE, MESSAGES, FEED, SEQ, REASON = (
    SCHEMA.names.index(name) for name in ("model", "deleted", "snapshot", "messages", "feed", "seq", "reason")
)
_ARROW = arrow_of(SCHEMA)
_ITEM = (
    "party",
    "item",
    "model",
    "version",
    "parent",
    "deleted",
    "guarded",
    "created_ms",
    "snapshot",
    "messages",
    "facts",
)


def folded(messages: DataFrame, plans: Iterable[PartyPlan], models: Models = ModelFactory.standard) -> DataFrame:
    """Items and refusals of messages that come in the total order, item by item, as `messages` has them."""
    known = messages.sparkSession.sparkContext.broadcast({plan.party: plan for plan in plans})

    def act(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches_of(Folding(known.value, known_models(models)).rows(grouped(given)))

    return messages.mapInArrow(act, SCHEMA)


def items(folded: DataFrame) -> DataFrame:
    """The items: model, parent, state and all. `snapshot` is null where no code for the model is here, and only there
    `facts` has what can be asked of the item all the same.
    """
    return folded.where(f.col("reason").isNull()).select(*_ITEM)


def refused(folded: DataFrame) -> DataFrame:
    """The messages that do not count, and why: the very list that a live peer has."""
    return folded.where(f.col("reason").isNotNull()).select("party", "feed", "seq", "item", "reason")


@dataclass(slots=True)
class Folding:
    """One pass. Rows of an item come together, in order, and may go over the end of a batch."""

    plans: dict[bytes, PartyPlan]
    models: ModelFactory
    more: Callable[[ItemState], tuple[Any, ...]] | None = None  # what the row of an item has after all others

    def rows(self, groups: Iterable[Group]) -> Iterator[tuple[Any, ...]]:
        """The rows of items whose messages are together already."""
        return (row for (party, item), base, notes in groups for row in self.fold(party, item, base, notes))

    def fold(self, party: bytes, item: bytes, base: bytes | None, notes: list[Note]) -> Iterator[tuple[Any, ...]]:
        """The rows of one item: itself, if there is such an item, and the messages to it that were refused."""
        state = None if base is None else item_codec.restore(base, self.models)
        made = fold(party, item, state, notes, self.models, self.authors(party), whole=True)
        if made.late:
            raise AntiphonError(f"item {item.hex()}: its messages did not come in the total order")
        if made.item is not None:
            yield self.row(party, made.item, len(notes) - sum(map(bool, made.verdicts.values())))
        yield from refusals(party, item, made.verdicts)

    def row(self, party: bytes, item: ItemState, count: int, state: bytes | None = None) -> tuple[Any, ...]:
        """The row of an item in which so many messages count; with `state`, what its model's snapshot is."""
        data = None if item.model is None else item_codec.snapshot(item, state)
        facts = encode_facts(facts_of(item)) if item.model is None else None
        row = (*about_item(party, item), data, count, None, None, None, facts)
        if self.more is None:
            return row
        if state is not None and item.model is not None:  # which is not in the item yet
            item.state = item.model.restore(state)
        return (*row, *self.more(item))

    def authors(self, party: bytes) -> Callable[[bytes, int], Author]:
        """Whose a message is, by the plan of its party."""
        plan = self.plans[party]

        def author(feed: bytes, seq: int) -> Author:
            lane = plan.lane(feed)
            return Author(feed) if lane is None else lane.author(seq)

        return author


def about_item(party: bytes, item: ItemState) -> tuple[Any, ...]:
    """What a row of an item begins with, up to its state."""
    about = (item.parent, item.is_deleted, item.access is not None, item.created_ms)
    return party, bytes(item.id), item.name, item.version, *about


def known_models(models: Models) -> ModelFactory:
    """The models for one task. The standard ones are looked for once in a process: that takes as long as some thousand
    messages."""
    return _standard() if models == ModelFactory.standard else models()


@cache
def _standard() -> ModelFactory:
    return ModelFactory.standard()


def batches_of(found: Iterable[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    """Rows of items and refusals, in batches that are bounded in rows and bytes."""
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


def refusals(party: bytes, item: bytes, verdicts: Mapping[Stamp, str]) -> Iterator[tuple[Any, ...]]:
    for stamp, reason in verdicts.items():
        if reason:
            yield (party, item, *(None,) * 8, stamp.feed, stamp.seq, reason, None)


def grouped(given: Iterator[pa.RecordBatch]) -> Iterator[Group]:
    """Each item with the state that it stands on, and the messages to it."""
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
