"""Folds new mutations onto plain objects that the tables have, on columns: `goingon` for the most common items.

An item whose state is plain, and to which nothing but plain mutations has come, needs no code of a model, no state in
memory and no row of Python's: its snapshot, and what is shown of it, are made for all such items of a shelf at once.
All other items are left to `GoingOn`; tests compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from antiphon.model.objectwire import varint
from antiphon.pipeline.held import read_held
from antiphon.pipeline.ordered import Ordered
from antiphon.pipeline.parcel import I64
from antiphon.pipeline.plainshown import PlainShown, show_plain
from antiphon.pipeline.registers import Registers
from antiphon.pipeline.wire import ROOM, Wire
from antiphon.pipeline.writes import Lanes


@dataclass(slots=True)
class Gone:
    """The items that were folded on."""

    which: I64  # of those that were given
    messages: I64  # that came to each
    snapshots: list[bytes]
    shown: PlainShown


def go_on(ordered: Ordered, items: I64, snapshots: Sequence[bytes]) -> Gone:
    """Fold messages onto snapshots: those of the items with these numbers among the messages, ascending."""
    lanes = Lanes.of(ordered.plans)
    sizes = [len(data) for data in snapshots]
    bounds = len(ordered.buffer) + np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    wire = Wire(b"".join([ordered.buffer, *snapshots, bytes(ROOM)]))
    parties = ordered.party[ordered.starts[items]].astype(np.int64)
    held = read_held(wire, bounds, items, parties, lanes)
    registers = Registers(ordered, lanes, wire, held)
    which = np.flatnonzero(registers.plain[items])
    try:
        shown = show_plain(registers.entries, items[which], wire)
    except pa.ArrowInvalid:  # what is held is no text: whoever reads it says so
        which = which[:0]
        shown = show_plain(registers.entries, items[which], wire)
    frames = zip((held.state_at - bounds[:-1])[which].tolist(), which.tolist(), items[which].tolist(), strict=True)
    made = []
    for end, place, nth in frames:
        state = registers.state(nth)
        made.append(b"%b\x6a%b%b" % (snapshots[place][:end], varint(len(state)), state))
    messages = np.diff(ordered.starts)[items[which]]
    return Gone(which, messages, made, shown)
