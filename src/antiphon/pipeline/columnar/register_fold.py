"""Folds flat objects in columns: finds the register entries that remain for all items of a partition at once.

The state of an object is a set of entries (`model.object.state`). An entry remains unless some operation at its key
replaces it, whatever the order of the two. So for messages that write one text or integer at one key, and name the
stamps that they replace, three things determine the state: which entries are replaced, which remain, and the last seq
of each feed. If any message of an item has another form, or replaces an entry that is not known here, the item is
left to `fold`. Tests compare the two.
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
from antiphon.pipeline.order.varints import Bools, Wire

_LAST = Stamp((1 << 63) - 1, b"\xff" * FEED_SIZE, (1 << 63) - 1)
_SEQ_BITS = 40
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
        stored = None if held is None else StoredEntries(held, len(lengths))
        stands = self._resolve(writes, stored)
        self.entries = self._entries(writes, np.flatnonzero(stands & self.flat[self._item[writes.rows]]), stored)
        heard = self._hear(inside, held)
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

    def _resolve(self, writes: RegisterWrites, stored: StoredEntries | None) -> Bools:
        """Return which writes remain. An item is not flat if a write of it replaces an unknown entry."""
        ordered, rows = self._ordered, writes.rows
        stands = writes.parsed.copy()
        if not len(rows):
            return stands
        if int(ordered.seqs.max()) >> _SEQ_BITS:
            self.flat[:] = False
            return stands
        places = self._lane[rows] << _SEQ_BITS | ordered.seqs[rows]
        order = np.argsort(places)
        places = places[order]
        item, lamport = self._item[rows], ordered.lamports[rows]
        first, second = self.wire.keys(writes.key_at, writes.key_size)
        for names in writes.replaced:
            which, wanted = names.which, names.lane << _SEQ_BITS | names.seq
            found = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
            at = order[found]
            same = (places[found] == wanted) & (item[at] == item[which]) & (lamport[at] == names.lamport)
            same &= (first[at] == first[which]) & (second[at] == second[which])
            same &= writes.key_size[at] == writes.key_size[which]
            stands[at[same]] = False
            other = np.flatnonzero(~same)
            if stored is not None:
                to = which[other]
                key = (item[to], first[to], second[to], writes.key_size[to])
                other = other[~stored.replace(*key, names.lane[other], names.lamport[other], names.seq[other])]
            self.flat[item[which[other]]] = False
        return stands

    def _entries(self, writes: RegisterWrites, found: I64, stored: StoredEntries | None) -> Entries:
        found = found[np.argsort(writes.rows[found])]
        rows, ordered = writes.rows[found], self._ordered
        new = Entries(
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
        if stored is None:
            return new.by_key()
        old = stored.entries.where(stored.stands & self.flat[stored.entries.item])
        return Entries.joined([old, new]).in_order()

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


class StoredEntries:
    """Entries of stored snapshots, indexed so that new writes find the ones that they replace."""

    def __init__(self, held: SnapshotColumns, items: int) -> None:
        self.entries = held.entries
        self.stands = np.ones(len(self.entries.item), dtype=np.bool_)
        self._width = int(held.heard.lane.max(initial=0)) + 1
        heard = held.heard.item * self._width + held.heard.lane
        order = np.argsort(heard)
        self._heard, self._seqs = heard[order], held.heard.seq[order]
        numbers = _mixed(*self._about(self.entries))
        self._order = np.argsort(numbers)
        self._numbers = numbers[self._order]
        # If two entries have the same hash, only one of them would be found: their items are left to `fold`.
        twice = np.flatnonzero(self._numbers[1:] == self._numbers[:-1])
        self._odd = np.zeros(items, dtype=np.bool_)
        self._odd[self.entries.item[self._order[np.concatenate((twice, twice + 1))]]] = True

    @staticmethod
    def _about(entries: Entries) -> tuple[I64 | U64, ...]:
        return entries.item, *entries.keys, entries.key_size, entries.lane, entries.lamport, entries.seq

    def replace(self, *named: I64 | U64) -> Bools:
        """Remove entries, by item, key, lane, lamport and seq. True where the entry was here, or was replaced before.

        It was replaced before if it is missing although the snapshot has heard its feed that far.
        """
        item, lane, seq = named[0], named[4], named[6]
        good = ~self._odd[item]
        if len(self._numbers):
            numbers = _mixed(*named)
            found = np.minimum(np.searchsorted(self._numbers, numbers), len(self._numbers) - 1)
            at = self._order[found]
            same = good.copy()
            for column, wanted in zip(self._about(self.entries), named, strict=True):
                same &= column[at] == wanted
            self.stands[at[same]] = False
        if not len(self._heard):
            return np.zeros(len(item), dtype=np.bool_)
        pair = item * self._width + lane
        found = np.minimum(np.searchsorted(self._heard, pair), len(self._heard) - 1)
        good &= (lane >= 0) & (lane < self._width) & (self._heard[found] == pair) & (self._seqs[found] >= seq)
        return good


def _mixed(*columns: I64 | U64) -> U64:
    """Hash several columns into one; two different rows may have the same hash."""
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed
