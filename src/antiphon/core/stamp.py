"""`Stamp`: names a message. Stamps sort in the total order that all engines use.

The order extends causality, because a message's lamport is above the lamports of everything it has seen. Feed and seq
break ties. No wall clock is used.

>>> Stamp(1, b"b" * 32, 9) < Stamp(2, b"a" * 32, 0)
True
"""

from __future__ import annotations

from typing import NamedTuple

from antiphon.core.codec import Reader
from antiphon.core.errors import BadEncoding

STAMP_SIZE = 48


class Stamp(NamedTuple):
    """(lamport, feed, seq), compared in that order."""

    lamport: int
    feed: bytes
    seq: int

    def encode(self) -> bytes:
        """48 bytes whose byte order is the stamps' order."""
        return self.lamport.to_bytes(8, "big") + self.feed + self.seq.to_bytes(8, "big")

    @classmethod
    def decode(cls, data: bytes) -> Stamp:
        """Decode the 48 bytes of `encode`; refuse integers above 2^63 - 1."""
        reader = Reader(data, "stamp")
        lamport = int.from_bytes(reader.take(8), "big")
        feed = reader.take(32)
        seq = int.from_bytes(reader.take(8), "big")
        reader.done()
        if lamport >= 1 << 63 or seq >= 1 << 63:
            raise BadEncoding("stamp: an integer is above 2^63 - 1")
        return cls(lamport, feed, seq)

    def __str__(self) -> str:
        return f"{self.lamport}@{self.feed.hex()[:8]}/{self.seq}"
