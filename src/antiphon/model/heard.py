"""The last message that an item received from each feed. It distinguishes entries that are gone from entries to come.

A mutation names other messages by their stamps: it replaces, edits or removes their entries. Honest writers name only
messages that they have seen. A hostile writer may name a concurrent message, which some peers hold and others do not
hold yet. If peers without it refused or ignored the name, peers would differ. So the name of a message that has not
arrived is stored, and takes effect when the message arrives. Feeds arrive in order. So a name at or before the last
message of its feed is no future one: if its entry is missing, the entry is gone, and nothing is stored. Honest
histories therefore leave no trace here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from google.protobuf.message import DecodeError

from antiphon.core.errors import BadEncoding
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import value_pb2
from antiphon.model.bounds import Bounds, Waits
from antiphon.model.model import InvalidMutation
from antiphon.model.wire import NAME, field, name_field, number_field, tags

FEEDS_MAX = 1 << 16
State = TypeVar("State")
(_STATE,) = tags("ArrayState")  # the snapshots of all models that use `heard_fields` begin alike


class Heard(dict[bytes, int]):
    """The seq of each feed's last message to this item."""

    __slots__ = ()

    def has(self, stamp: Stamp) -> bool:
        """True if the named message has arrived, provided that it is a message to this item."""
        return self.get(stamp.feed, -1) >= stamp.seq

    def hear(self, stamp: Stamp) -> None:
        """Record the arrival of a message."""
        self[stamp.feed] = stamp.seq


class FeedTable:
    """The feeds named in a mutation or snapshot. Each is written once, and names refer to it by position."""

    __slots__ = ("_at", "feeds", "own")

    def __init__(self, own: bytes = b"") -> None:
        self.own = own
        self.feeds: list[bytes] = []
        self._at: dict[bytes, int] = {}

    @classmethod
    def of(cls, feeds: Iterable[bytes]) -> FeedTable:
        """Make the table of a snapshot. It is sorted, so that the bytes depend on the set of feeds alone."""
        table = cls()
        table.feeds = sorted({*feeds} - {table.own})
        table._at = {feed: at for at, feed in enumerate(table.feeds, start=1)}
        return table

    def index(self, feed: bytes) -> int:
        """Return the position of a feed, from 1 on; 0 for the writer's own feed. A new feed is appended."""
        if feed == self.own:
            return 0
        at = self._at.get(feed)
        if at is None:
            self.feeds.append(feed)
            at = self._at[feed] = len(self.feeds)
        return at

    def name(self, stamp: Stamp) -> value_pb2.Name:
        """Return the protobuf name of a message."""
        return value_pb2.Name(feed=self.index(stamp.feed), lamport=stamp.lamport, seq=stamp.seq)

    def named(self, tag: bytes, stamp: Stamp) -> bytes:
        """Encode a field that holds the name of a message."""
        return name_field(tag, self.index(stamp[1]), stamp)


def read_feeds(feeds: Sequence[bytes], own: bytes = b"") -> tuple[bytes, ...]:
    """Check the table of a received mutation (with the writer's own feed) or of a snapshot (without), and return it."""
    # A snapshot may hold the names of many hostile mutations, so only the table of a mutation is bounded.
    table = feeds[:]  # a list, because iterating over the container of protobuf is slow
    if (own and len(table) > FEEDS_MAX) or {*map(len, table)} - {32}:
        raise InvalidMutation("its table of feeds holds what is no feed key, or too many")
    return (own, *table)


def read_name(name: value_pb2.Name, feeds: Sequence[bytes], stamp: Stamp) -> Stamp:
    """Return the stamp that a mutation at `stamp` names: one with a lower lamport, or an earlier one of its feed."""
    if name.feed >= len(feeds):
        raise InvalidMutation(f"it names feed {name.feed} of a table of {len(feeds) - 1}")
    found = Stamp(name.lamport, feeds[name.feed], name.seq)
    unseen = found.seq >= stamp.seq if found.feed == stamp.feed else found.lamport == stamp.lamport
    if unseen or found.lamport > stamp.lamport or found.seq >= 1 << 63:
        raise InvalidMutation(f"it names the message {found}, which it cannot have seen")
    return found


def kept_stamp(name: value_pb2.Name, feeds: Sequence[bytes]) -> Stamp:
    """Read a stamp of a snapshot."""
    feed, lamport, seq = name.feed, name.lamport, name.seq
    if not 0 < feed < len(feeds) or lamport >= 1 << 63 or seq >= 1 << 63:
        raise BadEncoding(f"snapshot: it names feed {feed} of a table of {len(feeds) - 1}")
    return Stamp(lamport, feeds[feed], seq)


def heard_fields(heard: Mapping[bytes, int], table: FeedTable) -> list[bytes]:
    """Encode the first two fields of a snapshot: the table of feeds, and the last message of each, in their order."""
    rows = [field(_STATE.feeds, feed) for feed in table.feeds]
    return rows + [
        field(_STATE.heard, number_field(NAME.feed, table.index(feed)) + number_field(NAME.seq, heard[feed]))
        for feed in sorted(heard)
    ]


def read_heard(names: Iterable[value_pb2.Name], feeds: Sequence[bytes]) -> Heard:
    """Read the last message of each feed from a snapshot."""
    return Heard({kept_stamp(name, feeds).feed: name.seq for name in names})


def read_waits(names: Iterable[value_pb2.Name], feeds: Sequence[bytes], heard: Heard) -> Waits | None:
    """Read from a snapshot the names of writes that are replaced already and have not arrived."""
    waits: Waits = {}
    for name in names:
        stamp = kept_stamp(name, feeds)
        if heard.has(stamp):
            raise BadEncoding(f"snapshot: it waits for {stamp}, which has been here")
        if waits.setdefault(stamp.feed, Bounds()).add(stamp):
            raise BadEncoding(f"snapshot: it waits twice for {stamp}")
    return waits or None


def read_canonical(data: bytes, what: str, read: Callable[[], State], write: Callable[[State], bytes]) -> State:
    """Read a snapshot of `what`; raise `BadEncoding` if the bytes are invalid, or are not those that `write` gives."""
    try:
        state = read()
    except (DecodeError, InvalidMutation) as error:
        raise BadEncoding(f"snapshot of {what}: {error}") from None
    if write(state) != data:
        raise BadEncoding(f"snapshot of {what}: not in its one encoding")
    return state
