"""Blocks as Arrow record batches: header columns in place, bodies as opaque bytes. For bulk readers and Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from antiphon.core.errors import InvalidInput
from antiphon.feed.block import BodyState
from antiphon.feed.header import ENTRY_SIZE, HASH_SIZE, HEADER, Headers
from antiphon.feed.span import Span

#: The columns of a batch of blocks. `advance` holds the raw entries (80 bytes each); a missing body is null.
SCHEMA = pa.schema(
    [
        pa.field("seq", pa.uint64(), nullable=False),
        pa.field("lamport", pa.uint64(), nullable=False),
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("flags", pa.uint16(), nullable=False),
        pa.field("created_ms", pa.uint64(), nullable=False),
        pa.field("item", pa.binary(16), nullable=False),
        pa.field("hash", pa.binary(32), nullable=False),
        pa.field("body_hash", pa.binary(32), nullable=False),
        pa.field("advance", pa.binary(), nullable=False),
        pa.field("state", pa.uint8(), nullable=False),
        pa.field("body", pa.large_binary(), nullable=True),
    ]
)
BATCH_ROWS = 8192
BATCH_SIZE = 16 << 20


def batches(spans: Iterable[Span], columns: Iterable[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield record batches of about `BATCH_ROWS` rows, with the given columns."""
    names = list(columns) if columns is not None else SCHEMA.names
    unknown = [name for name in names if name not in SCHEMA.names]
    if unknown or not names:
        raise InvalidInput(f"blocks have no columns {unknown}; choose from {', '.join(SCHEMA.names)}")
    schema = pa.schema([SCHEMA.field(name) for name in names])
    for some in gathered(spans, BATCH_ROWS):
        yield _batch(some, schema)


def gathered(spans: Iterable[Span], rows_max: int) -> Iterator[list[Span]]:
    """Yield groups of spans, each for one batch: about `rows_max` rows, or `BATCH_SIZE` bytes."""
    waiting: list[Span] = []
    rows = size = 0
    for span in spans:
        waiting.append(span)
        rows += span.count
        size += span.size
        if rows >= rows_max or size >= BATCH_SIZE:
            yield waiting
            waiting, rows, size = [], 0, 0
    if waiting:
        yield waiting


def _batch(spans: list[Span], schema: pa.Schema) -> pa.RecordBatch:
    """Make one batch of several spans: join their columns as bytes, and compute offsets once."""
    headers = np.frombuffer(b"".join([span.headers for span in spans]), dtype=HEADER)
    return pa.RecordBatch.from_arrays([_column(field.name, spans, headers) for field in schema], schema=schema)


def _column(name: str, spans: list[Span], headers: Headers) -> pa.Array:
    if name == "hash":
        return _fixed(b"".join([span.hashes for span in spans]), HASH_SIZE)
    if name in ("item", "body_hash"):
        return _fixed(headers[name].tobytes(), SCHEMA.field(name).type.byte_width)
    if name == "state":
        return pa.array(np.frombuffer(states_of(spans), dtype=np.uint8))
    if name == "advance":
        sizes = headers["advance"].astype(np.int32) * ENTRY_SIZE
        return variable(pa.binary(), b"".join([span.advance for span in spans]), sizes)
    if name == "body":
        bodies, sizes = b"".join([span.bodies for span in spans]), headers["body_size"].astype(np.int64)
        if not any(span.states for span in spans):
            return variable(pa.large_binary(), bodies, sizes)
        present = np.equal(np.frombuffer(states_of(spans), dtype=np.uint8), BodyState.PRESENT)
        return variable(pa.large_binary(), bodies, np.where(present, sizes, 0), present)
    return pa.array(np.ascontiguousarray(headers[name]))


def states_of(spans: list[Span]) -> bytes:
    """Return the `BodyState` of each block, one byte each."""
    return b"".join([span.states or bytes(span.count) for span in spans])


def _fixed(data: bytes, width: int) -> pa.Array:
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(data) // width, [None, pa.py_buffer(data)])


def variable(kind: pa.DataType, data: bytes, sizes: Any, present: Any = None) -> pa.Array:
    """Make an array of values of these sizes, which lie one after another in `data`; null where not present."""
    offsets = np.zeros(len(sizes) + 1, dtype=sizes.dtype)
    np.cumsum(sizes, out=offsets[1:])
    validity, nulls = None, 0
    if present is not None:
        validity = pa.py_buffer(np.packbits(present, bitorder="little").tobytes())
        nulls = int(len(present) - present.sum())
    return pa.Array.from_buffers(kind, len(sizes), [validity, pa.py_buffer(offsets), pa.py_buffer(data)], nulls)
