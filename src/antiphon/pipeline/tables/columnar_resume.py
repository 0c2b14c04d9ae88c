"""Folds new messages onto plain objects that the tables have, on columns: `resume_fold` for the most common items.

An item whose state is plain, and to which plain mutations have come, needs no state in memory: its snapshot, and what
is shown of it, are made for all such items of a shelf at once. If nothing but mutations has come, it needs no code of a
model either, and no row of Python's: all that stands before the state in its snapshot stays as it is. All other items
are left to `GoingOn`; tests compare.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from antiphon.model.wire import tags, varint
from antiphon.pipeline.columnar.mutation_reader import Lanes
from antiphon.pipeline.columnar.register_fold import Registers
from antiphon.pipeline.columnar.snapshot_reader import read_held
from antiphon.pipeline.order.shuffle_chunk import I64
from antiphon.pipeline.order.total_order import OrderedMessages
from antiphon.pipeline.order.varints import ROOM, Bools, Wire
from antiphon.pipeline.tables.columnar_display import PlainShown, are_texts, show_plain

(_ITEM,) = tags("ItemSnapshot")


class GoingPlain:
    """Messages, and the snapshots of some of their items: those with these numbers, ascending.

    Of all items, `new` says which ones begin with these messages; what is neither new nor has a snapshot is not plain.
    """

    def __init__(self, ordered: OrderedMessages, items: I64, snapshots: Sequence[bytes], new: Bools) -> None:
        self._snapshots = snapshots
        lanes = Lanes.of(ordered.plans)
        sizes = np.array([len(data) for data in snapshots], dtype=np.int64)
        bounds = len(ordered.buffer) + np.concatenate(([0], np.cumsum(sizes)))
        wire = Wire(b"".join([ordered.buffer, *snapshots, bytes(ROOM)]))
        parties = ordered.party[ordered.starts[items]].astype(np.int64)
        held = read_held(wire, bounds, items, parties, lanes)
        self._parts = (held.state_at - bounds[:-1]).tolist(), (held.state_end - bounds[:-1]).tolist()
        self.registers = Registers(ordered, lanes, wire, held)
        known = new.copy()
        known[items] = True
        self.plain = self.registers.plain
        self.plain &= known
        if not are_texts(held.entries, wire):  # whoever reads them says so
            self.plain[items] = False

    def show(self, items: I64) -> PlainShown:
        """What is shown of some of the plain items, by their numbers, ascending."""
        return show_plain(self.registers.entries, items, self.registers.wire)

    def frame(self, place: int) -> bytes:
        """The snapshot that is at a place of those that were given, without the state."""
        before, behind = self._parts
        data = self._snapshots[place]
        return data[: before[place]] + data[behind[place] :]

    def snapshots(self, places: I64, items: I64) -> list[bytes]:
        """The new snapshots of items to which nothing but mutations has come."""
        made = []
        before, behind = self._parts
        for place, nth in zip(places.tolist(), items.tolist(), strict=True):
            data, state = self._snapshots[place], self.registers.state(nth)
            about = data[: before[place]], _ITEM.state, varint(len(state)), state, data[behind[place] :]
            made.append(b"%b%b%b%b%b" % about)
        return made
