"""`Rest`: what an opening compares, to find that nothing has come since the party was closed.

A party of which all blocks are processed and saved is *at rest*. The feed store then has a mark, which the next change
of any feed of the party deletes (`FeedStore.put_rest`), and the item store has a `Rest` with the same mark. An opening
that finds both equal reads neither lanes nor control feeds: the items are what they would be after reading them. They
are read once something asks for them: a write, new blocks, the members, the status.

>>> rest = Rest(bytes(16), True, bytes(32), bytes(64))
>>> Rest.decode(rest.encode()) == rest
True
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from antiphon.core.codec import Reader
from antiphon.core.errors import BadEncoding
from antiphon.core.keys import KEY_SIZE
from antiphon.feed.limits import REST_SIZE
from antiphon.feed.store.reader import FeedReader
from antiphon.model.factory import ModelFactory
from antiphon.party.engine.delivery import Delivery
from antiphon.party.engine.message_lookup import MessageLookup
from antiphon.party.engine.ports import Authority, Items, LaneState
from antiphon.party.engine.rot import Rot

RULES = 1  # raise it when messages come to be judged or folded differently: then every opening looks again
_DIGEST_SIZE = 32
_KEYS_MAX = 3  # of the device, of its control feed and of its data feed


class Rest(NamedTuple):
    """The state in which a party was closed."""

    mark: bytes  # of the feed store
    is_idle: bool  # its epochs wait for new blocks alone
    models: bytes  # digest of the models with code, by which items were folded
    device: bytes  # this device and its feeds, as its authority tells

    def encode(self) -> bytes:
        """Encode it for the item store."""
        return self.mark + bytes([self.is_idle]) + self.models + self.device

    @classmethod
    def decode(cls, data: bytes) -> Rest:
        """Decode what `encode` gives. Raises `BadEncoding`."""
        reader = Reader(data, "what a party rests on")
        mark, idle, models = reader.take(REST_SIZE), reader.u8(), reader.take(_DIGEST_SIZE)
        if idle > 1:
            raise BadEncoding(f"what a party rests on: it is neither idle nor busy, but {idle}")
        if reader.left % KEY_SIZE or reader.left > _KEYS_MAX * KEY_SIZE:
            raise BadEncoding(f"what a party rests on: {reader.left} bytes are not the keys of a device and its feeds")
        return cls(mark, bool(idle), models, reader.take(reader.left))


def digest_of(models: Iterable[tuple[str, int]]) -> bytes:
    """Return a digest of the rules and of the models with code."""
    words = [f"{name} {version}\n" for name, version in sorted(models)]
    return sha256(f"{RULES}\n{''.join(words)}".encode()).digest()


class RestingLanes:
    """The lanes of an engine, and what it is made of. At rest they are read when something asks for them."""

    def __init__(
        self,
        party: bytes,
        store: FeedReader,
        authority: Authority,
        items: Items,
        models: ModelFactory,
        *,
        rest: Rest | None,
        rot: Rot | None,
    ) -> None:
        self.party = party
        self.store = store
        self.authority = authority
        self.saved = items  # the item store, which lacks what was applied since the last save
        self.models = models
        self.rest = rest  # nothing has come since the party was closed; None: that is over
        self.lamport = 0  # the greatest delivered one: kept here, since there may be many lanes
        self._rot = Rot() if rot is None else rot
        self._delivery: Delivery | None = None
        # The lanes as last saved. One without a mark has no row, and needs none until something happened in it.
        self._marks: dict[bytes, tuple[object, ...]] = {}

    @property
    def are_read(self) -> bool:
        """True if the lanes are in memory."""
        return self._delivery is not None

    @property
    def delivery(self) -> Delivery:
        """The lanes of the data feeds."""
        return self.load_lanes(self.saved.lanes()) if self._delivery is None else self._delivery

    @property
    def _messages(self) -> MessageLookup:
        return MessageLookup(self.store, self.delivery)

    def load_lanes(self, lanes: Iterable[LaneState]) -> Delivery:
        """Continue these lanes."""
        made = self._delivery = Delivery(self.store, self.authority, lanes, look=False, rot=self._rot)
        self.lamport = made.lamport
        self._marks = {feed: lane.state.mark for feed, lane in made.lanes.items()}
        return made

    def rests(self) -> bool:
        """True if the party is still at rest. If anything has come, the rest ends."""
        rest = self.rest
        if rest is not None and (
            self.store.rest(self.party) != rest.mark or digest_of(self.models.keys) != rest.models
        ):
            self.rest = None
        return self.rest is not None

    def rouse(self) -> None:
        """End the rest: the next `process` reads lanes and control feeds."""
        self.rest = None
