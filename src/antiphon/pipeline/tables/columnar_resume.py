"""Folds new messages onto stored flat objects, in columns: `resume_fold` for the most common items.

A flat object with new register writes is never decoded: its snapshot and its display columns are made together with
those of all other flat objects of the shard. If only mutations have come, neither model code nor a Python row is
needed: the snapshot bytes around the state stay as they are. All other items are left to `ResumeFold`; tests compare.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from antiphon.model.wire import tags, varint
from antiphon.pipeline.columnar.mutation_reader import LaneIndex
from antiphon.pipeline.columnar.register_fold import RegisterFold
from antiphon.pipeline.columnar.snapshot_reader import read_snapshots
from antiphon.pipeline.order.shuffle_chunk import I64
from antiphon.pipeline.order.total_order import OrderedMessages
from antiphon.pipeline.order.varints import ROOM, Bools, Wire
from antiphon.pipeline.tables.columnar_display import DisplayColumns, all_utf8, display_columns

(_ITEM,) = tags("ItemSnapshot")


class FlatResume:
    """New messages, folded onto the snapshots of some of their items, given by ascending item numbers.

    `new` says, for all items, which begin with these messages; an item that is not new and has no snapshot is not flat.
    """

    def __init__(self, ordered: OrderedMessages, items: I64, snapshots: Sequence[bytes], new: Bools) -> None:
        self._snapshots = snapshots
        lanes = LaneIndex.of(ordered.plans)
        sizes = np.array([len(data) for data in snapshots], dtype=np.int64)
        bounds = len(ordered.buffer) + np.concatenate(([0], np.cumsum(sizes)))
        wire = Wire(b"".join([ordered.buffer, *snapshots, bytes(ROOM)]))
        parties = ordered.party[ordered.starts[items]].astype(np.int64)
        held = read_snapshots(wire, bounds, items, parties, lanes)
        self._parts = (held.state_at - bounds[:-1]).tolist(), (held.state_end - bounds[:-1]).tolist()
        self.registers = RegisterFold(ordered, lanes, wire, held)
        known = new.copy()
        known[items] = True
        self.flat = self.registers.flat
        self.flat &= known
        if not all_utf8(held.entries, wire):  # the item codec reports it
            self.flat[items] = False

    def display(self, items: I64) -> DisplayColumns:
        """Return the display columns of flat items, by ascending numbers."""
        return display_columns(self.registers.entries, items, self.registers.wire)

    def without_state(self, place: int) -> bytes:
        """Return the item record of the given snapshot number `place`, without its state."""
        before, behind = self._parts
        data = self._snapshots[place]
        return data[: before[place]] + data[behind[place] :]

    def snapshots(self, places: I64, items: I64) -> list[bytes]:
        """Return the new snapshots of items to which only mutations have come."""
        made = []
        before, behind = self._parts
        for place, nth in zip(places.tolist(), items.tolist(), strict=True):
            data, state = self._snapshots[place], self.registers.state(nth)
            about = data[: before[place]], _ITEM.state, varint(len(state)), state, data[behind[place] :]
            made.append(b"%b%b%b%b%b" % about)
        return made
