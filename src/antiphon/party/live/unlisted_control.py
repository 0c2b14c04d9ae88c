"""`UnlistedControl`: the control blocks that this device has seen, and that no message of it lists yet."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from antiphon.feed.header import Entry


class UnlistedControl:
    """Compares the control blocks of a party with those that this device's own data feed lists.

    The authority returns an equal tuple of entries until the control state changes, so most writes compare little.
    """

    def __init__(self) -> None:
        self._feed = b""  # this device's data feed
        self._done: Sequence[Entry] | None = None  # the entries of the last write, if it has listed all of them
        self._listed: dict[bytes, Entry] = {}
        self._seen: tuple[Sequence[Entry], dict[bytes, int]] = ((), {})

    def find(self, feed: bytes, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return those of the entries that the next block of this device's feed has to list."""
        if feed != self._feed:
            self._feed, self._done, self._listed = feed, None, {}
        if entries == self._done:
            return ()
        return [entry for entry in entries if self._listed.get(entry.feed) != entry]

    def wrote(self, entries: Sequence[Entry], found: Sequence[Entry], left: Collection[bytes]) -> None:
        """Note that a block was written which lists what `find` returned, but not of the feeds in `left`."""
        self._listed.update((entry.feed, entry) for entry in found if entry.feed not in left)
        self._done = entries if not any(entry.feed in left for entry in found) else None

    def timeframe(self, entries: Sequence[Entry]) -> dict[bytes, int]:
        """Return the seqs of all entries, by feed."""
        if self._seen[0] != entries:
            self._seen = entries, {entry.feed: entry.seq for entry in entries}
        return self._seen[1]
