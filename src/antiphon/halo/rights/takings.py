"""Ends of devices, and erasures, by whom they concern. Some are values, and some are rows of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from antiphon.halo.acts.act import Act
from antiphon.halo.acts.act_columns import END, ERASURE
from antiphon.halo.acts.barren_acts import Seqs
from antiphon.halo.credentials.claims import Erasure, FeedEnd
from antiphon.halo.rights.kept_acts import KeptActs


class DeviceEnds:
    """Ends of devices, valid or void."""

    def __init__(self) -> None:
        self._held: dict[bytes, list[Act]] = {}  # by device
        self._kept: dict[bytes, tuple[KeptActs, int]] = {}  # by control feed: columns, of which the first rows count

    def copy(self) -> DeviceEnds:
        """Return an index of its own."""
        made = DeviceEnds()
        made._held = {device: list(acts) for device, acts in self._held.items()}
        made._kept = dict(self._kept)
        return made

    def __bool__(self) -> bool:
        return bool(self._held or self._kept)

    def add(self, act: Act, claim: FeedEnd) -> None:
        """Take an end."""
        self._held.setdefault(claim.device, []).append(act)

    def keep(self, kept: KeptActs, start: int, stop: int) -> bool:
        """Take ends in the blocks [start, stop) of a feed that are kept as columns. False if there are none."""
        count = kept.says(END, start, stop)
        if count:
            self._kept[kept.feed] = kept, count
        return count > 0

    def of(self, device: bytes) -> Sequence[Act]:
        """Return the ends of a device that are values."""
        return self._held.get(device, ())

    def rows(self, device: bytes) -> Iterator[tuple[KeptActs, Seqs]]:
        """Yield the ends of a device that are rows of columns."""
        for kept, count in self._kept.values():
            rows = kept.acts.about(device, END)
            if len(rows := rows[rows < count]):
                yield kept, rows


class Erasures:
    """Erasures, valid or void."""

    def __init__(self) -> None:
        self._held: dict[bytes, list[tuple[Act, int]]] = {}  # by data feed: acts and seqs
        self._kept: dict[bytes, tuple[KeptActs, int]] = {}  # by control feed: columns, of which the first rows count
        self._found: dict[bytes, tuple[Seqs, frozenset[int]]] = {}  # by data feed: the last answer

    def copy(self) -> Erasures:
        """Return an index of its own."""
        made = Erasures()
        made._held = {feed: list(acts) for feed, acts in self._held.items()}
        made._kept, made._found = dict(self._kept), dict(self._found)
        return made

    def seqs(self, feed: bytes, found: Seqs) -> frozenset[int]:
        """Return messages of a data feed as a set: that of the last answer, if it is the same. There may be many."""
        known = self._found.get(feed)
        if known is None or not np.array_equal(known[0], found):
            known = self._found[feed] = found, frozenset(found.tolist())
        return known[1]

    def add(self, act: Act, claim: Erasure) -> None:
        """Take an erasure."""
        for feed, seq in claim.positions:
            self._held.setdefault(feed, []).append((act, seq))

    def keep(self, kept: KeptActs, start: int, stop: int) -> bool:
        """Take erasures in the blocks [start, stop) of a feed that are kept as columns. False if there are none."""
        count = kept.says(ERASURE, start, stop)
        if count:
            self._kept[kept.feed] = kept, count
        return count > 0

    def of(self, feed: bytes) -> Sequence[tuple[Act, int]]:
        """Return the erasures in a data feed that are values: the acts, and the seqs of messages."""
        return self._held.get(feed, ())

    def rows(self, feed: bytes) -> Iterator[tuple[KeptActs, Seqs, Seqs]]:
        """Yield the erasures in a data feed that are rows of columns: the rows, and the seqs of messages."""
        for kept, count in self._kept.values():
            rows, seqs = kept.acts.listing(feed, ERASURE)
            inside = rows < count
            if inside.any():
                yield kept, rows[inside], seqs[inside]
