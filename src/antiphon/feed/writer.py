"""`FeedWriter`: appends to one's own feed. It sets seq, lamport and advance from the blocks that it has seen.

>>> import tempfile
>>> from antiphon.core.keys import KeyPair
>>> from antiphon.feed.header import Kind
>>> from antiphon.feed.store.feed_store import FeedStore
>>> party, mine, other = KeyPair.from_seed(b"p" * 32).key, KeyPair.from_seed(b"m" * 32), KeyPair.from_seed(b"o" * 32)
>>> with tempfile.TemporaryDirectory() as folder, FeedStore.open(folder) as store:
...     writer = FeedWriter.open(store, mine, party)
...     their = FeedWriter.open(store, other, party).append(Kind.MUTATION, bytes(16), b"theirs")
...     writer.see(store.block(their.feed, their.seq).entry)
...     writer.append(Kind.MUTATION, bytes(16), b"mine").lamport
2
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from antiphon.core.keys import KeyPair, PublicKey
from antiphon.core.stamp import Stamp
from antiphon.feed.encoder import Draft, Written
from antiphon.feed.header import Entry, Kind
from antiphon.feed.limits import ADVANCE_MAX
from antiphon.feed.store.feed_store import FeedStore


class FeedWriter:
    """Appends to one feed. Thread-safe. Entries passed to `see` go into the next block."""

    def __init__(self, store: FeedStore, pair: KeyPair, party: PublicKey) -> None:
        self._store = store
        self._pair = pair
        self.party = party
        self._lock = threading.Lock()
        self._seen: dict[bytes, Entry] = {}

    @classmethod
    def open(cls, store: FeedStore, pair: KeyPair, party: bytes) -> FeedWriter:
        """Return the writer of a feed; create the feed if the store does not hold it."""
        store.create(pair.key, party)
        return cls(store, pair, PublicKey(party))

    @property
    def feed(self) -> PublicKey:
        """Public key of the feed."""
        return self._pair.key

    def see(self, *entries: Entry) -> None:
        """Include these blocks of other feeds in this feed's timeframe, from the next block on."""
        with self._lock:
            for entry in entries:
                known = self._seen.get(entry.feed)
                if entry.feed != self._pair.key and (known is None or entry.seq > known.seq):
                    self._seen[entry.feed] = entry

    def see_only(self, entries: Iterable[Entry]) -> None:
        """Forget what was passed to `see` and has not been written, and include these blocks instead.

        A feed that was cut since then may have lost blocks that the earlier entries name.
        """
        with self._lock:
            self._seen = {}
        self.see(*entries)

    @property
    def unwritten(self) -> set[bytes]:
        """Feeds with entries that the next block will include."""
        with self._lock:
            return set(self._seen)

    @property
    def behind(self) -> bool:
        """True if more has been seen than the header of the next block holds."""
        return len(self._moving()) > ADVANCE_MAX

    def _moving(self) -> list[Entry]:
        """Return entries for the next blocks. If they are more than one header holds: those that are new, latest first.

        So the lamport of the next block is above all that was seen, whether its header has room for it or not.
        """
        with self._lock:
            seen = list(self._seen.values())
        if len(seen) <= ADVANCE_MAX:
            return seen
        known = self._store.frontier(self.feed)
        moving = [entry for entry in seen if entry.feed not in known or entry.seq > known[entry.feed].seq]
        return sorted(moving, key=lambda entry: entry.lamport, reverse=True)

    def append(self, kind: Kind, item: bytes, message: bytes) -> Stamp:
        """Append one message; it is durable on return."""
        return self.extend([Draft(kind, item, message)])[0]

    def extend(
        self,
        drafts: Sequence[Draft],
        *,
        atomic: bool = False,
        created_ms: int | None = None,
        expect: tuple[int, int] | None = None,
    ) -> Written:
        """Append several messages in one commit; with `atomic`, readers see all of them or none."""
        seen = tuple(self._moving()[:ADVANCE_MAX])  # the rest waits for the next block
        stamps = self._store.append(
            self._pair, self.party, drafts, seen=seen, atomic=atomic, created_ms=created_ms, expect=expect
        )
        with self._lock:
            for entry in seen:
                if self._seen.get(entry.feed) == entry:
                    del self._seen[entry.feed]
        return stamps
