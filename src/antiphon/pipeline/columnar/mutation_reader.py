"""Reads mutations that write one text or integer at one key, in columns, with the stamps of the entries they replace.

A mutation of any other form is marked as not `parsed`, and its item is left to `antiphon.model.fold.fold`.
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

MUTATION_FEEDS_MAX = 4  # feeds in the feed table of a mutation
REPLACED_MAX = 8  # entries that one write may replace
READ_ROWS = 16_384
_BODY, _MUTATION, _OP = tag_numbers("Message", "ObjectMutation", "ObjectOp")
_NAME, _VALUE = tag_numbers("Name", "Value")
_FEED_WORDS = np.arange(0, FEED_SIZE, 8)


@dataclass(slots=True)
class RegisterWrites:
    """Register writes: `parsed` if the mutation is one register write; then the offsets of its parts in the buffer."""

    rows: I64  # row numbers in the partition, by ascending offset of their bytes
    parsed: Bools
    key_at: I64
    key_size: I64
    value_at: I64  # of the text bytes, or of the encoded integer
    value_end: I64
    text: Bools
    replaced: list[ReplacedStamps] = field(default_factory=list)


@dataclass(slots=True)
class ReplacedStamps:
    """For some of the writes, the stamp of one entry that each replaces."""

    which: I64  # index of the write
    lane: I64  # of the feed in the stamp; -1 if no lane of the party has this feed
    lamport: I64
    seq: I64


@dataclass(slots=True)
class LaneIndex:
    """Index of the data feeds (lanes) of all parties, sorted by the first 8 bytes of the feed key.

    Lanes are numbered through all parties, in the order of the plans.
    """

    first: U64
    keys: npt.NDArray[np.uint64]  # the feed keys, four words in each row
    number: I64  # the number of each lane
    feeds: Bytes  # the feed keys by lane number
    begins: I64  # the number of the first lane of each party
    most: int  # the greatest number of feed keys that share their first 8 bytes

    @classmethod
    def of(cls, plans: Sequence[PartyPlan]) -> LaneIndex:
        """Index the lanes of all plans."""
        feeds = [lane.feed for plan in plans for lane in plan.lanes]
        keys = np.frombuffer(b"".join(feeds), dtype="<u8").reshape(-1, 4)
        order = np.argsort(keys[:, 0], kind="stable")
        begins = np.cumsum([0, *(len(plan.lanes) for plan in plans)])
        alike = np.unique(keys[:, 0], return_counts=True)[1].max(initial=0)
        return cls(keys[order, 0], keys[order], order, keys.view(np.uint8), begins, int(alike))

    def find(self, wire: Wire, at: I64, parties: I64) -> I64:
        """Return the lanes whose feed keys lie at offsets `at`; -1 where the party has no such feed."""
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


class MutationReader:
    """Reads mutations among ordered messages; `lane` is the lane number of each message."""

    def __init__(self, ordered: OrderedMessages, wire: Wire, lane: I64, lanes: LaneIndex) -> None:
        self._ordered = ordered
        self._wire = wire
        self._lane = lane
        self._lanes = lanes

    def read(self, rows: I64) -> RegisterWrites:
        """Read the mutations at `rows`, some thousands at a time, so that their columns stay in the core's cache."""
        parts = [self._read_some(rows[at : at + READ_ROWS]) for at in range(0, len(rows), READ_ROWS)]
        if not parts:
            parts = [self._read_some(rows)]
        names = [
            ReplacedStamps(some.which + nth * READ_ROWS, some.lane, some.lamport, some.seq)
            for nth, part in enumerate(parts)
            for some in part.replaced
        ]

        columns = ("parsed", "key_at", "key_size", "value_at", "value_end", "text")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
        return RegisterWrites(rows, **joined, replaced=names)

    def _read_some(self, rows: I64) -> RegisterWrites:
        wire, ordered = self._wire, self._ordered
        data = wire.bytes
        at = ordered.offsets[rows]
        end = at + ordered.sizes[rows]
        parsed = end > at
        parsed &= data[at] == _BODY.mutation
        size, at = wire.sizes(at + 1)
        parsed &= at + size == end
        tables: list[I64] = []
        has = parsed
        for _ in range(MUTATION_FEEDS_MAX):
            has = has & (data[at] == _MUTATION.feeds) & (data[at + 1] == FEED_SIZE)
            if not has.any():
                break
            tables.append(np.where(has, at + 2, -1))
            at[has] += 2 + FEED_SIZE
        parsed &= data[at] == _MUTATION.ops
        size, at = wire.sizes(at + 1)
        parsed &= (at + size == end) & (data[at] == _OP.path)
        key_at, key_size = at + 2, data[at + 1].astype(np.int64)
        parsed &= (key_size <= KEY_MAX) & (key_at + key_size + 4 <= end)
        at = np.where(parsed, key_at + key_size, 0)
        parsed &= data[at] == _OP.write
        size, at = wire.sizes(at + 1)
        value_end, tag = at + size, data[at]
        size, text_at = wire.sizes(at + 1)
        parsed &= value_end <= end
        text = (tag == _VALUE.text) & (text_at + size == value_end)
        parsed &= text | ((tag == _VALUE.integer) & wire.are_numbers(at + 1, value_end))
        value_at = np.where(text, text_at, at + 1)
        value_end[~parsed] = 0
        writes = RegisterWrites(rows, parsed, key_at, np.where(parsed, key_size, 0), value_at, value_end, text)
        self._read_replaced(writes, tables, end)
        self._check_texts(writes)
        return writes

    def _read_replaced(self, writes: RegisterWrites, tables: list[I64], end: I64) -> None:
        wire, ordered, parsed = self._wire, self._ordered, writes.parsed
        data = wire.bytes
        which = np.flatnonzero(parsed & (writes.value_end < end))
        at = writes.value_end[which]
        for _ in range(REPLACED_MAX):
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
            parsed[which[~good]] = False
            writes.replaced.append(ReplacedStamps(which[good], lane[good], lamport[good], seq[good]))
            more = good & (at < last)
            which, at = which[more], at[more]
        parsed[which] = False

    def _check_texts(self, writes: RegisterWrites) -> None:
        """Mark writes whose key or text is not UTF-8 as not parsed, replaced writes too: `fold` refuses them."""
        ends = writes.key_at + writes.key_size
        first, second = self._wire.keys(writes.key_at, writes.key_size)
        odd = np.flatnonzero(writes.parsed & ((first | second) & HIGH != 0))
        self._check_each(writes, odd, writes.key_at, ends)
        some = np.flatnonzero(writes.parsed & writes.text)
        try:
            self._wire.texts(writes.value_at[some], writes.value_end[some])
        except pa.ArrowInvalid:
            self._check_each(writes, some, writes.value_at, writes.value_end)

    def _check_each(self, writes: RegisterWrites, which: I64, at: I64, end: I64) -> None:
        for one in which.tolist():
            try:
                self._ordered.buffer[at[one] : end[one]].decode()
            except UnicodeDecodeError:
                writes.parsed[one] = False
