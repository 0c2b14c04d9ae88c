"""Rows of the table `items` for flat objects, as Arrow columns: `item_rows` for many items at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.model import item_codec
from antiphon.pipeline.columnar.register_fold import RegisterFold
from antiphon.pipeline.fold.digest import item_hash
from antiphon.pipeline.fold.flat_item_fold import FlatItem
from antiphon.pipeline.fold.item_fold import SCHEMA, STATE, item_columns
from antiphon.pipeline.order.shuffle_chunk import I64, is_true, numbers
from antiphon.pipeline.tables.columnar_display import DisplayColumns, display_columns
from antiphon.pipeline.tables.facts_column import facts_column
from antiphon.pipeline.tables.item_rows import End, ends_of
from antiphon.query.facts import facts_of


class FlatRows(NamedTuple):
    """Rows of `items`, with the hash and the link ends of each item."""

    rows: pa.RecordBatch
    hashes: list[bytes]
    ends: list[list[End]]


def flat_rows(flat: Sequence[FlatItem], registers: RegisterFold, schema: pa.Schema) -> FlatRows:
    """Return the rows of flat items, by ascending numbers."""
    numbered = np.array([one.nth for one in flat], dtype=np.int64)
    shown = display_columns(registers.entries, numbered, registers.wire)
    items = [one.item for one in flat]
    data = [item_codec.snapshot(one.item, registers.state(one.nth)) for one in flat]
    hashes = [item_hash(item.id, state) for item, state in zip(items, data, strict=True)]
    said = [facts_of(item) for item in items]  # without the value, which is in `shown`
    asked = [facts_column(facts, in_state=True) for facts in said]
    kind = schema.field("facts").type
    parts = {part.name: pa.array([one[part.name] for one in asked], part.type) for part in kind}
    parts["keys"] = merge_keys(parts["keys"], shown, np.arange(len(flat)))
    about = [item_columns(one.party, one.item) for one in flat]
    columns: dict[str, Sequence[Any]] = {
        **dict(zip(SCHEMA.names[:STATE], zip(*about, strict=True), strict=True)),
        "messages": [one.messages for one in flat],
        "type": [facts.type or None for facts in said],
        "name": [facts.name or None for facts in said],
        "data": data,
        "hash": hashes,
    }
    arrays = {name: pa.array(values, schema.field(name).type) for name, values in columns.items()}
    arrays["state"] = shown.state
    arrays["facts"] = pa.StructArray.from_arrays([*parts.values()], fields=list(kind))
    rows = pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)
    return FlatRows(rows, hashes, [ends_of(item.parent, facts) for item, facts in zip(items, said, strict=True)])


def merge_keys(old: pa.MapArray, shown: DisplayColumns, which: I64) -> pa.MapArray:
    """Return new maps `facts.keys`: entries of named facts stay, and come first; paths get the keys in `shown`."""
    said, bounds = _said(old)
    begins = shown.begins[which]
    counts = shown.begins[which + 1] - begins
    known = np.diff(bounds)
    # A row has its named facts, then its paths; both are taken from one concatenated array.
    ends = np.concatenate(([0], np.cumsum(known + counts)))
    order = np.empty(ends[-1], dtype=np.int64)
    order[_spread(ends[:-1], known)] = said
    order[_spread(ends[:-1] + known, counts)] = len(old.keys) + _spread(begins, counts)
    taken = numbers(order, pa.int64())
    names = pa.concat_arrays([old.keys, shown.names]).take(taken)
    keys = pa.concat_arrays([old.items, shown.keys]).take(taken)
    return pa.MapArray.from_arrays(numbers(ends.astype(np.int32), pa.int32()), names, keys).cast(old.type)


def _said(old: pa.MapArray) -> tuple[I64, I64]:
    """Return the map entries of named facts, and where those of each row begin. The name of a path begins with `[`."""
    offsets = old.offsets.to_numpy().astype(np.int64)
    inside = np.flatnonzero(~is_true(pc.starts_with(old.keys, "[")))
    inside = inside[(inside >= offsets[0]) & (inside < offsets[-1])]
    return inside, np.searchsorted(inside, offsets)


def _spread(begins: I64, counts: I64) -> I64:
    """Concatenate the ranges `begins[i] … begins[i] + counts[i]`."""
    ends = np.cumsum(counts)
    return np.repeat(begins - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)
