"""Folds flat objects in columns: finds the register entries that remain for all items of a partition at once.

The state of an object is a set of entries (`model.object.state`). Of the entries of one feed at one key only the last
remains, unless some operation at the key replaces it, whatever the order of the two. So for messages that write one
text or integer at one key, and name the messages that they replace, three things determine the state: the last entry of
each feed at each key, which of them are replaced, and the last seq of each feed. If any message of an item has another
form, or names a message that is not known here, the item is left to `fold`. Tests compare the two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.model.access import AccessLog
from antiphon.model.fold import Authors
from antiphon.model.message import Note
from antiphon.pipeline.columnar.mutation_reader import LaneIndex, MutationReader, RegisterWrites
from antiphon.pipeline.columnar.snapshot_reader import SnapshotColumns
from antiphon.pipeline.columnar.snapshot_writer import FEED_SIZE, Entries, HeardSeqs, write_states
from antiphon.pipeline.order.messages import BASE_STATE
from antiphon.pipeline.order.shuffle_chunk import I64, U64
from antiphon.pipeline.order.total_order import OrderedMessages
from antiphon.pipeline.order.varints import Wire

_LAST = Stamp((1 << 63) - 1, b"\xff" * FEED_SIZE, (1 << 63) - 1)
_KEY_BITS = 63
_MUTATION = int(Kind.MUTATION)
_new = tuple.__new__  # half the price of calling the class, for every entry


class RegisterFold:
    """The folded flat objects of a partition. Items are numbered in the order of `ordered`."""

    def __init__(
        self, ordered: OrderedMessages, lanes: LaneIndex, wire: Wire | None = None, held: SnapshotColumns | None = None
    ) -> None:
        """Fold all messages of each item; or, with `held`, new messages onto the snapshots after them in `wire`."""
        self._ordered = ordered
        self.wire = Wire(ordered.buffer) if wire is None else wire
        lengths = np.diff(ordered.starts)
        self._item = np.repeat(np.arange(len(lengths)), lengths)
        self._lane = lanes.begins[ordered.party] + ordered.lane
        self.flat = np.ones(len(lengths), dtype=np.bool_)  # by item: it is a flat object
        mutations = ordered.kinds == _MUTATION
        self.flat[self._item[ordered.kinds == BASE_STATE]] = False
        if ordered.voids is not None:
            self.flat[self._item[mutations & (ordered.voids > 0)]] = False
        if held is not None:  # new messages to a stored item must be later than its genesis
            firsts = ordered.lamports[ordered.starts[held.items]]
            self.flat[held.items[~held.parsed | (firsts <= held.genesis_lamports)]] = False
        inside = np.flatnonzero(mutations)
        reader = MutationReader(ordered, self.wire, self._lane, lanes)
        writes = reader.read(inside[np.argsort(ordered.offsets[inside])])
        self.flat[self._item[writes.rows[~writes.parsed]]] = False
        heard = self._hear(inside, held)
        self.entries = self._resolve(writes, heard, held)
        self._states = write_states(len(lengths), lanes.feeds, heard, self.entries, self.wire)
        self._ids = ordered.items[ordered.starts[:-1]].tobytes()
        self._starts: list[int] = ordered.starts.tolist()
        self._inside, self._first = inside, np.searchsorted(inside, ordered.starts)
        others = np.flatnonzero(~mutations)
        self._others = ordered.notes_at(others)
        self._others_at: list[int] = np.searchsorted(others, ordered.starts).tolist()

    def item_id(self, nth: int) -> bytes:
        """Return the id of an item."""
        return self._ids[16 * nth : 16 * nth + 16]

    def message_count(self, nth: int) -> int:
        """Return the number of messages to an item."""
        return self._starts[nth + 1] - self._starts[nth]

    def other_messages(self, nth: int) -> list[Note]:
        """Return the messages to an item that are not mutations: genesis, changes, metadata."""
        return self._others[self._others_at[nth] : self._others_at[nth + 1]]

    def state(self, nth: int) -> bytes:
        """Return the snapshot of the model state of an item, if the item is flat."""
        return self._states[nth]

    def first_mutation(self, nth: int, feeds: Sequence[bytes]) -> Stamp:
        """Return the stamp of the first mutation of an item; a stamp above all others if there is none."""
        at, ordered = self._first[nth], self._ordered
        if at == self._first[nth + 1]:
            return _LAST
        row = self._inside[at]
        return Stamp(int(ordered.lamports[row]), feeds[ordered.lane[row]], int(ordered.seqs[row]))

    def all_allowed(self, nth: int, access: AccessLog, feeds: Sequence[bytes], authors: Authors) -> bool:
        """True if the access list of an item allows all of its mutations."""
        ordered, some = self._ordered, self._inside[self._first[nth] : self._first[nth + 1]]
        columns = (ordered.lamports, ordered.lane, ordered.seqs)
        for lamport, lane, seq in zip(*(column[some].tolist() for column in columns), strict=True):
            feed = feeds[lane]
            if access.refusal(_new(Stamp, (lamport, feed, seq)), authors(feed, seq)):
                return False
        return True

    # -- folding

    def _resolve(self, writes: RegisterWrites, heard: HeardSeqs, held: SnapshotColumns | None) -> Entries:
        """Return the entries that remain. An item is not flat if a write of it names a message that is not here."""
        entries = self._entries(writes)
        if held is not None:  # new messages are later than stored ones
            entries = Entries.joined([held.entries, entries])
        last = _LastEntries(entries)
        self.flat[last.odd_items] = False
        first, second = self.wire.keys(writes.key_at, writes.key_size)
        for names in writes.replaced:
            which = names.which
            item = self._item[writes.rows[which]]
            self.flat[item[~heard.has(item, names.lane, names.seq)]] = False
            key = (item, first[which], second[which], writes.key_size[which], names.lane)
            last.replace(key, names.lamport, names.seq)
        found = last.remaining()
        entries = entries.where(found[self.flat[entries.item[found]]])
        return entries.by_key() if held is None else entries.in_order()

    def _entries(self, writes: RegisterWrites) -> Entries:
        """Return the entries of all writes, in the order of their stamps."""
        found = np.flatnonzero(writes.parsed)
        found = found[np.argsort(writes.rows[found])]
        rows, ordered = writes.rows[found], self._ordered
        return Entries(
            self._item[rows],
            self.wire.keys(writes.key_at[found], writes.key_size[found]),
            writes.key_size[found],
            self._lane[rows],
            ordered.lamports[rows],
            ordered.seqs[rows],
            writes.value_at[found],
            writes.value_end[found],
            writes.text[found],
        )

    def _hear(self, rows: I64, held: SnapshotColumns | None) -> HeardSeqs:
        """Return the seq of the last message of each feed to each item."""
        item, lane, seq = self._item[rows], self._lane[rows], self._ordered.seqs[rows]
        if held is not None:  # new messages are later than stored ones
            old = held.heard
            pairs = ((old.item, item), (old.lane, lane), (old.seq, seq))
            item, lane, seq = (np.concatenate(pair) for pair in pairs)
        width, bits = int(lane.max(initial=0)) + 1, len(item).bit_length()
        pair = item * width + lane
        if len(item) and int(pair.max()).bit_length() + bits > _KEY_BITS:
            order = np.argsort(pair, kind="stable")
        else:
            keys = pair << bits | np.arange(len(item))
            keys.sort()
            order = keys & ((1 << bits) - 1)
        last = order[np.flatnonzero(np.diff(pair[order], append=-1))]
        return HeardSeqs(item[last], lane[last], seq[last])


class _LastEntries:
    """The last entry of each feed at each key of each item, found by a hash of the three."""

    def __init__(self, entries: Entries) -> None:
        """Take entries of which those of one feed at one key are in the order of the feed."""
        self._entries = entries
        count = len(entries.item)
        bits = count.bit_length()
        self._bits = np.uint64(bits)
        numbers = _mixed(*_about(entries)) >> self._bits << self._bits | np.arange(count, dtype=np.uint64)
        numbers.sort()
        order = (numbers & np.uint64((1 << bits) - 1)).astype(np.int64)
        numbers >>= self._bits
        alike = numbers[1:] == numbers[:-1]
        is_last = np.ones(count, dtype=np.bool_)
        is_last[: max(count - 1, 0)] = ~alike
        self._at, self._numbers = order[is_last], numbers[is_last]
        self._stands = np.ones(len(self._at), dtype=np.bool_)
        # If entries of different keys have the same hash, only one is found: their items are left to `fold`.
        one, other = order[1:][alike], order[:-1][alike]
        same = np.ones(len(one), dtype=np.bool_)
        for column in _about(entries):
            same &= column[one] == column[other]
        self.odd_items = entries.item[np.concatenate((one[~same], other[~same]))]

    def replace(self, key: tuple[I64 | U64, ...], lamport: I64, seq: I64) -> None:
        """Remove the entries, by item, key and lane, that are at most as late as these lamports and seqs."""
        if not len(self._numbers):
            return
        found = np.searchsorted(self._numbers, _mixed(*key) >> self._bits)
        found = np.minimum(found, len(self._numbers) - 1)
        at = self._at[found]
        covered = (self._entries.lamport[at] <= lamport) & (self._entries.seq[at] <= seq)
        for column, wanted in zip(_about(self._entries), key, strict=True):
            covered &= column[at] == wanted
        self._stands[found[covered]] = False

    def remaining(self) -> I64:
        """Return the indexes of the entries that remain, ascending."""
        found: I64 = np.sort(self._at[self._stands])
        return found


def _about(entries: Entries) -> tuple[I64 | U64, ...]:
    return entries.item, *entries.keys, entries.key_size, entries.lane


def _mixed(*columns: I64 | U64) -> U64:
    """Hash several columns into one; two different rows may have the same hash."""
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed
