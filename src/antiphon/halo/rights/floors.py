"""Blocks in a final epoch are final: floors under every cut, and the end of grants that have expired by then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.barren_acts import Seqs
from antiphon.halo.credentials.claims import Position
from antiphon.halo.finality.epoch_values import FinalEpoch


class Floors:
    """Floors of cuts: an act cannot void the blocks that a final epoch without that act holds."""

    def __init__(self, epochs: Sequence[FinalEpoch] = (), released: Mapping[bytes, int] | None = None) -> None:
        self.epochs = tuple(epochs)
        self.released = released or {}  # feeds that have ended: the first of the epochs, by place, that holds their end

    def __bool__(self) -> bool:
        return bool(self.epochs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Floors) and self.epochs == other.epochs and self.released == other.released

    def __hash__(self) -> int:
        return hash(tuple(epoch.snapshot for epoch in self.epochs))

    def hold(self, before: Floors, tops: Mapping[bytes, int]) -> bool:
        """True if these are the floors of before and some more epochs, each of which holds feeds up to these seqs."""
        count = len(before.epochs)
        released = {feed: at for feed, at in self.released.items() if at < count}
        return (
            self.begins_with(before)
            and released == before.released
            and all(epoch.control.get(feed, -1) >= top for epoch in self.epochs[count:] for feed, top in tops.items())
        )

    def begins_with(self, before: Floors) -> bool:
        """True if these are the floors of before, or of more epochs."""
        return self.epochs[: len(before.epochs)] == before.epochs

    def of(self, position: Position | None, feed: bytes) -> int:
        """Return the length of a feed in the last epoch without an act. `None` is an act that no epoch holds."""
        for epoch in reversed(self.epochs):
            if position is None or not epoch.control.includes(position.feed, position.seq):
                return epoch.length(feed)
        return 0

    def at(self, control: bytes, seqs: Seqs, feed: bytes) -> Seqs:
        """Return the same for acts of a control feed, by their seqs: the last epoch without an act counts for it."""
        found = np.zeros(len(seqs), dtype=np.int64)
        for epoch in self.epochs:
            found[seqs > epoch.control.get(control, -1)] = epoch.length(feed)
        return found

    def holding(self, position: Position) -> int:
        """Return the place of the first epoch that holds an act; after the last one if none does."""
        holds = (at for at, epoch in enumerate(self.epochs) if epoch.control.includes(position.feed, position.seq))
        return next(holds, len(self.epochs))

    def cut_before(self, feed: bytes, seq: int) -> int:
        """Return the length of a control feed in the last epoch that ends before block `seq`; 0 if there is none."""
        lengths = (epoch.control.get(feed, -1) + 1 for epoch in reversed(self.epochs))
        return next((length for length in lengths if length <= seq), 0)

    def below(self, act: Act, place: Place) -> bool:
        """True if a place is in an epoch without this act, so that the act has no effect on it."""
        return bool(self.epochs) and place.seq < self.of(act.position, place.feed)

    def expired(self, grant: Act, place: Place) -> bool:
        """True if a grant has expired before a place. It expires at the first epoch at or after its expiry."""
        if not grant.expires_ms:
            return False
        ended = next((epoch for epoch in self.epochs if epoch.created_ms >= grant.expires_ms), None)
        return ended is not None and place.seq >= ended.length(place.feed)
