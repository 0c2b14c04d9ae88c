"""Rows of the table of items for plain objects, as Arrow has them: what `showing` tells of each, for many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.model import itemcodec
from antiphon.pipeline.digest import item_hash
from antiphon.pipeline.facts import asked_of
from antiphon.pipeline.links import ends_of
from antiphon.pipeline.parcel import I64, numbers
from antiphon.pipeline.plainfold import Framed
from antiphon.pipeline.plainshown import PlainShown, show_plain
from antiphon.pipeline.registers import Registers
from antiphon.pipeline.wire import Bools
from antiphon.query.facts import facts_of

End = tuple[str, bytes, bytes | None]


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
    data = [itemcodec.snapshot(one.item, registers.state(one.nth)) for one in framed]
    hashes = [item_hash(item.id, state) for item, state in zip(items, data, strict=True)]
    said = [facts_of(item) for item in items]  # their value is none yet: it is in `shown`
    asked = [asked_of(facts, told=True) for facts in said]
    places = np.arange(len(framed))
    kind = schema.field("facts").type
    parts = {
        "data": [one.data for one in asked],
        "claims": [[(at.lamport, at.feed, at.seq, parent) for at, parent in facts.claims] for facts in said],
        "forked_to": [facts.forked_to or None for facts in said],
        "members": [one.members for one in asked],
    }
    children = {name: pa.array(values, kind.field(name).type) for name, values in parts.items()}
    children["keys"] = keys_of(pa.array([one.keys for one in asked], kind.field("keys").type), shown, places)
    children["value"] = pa.nulls(len(framed), kind.field("value").type)
    columns = {
        "party": [one.party for one in framed],
        "item": [bytes(item.id) for item in items],
        "model": [item.name for item in items],
        "version": [item.version for item in items],
        "parent": [item.parent for item in items],
        "deleted": [item.is_deleted for item in items],
        "guarded": [item.access is not None for item in items],
        "created_ms": [item.created_ms for item in items],
        "messages": [one.messages for one in framed],
        "type": [facts.type or None for facts in said],
        "name": [facts.name or None for facts in said],
        "data": data,
        "hash": hashes,
    }
    arrays = {name: pa.array(values, schema.field(name).type) for name, values in columns.items()}
    arrays["state"] = shown.state
    arrays["facts"] = pa.StructArray.from_arrays([children[part.name] for part in kind], fields=list(kind))
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


def is_true(values: pa.Array) -> Bools:
    """Where a column is; null is as good as false."""
    return np.array(values.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)
