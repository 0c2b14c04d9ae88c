"""Mutations of flat objects, joined from parts that are encoded in advance. Most generated messages are of this kind.

The bytes equal those of `ObjectModel.set`; a test compares them.
"""

from __future__ import annotations

import random

from antiphon.core.stamp import Stamp
from antiphon.model.object.mutation_codec import write_mutation
from antiphon.model.object.state import Op
from antiphon.model.wire import NAME, OWN_NAME_FORM, plain_bytes, tags, varint

WORDS = "kettle,lamp,river,stone,paper,orchard,engine,window,harbour,meadow,café,δέλτα".split(",")  # noqa: SIM905
_MUTATION, _OP = tags("ObjectMutation", "ObjectOp")
_WRITE = _MUTATION.ops + b"%c%b"
_WRITE_OVER_OWN = _WRITE + _OP.replaces + b"%c%b"
_WRITE_OVER_OTHER = _MUTATION.feeds + b"\x20%b" + _WRITE + _OP.replaces + b"%c" + NAME.feed + b"\x01%b"
TEXTS, NUMBERS = ("title", "notes", "owner"), ("rank", "done")
KEYS = (*TEXTS, *NUMBERS)
VALUES = 256  # distinct values for each key

_Name = tuple[int, bytes, int]  # a stamp; making a plain tuple is faster
Names = _Name | list[_Name] | None


def phrase(chance: random.Random) -> str:
    """Return three random words."""
    return " ".join(WORDS[int(chance.random() * len(WORDS))] for _ in range(3))


class Parts:
    """Values for each key, each with the encoded operation that writes it."""

    def __init__(self, chance: random.Random) -> None:
        self.values: list[list[str | int]] = [
            [phrase(chance) if key in TEXTS else chance.randrange(1000) for _ in range(VALUES)] for key in KEYS
        ]
        # Without the operation's tag and length, which are one byte each because operations are short.
        self._ops = [
            [plain_bytes(key, value, None)[2:] for value in values]
            for key, values in zip(KEYS, self.values, strict=True)
        ]
        assert all(op for ops in self._ops for op in ops)

    def write(self, key: int, value: int, names: Names, feed: bytes) -> bytes:
        """Return the mutation by the writer of `feed` that replaces the values with the stamps `names`."""
        op = self._ops[key][value]
        if names is None:
            return _WRITE % (len(op), op)
        if isinstance(names, list):
            op_names = [Stamp(*name) for name in sorted(names)]
            return write_mutation((Op((KEYS[key],), self.values[key][value], op_names),), feed)
        lamport, writer, seq = names
        named = OWN_NAME_FORM % (varint(lamport), varint(seq)) if seq else NAME.lamport + varint(lamport)
        if writer == feed:
            return _WRITE_OVER_OWN % (len(op) + len(named) + 2, op, len(named), named)
        size = len(named) + 2
        return _WRITE_OVER_OTHER % (writer, len(op) + size + 2, op, size, named)
