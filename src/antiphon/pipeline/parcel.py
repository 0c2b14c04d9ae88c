"""Parcels: messages of one feed in columns, a row of Spark's for some thousands of them.

What is shuffled are parcels and not messages: Spark then moves bytes, and neither turns each message into a row and
back nor sorts rows. A parcel goes to the partition that its items belong to; there, `ordered` puts messages into the
total order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from antiphon.core.cid import Cid
from antiphon.core.errors import CorruptBlock
from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.feed import arrow
from antiphon.feed.block import BodyState
from antiphon.feed.header import HEADER
from antiphon.feed.limits import SALT_SIZE
from antiphon.feed.span import Span
from antiphon.party.base import EpochBase
from antiphon.pipeline.columns import arrow_of
from antiphon.pipeline.home import open_blobs
from antiphon.pipeline.messages import BASE_STATE
from antiphon.pipeline.ranges import Fault, Range, read_ranges
from antiphon.pipeline.recall import CHANGED

PARCEL_ROWS = 65_536  # that are divided at once
BASE_LANE = -1  # of the states that a party stands on, which come before all messages
BASE_ROWS = 4_096
BUCKETS_MAX = 1 << 14
MISSING = -1  # the size of a body that is not here

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint8]  # 16 in each row

#: Columns of numbers are little-endian, one after another; `messages` are bodies without their salt, joined.
SCHEMA = StructType(
    [
        StructField("bucket", IntegerType(), nullable=False),
        StructField("party", IntegerType(), nullable=False),  # its place among the plans
        StructField("lane", IntegerType(), nullable=False),  # its place among the party's
        StructField("items", BinaryType(), nullable=False),
        StructField("lamports", BinaryType(), nullable=False),
        StructField("seqs", BinaryType(), nullable=False),
        StructField("created", BinaryType(), nullable=False),
        StructField("kinds", BinaryType(), nullable=False),
        StructField("sizes", BinaryType(), nullable=False),
        StructField("messages", BinaryType(), nullable=False),
    ]
)
_ARROW = arrow_of(SCHEMA)
_WIDTHS = (ITEM_ID_SIZE, 8, 8, 8, 1)  # of a value in each column of numbers but the last


@dataclass(frozen=True, slots=True)
class LaneTask:
    """Delivered blocks of a lane that one task reads; or, with a base, the states of it."""

    party: int
    lane: int
    range: Range
    base: bytes = b""


def read_parcels(task: Iterable[LaneTask], buckets: int) -> Iterator[pa.RecordBatch]:
    """The parcels of a task, as Spark takes them."""
    wanted = list(task)
    for one in wanted:
        if one.base:
            with open_blobs(one.range.home) as blobs:
                entries = EpochBase.load(Cid(one.base), blobs, party=one.range.party).all()
                while states := list(islice(entries, BASE_ROWS)):
                    yield Piece.of_states(states).parcels(one.party, BASE_LANE, buckets)
    for one, spans in read_lanes([one for one in wanted if not one.base]):
        for some in arrow.gathered(spans, PARCEL_ROWS):
            yield Piece.of(some).parcels(one.party, one.lane, buckets)


def read_lanes(lanes: Sequence[LaneTask]) -> Iterator[tuple[LaneTask, Iterator[Span]]]:
    """The spans of each; what was verified a moment ago, and cannot be read, is an error."""
    faults: list[Fault] = []
    for one, spans in zip(lanes, read_ranges([one.range for one in lanes], faults.append, verify=False), strict=True):
        yield one, spans
        for fault in faults:
            raise CorruptBlock(f"{CHANGED}: feed {fault.feed.hex()}: {fault.reason}", feed=fault.feed, seq=fault.seq)


@dataclass(frozen=True, slots=True)
class Piece:
    """Messages in columns, before they are divided."""

    items: Ids
    lamports: I64
    seqs: I64
    created: I64
    kinds: npt.NDArray[np.uint8]
    sizes: npt.NDArray[np.int32]
    messages: pa.Array
    salted: bool  # each message stands behind its salt: every second value is one

    @classmethod
    def of(cls, spans: list[Span]) -> Piece:
        headers = np.frombuffer(b"".join([span.headers for span in spans]), dtype=HEADER)
        sizes = headers["body_size"].astype(np.int32) - np.int32(SALT_SIZE)
        pairs = np.empty(2 * len(sizes), dtype=np.int32)
        pairs[0::2], pairs[1::2] = SALT_SIZE, sizes
        if any(span.states for span in spans):
            gone = np.not_equal(np.frombuffer(arrow.states_of(spans), dtype=np.uint8), BodyState.PRESENT)
            pairs[0::2][gone] = pairs[1::2][gone] = 0
            sizes[gone] = MISSING
        return cls(
            np.ascontiguousarray(headers["item"]).view(np.uint8).reshape(-1, ITEM_ID_SIZE),
            headers["lamport"].astype(np.int64),
            headers["seq"].astype(np.int64),
            headers["created_ms"].astype(np.int64),
            headers["kind"],
            sizes,
            arrow.variable(pa.binary(), b"".join([span.bodies for span in spans]), pairs),
            True,
        )

    @classmethod
    def of_states(cls, entries: Sequence[tuple[bytes, bytes]]) -> Piece:
        """The states of some items in a base."""
        count = len(entries)
        before = np.full(count, -1, dtype=np.int64)
        return cls(
            np.frombuffer(b"".join([item for item, _ in entries]), dtype=np.uint8).reshape(-1, ITEM_ID_SIZE),
            before,
            before,
            np.zeros(count, dtype=np.int64),
            np.full(count, BASE_STATE, dtype=np.uint8),
            np.array([len(data) for _, data in entries], dtype=np.int32),
            pa.array([data for _, data in entries], type=pa.binary()),
            False,
        )

    def parcels(self, party: int, lane: int, buckets: int) -> pa.RecordBatch:
        """The same, divided by the partitions that items belong to."""
        where = bucket_of(mixed(self.items, party), buckets)
        order = np.argsort(where, kind="stable")  # in two bytes, that is done digit by digit
        counts = np.bincount(where, minlength=buckets)
        sizes = self.sizes[order]
        messages = self.messages.take(numbers(2 * order + 1 if self.salted else order, pa.int64())).buffers()[2]
        bounds = np.concatenate(([0], np.cumsum(np.maximum(sizes, 0), dtype=np.int64)))
        filled = np.flatnonzero(counts).astype(np.int32)
        stops = np.concatenate(([0], np.cumsum(counts[filled]))).astype(np.int32)
        values: tuple[npt.NDArray[Any], ...] = (self.items, self.lamports, self.seqs, self.created, self.kinds)
        columns = [
            numbers(filled, pa.int32()),
            *(numbers(np.full(len(filled), number, dtype=np.int32), pa.int32()) for number in (party, lane)),
            *(_joined(stops * width, column[order]) for column, width in zip(values, _WIDTHS, strict=True)),
            _joined(stops * np.int32(sizes.itemsize), sizes),
            _joined(bounds[stops].astype(np.int32), messages),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def numbers(values: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """As `pa.array` makes it, which imports pandas into each of Spark's workers."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _joined(offsets: npt.NDArray[np.int32], data: Any) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def mixed(items: Ids, party: int | I64) -> U64:
    """Of each item a number that its bytes and its party settle, and that looks like chance."""
    halves = items.view("<u8")
    number = np.asarray(party).astype(np.uint64)
    found: U64 = (halves[:, 0] ^ np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xD6E8FEB86659FD93)
    found = (found ^ (found >> np.uint64(32)) ^ halves[:, 1]) * np.uint64(0xC2B2AE3D27D4EB4F)
    found = (found ^ (found >> np.uint64(29)) ^ number) * np.uint64(0x165667B19E3779F9)
    return found ^ (found >> np.uint64(32))


def bucket_of(mixed: U64, buckets: int) -> npt.NDArray[np.uint16]:
    return (mixed % np.uint64(buckets)).astype(np.uint16)
