"""`Composed`: a model made of other models, its parts. Its state is the tuple of their states.

A mutation has at most one mutation for each part; a snapshot is the snapshots of the parts. A subclass names the parts
and defines the commands and the value: see `kanban_model.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, ClassVar

from antiphon import InvalidMutation
from antiphon.core import Stamp
from antiphon.core.errors import BadEncoding
from antiphon.model import Model
from antiphon.model.model import need

States = tuple[Any, ...]  # one state for each part
Parts = list[bytes]  # the bytes for each part; empty for a part without a mutation


class Composed(Model[Any]):
    """Delegates to its parts. A mutation is applied to all parts that it has mutations for, or refused as a whole.

    Each part gets a subset of the messages, in the order of each feed. The laws of a model hold for any such subset.
    """

    parts: ClassVar[tuple[Model[Any], ...]]

    def initial(self) -> States:
        return tuple(part.initial() for part in self.parts)

    def apply(self, state: States, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        found = self.read(mutation)
        need(any(found), "a mutation without a mutation of a part")
        for part, data in zip(self.parts, found, strict=True):
            if data:  # tried first on an empty state, so that no part changes if another refuses
                part.apply(part.initial(), data, stamp, void=True)
        for part, own, data in zip(self.parts, state, found, strict=True):
            if data:
                part.apply(own, data, stamp, void=void)

    def snapshot(self, state: States) -> bytes:
        return pack([part.snapshot(own) for part, own in zip(self.parts, state, strict=True)])

    def restore(self, data: bytes) -> States:
        found = unpack(data, len(self.parts))
        return tuple(part.restore(own) for part, own in zip(self.parts, found, strict=True))

    def capture(self, state: States, mutation: bytes, stamp: Stamp) -> States:
        found = zip(self.parts, state, self.read(mutation), strict=True)
        return tuple(part.capture(own, data, stamp) if data else None for part, own, data in found)

    def revert(self, state: States, captured: States, mutation: bytes, stamp: Stamp, feed: bytes) -> list[bytes]:
        """Return the mutations with which each part undoes its own."""
        return [
            pack([made if other == place else b"" for other in range(len(self.parts))])
            for place, data in enumerate(self.read(mutation))
            if data
            for made in self.parts[place].revert(state[place], captured[place], data, stamp, feed)
        ]

    def read(self, mutation: bytes) -> Parts:
        """Split a mutation into those of the parts."""
        try:
            return unpack(mutation, len(self.parts))
        except BadEncoding as error:
            raise InvalidMutation(str(error)) from None


def pack(parts: Sequence[bytes]) -> bytes:
    """Join parts: their sizes, four bytes each, and then the parts."""
    return struct.pack(f">{len(parts)}I", *map(len, parts)) + b"".join(parts)


def unpack(data: bytes, count: int) -> Parts:
    head = struct.Struct(f">{count}I")
    if len(data) < head.size or len(data) != head.size + sum(head.unpack_from(data)):
        raise BadEncoding(f"{len(data)} bytes are no {count} parts, with their sizes before them")
    found, at = [], head.size
    for size in head.unpack_from(data):
        found.append(data[at : at + size])
        at += size
    return found
