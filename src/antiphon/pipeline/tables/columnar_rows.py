"""Rows of the table of items for plain objects, as Arrow has them: what `showing` tells of each, for many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.model import item_codec
from antiphon.pipeline.columnar.register_fold import Registers
from antiphon.pipeline.fold.digest import item_hash
from antiphon.pipeline.fold.frame_fold import Framed
from antiphon.pipeline.fold.item_fold import SCHEMA, STATE, about_item
from antiphon.pipeline.order.shuffle_chunk import I64, is_true, numbers
from antiphon.pipeline.tables.columnar_display import PlainShown, show_plain
from antiphon.pipeline.tables.facts_column import facts_column
from antiphon.pipeline.tables.links import End, ends_of
from antiphon.query.facts import facts_of


class PlainRows(NamedTuple):
    """Rows, and of each the hash of its item, and where that leads to."""

    rows: pa.RecordBatch
    hashes: list[bytes]
    ends: list[list[End]]


def plain_rows(framed: Sequence[Framed], registers: Registers, schema: pa.Schema) -> PlainRows:
    """Of some items, by ascending numbers."""
    numbered = np.array([one.nth for one in framed], dtype=np.int64)
    shown = show_plain(registers.entries, numbered, registers.wire)
    items = [one.item for one in framed]
    data = [item_codec.snapshot(one.item, registers.state(one.nth)) for one in framed]
    hashes = [item_hash(item.id, state) for item, state in zip(items, data, strict=True)]
    said = [facts_of(item) for item in items]  # their value is none yet: it is in `shown`
    asked = [facts_column(facts, told=True) for facts in said]
    kind = schema.field("facts").type
    parts = {part.name: pa.array([one[part.name] for one in asked], part.type) for part in kind}
    parts["keys"] = keys_of(parts["keys"], shown, np.arange(len(framed)))
    about = [about_item(one.party, one.item) for one in framed]
    columns: dict[str, Sequence[Any]] = {
        **dict(zip(SCHEMA.names[:STATE], zip(*about, strict=True), strict=True)),
        "messages": [one.messages for one in framed],
        "type": [facts.type or None for facts in said],
        "name": [facts.name or None for facts in said],
        "data": data,
        "hash": hashes,
    }
    arrays = {name: pa.array(values, schema.field(name).type) for name, values in columns.items()}
    arrays["state"] = shown.state
    arrays["facts"] = pa.StructArray.from_arrays([*parts.values()], fields=list(kind))
    rows = pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)
    return PlainRows(rows, hashes, [ends_of(item.parent, facts) for item, facts in zip(items, said, strict=True)])


def keys_of(old: pa.MapArray, shown: PlainShown, which: I64) -> pa.MapArray:
    """The maps of sort keys in facts: what is no part of a value stays, and stands first."""
    said, bounds = _said(old)
    begins = shown.begins[which]
    counts = shown.begins[which + 1] - begins
    known = np.diff(bounds)
    # Of each row what is said, and then what is at its keys; both lie in one array, one behind the other.
    ends = np.concatenate(([0], np.cumsum(known + counts)))
    order = np.empty(ends[-1], dtype=np.int64)
    order[_spread(ends[:-1], known)] = said
    order[_spread(ends[:-1] + known, counts)] = len(old.keys) + _spread(begins, counts)
    taken = numbers(order, pa.int64())
    names = pa.concat_arrays([old.keys, shown.names]).take(taken)
    keys = pa.concat_arrays([old.items, shown.keys]).take(taken)
    return pa.MapArray.from_arrays(numbers(ends.astype(np.int32), pa.int32()), names, keys).cast(old.type)


def _said(old: pa.MapArray) -> tuple[I64, I64]:
    """Which entries of maps are no part of a value, and where those of each row begin; a path begins with a bracket."""
    offsets = old.offsets.to_numpy().astype(np.int64)
    inside = np.flatnonzero(~is_true(pc.starts_with(old.keys, "[")))
    inside = inside[(inside >= offsets[0]) & (inside < offsets[-1])]
    return inside, np.searchsorted(inside, offsets)


def _spread(begins: I64, counts: I64) -> I64:
    """The numbers from each beginning on, so many."""
    ends = np.cumsum(counts)
    return np.repeat(begins - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)
