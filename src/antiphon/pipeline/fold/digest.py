"""The digest of the states of a party's items. Many tasks can compute it, each for its share of the items.

It is a hash tree. The hash of an item covers its id and the hash of its state. The digest of at most `LEAF_MAX` items
is the hash of their sorted hashes. More items are split by the next bit of their placement hashes (`item_hashes`, of
the ids alone), and their digest is the hash of the digests of both halves. So it depends on the items alone. Partitions
of a fold are the first bits of placement hashes, so their digests can be joined to the digest of the party.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from antiphon.pipeline.order.shuffle_chunk import U64, ids_of, item_hashes

LEAF_MAX = 32
HASH_SIZE = 32
_BITS = 64  # of a placement hash


@dataclass(frozen=True, slots=True)
class Digest:
    """The digest of items whose placement hashes begin with the same bits."""

    count: int = 0
    data: bytes = b""  # up to LEAF_MAX items: their sorted hashes; else the digest

    @property
    def value(self) -> bytes:
        """The 32-byte digest."""
        return sha256(self.data).digest() if self.count <= LEAF_MAX else self.data

    def join(self, other: Digest) -> Digest:
        """Combine the digests of two sibling partitions."""
        count = self.count + other.count
        if count > LEAF_MAX:
            return Digest(count, sha256(self.value + other.value).digest())
        return Digest(count, _sorted(self.data + other.data))


def state_hash(data: bytes | None) -> bytes:
    """Return the hash of a snapshot; a missing snapshot is hashed as empty."""
    return sha256(data or b"").digest()


def hash_of(item: bytes, state: bytes) -> bytes:
    """Return the hash of an item from the hash of its state."""
    return sha256(item + state).digest()


def item_hash(item: bytes, data: bytes | None) -> bytes:
    """Return the hash of an item from its snapshot."""
    return hash_of(item, state_hash(data))


def digest_of(items: Iterable[bytes], hashes: Iterable[bytes], bits: int = 0) -> Digest:
    """Return the digest of all items whose placement hashes share their first `bits` bits, in any order.

    `items` and `hashes` are ids and item hashes, or concatenations of several.
    """
    found = item_hashes(ids_of(items))
    order = np.argsort(found, kind="stable")
    ordered = np.frombuffer(b"".join(hashes), dtype=np.uint8).reshape(-1, HASH_SIZE)[order].tobytes()
    return _divided(found[order], ordered, bits)


def join_digests(parts: Sequence[Digest]) -> Digest:
    """Combine the digests of all partitions, in order; their number is a power of two."""
    while len(parts) > 1:
        parts = [low.join(high) for low, high in zip(parts[0::2], parts[1::2], strict=True)]
    return parts[0]


def states_digest(states: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the digest of pairs of item id and snapshot, in any order; a missing snapshot is empty."""
    return hashes_digest((item, state_hash(data)) for item, data in states)


def hashes_digest(states: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the digest of pairs of item id and SHA-256 hash of the snapshot."""
    known = dict(states)
    return digest_of([*known], [hash_of(*one) for one in known.items()]).value


def _divided(ordered: U64, hashes: bytes, bits: int) -> Digest:
    """Return the digest of items sorted by placement hash, which share `bits` bits."""
    count = len(ordered)
    if count <= LEAF_MAX or bits == _BITS:
        data = _sorted(hashes)
        return Digest(count, data if count <= LEAF_MAX else sha256(data).digest())
    at = int(np.searchsorted(ordered & np.uint64((1 << (_BITS - bits)) - 1), np.uint64(1 << (_BITS - 1 - bits))))
    cut = at * HASH_SIZE
    return _divided(ordered[:at], hashes[:cut], bits + 1).join(_divided(ordered[at:], hashes[cut:], bits + 1))


def _sorted(hashes: bytes) -> bytes:
    return b"".join(sorted(hashes[at : at + HASH_SIZE] for at in range(0, len(hashes), HASH_SIZE)))
