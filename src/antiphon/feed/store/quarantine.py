"""The quarantine: a list of refused blocks with reasons, for people and for tests. No refusal is silent.

The table is bounded, because any peer can send invalid blocks. Each refusal has a source: who handed the blocks in, or
the feed itself if its writer signed what is wrong. Whoever fills the table displaces refusals of its own, the oldest
first; dropped ones are counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import sha256

from antiphon.core.codec import Reader, u32, u64
from antiphon.core.errors import BadEncoding, TooLarge
from antiphon.core.keys import KEY_SIZE
from antiphon.core.reasons import Reason, because, code_of, text_of
from antiphon.feed.limits import QUARANTINE_ENTRIES_MAX, QUARANTINE_FEED_MAX, QUARANTINE_SOURCE_MAX
from antiphon.feed.store.tables import Tables, checked, unchecked

_TEXT_MAX = 1024
_CHANGED = because(Reason.DAMAGED, "the bytes of this entry have changed on the disk; check the disk")
_DROPPED = "quarantine.dropped"
_NEXT = "quarantine.next"
_BY_NUMBER = b"n"
_BY_DIGEST = b"d"
_BY_SOURCE = b"s"
_KEYS = 3  # of one refusal in the table
NOBODY = bytes(KEY_SIZE)  # the source of what was found in this store, or handed in by an unnamed caller


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refused block, or the first of several that were refused together."""

    feed: bytes
    seq: int
    count: int
    at_ms: int
    reason: str
    source: bytes = NOBODY

    @property
    def code(self) -> Reason:
        """The stable code of the reason."""
        return code_of(self.reason)

    def encode(self) -> bytes:
        """Encode the refusal. A reason of more than 1024 bytes is cut, in front of its code."""
        text = self._text()
        head = self.source + self.feed + u64(self.seq) + u32(self.count) + u64(self.at_ms)
        return head + u32(len(text)) + text

    def digest(self) -> bytes:
        """Return the identity of a refusal: feed, seq and reason, without source and time."""
        return _BY_DIGEST + sha256(self.feed + u64(self.seq) + self._text()).digest()

    def _text(self) -> bytes:
        whole = self.reason.encode()
        if len(whole) <= _TEXT_MAX:
            return whole
        code = self.reason[len(text_of(self.reason)) :].encode()
        return whole[: _TEXT_MAX - len(code)].decode("utf-8", "ignore").encode() + code

    @classmethod
    def decode(cls, data: bytes) -> Refusal:
        """Decode a stored refusal."""
        reader = Reader(data, "refusal")
        source, feed = reader.take(KEY_SIZE), reader.take(KEY_SIZE)
        seq, count, at_ms = reader.u64(), reader.u32(), reader.u64()
        text = reader.take(reader.u32())
        reader.done()
        if len(text) > _TEXT_MAX:
            raise TooLarge(f"refusal: a reason of {len(text)} bytes, at most {_TEXT_MAX} are kept")
        try:
            return cls(feed, seq, count, at_ms, text.decode(), source)
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
    by_source = _BY_SOURCE + refusal.source
    mine = _keys(tables, by_source)
    about = [key for key in mine if key.startswith(by_source + refusal.feed)]
    if len(about) >= QUARANTINE_FEED_MAX:
        _drop(tables, about)
    elif len(mine) >= QUARANTINE_SOURCE_MAX:
        _drop(tables, mine)
    elif txn.stat(db)["entries"] >= _KEYS * QUARANTINE_ENTRIES_MAX:
        _drop_of_largest(tables, refusal)
    txn.put(_numbered(number), checked(refusal.encode()), db=db)
    txn.put(digest, u64(number), db=db)
    txn.put(by_source + refusal.feed + _big_endian(number), digest, db=db)


def _drop_of_largest(tables: Tables, adding: Refusal) -> None:
    """Drop the oldest refusal of the source with the most, of equals the one that adds: who has few keeps them.

    What writers signed and what others handed in have half of the table each, if it is full: anybody can open as many
    feeds as it likes, and each is a source.
    """
    halves: tuple[list[bytes], list[bytes]] = [], []
    for key in _keys(tables, _BY_SOURCE):
        source, feed = key[1 : 1 + KEY_SIZE], key[1 + KEY_SIZE : 1 + 2 * KEY_SIZE]
        halves[source == feed].append(key)
    mine, other = halves[:: -1 if adding.source == adding.feed else 1]
    keys = mine if len(mine) >= len(other) else other
    counts = Counter(key[: 1 + KEY_SIZE] for key in keys)
    largest = max(counts, key=lambda source: (counts[source], source == _BY_SOURCE + adding.source, source))
    _drop(tables, [key for key in keys if key.startswith(largest)])


def _drop(tables: Tables, keys: list[bytes]) -> None:
    """Drop the oldest of some refusals, by their keys in the order of sources."""
    txn, db = tables.raw("quarantine")
    oldest = min(keys, key=lambda key: key[-8:])
    digest = bytes(txn.get(oldest, db=db))
    for key in (oldest, digest, _BY_NUMBER + oldest[-8:]):
        txn.delete(key, db=db)
    tables.put_meta(_DROPPED, u64(_counter(tables, _DROPPED) + 1))


def _keys(tables: Tables, prefix: bytes) -> list[bytes]:
    """Return the keys of the quarantine's table that begin with a prefix."""
    txn, db = tables.raw("quarantine")
    found = []
    with txn.cursor(db) as cursor:
        if cursor.set_range(prefix):
            for key in cursor.iternext(values=False):
                if not bytes(key).startswith(prefix):
                    break
                found.append(bytes(key))
    return found


def listed(tables: Tables) -> Quarantine:
    """Return all refusals."""
    txn, db = tables.raw("quarantine")
    with txn.cursor(db) as cursor:
        refusals = tuple(_read(bytes(value)) for key, value in cursor if bytes(key[:1]) == _BY_NUMBER)
    return Quarantine(refusals, _counter(tables, _DROPPED))


def drop_damaged(tables: Tables) -> int:
    """Drop the refusals whose bytes have changed. Return how many."""
    txn, db = tables.raw("quarantine")
    rotten = [key for key in _keys(tables, _BY_NUMBER) if unchecked(bytes(txn.get(key, db=db))) is None]
    numbers = {key[1:] for key in rotten}
    rotten += [key for key in _keys(tables, _BY_SOURCE) if key[-8:] in numbers]
    little = {number[::-1] for number in numbers}
    rotten += [key for key in _keys(tables, _BY_DIGEST) if bytes(txn.get(key, db=db)) in little]
    for key in rotten:
        txn.delete(key, db=db)
    return len(numbers)


def _read(data: bytes) -> Refusal:
    """Decode a stored refusal. One whose bytes have changed is listed as damaged."""
    stored = unchecked(data)
    if stored is None:
        return Refusal(bytes(32), 0, 0, 0, _CHANGED)
    return Refusal.decode(stored)


def _numbered(number: int) -> bytes:
    return _BY_NUMBER + _big_endian(number)


def _big_endian(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _counter(tables: Tables, name: str) -> int:
    data = tables.meta(name)
    if data is None and name == _NEXT:  # new, or changed on the disk: no number is given twice
        return max([1 + int.from_bytes(key[1:], "big") for key in _keys(tables, _BY_NUMBER)], default=0)
    return 0 if data is None else int.from_bytes(data, "little")
