"""The bytes of plain objects, for all items of a partition at once: `snapshot_codec` on columns.

What stands of an object's registers is here in columns, and its keys and values lie in the messages as a snapshot has
them. So nothing becomes a value of Python's: the rows of a snapshot are put together from pieces, which are laid out
one after another and then taken by Arrow in the order of items. Tests compare the bytes with those of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from antiphon.model.wire import tag_numbers
from antiphon.pipeline.order.shuffle_chunk import I64, U64, numbers
from antiphon.pipeline.order.varints import Bools, Bytes, Wire

_OBJECT, _ROW, _ENTRY, _VALUE = tag_numbers("ObjectSnapshot", "ObjectRegister", "ObjectEntry", "Value")
KEY_MAX = 16  # bytes of a key
FEED_SIZE = 32


@dataclass(slots=True)
class Entries:
    """What stands: an item's together, its keys ascending, and the entries at a key by their stamps."""

    item: I64
    keys: tuple[U64, U64]  # their bytes, as two numbers
    key_size: I64
    lane: I64
    lamport: I64
    seq: I64
    value_at: I64  # in the messages: a text, or an integer as it is written
    value_end: I64
    text: Bools

    @classmethod
    def none(cls) -> Entries:
        empty = np.zeros(0, dtype=np.int64)
        words = empty.astype(np.uint64)
        return cls(empty, (words, words), empty, empty, empty, empty, empty, empty, empty.astype(np.bool_))

    @classmethod
    def joined(cls, parts: Sequence[Entries]) -> Entries:
        """All of them, as they come."""
        first, second = (np.concatenate([part.keys[at] for part in parts]) for at in (0, 1))
        others = [np.concatenate([getattr(part, name) for part in parts]) for name in _OTHERS]
        return cls(np.concatenate([part.item for part in parts]), (first, second), *others)

    def where(self, which: Any) -> Entries:
        """Some of them."""
        others = (getattr(self, name)[which] for name in _OTHERS)
        return Entries(self.item[which], (self.keys[0][which], self.keys[1][which]), *others)

    def key_bytes(self) -> Bytes:
        """The bytes of each key, and zeros."""
        return np.stack(self.keys, axis=1).astype("<u8").view(np.uint8).reshape(len(self.item), KEY_MAX)

    def firsts(self) -> Bools:
        """Of each entry: it is the first at its key."""
        first = np.ones(len(self.item), dtype=np.bool_)
        for column in (self.item, *self.keys, self.key_size):
            first[1:] &= column[1:] == column[:-1]
        first[1:] = ~first[1:]
        return first

    def in_order(self) -> Entries:
        """As this class has them, whatever order they are in."""
        return self.where(np.lexsort((self.seq, self.lane, self.lamport))).by_key()

    def by_key(self) -> Entries:
        """An item's together, its keys ascending; what is at one key stays in the order that it has."""
        # Keys go by their bytes: as numbers, the first one must count most.
        first, second = self.keys
        return self.where(np.lexsort((self.key_size, second.byteswap(), first.byteswap(), self.item)))


_OTHERS = ("key_size", "lane", "lamport", "seq", "value_at", "value_end", "text")


@dataclass(slots=True)
class Hearings:
    """The last mutation of each feed to each item, by item and lane."""

    item: I64
    lane: I64
    seq: I64


def write_states(items: int, feeds: Bytes, heard: Hearings, entries: Entries, wire: Wire) -> list[bytes]:
    """The snapshot of each item's object. Lanes are rows of `feeds`, and have the order of their feeds' keys."""
    heard_at = np.searchsorted(heard.item, np.arange(items + 1))
    entries_at = np.searchsorted(entries.item, np.arange(items + 1))
    places = np.arange(len(heard.item)) - heard_at[heard.item] + 1  # of feeds, in the tables of their items
    tables = np.empty((len(feeds), 2 + FEED_SIZE), dtype=np.uint8)
    tables[:, 0], tables[:, 1], tables[:, 2:] = _OBJECT.feeds, FEED_SIZE, feeds
    hearings = _hearings(places, heard.seq)
    rows = _entries(entries, _places_of(entries, heard, places))
    kinds = (Pieces(np.full(len(tables), 2 + FEED_SIZE), tables), hearings, rows, _values(entries, wire))
    # In each item: the table, what was heard, and then each entry with its value.
    known, stand = np.diff(heard_at), np.diff(entries_at)
    begins = np.concatenate(([0], np.cumsum(2 * known + 2 * stand)))
    order = np.empty(begins[-1], dtype=np.int64)
    firsts = np.cumsum([0, *(len(kind.sizes) for kind in kinds)])
    order[begins[heard.item] + places - 1] = heard.lane
    order[begins[heard.item] + known[heard.item] + places - 1] = firsts[1] + np.arange(len(places))
    nth = np.arange(len(entries.item))
    at = begins[entries.item] + 2 * known[entries.item] + 2 * (nth - entries_at[entries.item])
    order[at], order[at + 1] = firsts[2] + nth, firsts[3] + nth
    taken, sizes = _take(kinds, order)
    bounds = np.concatenate(([0], np.cumsum(sizes)))[begins].tolist()
    return [taken[one:other] for one, other in pairwise(bounds)]


@dataclass(slots=True)
class Pieces:
    """Pieces of bytes, one after another."""

    sizes: I64
    data: Any

    @classmethod
    def of(cls, *columns: tuple[Bytes, Bools]) -> Pieces:
        """One piece for each row: its bytes, column by column, where they are wanted."""
        wanted = np.concatenate([mask for _, mask in columns], axis=1)
        return cls(wanted.sum(axis=1), np.concatenate([data for data, _ in columns], axis=1)[wanted])


def _take(kinds: tuple[Pieces, ...], order: I64) -> tuple[bytes, I64]:
    """Pieces in another order, joined, and how long each of them is."""
    sizes = np.concatenate([kind.sizes for kind in kinds])
    bounds = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    joined = pa.py_buffer(b"".join([kind.data for kind in kinds]))
    values = pa.Array.from_buffers(pa.large_binary(), len(sizes), [None, pa.py_buffer(bounds), joined])
    taken = values.take(numbers(order, pa.int64())).buffers()[2]
    return (b"" if taken is None else taken.to_pybytes()), sizes[order]


def _tag(tag: int, wanted: Bools) -> tuple[Bytes, Bools]:
    return np.full((len(wanted), 1), tag, dtype=np.uint8), wanted[:, None]


def _varint(values: I64, wanted: Bools | None = None) -> tuple[Bytes, Bools]:
    """Each number as protobuf has it, where it is wanted."""
    found, masks = [], []
    left = values.astype(np.uint64)
    more = np.ones(len(values), dtype=np.bool_) if wanted is None else wanted
    while True:
        rest = left >> np.uint64(7)
        found.append((left & np.uint64(0x7F) | (rest > 0).astype(np.uint64) << np.uint64(7)).astype(np.uint8))
        masks.append(more)
        more, left = more & (rest > 0), rest
        if not more.any():
            return np.stack(found, axis=1), np.stack(masks, axis=1)


def _sizes(column: tuple[Bytes, Bools]) -> I64:
    found: I64 = column[1].sum(axis=1)
    return found


def _hearings(places: I64, seqs: I64) -> Pieces:
    """Fields of `heard`: which feed, and the last seq. A 0 is not written."""
    every, place, seq = np.ones(len(places), dtype=np.bool_), _varint(places), _varint(seqs, seqs > 0)
    name = _tag(_ENTRY.feed, every), place, _tag(_ENTRY.seq, seqs > 0), seq
    size = 1 + _sizes(place) + _sizes(seq) + (seqs > 0)
    return Pieces.of(_tag(_OBJECT.heard, every), _varint(size), *name)


def _places_of(entries: Entries, heard: Hearings, places: I64) -> I64:
    """The place of each entry's feed in the table of its item: all of them were heard."""
    width = int(heard.lane.max(initial=0)) + 1
    wanted = entries.item * width + entries.lane
    found: I64 = places[np.searchsorted(heard.item * width + heard.lane, wanted)]
    return found


def _entries(entries: Entries, places: I64) -> Pieces:
    """All but the values: a register begins with its key at the first of its entries."""
    count = len(entries.item)
    every = np.ones(count, dtype=np.bool_)
    place, lamport = _varint(places), _varint(entries.lamport, entries.lamport > 0)
    seq, length = _varint(entries.seq, entries.seq > 0), entries.value_end - entries.value_at
    text = _varint(length, entries.text)
    value = _varint(1 + _sizes(text) + length)
    stamp = 1 + _sizes(place) + (entries.lamport > 0) + _sizes(lamport) + (entries.seq > 0) + _sizes(seq)
    size = stamp + 1 + _sizes(value) + 1 + _sizes(text) + length
    whole = _varint(size)
    first = entries.firsts()
    begins = np.flatnonzero(first)
    inside = np.add.reduceat(1 + _sizes(whole) + size, begins) if count else np.zeros(0, dtype=np.int64)
    row = np.zeros(count, dtype=np.int64)
    row[begins] = inside + 2 + entries.key_size[begins]
    return Pieces.of(
        _tag(_OBJECT.registers, first),
        _varint(row, first),
        _tag(_ROW.path, first),
        _varint(entries.key_size, first),
        (entries.key_bytes(), (np.arange(KEY_MAX) < entries.key_size[:, None]) & first[:, None]),
        _tag(_ROW.entries, every),
        whole,
        _tag(_ENTRY.feed, every),
        place,
        _tag(_ENTRY.lamport, entries.lamport > 0),
        lamport,
        _tag(_ENTRY.seq, entries.seq > 0),
        seq,
        _tag(_ENTRY.value, every),
        value,
        (np.where(entries.text, _VALUE.text, _VALUE.integer).astype(np.uint8)[:, None], every[:, None]),
        text,
    )


def _values(entries: Entries, wire: Wire) -> Pieces:
    """Texts and integers as they lie in messages, or in snapshots."""
    taken = wire.pieces(entries.value_at, entries.value_end).buffers()[2]
    return Pieces(entries.value_end - entries.value_at, b"" if taken is None else taken)
