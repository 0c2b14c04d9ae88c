"""Sort the messages of one partition, given as shuffle chunks, by item and in the total order. All of it in columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.feed.header import Kind
from antiphon.model.message import Note
from antiphon.party.engine.demux import NOT_AN_ITEM_MESSAGE
from antiphon.party.engine.judge import void_places
from antiphon.pipeline.order.messages import BASE_STATE
from antiphon.pipeline.order.shuffle_chunk import I64, MISSING, Ids, ShuffleChunk, hash_items
from antiphon.pipeline.order.varints import ROOM
from antiphon.pipeline.plan.party_plan import PartyPlan

#: The key (party, item) of an item, its base state or None, and its messages in the total order.
Group = tuple[tuple[bytes, bytes], bytes | None, list[Note]]

_KEY_BITS = 64
_new = tuple.__new__  # for each message, half the cost of calling the class


@dataclass(slots=True)
class OrderedMessages:
    """Messages sorted by item and stamp. Each column has one value for each message.

    `starts` holds the index of the first message of each item, and the total count at its end. Message `i` is
    `buffer[offsets[i] : offsets[i] + sizes[i]]`.
    """

    party: npt.NDArray[np.int32]
    lane: npt.NDArray[np.int32]
    items: Ids
    lamports: I64
    seqs: I64
    created: I64
    kinds: npt.NDArray[np.uint8]
    sizes: npt.NDArray[np.int32]
    offsets: I64
    buffer: bytes
    starts: I64
    plans: Sequence[PartyPlan]
    feeds: list[tuple[bytes, ...]]  # by party and lane
    voids: npt.NDArray[np.int32] | None  # index into `reasons`, 0 for messages that count; None if all count
    reasons: list[str]

    @classmethod
    def of(cls, found: Iterable[ShuffleChunk], plans: Sequence[PartyPlan]) -> OrderedMessages | None:
        """Sort the messages of chunks, which come in any order; None if there are no chunks."""
        chunks = sorted(found, key=lambda chunk: (chunk[0], chunk[1], _first(chunk[4])))  # party, lane, first seq
        if not chunks:
            return None
        counts = [len(chunk[6]) for chunk in chunks]
        parties, lanes = (np.repeat(np.array([one[n] for one in chunks], dtype=np.int32), counts) for n in (0, 1))
        joined = [b"".join([cast(memoryview, one[n]) for one in chunks]) for n in range(2, 8)]
        buffer = b"".join([*(one[8] for one in chunks), bytes(ROOM)])
        chunks.clear()  # frees memory for sorting
        items = np.frombuffer(joined[0], dtype=np.uint8).reshape(-1, ITEM_ID_SIZE)
        lamports, seqs, created = (np.frombuffer(data, dtype="<i8") for data in joined[1:4])
        kinds, sizes = np.frombuffer(joined[4], dtype=np.uint8), np.frombuffer(joined[5], dtype="<i4")
        offsets = np.cumsum(np.maximum(sizes, 0), dtype=np.int64)
        offsets = np.concatenate(([0], offsets[:-1]))
        order, starts = _order(items, parties, lamports)
        made = cls(
            parties[order],
            lanes[order],
            items[order],
            lamports[order],
            seqs[order],
            created[order],
            kinds[order],
            sizes[order],
            offsets[order],
            buffer,
            starts,
            plans,
            [tuple(lane.feed for lane in plan.lanes) for plan in plans],
            None,
            [""],
        )
        made._find_voids()
        return made

    def _find_voids(self) -> None:
        """Find void messages: those in void ranges of their lanes, and credentials, which data feeds must not hold."""
        numbers: dict[str, int] = {}
        for party in np.unique(self.party).tolist():
            for lane, plan in enumerate(self.plans[party].lanes):
                if plan.voids:
                    mine = np.flatnonzero((self.party == party) & (self.lane == lane))
                    which = void_places(plan.voids, self.seqs[mine])
                    inside = which >= 0
                    reasons = np.array([numbers.setdefault(void.reason, 1 + len(numbers)) for void in plan.voids])
                    self._void(mine[inside], reasons[which[inside]])
        wrong = np.flatnonzero((self.kinds == int(Kind.CREDENTIAL)) & (self._voids() == 0))
        self._void(wrong, numbers.setdefault(NOT_AN_ITEM_MESSAGE, 1 + len(numbers)))
        self.reasons += numbers

    def _void(self, which: I64, reason: I64 | int) -> None:
        if len(which):
            self.voids = self._voids()
            self.voids[which] = reason

    def _voids(self) -> npt.NDArray[np.int32]:
        return np.zeros(len(self), dtype=np.int32) if self.voids is None else self.voids

    def __len__(self) -> int:
        return len(self.seqs)

    def message(self, index: int) -> bytes | None:
        """One message; None if its body is not held."""
        size, at = int(self.sizes[index]), int(self.offsets[index])
        return None if size == MISSING else self.buffer[at : at + size]

    def groups(self, items: I64 | None = None) -> Iterator[Group]:
        """Yield the group of each item, or of the items with these indexes."""
        begins, ends = self.starts[:-1], self.starts[1:]
        if items is not None:
            begins, ends = begins[items], ends[items]
        for start, stop in zip(begins.tolist(), ends.tolist(), strict=True):
            yield self.group(start, stop)

    def group(self, start: int, stop: int) -> Group:
        """The group of the item whose messages are [start, stop)."""
        base = self.message(start) if self.kinds[start] == BASE_STATE else None
        notes = self.notes(start + (base is not None), stop)
        return (self.plans[self.party[start]].party, self.items[start].tobytes()), base, notes

    def notes(self, start: int, stop: int) -> list[Note]:
        """The messages [start, stop)."""
        return self._notes(slice(start, stop))

    def notes_at(self, rows: I64) -> list[Note]:
        """The messages with these indexes."""
        return self._notes(rows)

    def _notes(self, which: Any) -> list[Note]:
        columns = (self.kinds, self.lamports, self.party, self.lane, self.seqs, self.created, self.offsets, self.sizes)
        rows = zip(*(column[which].tolist() for column in columns), strict=True)
        feeds, buffer = self.feeds, self.buffer
        found = [
            _new(
                Note,
                (kind, lamport, feeds[party][lane], seq, created, buffer[at : at + size] if size >= 0 else None, ""),
            )
            for kind, lamport, party, lane, seq, created, at, size in rows
        ]
        if self.voids is not None:
            voids = self.voids[which]
            for at in np.flatnonzero(voids).tolist():
                found[at] = found[at]._replace(void=self.reasons[voids[at]])
        return found


def _order(items: Ids, parties: npt.NDArray[np.int32], lamports: I64) -> tuple[I64, I64]:
    """The sorted order of messages, and the index at which each item begins. The input is in order of party, feed, seq.

    The rank of the item, the lamport and the input position are packed into one integer, so that one sort suffices.
    """
    count = len(lamports)
    numbers, ranks = np.unique(hash_items(items, parties.astype(np.int64)), return_inverse=True)
    least = lamports.min()
    position_bits, lamport_bits = count.bit_length(), int(lamports.max() - least).bit_length()
    if position_bits + lamport_bits + len(numbers).bit_length() > _KEY_BITS:
        return _order_slowly(items, parties, lamports)
    keys = ranks.astype(np.uint64) << np.uint64(lamport_bits)
    keys = (keys | (lamports - least).astype(np.uint64)) << np.uint64(position_bits)
    keys |= np.arange(count, dtype=np.uint64)
    keys.sort()
    order = (keys & np.uint64((1 << position_bits) - 1)).astype(np.int64)
    begins = np.flatnonzero(np.diff(ranks[order])) + 1
    if _breaks(items, parties, order) != len(begins):  # two items have the same hash
        return _order_slowly(items, parties, lamports)
    return order, np.concatenate(([0], begins, [count]))


def _first(seqs: Any) -> int:
    return int.from_bytes(memoryview(seqs)[:8], "little", signed=True)


def _halves(items: Ids) -> npt.NDArray[np.uint64]:
    return np.ascontiguousarray(items).view("<u8")


def _breaks(items: Ids, parties: npt.NDArray[np.int32], order: I64) -> int:
    """Number of neighbours that belong to different items."""
    halves, party = _halves(items)[order], parties[order]
    other = (halves[1:] != halves[:-1]).any(axis=1) | (party[1:] != party[:-1])
    return int(other.sum())


def _order_slowly(items: Ids, parties: npt.NDArray[np.int32], lamports: I64) -> tuple[I64, I64]:
    halves = _halves(items)
    order = np.lexsort((lamports, halves[:, 1], halves[:, 0], parties))  # stable
    halves, party = halves[order], parties[order]
    other = (halves[1:] != halves[:-1]).any(axis=1) | (party[1:] != party[:-1])
    return order, np.concatenate(([0], np.flatnonzero(other) + 1, [len(lamports)]))
