"""`Composed`: a model made of models. Its state is theirs, and it leaves to them all that they can do.

A mutation of it is one mutation of each part, or none; a snapshot is theirs, one after the other. What the whole means,
which commands it has and what it shows, is up to the class that names the parts: see `kanban_model.py`.
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
Parts = list[bytes]  # the bytes of each part; empty for one that has nothing to do


class Composed(Model[Any]):
    """Delegates to its parts. A mutation has one of each part, or none; all of it is taken or nothing.

    Each part hears a part of the history, in the order of each feed, which is all that its own laws ask for.
    """

    parts: ClassVar[tuple[Model[Any], ...]]

    def initial(self) -> States:
        return tuple(part.initial() for part in self.parts)

    def apply(self, state: States, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        found = self.read(mutation)
        need(any(found), "a mutation that says nothing")
        for part, data in zip(self.parts, found, strict=True):
            if data:  # tried first on nothing, so that no part changes if another refuses
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
        """Each part undoes its own."""
        return [
            pack([made if other == place else b"" for other in range(len(self.parts))])
            for place, data in enumerate(self.read(mutation))
            if data
            for made in self.parts[place].revert(state[place], captured[place], data, stamp, feed)
        ]

    def read(self, mutation: bytes) -> Parts:
        """The mutations of the parts."""
        try:
            return unpack(mutation, len(self.parts))
        except BadEncoding as error:
            raise InvalidMutation(str(error)) from None


def pack(parts: Sequence[bytes]) -> bytes:
    """The sizes, four bytes each, and then the parts."""
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
