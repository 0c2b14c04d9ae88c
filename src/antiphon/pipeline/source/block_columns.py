"""The columns of a block for Spark: names, types, and Arrow record batches made of spans.

Spark has neither unsigned integers nor binaries of a fixed size, so the types differ from those of
`antiphon.feed.arrow`. The column `message` is the body without its salt, as the fold takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from antiphon.core.errors import InvalidInput
from antiphon.feed import arrow
from antiphon.feed.block import BodyState
from antiphon.feed.header import ENTRY_SIZE, HASH_SIZE, HEADER
from antiphon.feed.limits import SALT_SIZE
from antiphon.feed.span import Span

_LONGS = ("seq", "lamport", "created_ms")
_INTS = ("kind", "flags")
_TYPES: dict[str, DataType] = {
    "party": BinaryType(),
    "feed": BinaryType(),
    "seq": LongType(),
    "lamport": LongType(),
    "kind": IntegerType(),
    "flags": IntegerType(),
    "created_ms": LongType(),
    "item": BinaryType(),
    "hash": BinaryType(),
    "body_hash": BinaryType(),
    "advance": BinaryType(),
    "state": IntegerType(),
    "body": BinaryType(),
    "message": BinaryType(),
    "fault": StringType(),
}
#: All columns of the source. `message` is part of `body`, so it is not among the default columns.
COLUMNS = tuple(_TYPES)
DEFAULT_COLUMNS = tuple(name for name in COLUMNS if name != "message")
_ARROW: dict[type[DataType], pa.DataType] = {
    BinaryType: pa.binary(),
    LongType: pa.int64(),
    IntegerType: pa.int32(),
    StringType: pa.string(),
    BooleanType: pa.bool_(),
}
_MAYBE = {"body", "message", "fault"}  # null: the body is not held; the block has no fault
BATCH_ROWS = 16_384


def spark_schema(names: Sequence[str]) -> StructType:
    """The schema of a DataFrame with these columns."""
    unknown = [name for name in names if name not in _TYPES]
    if unknown or not names or len(set(names)) < len(names):
        raise InvalidInput(f"columns {', '.join(names) or 'none'}: choose some of {', '.join(COLUMNS)}, each once")
    return StructType([StructField(name, _TYPES[name], nullable=name in _MAYBE) for name in names])


def arrow_schema(names: Sequence[str]) -> pa.Schema:
    """The Arrow schema for these columns. Spark requires it to match `spark_schema` exactly, nullability included."""
    return pa.schema([pa.field(name, _ARROW[type(_TYPES[name])], nullable=name in _MAYBE) for name in names])


def arrow_of(schema: StructType) -> pa.Schema:
    """The Arrow schema of record batches that a stage returns to Spark. Spark checks nulls against its own schema."""
    return pa.schema([(field.name, _ARROW[type(field.dataType)]) for field in schema.fields])


def batch_of(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """A record batch of rows. There must be at least one."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def batches(spans: Iterable[Span], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield record batches of spans of one feed, with these columns. Rows and bytes of a batch are bounded."""
    schema = arrow_schema(names)
    for some in arrow.gathered(spans, BATCH_ROWS):
        yield _batch(some, schema)


def fault_batch(party: bytes, feed: bytes, seq: int, reason: str, names: Sequence[str]) -> pa.RecordBatch:
    """A batch of one row that marks blocks that cannot be read: from which seq on, and why."""
    known: dict[str, Any] = {"party": party, "feed": feed, "seq": seq, "fault": reason}
    schema = arrow_schema(names)
    empty = {pa.binary(): b"", pa.int64(): 0, pa.int32(): 0, pa.string(): None}
    row = {f.name: known.get(f.name, None if f.name in _MAYBE else empty[f.type]) for f in schema}
    return pa.RecordBatch.from_pylist([row], schema=schema)


def _batch(spans: list[Span], schema: pa.Schema) -> pa.RecordBatch:
    headers = np.frombuffer(b"".join([span.headers for span in spans]), dtype=HEADER)
    return pa.RecordBatch.from_arrays([_column(field.name, spans, headers) for field in schema], schema=schema)


def _column(name: str, spans: list[Span], headers: Any) -> pa.Array:
    count = len(headers)
    if name in _LONGS:
        return pa.array(np.ascontiguousarray(headers[name]).view(np.int64))
    if name in _INTS:
        return pa.array(headers[name].astype(np.int32))
    if name in ("party", "feed"):
        return fixed((spans[0].party if name == "party" else spans[0].feed) * count, HASH_SIZE)
    if name == "hash":
        return fixed(b"".join([span.hashes for span in spans]), HASH_SIZE)
    if name in ("item", "body_hash"):
        return fixed(headers[name].tobytes(), headers[name].dtype.itemsize)
    if name == "state":
        return pa.array(np.frombuffer(arrow.states_of(spans), dtype=np.uint8).astype(np.int32))
    if name == "advance":
        return arrow.variable(
            pa.binary(), b"".join([span.advance for span in spans]), headers["advance"].astype(np.int32) * ENTRY_SIZE
        )
    if name == "fault":
        return pa.nulls(count, pa.string())
    return _bodies(spans, headers, salted=name == "body")


def _bodies(spans: list[Span], headers: Any, *, salted: bool) -> pa.Array:
    data, sizes = b"".join([span.bodies for span in spans]), headers["body_size"].astype(np.int32)
    present = None
    if any(span.states for span in spans):
        present = np.equal(np.frombuffer(arrow.states_of(spans), dtype=np.uint8), BodyState.PRESENT)
        sizes = np.where(present, sizes, 0).astype(np.int32)
    if salted:
        return arrow.variable(pa.binary(), data, sizes, present)
    # Salts and messages alternate in one array over the same buffer; take every second value.
    salts = np.full(len(sizes), SALT_SIZE, dtype=np.int32) if present is None else np.where(present, SALT_SIZE, 0)
    pairs = np.empty(2 * len(sizes), dtype=np.int32)
    pairs[0::2], pairs[1::2] = salts, sizes - salts
    taken = arrow.variable(pa.binary(), data, pairs).take(pa.array(np.arange(1, 2 * len(sizes), 2)))
    if present is None:
        return taken
    return pa.compute.if_else(pa.array(present), taken, pa.scalar(None, pa.binary()))


def fixed(data: bytes, width: int) -> pa.Array:
    """A binary array of values that all have `width` bytes."""
    offsets = np.arange(0, len(data) + 1, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), len(data) // width, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
