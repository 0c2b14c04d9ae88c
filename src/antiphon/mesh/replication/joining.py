"""`Joining`: lets a device that holds no data of a party wait for the last epoch, so that it need not take the history.

Such a device takes the control feeds first, by which it knows the final epochs. If there is one, it fetches the
snapshot, and then requests the data feeds from the cut on, also of peers that hold their history. If neither control
blocks nor blobs come for a while, it takes the history: perhaps nobody has the snapshot.
"""

from __future__ import annotations

from antiphon.mesh.replication.holdings import Holdings
from antiphon.mesh.replication.limits import JOIN_WAIT_MS, NEVER
from antiphon.party.epochs.epochs import Epochs


class Joining:
    """The wait of a newcomer for the last final epoch of a party."""

    def __init__(self, holdings: Holdings, epochs: Epochs | None) -> None:
        self._holdings = holdings
        self._epochs = epochs
        self._is_over = epochs is None  # of control feeds, or of one view, there is nothing to wait for
        self._patience_ms: int | None = None
        self._seen: tuple[int, int] = (0, 0)  # the version of the holdings, and the blobs that came
        self._blobs = 0
        self._final = False  # an epoch is final, as far as is known here

    def took_blobs(self, count: int) -> None:
        """Note that blobs have come."""
        self._blobs += count

    def give_up(self) -> bool:
        """Take the history from now on. Return True if this device has waited for the last epoch until now."""
        waits = not self._is_over and self._epochs is not None and not self._is_served(self._epochs)
        self._is_over = True
        return waits and self._final

    def until(self, now_ms: int, lacks_control: bool, *, fetches: bool) -> int:
        """Return until when no data feed is to be requested; 0 if they may be requested now.

        `lacks_control` is true if control feeds are being requested. Unless the device `fetches` blobs now, it waits.
        """
        if self._is_over or self._epochs is None or self._is_served(self._epochs):
            self._is_over = True
            return 0
        seen = self._holdings.version, self._blobs
        if seen[0] != self._seen[0]:
            self._final = self._epochs.chain().last is not None
        if seen[1] != self._seen[1] or (lacks_control and seen != self._seen):
            self._patience_ms = None
        self._seen = seen
        if not lacks_control and not self._final:
            return 0
        if not fetches:
            return NEVER
        if self._patience_ms is None:
            self._patience_ms = now_ms + JOIN_WAIT_MS
        if now_ms < self._patience_ms:
            return self._patience_ms
        self._is_over = True
        return 0

    def _is_served(self, epochs: Epochs) -> bool:
        """True if this device stands on an epoch, or holds data of others."""
        if epochs.base is not None:
            return True
        return any(not held.control and not self._holdings.is_own(held.feed) for held in self._holdings)
