"""The quarantine: a list of refused blocks with reasons, for people and for tests. No refusal is silent.

The table is bounded, because any peer can send invalid blocks: the oldest refusals are dropped, and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from antiphon.core.codec import Reader, u32, u64
from antiphon.core.errors import BadEncoding, TooLarge
from antiphon.feed.limits import QUARANTINE_ENTRIES_MAX
from antiphon.feed.store.tables import Tables, checked, unchecked

_TEXT_MAX = 1024
_DROPPED = "quarantine.dropped"
_NEXT = "quarantine.next"
_BY_NUMBER = b"n"
_BY_DIGEST = b"d"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refused block, or the first of several that were refused together."""

    feed: bytes
    seq: int
    count: int
    at_ms: int
    reason: str

    def encode(self) -> bytes:
        """Encode the refusal; a reason of more than 1024 bytes is cut."""
        text = self._text()
        return self.feed + u64(self.seq) + u32(self.count) + u64(self.at_ms) + u32(len(text)) + text

    def digest(self) -> bytes:
        """Return the identity of a refusal: feed, seq and reason, without the time."""
        return _BY_DIGEST + sha256(self.feed + u64(self.seq) + self._text()).digest()

    def _text(self) -> bytes:
        return self.reason.encode()[:_TEXT_MAX].decode("utf-8", "ignore").encode()

    @classmethod
    def decode(cls, data: bytes) -> Refusal:
        """Decode a stored refusal."""
        reader = Reader(data, "refusal")
        feed, seq, count, at_ms = reader.take(32), reader.u64(), reader.u32(), reader.u64()
        text = reader.take(reader.u32())
        reader.done()
        if len(text) > _TEXT_MAX:
            raise TooLarge(f"refusal: a reason of {len(text)} bytes, at most {_TEXT_MAX} are kept")
        try:
            return cls(feed, seq, count, at_ms, text.decode())
        except UnicodeDecodeError as error:
            raise BadEncoding(f"refusal: its reason is no text: {error}") from None


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The kept refusals, oldest first, and the number of older ones that were dropped."""

    refusals: tuple[Refusal, ...]
    dropped: int


def add(tables: Tables, refusal: Refusal) -> None:
    """Store a refusal; a repeated one is stored once."""
    txn, db = tables.raw("quarantine")
    digest = refusal.digest()
    if txn.get(digest, db=db) is not None:
        return
    number = _counter(tables, _NEXT)
    tables.put_meta(_NEXT, u64(number + 1))
    txn.put(_numbered(number), checked(refusal.encode()), db=db)
    txn.put(digest, u64(number), db=db)
    oldest = number - QUARANTINE_ENTRIES_MAX
    if oldest >= 0:
        gone = _read(bytes(txn.get(_numbered(oldest), db=db)))
        txn.delete(_numbered(oldest), db=db)
        txn.delete(gone.digest(), db=db)
        tables.put_meta(_DROPPED, u64(_counter(tables, _DROPPED) + 1))


def listed(tables: Tables) -> Quarantine:
    """Return all refusals."""
    txn, db = tables.raw("quarantine")
    with txn.cursor(db) as cursor:
        refusals = tuple(_read(bytes(value)) for key, value in cursor if bytes(key[:1]) == _BY_NUMBER)
    return Quarantine(refusals, _counter(tables, _DROPPED))


def _read(data: bytes) -> Refusal:
    """Decode a stored refusal. One whose bytes have changed is listed as damaged."""
    stored = unchecked(data)
    if stored is None:
        return Refusal(bytes(32), 0, 0, 0, "the bytes of this entry have changed on the disk; check the disk")
    return Refusal.decode(stored)


def _numbered(number: int) -> bytes:
    return _BY_NUMBER + number.to_bytes(8, "big")


def _counter(tables: Tables, name: str) -> int:
    data = tables.meta(name)
    return 0 if data is None else int.from_bytes(data, "little")
