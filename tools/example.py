"""The type `Example`, and the fixed inputs of all examples in `examples`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from antiphon.core.cid import DAG_CBOR, Cid, encode_node
from antiphon.core.ids import ItemId
from antiphon.model.message import Genesis, write_genesis
from antiphon.testing.parties import pair_of

# Keys depend on their names alone: the seed is SHA-256 of the name.
PARTY = pair_of("party")
ALICE, LAPTOP = pair_of("alice"), pair_of("alice laptop")
CONTROL, DATA = pair_of("alice laptop control"), pair_of("alice laptop data")
BOB, BOB_LAPTOP, BOB_DATA = pair_of("bob"), pair_of("bob laptop"), pair_of("bob laptop data")
TEAM = pair_of("team")
CLUB, CLUB_CONTROL = pair_of("club"), pair_of("club control")
NOW_MS = 1_700_000_000_000
GENESIS = write_genesis(Genesis(bytes(range(16)), "antiphon/text", 1, bytes(16)))
ITEM = ItemId.derive(2, party=PARTY.key, feed=DATA.key, genesis=GENESIS)
PASSPHRASE = "correct horse battery staple"  # the one that everybody knows
BOX_KEY = bytes(range(32))
SNAPSHOT = Cid.of(encode_node({"items": []}), DAG_CBOR)


class Example(NamedTuple):
    """A structure's bytes; `again` is the real decoder and then the real encoder."""

    data: bytes
    again: Callable[[bytes], bytes]
    text: bool = False  # shown as it is, not in hex


class Counting:
    """Randomness that counts: 00, 01, 02 and so on."""

    def __init__(self) -> None:
        self._at = 0

    def bytes(self, count: int) -> bytes:
        start, self._at = self._at, self._at + count
        return bytes(value % 256 for value in range(start, self._at))


def holds(right: bool, data: bytes) -> bytes:
    """`again` of an example that is checked and never decoded."""
    return data if right else b""
