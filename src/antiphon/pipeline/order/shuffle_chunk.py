"""Shuffle chunks: messages of one feed in columns, some thousands of them in one value for Spark.

A run shuffles chunks and not messages. Spark then moves bytes: it neither turns each message into a row and back nor
sorts rows. A chunk goes to the partition of its items, where `total_order` sorts the messages.

A chunk is encoded as the numbers of its party and lane, the sizes of its columns, and the columns. Numbers are
little-endian. Messages are bodies without their salt, joined.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from antiphon.core.cid import Cid
from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.feed import arrow
from antiphon.feed.block import BodyState
from antiphon.feed.header import HEADER
from antiphon.feed.limits import SALT_SIZE
from antiphon.feed.span import Span
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.pipeline.order.messages import BASE_STATE
from antiphon.pipeline.plan.reread import read_spans
from antiphon.pipeline.source.home import open_blobs
from antiphon.pipeline.source.ranges import Range

CHUNK_ROWS = 32_768  # messages that are divided among partitions together
BASE_LANE = -1  # the lane number of base states, which sort before all messages
BASE_ROWS, BASE_SIZE = 4_096, 16 << 20
BUCKETS_MAX = 1 << 14
MISSING = -1  # instead of the size of a body that is not held

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint8]  # 16 in each row

_HEAD = Struct("<2i7q")
_WIDTHS = (ITEM_ID_SIZE, 8, 8, 8, 1, 4)  # bytes of a value in each column but messages
#: A decoded chunk: index of the party among the plans, index of the lane in its plan; then the columns of item ids,
#: lamports, seqs, times, kinds, sizes and messages.
ShuffleChunk = tuple[int, int, memoryview, memoryview, memoryview, memoryview, memoryview, memoryview, memoryview]


@dataclass(frozen=True, slots=True)
class LaneTask:
    """A part of a task: delivered blocks of one lane; or, with the CID of a base, the item states of that snapshot."""

    party: int
    lane: int
    range: Range
    base: bytes = b""


def open_chunk(chunk: bytes) -> ShuffleChunk:
    """Decode a chunk. The columns are views, not copies."""
    party, lane, *sizes = _HEAD.unpack_from(chunk)
    bounds = list(accumulate(sizes, initial=_HEAD.size))
    view = memoryview(chunk)
    ids, lamports, seqs, created, kinds, lengths, messages = (view[low:high] for low, high in pairwise(bounds))
    return party, lane, ids, lamports, seqs, created, kinds, lengths, messages


def read_chunks(
    task: Iterable[LaneTask], buckets: int, only: Mapping[bytes, Collection[bytes]] | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield the chunks of a task, each with the number of its partition. `only` selects items by party."""
    lanes = list(task)
    for one in lanes:
        if one.base:
            with open_blobs(one.range.home) as blobs:
                base = EpochBase.load(Cid(one.base), blobs, party=one.range.party)
                some = None if only is None else sorted(only.get(one.range.party, ()))
                for states in _some(base.all() if some is None else iter(base.require_items(some).items())):
                    yield from MessageColumns.of_states(states).chunks(one.party, BASE_LANE, buckets)
    lanes = [one for one in lanes if not one.base]
    wanted = {party: ItemSet((only or {}).get(party, ())) for party in {one.range.party for one in lanes}}
    # `read_spans` raises an error of a range when the next one is requested, so the loop must exhaust it.
    for one, (_, spans) in zip(lanes, read_spans([one.range for one in lanes]), strict=True):
        for gathered in arrow.gathered(spans, CHUNK_ROWS):
            piece = MessageColumns.of(gathered)
            if only is not None:
                piece = piece.only(wanted[one.range.party])
            yield from piece.chunks(one.party, one.lane, buckets)


def _some(entries: Iterator[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    """Group states by count and size."""
    states: list[tuple[bytes, bytes]] = []
    size = 0
    for entry in entries:
        states.append(entry)
        size += len(entry[1])
        if len(states) >= BASE_ROWS or size >= BASE_SIZE:
            yield states
            states, size = [], 0
    if states:
        yield states


class ItemSet:
    """A set of item ids that finds its members in a column of ids. It may be very large, so it sorts hashes once."""

    def __init__(self, ids: Collection[bytes]) -> None:
        self._ids = set(ids)
        self._places = np.sort(item_hashes(ids_of(self._ids)))

    def among(self, items: Ids) -> I64:
        """The rows of a column of ids that hold members of the set."""
        if not len(self._places):
            return np.zeros(0, dtype=np.int64)
        found = item_hashes(items)
        near = self._places[np.minimum(np.searchsorted(self._places, found), len(self._places) - 1)]
        rows = np.flatnonzero(near == found)
        exact = [items[at].tobytes() in self._ids for at in rows.tolist()]  # hashes may collide
        return rows[np.array(exact, dtype=np.bool_)]


@dataclass(frozen=True, slots=True)
class MessageColumns:
    """Messages in columns, before they are divided among partitions."""

    items: Ids
    lamports: I64
    seqs: I64
    created: I64
    kinds: npt.NDArray[np.uint8]
    sizes: npt.NDArray[np.int32]
    messages: pa.Array
    salted: bool  # `messages` alternates salts and messages

    @classmethod
    def of(cls, spans: list[Span]) -> MessageColumns:
        """The messages of spans of one feed."""
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
    def of_states(cls, entries: Sequence[tuple[bytes, bytes]]) -> MessageColumns:
        """The states of some items in a base, as rows of kind `BASE_STATE`."""
        count = len(entries)
        before = np.full(count, -1, dtype=np.int64)
        return cls(
            ids_of(item for item, _ in entries),
            before,
            before,
            np.zeros(count, dtype=np.int64),
            np.full(count, BASE_STATE, dtype=np.uint8),
            np.array([len(data) for _, data in entries], dtype=np.int32),
            pa.array([data for _, data in entries], type=pa.binary()),
            False,
        )

    def only(self, wanted: ItemSet) -> MessageColumns:
        """The messages to some items."""
        which = wanted.among(self.items)
        taken = self.messages.take(numbers(2 * which + 1 if self.salted else which, pa.int64()))
        numbered = self.lamports[which], self.seqs[which], self.created[which], self.kinds[which], self.sizes[which]
        return MessageColumns(self.items[which], *numbered, taken, False)

    def chunks(self, party: int, lane: int, buckets: int) -> Iterator[tuple[int, bytes]]:
        """Divide the messages by the partitions of their items, and yield a chunk for each partition."""
        if not len(self.items):
            return
        where = buckets_of(self.items, buckets)
        order = np.argsort(where, kind="stable")  # of uint16, numpy does a radix sort
        counts = np.bincount(where, minlength=buckets)
        sizes = self.sizes[order]
        messages = self.messages.take(numbers(2 * order + 1 if self.salted else order, pa.int64())).buffers()[2]
        bodies = np.concatenate(([0], np.cumsum(np.maximum(sizes, 0), dtype=np.int64)))
        values: tuple[npt.NDArray[Any], ...] = (self.items, self.lamports, self.seqs, self.created, self.kinds)
        columns = [_bytes(column[order]) for column in values] + [_bytes(sizes), memoryview(messages or b"")]
        filled = np.flatnonzero(counts)
        stops = np.concatenate(([0], np.cumsum(counts[filled])))
        for bucket, (low, high) in zip(filled.tolist(), pairwise(stops.tolist()), strict=True):
            bounds = [(low * width, high * width) for width in _WIDTHS] + [(int(bodies[low]), int(bodies[high]))]
            head = _HEAD.pack(party, lane, *(stop - start for start, stop in bounds))
            parts = (column[start:stop] for column, (start, stop) in zip(columns, bounds, strict=True))
            yield bucket, b"".join([head, *parts])


def _bytes(column: npt.NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(column).view(np.uint8).reshape(-1).data


def numbers(values: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array over a numpy column. `pa.array` would import pandas into each of Spark's workers."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def flags(values: npt.NDArray[np.bool_]) -> pa.Array:
    """An Arrow array of booleans, without `pa.array` as well."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(np.packbits(values, bitorder="little"))])


def is_true(values: pa.Array) -> npt.NDArray[np.bool_]:
    """A numpy column of an Arrow array of booleans. Null becomes False."""
    return np.array(values.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def ids_of(items: Iterable[bytes]) -> Ids:
    """A column of item ids, one per row."""
    return np.frombuffer(b"".join(items), dtype=np.uint8).reshape(-1, ITEM_ID_SIZE)


def joined_values(column: pa.Array) -> npt.NDArray[np.uint8]:
    """A numpy matrix of an Arrow array of binaries that have one size and no nulls, one row for each value."""
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    size = int(bounds[-1] - bounds[0]) // max(1, len(column))
    if not size:
        return np.zeros((len(column), 0), dtype=np.uint8)
    return np.frombuffer(data, dtype=np.uint8)[bounds[0] : bounds[-1]].reshape(-1, size)


def hash_items(items: Ids, party: int | I64) -> U64:
    """A 64-bit hash of each item id and the number of its party."""
    halves = items.view("<u8")
    number = np.asarray(party).astype(np.uint64)
    found: U64 = (halves[:, 0] ^ np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xD6E8FEB86659FD93)
    found = (found ^ (found >> np.uint64(32)) ^ halves[:, 1]) * np.uint64(0xC2B2AE3D27D4EB4F)
    found = (found ^ (found >> np.uint64(29)) ^ number) * np.uint64(0x165667B19E3779F9)
    return found ^ (found >> np.uint64(32))


def item_hashes(items: Ids) -> U64:
    """A 64-bit hash of each item id alone, independent of its party."""
    return hash_items(items, 0)


def buckets_of(items: Ids, buckets: int) -> npt.NDArray[np.uint16]:
    """The partition of each item: the first bits of its hash. `buckets` is a power of two."""
    bits = buckets.bit_length() - 1
    found = item_hashes(items) >> np.uint64(64 - bits) if bits else np.zeros(len(items), np.uint64)
    return found.astype(np.uint16)
