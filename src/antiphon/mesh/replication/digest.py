"""`HoldingsDigest`: a hash of all that is held of a party, by which two ends see that neither lacks anything.

>>> import tempfile
>>> from antiphon.feed.store.feed_store import FeedStore
>>> with tempfile.TemporaryDirectory() as folder, FeedStore.open(folder) as store:
...     HoldingsDigest(store, bytes(32)).get() == holdings_digest(store, bytes(32))
True
"""

from __future__ import annotations

from hashlib import sha256

from antiphon.core.codec import u64
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.store.feed_store import FeedStore
from antiphon.mesh.replication.limits import TIPS_MAX

_TAG = b"antiphon.holding"
_BUCKETS = 256  # by the first byte of the feed's key: after a change, one of them is hashed again


class HoldingsDigest:
    """The digest of one party in a feed store, which need not be open as a party. After a commit it costs the changes.

    It has no part in what is pruned: that is nothing that another end could take.
    """

    def __init__(self, store: FeedStore, party: bytes) -> None:
        self._store = store
        self._changed = store.changed_feeds(party)
        self._transaction = -1
        self._entries: dict[int, dict[bytes, bytes]] = {}
        self._hashes = [sha256().digest()] * _BUCKETS
        self._digest = b""

    def get(self) -> bytes:
        """Return the digest of what is held now."""
        now = self._store.transaction
        if now != self._transaction or not self._digest:
            changed = set()
            for record in self._changed.take():
                bucket = self._entries.setdefault(record.feed[0], {})
                if record.length:
                    bucket[record.feed] = _entry(self._store, record)
                else:
                    bucket.pop(record.feed, None)
                changed.add(record.feed[0])
            for number in changed:
                bucket = self._entries[number]
                self._hashes[number] = sha256(b"".join(bucket[feed] for feed in sorted(bucket))).digest()
            if changed or not self._digest:
                self._digest = sha256(_TAG + b"".join(self._hashes)).digest()
            self._transaction = now
        return self._digest


def holdings_digest(store: FeedStore, party: bytes) -> bytes:
    """Return the digest of what a store holds of a party. Whoever asks again keeps a `HoldingsDigest`."""
    return HoldingsDigest(store, party).get()


def _entry(store: FeedStore, record: FeedRecord) -> bytes:
    """Return what is hashed of a feed: its last block, where a fork cut it, and the last blocks of other branches."""
    fork = record.end + 1 if record.why is End.FORK else 0
    tips = sha256()
    after = b""
    while found := store.branch_tips(record.feed, after, TIPS_MAX) if record.branches else ():
        after = found[-1][1]
        for seq, hash_ in found:
            tips.update(u64(seq) + hash_)
    return record.feed + u64(record.length) + record.hash + u64(fork) + tips.digest()
