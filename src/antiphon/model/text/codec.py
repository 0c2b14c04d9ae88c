"""Mutations of a text as protobuf. Reading does all checks that need no state.

A mutation may name elements with a lower lamport than its own, and elements that its own feed inserted before. So
nobody can attach to, delete or mark elements of the future.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from antiphon.core.errors import InvalidInput, TooLarge
from antiphon.core.ids import ITEM_ID_SIZE, ItemId
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2, value_pb2
from antiphon.model.heard import FeedTable, read_feeds
from antiphon.model.model import InvalidMutation, need
from antiphon.model.text.runs import EMBED, LAMPORT, OFFSET_BITS, OFFSET_MAX
from antiphon.model.value import Value, read_value, to_proto, value_bytes
from antiphon.model.wire import number_at, tag_numbers, varint

OPS_MAX = 1 << 16
INSERTS_MAX = 1 << 12  # fewer, because each makes a run
MARKS_MAX = 1 << 14
MARK_NAMES_MAX = 256  # distinct names in a mutation
MARK_NAME_MAX = 256
QUICK_TEXT_MAX = 32
_MUTATION, _INSERT = tag_numbers("TextMutation", "TextInsert")  # a `TextDelete` has the same lamport
_INSERTS, _DELETES, _LAMPORT, _TEXT = _MUTATION.inserts, _MUTATION.deletes, _INSERT.lamport, _INSERT.text
_LEFT, _NEXT, _ROOT = text_pb2.TEXT_PLACE_LEFT, text_pb2.TEXT_PLACE_NEXT, text_pb2.TEXT_PLACE_ROOT


class Anchor(NamedTuple):
    """A place before or after an element. Without a feed, it is the start of the text, or its end if `after`."""

    feed: bytes
    clock: int
    after: bool


START, END = Anchor(b"", 0, False), Anchor(b"", 0, True)


class Insert(NamedTuple):
    """Attach a chain of elements, with clocks from `start` on, left or right of a parent; the root has no feed."""

    start: int
    feed: bytes
    parent: int
    left: bool
    text: str
    item: bytes | None
    revived: tuple[Delete, ...] = ()  # the elements that these are copies of, one clock each


class Delete(NamedTuple):
    """Delete the elements of a feed from clock `first` to clock `last`."""

    feed: bytes
    first: int
    last: int


class Mark(NamedTuple):
    """Set a mark between two anchors. `value` is encoded, so that equal values compare equal; None unsets the mark."""

    name: str
    value: bytes | None
    start: Anchor
    end: Anchor


class Ops(NamedTuple):
    """A decoded mutation. Its elements have the clocks from `base` to before `end`."""

    base: int
    end: int
    inserts: list[Insert]
    deletes: list[Delete]
    marks: list[Mark]


def decode(mutation: bytes, stamp: Stamp) -> Ops:
    """Read a received mutation, or raise `InvalidMutation`."""
    try:
        proto = text_pb2.TextMutation.FromString(mutation)
    except DecodeError:
        raise InvalidMutation("its bytes are no mutation of a text") from None
    feeds = read_feeds(proto.feeds, stamp.feed)
    count = len(proto.inserts) + len(proto.deletes) + len(proto.marks)
    need(0 < count <= OPS_MAX, f"a mutation of a text holds 1 to {OPS_MAX} operations, not {count}")
    need(len(proto.inserts) <= INSERTS_MAX, f"a mutation of a text holds at most {INSERTS_MAX} insertions")
    need(len(proto.marks) <= MARKS_MAX, f"a mutation of a text holds at most {MARKS_MAX} marks")
    names = len({mark.name for mark in proto.marks})
    need(names <= MARK_NAMES_MAX, f"a mutation of a text marks under at most {MARK_NAMES_MAX} names, not {names}")
    base = clock = _clock(stamp.lamport, proto.offset)
    after = (stamp.lamport + 1) * LAMPORT  # of its own feed, all elements of its batch may be named
    deletes = []
    for delete in proto.deletes:
        feed, first = _named(delete, feeds, stamp, after)
        last = first + delete.span
        need(last < (after if feed == stamp.feed else after - LAMPORT), "it deletes what it cannot have seen")
        deletes.append(Delete(feed, first, last))
    inserts = []
    for insert in proto.inserts:
        made = _insert(insert, feeds, stamp, base, clock)
        inserts.append(made)
        clock += len(made.text)
        need(clock - stamp.lamport * LAMPORT <= OFFSET_MAX + 1, "a lamport has too many elements; use a later message")
    marks = [_mark(mark, feeds, stamp, base, clock, after) for mark in proto.marks]
    return Ops(base, clock, inserts, _merged(deletes), marks)


def _merged(deletes: list[Delete]) -> list[Delete]:
    """Merge overlapping ranges, by feed, so that one pass over the runs of a feed serves all of them."""
    if len(deletes) < 2:
        return deletes
    merged: list[Delete] = []
    for delete in sorted(deletes):
        if merged and merged[-1].feed == delete.feed and delete.first <= merged[-1].last + 1:
            merged[-1] = Delete(delete.feed, merged[-1].first, max(merged[-1].last, delete.last))
        else:
            merged.append(delete)
    return merged


def _clock(lamport: int, offset: int) -> int:
    need(offset <= OFFSET_MAX, f"{offset} is above the greatest offset, {OFFSET_MAX}")
    return lamport << OFFSET_BITS | offset


def _named(
    proto: text_pb2.TextInsert | text_pb2.TextDelete | text_pb2.TextAnchor,
    feeds: Sequence[bytes],
    stamp: Stamp,
    below: int,
) -> tuple[bytes, int]:
    """Return the element that an operation names: one with a lower lamport, or of the same feed and below a clock."""
    need(proto.feed < len(feeds), f"it names feed {proto.feed} of a table of {len(feeds) - 1}")
    feed, clock = feeds[proto.feed], _clock(proto.lamport, proto.offset)
    need(clock < below if feed == stamp.feed else proto.lamport < stamp.lamport, "it names what it cannot have seen")
    return feed, clock


def _insert(proto: text_pb2.TextInsert, feeds: Sequence[bytes], stamp: Stamp, base: int, clock: int) -> Insert:
    need(bool(proto.text) is not bool(proto.item), "an insertion holds either text or an item")
    need(not proto.item or len(proto.item) == ITEM_ID_SIZE, f"an item id has {ITEM_ID_SIZE} bytes")
    made = ItemId(proto.item).lamport if proto.item else 0
    need(made <= stamp.lamport, "an item is embedded after it was made, and the id of this one is of a later time")
    text, item = (EMBED, proto.item) if proto.item else (proto.text, None)
    revived = tuple(_revived(row, feeds, stamp, base) for row in proto.revived)
    need(not revived or sum(row.last - row.first + 1 for row in revived) == len(text), "it revives more or less")
    place = proto.place
    need(0 <= place <= _ROOT, f"an insertion at a place {place} that this version does not know")
    if place == _ROOT:
        return Insert(clock, b"", 0, False, text, item, revived)
    if place == _NEXT:
        need(clock > base, "the first insertion of a mutation follows none")
        return Insert(clock, stamp.feed, clock - 1, False, text, item, revived)
    feed, parent = _named(proto, feeds, stamp, clock)
    return Insert(clock, feed, parent, place == _LEFT, text, item, revived)


def _revived(proto: text_pb2.TextDelete, feeds: Sequence[bytes], stamp: Stamp, base: int) -> Delete:
    feed, first = _named(proto, feeds, stamp, base)
    return Delete(feed, first, first + proto.span)


def _mark(proto: text_pb2.TextMark, feeds: Sequence[bytes], stamp: Stamp, base: int, end: int, after: int) -> Mark:
    need(0 < len(proto.name) <= MARK_NAME_MAX, f"the name of a mark has 1 to {MARK_NAME_MAX} characters")
    value = value_bytes(read_value(proto.value)) if proto.HasField("value") else None
    bounds = []
    for anchor in (proto.start, proto.end):
        if anchor.edge:
            bounds.append(END if anchor.after else START)
        elif anchor.inserted:
            need(anchor.inserted <= end - base, f"it marks element {anchor.inserted} of {end - base} inserted")
            bounds.append(Anchor(stamp.feed, base + anchor.inserted - 1, anchor.after))
        else:
            bounds.append(Anchor(*_named(anchor, feeds, stamp, after), anchor.after))
    return Mark(proto.name, value, bounds[0], bounds[1])


def quick(mutation: bytes) -> tuple[int, str] | None:
    """Read the most common mutations of typing: text after an element of the same writer, or one deletion.

    Returns the lamport of that element, and the text, which is empty for a deletion. None means that `decode` must read
    the mutation. Where both read the bytes, they agree.
    """
    size, kind = len(mutation), mutation[0]
    if (kind != _INSERTS and kind != _DELETES) or mutation[1] != size - 2 or mutation[2] != _LAMPORT:
        return None
    lamport, at = number_at(mutation, 3, size)
    if kind == _DELETES:
        return (lamport, "") if at == size else None
    if mutation[at] != _TEXT or mutation[at + 1] != size - at - 2 or at + 2 == size:
        return None
    return lamport, mutation[at + 2 :].decode()


# -- writing


def quick_bytes(clock: int, text: str) -> bytes | None:
    """Encode a mutation that `quick` reads, as the general encoder would; None if only that can."""
    lamport = clock >> OFFSET_BITS
    content = text.encode()
    if clock & OFFSET_MAX or not 0 < lamport < 1 << 56 or len(content) > QUICK_TEXT_MAX:
        return None
    name = b"%c%b" % (_LAMPORT, varint(lamport))
    if not text:
        return b"%c%c%b" % (_DELETES, len(name), name)
    name += b"%c%c%b" % (_TEXT, len(content), content)
    return b"%c%c%b" % (_INSERTS, len(name), name)


class Draft:
    """A mutation in the making, of the writer of `feed`."""

    __slots__ = ("_names", "_table", "inserted", "proto")

    def __init__(self, feed: bytes, offset: int = 0) -> None:
        if not isinstance(feed, bytes):
            raise InvalidInput(f"a feed key is bytes, not {type(feed).__name__}")
        if len(feed) not in (0, 32):
            raise InvalidInput(f"a feed key has 32 bytes, not {len(feed)}")
        if type(offset) is not int or offset < 0:
            raise InvalidInput(f"an offset is an integer from 0 on, not {offset!r}")
        if offset > OFFSET_MAX:
            raise TooLarge(f"the offset {offset} is above {OFFSET_MAX}; write in a later message")
        self._table = FeedTable(feed)
        self._names: set[str] = set()
        self.proto = text_pb2.TextMutation(offset=offset)
        self.inserted = 0

    def insert(self, text: str, feed: bytes, parent: int, *, left: bool = False, item: bytes = b"") -> None:
        """Insert text, or an item, at a parent; at the root without a feed."""
        insert = self.proto.inserts.add()
        if feed:
            insert.feed = self._table.index(feed)
            insert.lamport, insert.offset = parent >> OFFSET_BITS, parent & OFFSET_MAX
            if left:
                insert.place = _LEFT
        else:
            insert.place = _ROOT
        self._fill(insert, text, item)

    def insert_next(self, text: str, *, item: bytes = b"") -> None:
        """Insert text, or an item, after the previous insertion."""
        self._fill(self.proto.inserts.add(place=_NEXT), text, item)

    @property
    def is_full(self) -> bool:
        """True if further operations should go into another mutation."""
        full = len(self.proto.marks) >= MARKS_MAX // 4 or len(self._names) >= MARK_NAMES_MAX // 2
        return full or len(self.proto.inserts) >= INSERTS_MAX

    def has_room(self, name: str) -> bool:
        """True if one more mark of a name fits into this mutation."""
        known = name in self._names or len(self._names) < MARK_NAMES_MAX
        return known and len(self.proto.marks) < MARKS_MAX

    def revive(self, names: Sequence[tuple[bytes, int]]) -> None:
        """Record that the elements of the previous insertion are copies of these elements, one for one."""
        rows = self.proto.inserts[-1].revived
        last = (b"", -2)
        for feed, clock in names:
            if (feed, clock - 1) == last and rows:
                rows[-1].span += 1
            else:
                rows.add(feed=self._table.index(feed), lamport=clock >> OFFSET_BITS, offset=clock & OFFSET_MAX)
            last = (feed, clock)

    def _fill(self, insert: text_pb2.TextInsert, text: str, item: bytes) -> None:
        if item:
            insert.item = item
        else:
            insert.text = text
        self.inserted += 1 if item else len(text)

    def delete(self, feed: bytes, first: int, last: int) -> None:
        """Delete the elements of a feed from clock `first` to clock `last`."""
        self.proto.deletes.add(
            feed=self._table.index(feed), lamport=first >> OFFSET_BITS, offset=first & OFFSET_MAX, span=last - first
        )

    def mark(self, name: str, value: bytes | None, start: Anchor | int, end: Anchor | int) -> None:
        """Set a mark between anchors. A number is an element of this mutation, counted from 1."""
        mark = self.proto.marks.add(name=name)
        self._names.add(name)
        if value is not None:
            mark.value.ParseFromString(value)
        for proto, anchor, after in ((mark.start, start, False), (mark.end, end, True)):
            if isinstance(anchor, int):
                proto.inserted, proto.after = anchor, after
            elif not anchor.feed:
                proto.edge, proto.after = True, anchor.after
            else:
                proto.feed = self._table.index(anchor.feed)
                proto.lamport, proto.offset = anchor.clock >> OFFSET_BITS, anchor.clock & OFFSET_MAX
                proto.after = anchor.after

    def bytes(self) -> bytes:
        """Encode the mutation, or raise `TooLarge`."""
        count = len(self.proto.inserts) + len(self.proto.deletes) + len(self.proto.marks)
        if count > OPS_MAX or len(self.proto.inserts) > INSERTS_MAX:
            raise TooLarge(f"a mutation of a text holds at most {OPS_MAX} operations, not {count}; change less at once")
        if len(self.proto.marks) > MARKS_MAX or len(self._names) > MARK_NAMES_MAX:
            raise TooLarge(f"a mutation of a text holds at most {MARKS_MAX} marks under {MARK_NAMES_MAX} names")
        if self._table.feeds:
            self.proto.feeds.extend(self._table.feeds)
        return self.proto.SerializeToString(deterministic=True)


def at_offset(mutation: bytes, offset: int) -> bytes:
    """Return a mutation for the position in a batch where the feed's next element has this offset."""
    proto = text_pb2.TextMutation.FromString(mutation)
    proto.offset = offset if proto.inserts else 0
    return proto.SerializeToString(deterministic=True)


def checked(text: str) -> str:
    """Return a text if it may be inserted, or raise `InvalidInput`."""
    if not isinstance(text, str):
        raise InvalidInput(f"text is a str, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"text that is not valid Unicode: {error}") from None
    return text


def mark_value(value: Value) -> bytes:
    """Encode the value of a mark."""
    return to_proto(value).SerializeToString(deterministic=True)


def read_mark_value(value: bytes) -> Value:
    """Decode the value of a mark."""
    return read_value(value_pb2.Value.FromString(value))
