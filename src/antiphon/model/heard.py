"""What an item has heard of each feed, so that "gone" can be told from "not here yet".

A mutation names others by their stamps: it replaces them, edits them, removes them. Honest writers name what they have
seen. A hostile one may name a concurrent message, which some peers hold and others do not yet; were that refused, or
ignored where the message is missing, peers would differ. So a name that is not here yet is kept, and takes effect when
its message comes. Feeds arrive in order, so a name at or before what was heard of its feed is no future one: if it is
not there, it is gone, and nothing is kept. Honest histories therefore leave no trace here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from antiphon.core.errors import BadEncoding
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import value_pb2
from antiphon.model.model import InvalidMutation
from antiphon.model.wire import NAME, field, name_field, number_field, tags

FEEDS_MAX = 1 << 16
(_STATE,) = tags("ArrayState")  # the snapshots of all models that use `heard_fields` begin alike


class Heard(dict[bytes, int]):
    """For each feed, the seq of its last message to this item."""

    __slots__ = ()

    def has(self, stamp: Stamp) -> bool:
        """Whether the message named has been here, if it is of this item at all."""
        return self.get(stamp.feed, -1) >= stamp.seq

    def hear(self, stamp: Stamp) -> None:
        self[stamp.feed] = stamp.seq


class FeedTable:
    """The feeds named in a mutation or snapshot, each written once."""

    __slots__ = ("_at", "feeds", "own")

    def __init__(self, own: bytes = b"") -> None:
        self.own = own
        self.feeds: list[bytes] = []
        self._at: dict[bytes, int] = {}

    @classmethod
    def of(cls, feeds: Iterable[bytes]) -> FeedTable:
        """A snapshot's table: sorted, so that the bytes depend on nothing else."""
        table = cls()
        table.feeds = sorted({*feeds} - {table.own})
        table._at = {feed: at for at, feed in enumerate(table.feeds, start=1)}
        return table

    def index(self, feed: bytes) -> int:
        if feed == self.own:
            return 0
        at = self._at.get(feed)
        if at is None:
            self.feeds.append(feed)
            at = self._at[feed] = len(self.feeds)
        return at

    def name(self, stamp: Stamp) -> value_pb2.Name:
        return value_pb2.Name(feed=self.index(stamp.feed), lamport=stamp.lamport, seq=stamp.seq)

    def named(self, tag: bytes, stamp: Stamp) -> bytes:
        """A field that holds this name, as bytes."""
        return name_field(tag, self.index(stamp[1]), stamp)


def read_feeds(feeds: Sequence[bytes], own: bytes = b"") -> tuple[bytes, ...]:
    """The table of a received mutation (with the writer's own feed) or of a snapshot (without), checked."""
    # A snapshot may hold what many hostile mutations named, so only a mutation's table is bounded.
    table = feeds[:]  # a list: that of a message is slow to go through
    if (own and len(table) > FEEDS_MAX) or {*map(len, table)} - {32}:
        raise InvalidMutation("its table of feeds holds what is no feed key, or too many")
    return (own, *table)


def read_name(name: value_pb2.Name, feeds: Sequence[bytes], stamp: Stamp) -> Stamp:
    """The stamp that a mutation at `stamp` names: an earlier message by lamport, or its own feed's."""
    if name.feed >= len(feeds):
        raise InvalidMutation(f"it names feed {name.feed} of a table of {len(feeds) - 1}")
    found = Stamp(name.lamport, feeds[name.feed], name.seq)
    unseen = found.seq >= stamp.seq if found.feed == stamp.feed else found.lamport == stamp.lamport
    if unseen or found.lamport > stamp.lamport or found.seq >= 1 << 63:
        raise InvalidMutation(f"it names the message {found}, which it cannot have seen")
    return found


def kept_stamp(name: value_pb2.Name, feeds: Sequence[bytes]) -> Stamp:
    """A stamp in a snapshot."""
    feed, lamport, seq = name.feed, name.lamport, name.seq
    if not 0 < feed < len(feeds) or lamport >= 1 << 63 or seq >= 1 << 63:
        raise BadEncoding(f"snapshot: it names feed {feed} of a table of {len(feeds) - 1}")
    return Stamp(lamport, feeds[feed], seq)


def heard_fields(heard: Mapping[bytes, int], table: FeedTable) -> list[bytes]:
    """With what a snapshot begins: its table, in field 1, and in field 2 what was heard, in the order of feeds."""
    rows = [field(_STATE.feeds, feed) for feed in table.feeds]
    return rows + [
        field(_STATE.heard, number_field(NAME.feed, table.index(feed)) + number_field(NAME.seq, heard[feed]))
        for feed in sorted(heard)
    ]


def read_heard(names: Iterable[value_pb2.Name], feeds: Sequence[bytes]) -> Heard:
    return Heard({kept_stamp(name, feeds).feed: name.seq for name in names})
