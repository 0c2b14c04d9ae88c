"""The fold of plain registers on columns: which writes of a partition's objects stand, found without a call for each.

The state of an object is a set of entries (`model.objectstate`): an entry stands unless some operation at its key names
it, whatever the order. So for messages that write one text or integer at one key, in place of others that they name,
three things settle the state: which entries are named, what stands, and the last seq that was heard of each feed. All
are found for a whole partition at once. Where any message of an item is of another form, or names what is not here, the
item is left to `fold`. Tests compare the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.model.access import AccessLog
from antiphon.model.envelope import Note
from antiphon.model.item import Authors
from antiphon.pipeline.messages import BASE_STATE
from antiphon.pipeline.ordered import Ordered
from antiphon.pipeline.parcel import I64, U64, numbers
from antiphon.pipeline.plan import PartyPlan
from antiphon.pipeline.states import FEED_SIZE, KEY_MAX, Entries, Hearings, write_states

FEEDS_MAX = 4  # in the table of a mutation
NAMES_MAX = 8
VARINT_MAX = 5  # bytes; a greater number is left to `fold`
READ_ROWS = 16_384
_LAST = Stamp((1 << 63) - 1, b"\xff" * FEED_SIZE, (1 << 63) - 1)
_SEQ_BITS = 40
_KEY_BITS = 63
_MUTATION = int(Kind.MUTATION)
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(9)], dtype=np.uint64)
_HIGH = np.uint64(0x8080808080808080)
_FEED_WORDS = np.arange(0, FEED_SIZE, 8)
_new = tuple.__new__  # half the price of calling the class, for every entry

Bools = npt.NDArray[np.bool_]


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
    feeds: npt.NDArray[np.uint8]  # in the order of lanes
    begins: I64  # where the lanes of each party begin

    @classmethod
    def of(cls, plans: Sequence[PartyPlan]) -> Lanes:
        feeds = [lane.feed for plan in plans for lane in plan.lanes]
        keys = np.frombuffer(b"".join(feeds), dtype="<u8").reshape(-1, 4)
        order = np.argsort(keys[:, 0], kind="stable")
        begins = np.cumsum([0, *(len(plan.lanes) for plan in plans)])
        return cls(keys[order, 0], keys[order], order, keys.view(np.uint8), begins)

    def find(self, words: npt.NDArray[np.uint64]) -> I64:
        """The lanes with these keys; -1 where there is none, or another has the same beginning."""
        if not len(self.first):
            return np.full(len(words), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.first, words[:, 0]), len(self.first) - 1)
        return np.where((self.keys[at] == words).all(axis=1), self.number[at], -1)


class Registers:
    """The plain objects of a partition, by the places of its items."""

    def __init__(self, ordered: Ordered, lanes: Lanes) -> None:
        self._ordered = ordered
        self._bytes = np.frombuffer(ordered.buffer, dtype=np.uint8)
        self._words = np.ndarray((len(ordered.buffer) - 7,), dtype="<u8", buffer=ordered.buffer, strides=(1,))
        lengths = np.diff(ordered.starts)
        self._item = np.repeat(np.arange(len(lengths)), lengths)
        self._lane = lanes.begins[ordered.party] + ordered.lane
        self.plain = np.ones(len(lengths), dtype=np.bool_)  # of each item: none of its messages is of another form
        mutations = ordered.kinds == _MUTATION
        self.plain[self._item[ordered.kinds == BASE_STATE]] = False
        if ordered.voids is not None:
            self.plain[self._item[mutations & (ordered.voids > 0)]] = False
        inside = np.flatnonzero(mutations)
        writes = self._read(inside[np.argsort(ordered.offsets[inside])], lanes)
        self.plain[self._item[writes.rows[~writes.right]]] = False
        stands = self._resolve(writes)
        entries = self._entries(writes, np.flatnonzero(stands & self.plain[self._item[writes.rows]]))
        self._states = write_states(len(lengths), lanes.feeds, self._hear(inside), entries, ordered.buffer)
        self._ids = ordered.items[ordered.starts[:-1]].tobytes()
        self._starts: list[int] = ordered.starts.tolist()
        self._inside, self._first = inside, np.searchsorted(inside, ordered.starts)
        others = np.flatnonzero(~mutations)
        self._others = ordered.notes_at(others)
        self._others_at: list[int] = np.searchsorted(others, ordered.starts).tolist()

    def item(self, nth: int) -> bytes:
        """The id of an item."""
        return self._ids[16 * nth : 16 * nth + 16]

    def count(self, nth: int) -> int:
        """How many messages there are to an item."""
        return self._starts[nth + 1] - self._starts[nth]

    def others(self, nth: int) -> list[Note]:
        """The messages to an item that are no mutations."""
        return self._others[self._others_at[nth] : self._others_at[nth + 1]]

    def state(self, nth: int) -> bytes:
        """The snapshot of the object that the mutations of an item make, if the item is plain."""
        return self._states[nth]

    def begins(self, nth: int, feeds: Sequence[bytes]) -> Stamp:
        """The first mutation of an item; a stamp above all others if there is none."""
        at, ordered = self._first[nth], self._ordered
        if at == self._first[nth + 1]:
            return _LAST
        row = self._inside[at]
        return Stamp(int(ordered.lamports[row]), feeds[ordered.lane[row]], int(ordered.seqs[row]))

    def may_all(self, nth: int, access: AccessLog, feeds: Sequence[bytes], authors: Authors) -> bool:
        """Whether the access list of an item lets all of its mutations count."""
        ordered, some = self._ordered, self._inside[self._first[nth] : self._first[nth + 1]]
        columns = (ordered.lamports, ordered.lane, ordered.seqs)
        for lamport, lane, seq in zip(*(column[some].tolist() for column in columns), strict=True):
            feed = feeds[lane]
            if access.refusal(_new(Stamp, (lamport, feed, seq)), authors(feed, seq)):
                return False
        return True

    # -- reading

    def _read(self, rows: I64, lanes: Lanes) -> Writes:
        """Some thousands at a time: their columns then stay in the cache of the core."""
        parts = [self._read_some(rows[at : at + READ_ROWS], lanes) for at in range(0, len(rows), READ_ROWS)]
        if not parts:
            parts = [self._read_some(rows, lanes)]
        names = [
            Names(some.which + nth * READ_ROWS, some.lane, some.lamport, some.seq)
            for nth, part in enumerate(parts)
            for some in part.names
        ]

        def joined(name: str) -> npt.NDArray[Any]:
            return np.concatenate([getattr(part, name) for part in parts])

        return Writes(
            rows,
            joined("right"),
            joined("key_at"),
            joined("key_size"),
            joined("value_at"),
            joined("value_end"),
            joined("text"),
            names,
        )

    def _read_some(self, rows: I64, lanes: Lanes) -> Writes:
        data, ordered = self._bytes, self._ordered
        at = ordered.offsets[rows]
        end = at + ordered.sizes[rows]
        right = end > at
        right &= data[at] == 0x22
        size, at = self._size(at + 1)
        right &= at + size == end
        tables: list[I64] = []
        has = right
        for _ in range(FEEDS_MAX):
            has = has & (data[at] == 0x0A) & (data[at + 1] == FEED_SIZE)
            if not has.any():
                break
            tables.append(np.where(has, at + 2, -1))
            at[has] += 2 + FEED_SIZE
        right &= data[at] == 0x12
        size, at = self._size(at + 1)
        right &= (at + size == end) & (data[at] == 0x0A)
        key_at, key_size = at + 2, data[at + 1].astype(np.int64)
        right &= (key_size <= KEY_MAX) & (key_at + key_size + 4 <= end)
        at = np.where(right, key_at + key_size, 0)
        right &= data[at] == 0x1A
        size, at = self._size(at + 1)
        value_end, tag = at + size, data[at]
        size, text_at = self._size(at + 1)
        right &= value_end <= end
        text = (tag == 0x2A) & (text_at + size == value_end)
        right &= text | ((tag == 0x18) & self._is_number(at + 1, value_end))
        value_at = np.where(text, text_at, at + 1)
        value_end[~right] = 0
        writes = Writes(rows, right, key_at, np.where(right, key_size, 0), value_at, value_end, text)
        self._read_names(writes, tables, end, lanes)
        self._check_texts(writes)
        return writes

    def _size(self, at: I64) -> tuple[I64, I64]:
        """The sizes there, of one or two bytes, and where they end; one that is longer fits nothing."""
        low, high = self._bytes[at].astype(np.int64), self._bytes[at + 1].astype(np.int64)
        two = low >= 0x80
        size = np.where(two, low & 0x7F | high << 7, low)
        size[two & (high >= 0x80)] = 1 << 30
        return size, at + 1 + two

    def _is_number(self, at: I64, end: I64) -> Bools:
        """Whether one number lies there, and nothing else."""
        size = end - at
        found = (size > 0) & (size <= 8)
        size = np.where(found, size, 1)
        marks = self._words[at] & _MASKS[size] & _HIGH
        found &= marks == _HIGH & _MASKS[size - 1]
        # A number that is written longer than it need be is another in a snapshot.
        found &= (size == 1) | (self._bytes[at + size - 1] != 0)
        return found

    def _read_names(self, writes: Writes, tables: list[I64], end: I64, lanes: Lanes) -> None:
        data, ordered, right = self._bytes, self._ordered, writes.right
        which = np.flatnonzero(right & (writes.value_end < end))
        at = writes.value_end[which]
        for _ in range(NAMES_MAX):
            if not len(which):
                return
            rows, last = writes.rows[which], end[which]
            stop = at + 2 + data[at + 1]
            good = (data[at] == 0x3A) & (stop <= last)
            number = np.where(data[at + 2] == 0x08, data[at + 3], 0).astype(np.int64)
            at = np.where(number > 0, at + 4, at + 2)
            good &= (data[at] == 0x10) & (number <= len(tables))
            lamport, at = self._number(at + 1)
            has = (at < stop) & (data[at] == 0x18)
            seq, after = self._number(at + 1)
            seq, at = np.where(has, seq, 0), np.where(has, after, at)
            good &= (at == stop) & (lamport >= 0) & (seq >= 0)
            lane = self._lane[rows]
            for place, table in enumerate(tables, start=1):
                named = np.flatnonzero(good & (number == place))
                where = table[which[named]]
                lane[named] = lanes.find(self._words[where[:, None] + _FEED_WORDS])
                good[named[where < 0]] = False
            own = (number == 0) & (lamport == ordered.lamports[rows]) & (seq < ordered.seqs[rows])
            good &= (lamport < ordered.lamports[rows]) | own
            right[which[~good]] = False
            writes.names.append(Names(which[good], lane[good], lamport[good], seq[good]))
            more = good & (at < last)
            which, at = which[more], at[more]
        right[which] = False

    def _number(self, at: I64) -> tuple[I64, I64]:
        """The numbers there, -1 for one that is too long, and where they end."""
        words = self._words[at]
        ends = ~words & _HIGH & _MASKS[VARINT_MAX]
        lowest = ends & (~ends + np.uint64(1))  # the highest bit of the last byte
        value = words & ((lowest << np.uint64(1)) - np.uint64(1))
        found, size = np.zeros(len(at), dtype=np.uint64), np.ones(len(at), dtype=np.int64)
        for place in range(VARINT_MAX):
            found |= (value >> np.uint64(place)) & np.uint64(0x7F << (7 * place))
            size += lowest > np.uint64(0x80 << (8 * place))
        return np.where(ends > 0, found.astype(np.int64), -1), at + size

    def _check_texts(self, writes: Writes) -> None:
        """Keys and texts are UTF-8, of writes that are replaced, too; what is not is left to `fold`, which says so."""
        ends = writes.key_at + writes.key_size
        first, second = self._key_words(writes)
        odd = np.flatnonzero(writes.right & ((first | second) & _HIGH != 0))
        self._check_each(writes, odd, writes.key_at, ends)
        some = np.flatnonzero(writes.right & writes.text)
        if not self._all_text(writes.value_at[some], writes.value_end[some]):
            self._check_each(writes, some, writes.value_at, writes.value_end)

    def _check_each(self, writes: Writes, which: I64, at: I64, end: I64) -> None:
        for one in which.tolist():
            try:
                self._ordered.buffer[at[one] : end[one]].decode()
            except UnicodeDecodeError:
                writes.right[one] = False

    def _all_text(self, at: I64, end: I64) -> bool:
        """Whether all of these are: every second value of an array, whose others are what lies between."""
        if not len(at):
            return True
        bounds = np.empty(2 * len(at), dtype=np.int64)
        bounds[0::2], bounds[1::2] = at, end
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self._ordered.buffer)]
        values = pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers)
        try:
            values.take(numbers(np.arange(0, len(bounds) - 1, 2), pa.int64())).cast(pa.large_string())
        except pa.ArrowInvalid:
            return False
        return True

    def _key_words(self, writes: Writes) -> tuple[U64, U64]:
        """The bytes of each key, as two numbers."""
        first, second = self._words[writes.key_at], self._words[writes.key_at + 8]
        return first & _MASKS[np.minimum(writes.key_size, 8)], second & _MASKS[np.maximum(writes.key_size, 8) - 8]

    # -- folding

    def _resolve(self, writes: Writes) -> Bools:
        """Which writes stand. Who names something else than a write of its own item and key is left to `fold`."""
        ordered, rows = self._ordered, writes.rows
        stands = writes.right.copy()
        if not len(rows):
            return stands
        if int(ordered.seqs.max()) >> _SEQ_BITS:
            self.plain[:] = False
            return stands
        places = self._lane[rows] << _SEQ_BITS | ordered.seqs[rows]
        order = np.argsort(places)
        places = places[order]
        item, lamport, (first, second) = self._item[rows], ordered.lamports[rows], self._key_words(writes)
        for names in writes.names:
            which, wanted = names.which, names.lane << _SEQ_BITS | names.seq
            found = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
            at = order[found]
            same = (places[found] == wanted) & (item[at] == item[which]) & (lamport[at] == names.lamport)
            same &= (first[at] == first[which]) & (second[at] == second[which])
            same &= writes.key_size[at] == writes.key_size[which]
            self.plain[item[which[~same]]] = False
            stands[at[same]] = False
        return stands

    def _entries(self, writes: Writes, found: I64) -> Entries:
        found = found[np.argsort(writes.rows[found])]
        rows, ordered, keys = writes.rows[found], self._ordered, self._key_words(writes)
        return Entries.of(
            self._item[rows],
            (keys[0][found], keys[1][found]),
            writes.key_size[found],
            self._lane[rows],
            ordered.lamports[rows],
            ordered.seqs[rows],
            writes.value_at[found],
            writes.value_end[found],
            writes.text[found],
        )

    def _hear(self, rows: I64) -> Hearings:
        """The last message of each feed to each item."""
        lane, count = self._lane[rows], len(rows)
        width, bits = int(lane.max(initial=0)) + 1, count.bit_length()
        pairs = self._item[rows] * width + lane
        if count and int(pairs.max()).bit_length() + bits > _KEY_BITS:
            order = np.argsort(pairs, kind="stable")
        else:
            keys = pairs << bits | np.arange(count)
            keys.sort()
            order = keys & ((1 << bits) - 1)
        ends = np.flatnonzero(np.diff(pairs[order], append=-1))
        last = rows[order[ends]]
        return Hearings(self._item[last], self._lane[last], self._ordered.seqs[last])
