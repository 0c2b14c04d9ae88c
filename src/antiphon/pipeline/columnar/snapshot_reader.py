"""Reads item snapshots of flat objects in columns: texts and integers at keys, and the last seq of each feed.

It is the inverse of `snapshot_writer`, for many items at once. The bytes were written by a fold, so this reader does
not check that they are canonical (entries sorted, unique, and covered by `heard`). A snapshot of another form, or with
lengths that do not fit, is marked as not `parsed` and left to `item_codec`, which reports what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from antiphon.model.wire import number_at, tag_numbers
from antiphon.pipeline.columnar.mutation_reader import LaneIndex
from antiphon.pipeline.columnar.snapshot_writer import FEED_SIZE, KEY_MAX, Entries, HeardSeqs
from antiphon.pipeline.order.shuffle_chunk import I64
from antiphon.pipeline.order.varints import LONG_VARINT_MAX, Bools, Wire

FIELDS_MAX = 12  # fields before the state that are read in columns; the few items with more have many more
STATE_FEEDS_MAX = 64  # feeds in the feed table of a state
ENTRIES_MAX = 128  # entries of a state
TAIL_MAX = 40  # fields after the state
_NONE = 1 << 62
_ITEM, _OBJECT, _ROW = tag_numbers("ItemSnapshot", "ObjectSnapshot", "ObjectRegister")
_ENTRY, _VALUE = tag_numbers("ObjectEntry", "Value")
_ACCESS = (_ITEM.creator, _ITEM.access)


@dataclass(slots=True)
class SnapshotColumns:
    """The contents of some item snapshots. `heard` and `entries` refer to items by number."""

    items: I64  # the numbers of the items, ascending
    parsed: Bools
    genesis_lamports: I64
    state_at: I64  # where the state field begins; no field before or after it depends on mutations
    state_end: I64
    heard: HeardSeqs
    entries: Entries


def read_snapshots(wire: Wire, bounds: I64, items: I64, parties: I64, lanes: LaneIndex) -> SnapshotColumns:
    """Read the snapshots between `bounds`: of the items with numbers `items`, which belong to `parties`."""
    return _SnapshotReader(wire, bounds[:-1], bounds[1:], parties, lanes).read(items)


class _SnapshotReader:
    """Reads all snapshots side by side, field by field; each step handles the snapshots that have not ended."""

    def __init__(self, wire: Wire, starts: I64, ends: I64, parties: I64, lanes: LaneIndex) -> None:
        self.wire = wire
        self.end = ends.copy()
        self.at = starts.copy()  # the read position of each snapshot
        self.parsed = np.ones(len(starts), dtype=np.bool_)
        self.genesis_lamports = np.full(len(starts), _NONE)
        self._lanes = lanes
        self._parties = parties

    def read(self, items: I64) -> SnapshotColumns:
        self._read_records()
        state_at = self.at.copy()
        self._enter_states()
        state_end = self.end
        tables = self._read_tables()
        heard = self._read_heard(tables)
        entries = self._read_registers(tables)
        kept = self.parsed[heard.item]
        heard = HeardSeqs(items[heard.item[kept]], heard.lane[kept], heard.seq[kept])
        entries = entries.where(self.parsed[entries.item])
        entries.item = items[entries.item]
        return SnapshotColumns(items, self.parsed, self.genesis_lamports, state_at, state_end, heard, entries)

    def _fail(self, which: I64) -> None:
        self.parsed[which] = False
        self.at[which] = self.end[which]

    # -- the item record around the state

    def _read_records(self) -> None:
        """Read up to the state field; an item without mutations has none."""
        wire, live = self.wire, np.arange(len(self.at))
        for _ in range(FIELDS_MAX):
            at, end = self.at[live], self.end[live]
            tag = wire.bytes[at]
            more = (tag != _ITEM.state) & (at < end)
            live, at, end, tag = live[more], at[more], end[more], tag[more]
            if not len(live):
                return
            size, inside = wire.sizes(at + 1)
            _, after = wire.numbers(at + 1, LONG_VARINT_MAX)
            is_number = tag & 7 == 0
            self.at[live] = np.where(is_number, after, inside + size)
            genesis = np.flatnonzero(tag == _ITEM.genesis)
            self.genesis_lamports[live[genesis]] = self._lamports(inside[genesis])
            good = (tag < _ITEM.state) & (tag > 0) & (is_number | (tag & 7 == 2)) & (self.at[live] <= end)
            self._fail(live[~good])
            live = live[good]
        for one in live.tolist():
            self._read_rest(one)

    def _read_rest(self, one: int) -> None:
        """Do the same for one item with many fields: an item that was moved often has a field for each move."""
        data, at, end = self.wire.buffer, int(self.at[one]), int(self.end[one])
        while at < end and data[at] != _ITEM.state:
            tag = data[at]
            size, after = number_at(data, at + 1, end)
            at = after if tag & 7 == 0 else after + size
            if not 0 < tag < _ITEM.state or tag & 7 not in (0, 2) or tag == _ITEM.genesis or at > end:
                self._fail(np.array([one]))
                return
        self.at[one] = at

    def _lamports(self, at: I64) -> I64:
        """Read the lamports of stamps; a malformed stamp gets a lamport above all others."""
        data = self.wire.bytes
        found, _ = self.wire.numbers(at + 3)
        right = (data[at] == _ENTRY.feed) & (data[at + 1] < 0x80) & (data[at + 2] == _ENTRY.lamport) & (found >= 0)
        return np.where(right, found, _NONE)

    def _enter_states(self) -> None:
        """Move into the states, and check the fields after them: only view and access list are allowed."""
        wire, live = self.wire, np.flatnonzero(self.parsed & (self.at < self.end))
        size, at = wire.sizes(self.at[live] + 1)
        ends, stops = self.end.copy(), at + size
        self.at[live] = at
        self._fail(live[stops > ends[live]])
        self.end[live] = np.minimum(stops, ends[live])
        live = live[self.parsed[live]]
        at = self.end[live]
        for _ in range(TAIL_MAX):
            more = at < ends[live]
            live, at = live[more], at[more]
            if not len(live):
                return
            tag = wire.bytes[at].astype(np.int64) | wire.bytes[at + 1].astype(np.int64) << 8
            view = tag & 0xFF == _ITEM.view
            size, inside = wire.sizes(at + np.where(view, 1, 2))
            good = (view | np.isin(tag, _ACCESS)) & (inside + size <= ends[live])
            self._fail(live[~good])
            live, at = live[good], (inside + size)[good]
        self._fail(live)

    # -- the feed table, and the last seq of each feed

    def _read_tables(self) -> Sequence[I64]:
        """Read the feed tables: for each index, from 1 on, the lane in each snapshot; -1 where the table is shorter."""
        data, tables = self.wire.bytes, [np.full(len(self.at), -1)]
        live = np.flatnonzero(self.parsed)
        for _ in range(STATE_FEEDS_MAX):
            at = self.at[live]
            more = (data[at] == _OBJECT.feeds) & (data[at + 1] == FEED_SIZE)
            live = live[more & (at + 2 + FEED_SIZE < self.end[live])]
            if not len(live):
                break
            lane = self._lanes.find(self.wire, self.at[live] + 2, self._parties[live])
            self.at[live] += 2 + FEED_SIZE
            own = lane >= 0
            self._fail(live[~own])
            live = live[own]
            table = np.full(len(self.at), -1)
            table[live] = lane[own]
            tables.append(table)
        return tables

    def _read_heard(self, tables: Sequence[I64]) -> HeardSeqs:
        """Read the `heard` fields: one for each feed of the table, in order."""
        wire, data = self.wire, self.wire.bytes
        items, lanes, seqs = [], [], []
        for place, table in enumerate(tables[1:], start=1):
            live = np.flatnonzero(self.parsed & (table >= 0))
            at = self.at[live]
            size = data[at + 1].astype(np.int64)
            seq, after = wire.numbers(at + 5)
            none = size == 2
            seq, after = np.where(none, 0, seq), np.where(none, at + 4, after)
            good = (data[at] == _OBJECT.heard) & (data[at + 2] == _ENTRY.feed) & (data[at + 3] == place) & (seq >= 0)
            good &= (none | (data[at + 4] == _ENTRY.seq)) & (after == at + 2 + size) & (after <= self.end[live])
            self.at[live] = after
            self._fail(live[~good])
            items.append(live)
            lanes.append(table[live])
            seqs.append(seq)
        none_at_all = [np.zeros(0, dtype=np.int64)]
        return HeardSeqs(*(np.concatenate(some or none_at_all) for some in (items, lanes, seqs)))

    # -- registers

    def _read_registers(self, tables: Sequence[I64]) -> Entries:
        wire, data, found = self.wire, self.wire.bytes, [Entries.none()]
        lanes = np.stack(tables)
        key_at, key_size, ends = (np.zeros(len(self.at), dtype=np.int64) for _ in range(3))
        live = np.flatnonzero(self.parsed & (self.at < self.end))
        for _ in range(ENTRIES_MAX):
            if not len(live):
                break
            begins = live[self.at[live] >= ends[live]]  # the previous entry was the last of its register
            at = self.at[begins]
            size, inside = wire.sizes(at + 1)
            ends[begins] = inside + size
            key_at[begins], key_size[begins] = inside + 2, data[inside + 1]
            self.at[begins] = inside + 2 + data[inside + 1]
            good = (data[at] == _OBJECT.registers) & (data[inside] == _ROW.path) & (key_size[begins] <= KEY_MAX)
            good &= (ends[begins] <= self.end[begins]) & (self.at[begins] < ends[begins])
            self._fail(begins[~good])
            live = live[self.parsed[live]]
            found.append(self._entry(live, lanes, key_at, key_size, ends))
            live = live[self.parsed[live] & (self.at[live] < self.end[live])]
        self._fail(live)
        return Entries.joined(found)

    def _entry(self, live: I64, lanes: I64, key_at: I64, key_size: I64, ends: I64) -> Entries:
        """Read the next entry of each of the snapshots `live`."""
        wire, data, at = self.wire, self.wire.bytes, self.at[live]
        size, inside = wire.sizes(at + 1)
        end, place = inside + size, data[inside + 1]
        good = (data[at] == _ROW.entries) & (end <= ends[live]) & (data[inside] == _ENTRY.feed) & (place < len(lanes))
        good &= data[inside + 2] == _ENTRY.lamport
        lane = lanes[np.where(good, place, 0), live]
        lamport, at = wire.numbers(inside + 3)
        good &= (lane >= 0) & (lamport >= 0)
        seq, after = wire.numbers(at + 1)
        has = data[at] == _ENTRY.seq  # a 0 is not written
        seq, at = np.where(has, seq, 0), np.where(has, after, at)
        good &= (seq >= 0) & (data[at] == _ENTRY.value)
        size, at = wire.sizes(at + 1)
        good &= at + size == end
        tag = data[at]
        size, text_at = wire.sizes(at + 1)
        text = (tag == _VALUE.text) & (text_at + size == end)
        value_at, end = np.where(good & text, text_at, at + 1), np.where(good, end, 0)
        good &= text | ((tag == _VALUE.integer) & wire.are_numbers(at + 1, end))
        self.at[live] = end
        self._fail(live[~good])
        live, where = live[good], key_at[live[good]]
        columns = (lane[good], lamport[good], seq[good], value_at[good], end[good], text[good])
        return Entries(live, wire.keys(where, key_size[live]), key_size[live], *columns)
