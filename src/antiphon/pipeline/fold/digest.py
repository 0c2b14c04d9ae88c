"""The digest of the states of a party's items: one that many tasks can compute, each for its share of items.

An item has the hash of its id and of its state's hash. Some hashes, `LEAF_MAX` at most, come to the hash of all of them
in order; more of them are divided by the next bit of the hashes of their items (`item_hashes`), and come to the hash
of what both halves come to. So it depends on the items and on nothing else, and the digests of the parts of a fold,
whose partitions are the first bits of these hashes, can be joined to that of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from antiphon.pipeline.order.shuffle_chunk import U64, ids_of, item_hashes

LEAF_MAX = 32
HASH_SIZE = 32
_BITS = 64  # of a place


@dataclass(frozen=True, slots=True)
class Digest:
    """Of some items whose hashes begin with the same bits."""

    count: int = 0
    held: bytes = b""  # the hashes in order, as long as they are few; then the digest

    @property
    def value(self) -> bytes:
        return sha256(self.held).digest() if self.count <= LEAF_MAX else self.held

    def join(self, other: Digest) -> Digest:
        """With that of the other half."""
        count = self.count + other.count
        if count > LEAF_MAX:
            return Digest(count, sha256(self.value + other.value).digest())
        return Digest(count, _sorted(self.held + other.held))


def state_hash(data: bytes | None) -> bytes:
    """The hash of a snapshot; an item without one has an empty one."""
    return sha256(data or b"").digest()


def hash_of(item: bytes, state: bytes) -> bytes:
    """The hash of an item, from that of its state."""
    return sha256(item + state).digest()


def item_hash(item: bytes, data: bytes | None) -> bytes:
    """The hash of an item, from its snapshot."""
    return hash_of(item, state_hash(data))


def digest_of(items: Iterable[bytes], hashes: Iterable[bytes], bits: int = 0) -> Digest:
    """Of all items whose hashes begin with some bits, so many, in any order; ids and hashes may be joined."""
    found = item_hashes(ids_of(items))
    order = np.argsort(found, kind="stable")
    ordered = np.frombuffer(b"".join(hashes), dtype=np.uint8).reshape(-1, HASH_SIZE)[order].tobytes()
    return _divided(found[order], ordered, bits)


def joined(parts: Sequence[Digest]) -> Digest:
    """Of all items, from those of a power of two of partitions, in order."""
    while len(parts) > 1:
        parts = [low.join(high) for low, high in zip(parts[0::2], parts[1::2], strict=True)]
    return parts[0]


def states_digest(states: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A digest of items and their snapshots, in any order; an item without a snapshot has an empty one."""
    return hashes_digest((item, state_hash(data)) for item, data in states)


def hashes_digest(states: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The same for whoever has the SHA-256 hashes of snapshots, and not the snapshots."""
    known = dict(states)
    return digest_of([*known], [hash_of(*one) for one in known.items()]).value


def _divided(ordered: U64, hashes: bytes, bits: int) -> Digest:
    """Of items by ascending hashes, which have so many bits in common."""
    count = len(ordered)
    if count <= LEAF_MAX or bits == _BITS:
        held = _sorted(hashes)
        return Digest(count, held if count <= LEAF_MAX else sha256(held).digest())
    at = int(np.searchsorted(ordered & np.uint64((1 << (_BITS - bits)) - 1), np.uint64(1 << (_BITS - 1 - bits))))
    cut = at * HASH_SIZE
    return _divided(ordered[:at], hashes[:cut], bits + 1).join(_divided(ordered[at:], hashes[cut:], bits + 1))


def _sorted(hashes: bytes) -> bytes:
    return b"".join(sorted(hashes[at : at + HASH_SIZE] for at in range(0, len(hashes), HASH_SIZE)))
