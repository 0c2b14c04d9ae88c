"""Writes the snapshots of flat objects for all items of a partition together: `snapshot_codec` in columns.

The remaining register entries are columns, and keys and values are encoded in messages exactly as in snapshots. So no
value becomes a Python object: snapshots are assembled from pieces of bytes, which are laid out one after another and
gathered by Arrow's `take` in the order of items. Tests compare the bytes with those of the model.
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
KEY_MAX = 16  # bytes of a key that fits into two words
FEED_SIZE = 32


@dataclass(slots=True)
class Entries:
    """Register entries, sorted by item, then key, then stamp."""

    item: I64
    keys: tuple[U64, U64]  # the key bytes, as two words
    key_size: I64
    lane: I64
    lamport: I64
    seq: I64
    value_at: I64  # offset of the text bytes, or of the encoded integer, in the buffer
    value_end: I64
    text: Bools

    @classmethod
    def none(cls) -> Entries:
        """Return an empty set of entries."""
        empty = np.zeros(0, dtype=np.int64)
        words = empty.astype(np.uint64)
        return cls(empty, (words, words), empty, empty, empty, empty, empty, empty, empty.astype(np.bool_))

    @classmethod
    def joined(cls, parts: Sequence[Entries]) -> Entries:
        """Concatenate entries, in the given order."""
        first, second = (np.concatenate([part.keys[at] for part in parts]) for at in (0, 1))
        others = [np.concatenate([getattr(part, name) for part in parts]) for name in _OTHERS]
        return cls(np.concatenate([part.item for part in parts]), (first, second), *others)

    def where(self, which: Any) -> Entries:
        """Select entries by index, mask or slice."""
        others = (getattr(self, name)[which] for name in _OTHERS)
        return Entries(self.item[which], (self.keys[0][which], self.keys[1][which]), *others)

    def key_bytes(self) -> Bytes:
        """Return the bytes of each key, padded with zeros."""
        return np.stack(self.keys, axis=1).astype("<u8").view(np.uint8).reshape(len(self.item), KEY_MAX)

    def firsts(self) -> Bools:
        """Return, for each entry, whether it is the first at its key."""
        first = np.ones(len(self.item), dtype=np.bool_)
        for column in (self.item, *self.keys, self.key_size):
            first[1:] &= column[1:] == column[:-1]
        first[1:] = ~first[1:]
        return first

    def in_order(self) -> Entries:
        """Sort entries by item, key and stamp."""
        return self.where(np.lexsort((self.seq, self.lane, self.lamport))).by_key()

    def by_key(self) -> Entries:
        """Sort entries by item and key; the order of entries at one key stays."""
        # Keys compare by their bytes, so the first byte must be the most significant one.
        first, second = self.keys
        return self.where(np.lexsort((self.key_size, second.byteswap(), first.byteswap(), self.item)))


_OTHERS = ("key_size", "lane", "lamport", "seq", "value_at", "value_end", "text")


@dataclass(slots=True)
class HeardSeqs:
    """The seq of the last mutation of each feed to each item, sorted by item and lane: the field `heard` of a state."""

    item: I64
    lane: I64
    seq: I64

    def has(self, item: I64, lane: I64, seq: I64) -> Bools:
        """Return, for each message, whether it or a later one of its feed has arrived at its item."""
        if not len(self.item):
            return np.zeros(len(item), dtype=np.bool_)
        width = int(self.lane.max()) + 1
        pairs, wanted = self.item * width + self.lane, item * width + lane
        found = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
        known: Bools = (lane >= 0) & (lane < width) & (pairs[found] == wanted) & (self.seq[found] >= seq)
        return known


def write_states(items: int, feeds: Bytes, heard: HeardSeqs, entries: Entries, wire: Wire) -> list[bytes]:
    """Return the state bytes of each item. Lanes are rows of `feeds`, sorted by feed key in each party."""
    heard_at = np.searchsorted(heard.item, np.arange(items + 1))
    entries_at = np.searchsorted(entries.item, np.arange(items + 1))
    places = np.arange(len(heard.item)) - heard_at[heard.item] + 1  # of each feed in the feed table of its item
    tables = np.empty((len(feeds), 2 + FEED_SIZE), dtype=np.uint8)
    tables[:, 0], tables[:, 1], tables[:, 2:] = _OBJECT.feeds, FEED_SIZE, feeds
    hearings = _hearings(places, heard.seq)
    rows = _entries(entries, _places_of(entries, heard, places))
    kinds = (Pieces(np.full(len(tables), 2 + FEED_SIZE), tables), hearings, rows, _values(entries, wire))
    # An item has its feed table, then its `heard` fields, then each entry with its value.
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
    """Byte strings, laid out one after another."""

    sizes: I64
    data: Any

    @classmethod
    def of(cls, *columns: tuple[Bytes, Bools]) -> Pieces:
        """Make one piece for each row: the bytes of its columns where the masks are set."""
        wanted = np.concatenate([mask for _, mask in columns], axis=1)
        return cls(wanted.sum(axis=1), np.concatenate([data for data, _ in columns], axis=1)[wanted])


def _take(kinds: tuple[Pieces, ...], order: I64) -> tuple[bytes, I64]:
    """Join pieces in the given order; return the bytes and the size of each piece."""
    sizes = np.concatenate([kind.sizes for kind in kinds])
    bounds = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    joined = pa.py_buffer(b"".join([kind.data for kind in kinds]))
    values = pa.Array.from_buffers(pa.large_binary(), len(sizes), [None, pa.py_buffer(bounds), joined])
    taken = values.take(numbers(order, pa.int64())).buffers()[2]
    return (b"" if taken is None else taken.to_pybytes()), sizes[order]


def _tag(tag: int, wanted: Bools) -> tuple[Bytes, Bools]:
    return np.full((len(wanted), 1), tag, dtype=np.uint8), wanted[:, None]


def _varint(values: I64, wanted: Bools | None = None) -> tuple[Bytes, Bools]:
    """Encode numbers as protobuf varints, where `wanted`."""
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
    """Encode the `heard` fields: the index of the feed, and the last seq. A 0 is not written."""
    every, place, seq = np.ones(len(places), dtype=np.bool_), _varint(places), _varint(seqs, seqs > 0)
    name = _tag(_ENTRY.feed, every), place, _tag(_ENTRY.seq, seqs > 0), seq
    size = 1 + _sizes(place) + _sizes(seq) + (seqs > 0)
    return Pieces.of(_tag(_OBJECT.heard, every), _varint(size), *name)


def _places_of(entries: Entries, heard: HeardSeqs, places: I64) -> I64:
    """Return the index of each entry's feed in the feed table of its item; every feed of an entry is in it."""
    width = int(heard.lane.max(initial=0)) + 1
    wanted = entries.item * width + entries.lane
    found: I64 = places[np.searchsorted(heard.item * width + heard.lane, wanted)]
    return found


def _entries(entries: Entries, places: I64) -> Pieces:
    """Encode entries without their values; the first entry of a register carries the key."""
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
    """Copy texts and integers as they are encoded in messages or snapshots."""
    taken = wire.pieces(entries.value_at, entries.value_end).buffers()[2]
    return Pieces(entries.value_end - entries.value_at, b"" if taken is None else taken)
