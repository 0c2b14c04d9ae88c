"""Blocks as Arrow record batches: header columns as they stand, bodies opaque. For bulk readers and Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from antiphon.core.errors import InvalidInput
from antiphon.feed.span import Span

#: The columns of a batch of blocks. `advance` holds the raw entries (80 bytes each); a body that is not here is null.
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
    """Record batches of about `BATCH_ROWS` rows, with the columns asked for."""
    names = list(columns) if columns is not None else SCHEMA.names
    unknown = [name for name in names if name not in SCHEMA.names]
    if unknown or not names:
        raise InvalidInput(f"blocks have no columns {unknown}; choose from {', '.join(SCHEMA.names)}")
    schema = pa.schema([SCHEMA.field(name) for name in names])
    waiting: list[Span] = []
    rows = size = 0
    for span in spans:
        waiting.append(span)
        rows += span.count
        size += span.size
        if rows >= BATCH_ROWS or size >= BATCH_SIZE:
            yield _batch(waiting, schema)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield _batch(waiting, schema)


def _batch(spans: list[Span], schema: pa.Schema) -> pa.RecordBatch:
    headers = np.concatenate([span.columns for span in spans]) if len(spans) > 1 else spans[0].columns
    return pa.RecordBatch.from_arrays([_column(field.name, spans, headers) for field in schema], schema=schema)


def _column(name: str, spans: list[Span], headers: Any) -> pa.Array:
    field = SCHEMA.field(name)
    if name == "hash":
        return _fixed(b"".join(span.hashes for span in spans), 32)
    if name in ("item", "body_hash"):
        return _fixed(headers[name].tobytes(), field.type.byte_width)
    if name == "state":
        return pa.array(np.frombuffer(b"".join(span.states or bytes(span.count) for span in spans), dtype=np.uint8))
    if name == "advance":
        return _variable(b"".join(span.advance for span in spans), [span.advance_offsets for span in spans], np.int32)
    if name == "body":
        present = None
        if any(span.states for span in spans):
            present = np.concatenate([span.present for span in spans])
        return _variable(
            b"".join(span.bodies for span in spans), [span.body_offsets for span in spans], np.int64, present
        )
    return pa.array(np.ascontiguousarray(headers[name]))


def _fixed(data: bytes, width: int) -> pa.Array:
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(data) // width, [None, pa.py_buffer(data)])


def _variable(data: bytes, parts: list[Any], kind: Any, present: Any = None) -> pa.Array:
    shifted, base = [parts[0][:1]], 0
    for offsets in parts:
        shifted.append(offsets[1:] + base)
        base += int(offsets[-1])
    offsets = np.concatenate(shifted).astype(kind)
    validity, nulls = None, 0
    if present is not None:
        validity = pa.py_buffer(np.packbits(present, bitorder="little").tobytes())
        nulls = int(len(present) - present.sum())
    of = pa.binary() if kind is np.int32 else pa.large_binary()
    return pa.Array.from_buffers(of, len(offsets) - 1, [validity, pa.py_buffer(offsets), pa.py_buffer(data)], nulls)
