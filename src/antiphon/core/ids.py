"""`ItemId`: 16 bytes, the lamport of the item's genesis and then a hash.

Neighbours in time are neighbours in every store, table and tree. Both parts are checked, so no other writer can take an
id (rule 5). The hash is over the whole genesis message, so an id has one model, one parent and one pair of ends, even
if its writer signs two histories.

>>> item = ItemId.derive(7, party=b"p" * 32, feed=b"f" * 32, genesis=b"a message")
>>> item.lamport, item.matches(7, party=b"p" * 32, feed=b"f" * 32, genesis=b"a message")
(7, True)
"""

from __future__ import annotations

from hashlib import sha256

from antiphon.core.errors import InvalidInput, TooLarge

ITEM_ID_SIZE = 16
NONCE_SIZE = 16
_LAMPORT_SIZE = 5
_TAG = b"antiphon.item.v1"
_VIEW_TAG = b"antiphon.view.v1"


class ItemId(bytes):
    """The flat, unique id of an item in its party."""

    __slots__ = ()

    def __new__(cls, raw: bytes) -> ItemId:
        if len(raw) != ITEM_ID_SIZE:
            raise InvalidInput(f"an item id has {ITEM_ID_SIZE} bytes, not {len(raw)}")
        return super().__new__(cls, raw)

    @classmethod
    def derive(cls, lamport: int, *, party: bytes, feed: bytes, genesis: bytes) -> ItemId:
        """Return the id of the item whose genesis is this message, at `lamport` in `feed`."""
        if len(party) != 32 or len(feed) != 32:
            raise InvalidInput("an item id is derived from a party key, a feed key and a genesis message")
        return cls(_prefix(lamport) + sha256(_TAG + party + feed + genesis).digest()[: ITEM_ID_SIZE - _LAMPORT_SIZE])

    @classmethod
    def of_view(cls, lamport: int, *, party: bytes, key: bytes) -> ItemId:
        """Return the id of the view with this inception key whose genesis is at `lamport`."""
        if len(party) != 32 or len(key) != 32:
            raise InvalidInput("the id of a view is derived from a party key and an inception key")
        return cls(_prefix(lamport) + sha256(_VIEW_TAG + party + key).digest()[: ITEM_ID_SIZE - _LAMPORT_SIZE])

    @property
    def lamport(self) -> int:
        """Lamport of the item's genesis."""
        return int.from_bytes(self[:_LAMPORT_SIZE], "big")

    def matches(self, lamport: int, *, party: bytes, feed: bytes, genesis: bytes) -> bool:
        """True if the id is derived from these values."""
        return self == ItemId.derive(lamport, party=party, feed=feed, genesis=genesis)

    def __str__(self) -> str:
        return self.hex()


def _prefix(lamport: int) -> bytes:
    if not 0 <= lamport < 1 << (8 * _LAMPORT_SIZE):
        raise TooLarge(f"the lamport {lamport} does not fit into an item id ({_LAMPORT_SIZE} bytes)")
    return lamport.to_bytes(_LAMPORT_SIZE, "big")


#: Control messages belong to the system item, the root of every party's DAG.
SYSTEM_ITEM = ItemId(bytes(ITEM_ID_SIZE))
