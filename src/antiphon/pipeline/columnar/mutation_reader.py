"""Mutations that write one text or integer at one key, read on columns, with what they name.

Others are not `right`: they are left to whoever reads any mutation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from antiphon.model.wire import tag_numbers
from antiphon.pipeline.columnar.snapshot_writer import FEED_SIZE, KEY_MAX
from antiphon.pipeline.order.shuffle_chunk import I64, U64
from antiphon.pipeline.order.total_order import OrderedMessages
from antiphon.pipeline.order.varints import HIGH, Bools, Bytes, Wire
from antiphon.pipeline.plan.party_plan import PartyPlan

MUTATION_FEEDS_MAX = 4  # in its table
NAMES_MAX = 8
READ_ROWS = 16_384
_BODY, _MUTATION, _OP = tag_numbers("Message", "ObjectMutation", "ObjectOp")
_NAME, _VALUE = tag_numbers("Name", "Value")
_FEED_WORDS = np.arange(0, FEED_SIZE, 8)


@dataclass(slots=True)
class Writes:
    """What was read of mutations: `right` where one is of the form, and where its parts lie in the buffer."""

    rows: I64  # their places in the partition, in the order of their bytes
    right: Bools
    key_at: I64
    key_size: I64
    value_at: I64  # a text, or an integer as it is written
    value_end: I64
    text: Bools
    names: list[Names] = field(default_factory=list)


@dataclass(slots=True)
class Names:
    """One name of each of some writes."""

    which: I64  # of the writes
    lane: I64  # of the feed that is named, by its place in the table; -1: no lane has it
    lamport: I64
    seq: I64


@dataclass(slots=True)
class Lanes:
    """The feeds of all parties, by the first bytes of their keys."""

    first: U64
    keys: npt.NDArray[np.uint64]  # four in each row
    number: I64  # of the lane, counted through all parties
    feeds: Bytes  # in the order of lanes
    begins: I64  # where the lanes of each party begin
    most: int  # of them begin alike

    @classmethod
    def of(cls, plans: Sequence[PartyPlan]) -> Lanes:
        feeds = [lane.feed for plan in plans for lane in plan.lanes]
        keys = np.frombuffer(b"".join(feeds), dtype="<u8").reshape(-1, 4)
        order = np.argsort(keys[:, 0], kind="stable")
        begins = np.cumsum([0, *(len(plan.lanes) for plan in plans)])
        alike = np.unique(keys[:, 0], return_counts=True)[1].max(initial=0)
        return cls(keys[order, 0], keys[order], order, keys.view(np.uint8), begins, int(alike))

    def find(self, wire: Wire, at: I64, parties: I64) -> I64:
        """The lanes of some parties whose keys lie there; -1 where there is none."""
        words = wire.words[at[:, None] + _FEED_WORDS]
        lane = np.full(len(words), -1)
        if not len(self.first):
            return lane
        place = np.searchsorted(self.first, words[:, 0])
        for step in range(self.most):  # a feed may be in several parties
            near = np.minimum(place + step, len(self.first) - 1)
            number = self.number[near]
            own = (number >= self.begins[parties]) & (number < self.begins[parties + 1])
            lane = np.where((self.keys[near] == words).all(axis=1) & own, number, lane)
        return lane


class Reader:
    """Reads mutations among ordered messages; `lane` is that of each message, counted through all parties."""

    def __init__(self, ordered: OrderedMessages, wire: Wire, lane: I64, lanes: Lanes) -> None:
        self._ordered = ordered
        self._wire = wire
        self._lane = lane
        self._lanes = lanes

    def read(self, rows: I64) -> Writes:
        """Some thousands at a time: their columns then stay in the cache of the core."""
        parts = [self._read_some(rows[at : at + READ_ROWS]) for at in range(0, len(rows), READ_ROWS)]
        if not parts:
            parts = [self._read_some(rows)]
        names = [
            Names(some.which + nth * READ_ROWS, some.lane, some.lamport, some.seq)
            for nth, part in enumerate(parts)
            for some in part.names
        ]

        columns = ("right", "key_at", "key_size", "value_at", "value_end", "text")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
        return Writes(rows, **joined, names=names)

    def _read_some(self, rows: I64) -> Writes:
        wire, ordered = self._wire, self._ordered
        data = wire.bytes
        at = ordered.offsets[rows]
        end = at + ordered.sizes[rows]
        right = end > at
        right &= data[at] == _BODY.mutation
        size, at = wire.sizes(at + 1)
        right &= at + size == end
        tables: list[I64] = []
        has = right
        for _ in range(MUTATION_FEEDS_MAX):
            has = has & (data[at] == _MUTATION.feeds) & (data[at + 1] == FEED_SIZE)
            if not has.any():
                break
            tables.append(np.where(has, at + 2, -1))
            at[has] += 2 + FEED_SIZE
        right &= data[at] == _MUTATION.ops
        size, at = wire.sizes(at + 1)
        right &= (at + size == end) & (data[at] == _OP.path)
        key_at, key_size = at + 2, data[at + 1].astype(np.int64)
        right &= (key_size <= KEY_MAX) & (key_at + key_size + 4 <= end)
        at = np.where(right, key_at + key_size, 0)
        right &= data[at] == _OP.write
        size, at = wire.sizes(at + 1)
        value_end, tag = at + size, data[at]
        size, text_at = wire.sizes(at + 1)
        right &= value_end <= end
        text = (tag == _VALUE.text) & (text_at + size == value_end)
        right &= text | ((tag == _VALUE.integer) & wire.are_numbers(at + 1, value_end))
        value_at = np.where(text, text_at, at + 1)
        value_end[~right] = 0
        writes = Writes(rows, right, key_at, np.where(right, key_size, 0), value_at, value_end, text)
        self._read_names(writes, tables, end)
        self._check_texts(writes)
        return writes

    def _read_names(self, writes: Writes, tables: list[I64], end: I64) -> None:
        wire, ordered, right = self._wire, self._ordered, writes.right
        data = wire.bytes
        which = np.flatnonzero(right & (writes.value_end < end))
        at = writes.value_end[which]
        for _ in range(NAMES_MAX):
            if not len(which):
                return
            rows, last = writes.rows[which], end[which]
            stop = at + 2 + data[at + 1]
            good = (data[at] == _OP.replaces) & (stop <= last)
            number = np.where(data[at + 2] == _NAME.feed, data[at + 3], 0).astype(np.int64)
            at = np.where(number > 0, at + 4, at + 2)
            good &= (data[at] == _NAME.lamport) & (number <= len(tables))
            lamport, at = wire.numbers(at + 1)
            has = (at < stop) & (data[at] == _NAME.seq)
            seq, after = wire.numbers(at + 1)
            seq, at = np.where(has, seq, 0), np.where(has, after, at)
            good &= (at == stop) & (lamport >= 0) & (seq >= 0)
            lane = self._lane[rows]
            for place, table in enumerate(tables, start=1):
                named = np.flatnonzero(good & (number == place))
                where = table[which[named]]
                lane[named] = self._lanes.find(wire, where, ordered.party[rows[named]].astype(np.int64))
                good[named[where < 0]] = False
            own = (number == 0) & (lamport == ordered.lamports[rows]) & (seq < ordered.seqs[rows])
            good &= (lamport < ordered.lamports[rows]) | own
            right[which[~good]] = False
            writes.names.append(Names(which[good], lane[good], lamport[good], seq[good]))
            more = good & (at < last)
            which, at = which[more], at[more]
        right[which] = False

    def _check_texts(self, writes: Writes) -> None:
        """Keys and texts are UTF-8, of writes that are replaced, too; what is not is left to `fold`, which says so."""
        ends = writes.key_at + writes.key_size
        first, second = self._wire.keys(writes.key_at, writes.key_size)
        odd = np.flatnonzero(writes.right & ((first | second) & HIGH != 0))
        self._check_each(writes, odd, writes.key_at, ends)
        some = np.flatnonzero(writes.right & writes.text)
        try:
            self._wire.texts(writes.value_at[some], writes.value_end[some])
        except pa.ArrowInvalid:
            self._check_each(writes, some, writes.value_at, writes.value_end)

    def _check_each(self, writes: Writes, which: I64, at: I64, end: I64) -> None:
        for one in which.tolist():
            try:
                self._ordered.buffer[at[one] : end[one]].decode()
            except UnicodeDecodeError:
                writes.right[one] = False
