"""The canonical snapshot of an object, written and read. Its bytes depend on the messages alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from google.protobuf.message import DecodeError

from antiphon.core.errors import BadEncoding
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import object_pb2
from antiphon.model.heard import kept_stamp
from antiphon.model.model import InvalidMutation
from antiphon.model.object.fast_snapshot import read_plain
from antiphon.model.object.mutation_codec import check_holds, read_path
from antiphon.model.object.pending import PendingFeed
from antiphon.model.object.register import (
    PACKED_REGISTERS_MAX,
    Content,
    Counter,
    Mark,
    Node,
    Path,
    Segment,
    grow,
    path_order,
)
from antiphon.model.object.state import ObjectState
from antiphon.model.value import read_value, value_bytes
from antiphon.model.wire import NAME, NAME_FORM, TEXT_FORM, VALUE, field, number_field, stamp_fields, tags, varint

_TOTAL_SIZE_MAX = 16  # 2^64 increments of the greatest amount fit
_FEED_SIZE = 32
_PACKED_MAX = 256  # bytes of a register that a node keeps
_ANY = object()  # in `Node.packed`: the cached bytes are of a register that is not plain
_OBJECT, _ROW, _ENTRY, _PENDING = tags("ObjectSnapshot", "ObjectRegister", "ObjectEntry", "ObjectKept")
_FEED_HEAD = _OBJECT.feeds + bytes([_FEED_SIZE])
_HEARD_FORM = _OBJECT.heard + b"%c" + NAME.feed + b"%c" + NAME.seq + b"%b"
_KEY_FORM = _OBJECT.registers + b"%c" + _ROW.path + b"%c%b"
_REGISTER_FORM = _KEY_FORM + _ROW.entries + b"%c" + NAME_FORM + _ENTRY.value + b"%c%b"

# -- writing


def write_snapshot(state: ObjectState) -> bytes:
    """Encode the snapshot of a state."""
    heard = state.heard  # the feeds of all entries are among them
    feeds = sorted({*heard, *state.kept.feeds} if state.kept else heard)
    at = {feed: position for position, feed in enumerate(feeds, start=1)}
    parts = [_FEED_HEAD + _FEED_HEAD.join(at)] if at else []
    parts += [_heard(at[feed], heard[feed]) for feed in (at if len(at) == len(heard) else sorted(heard))]
    root = state.root
    for key in root.segments():
        node = root.children[key]
        cached = len(parts) <= PACKED_REGISTERS_MAX
        if not node.children:  # neither a map nor a set, as most
            parts.append(_plain_register(key, node, at, cached) or _register((key,), node, at, cached))
        else:
            for path, inner in node.below((key,)):
                if inner.entries:
                    parts.append(_register(path, inner, at, len(parts) <= PACKED_REGISTERS_MAX))
    if state.kept:
        parts += _kept(state, at)
    return b"".join(parts)


def _heard(feed: int, seq: int) -> bytes:
    if seq and feed < 128:
        last = varint(seq)
        return _HEARD_FORM % (3 + len(last), feed, last)
    return field(_OBJECT.heard, number_field(NAME.feed, feed) + number_field(NAME.seq, seq))


def _plain_register(key: Segment, node: Node, at: dict[bytes, int], cached: bool) -> bytes:
    """Encode a register with one short text or integer at one key, as most are, in one step; empty for any other.

    With `cached`, the node keeps the bytes: most registers have not changed since the object was last saved.
    """
    if len(node.entries) > 1 or type(key) is not str:
        return b""
    ((stamp, content),) = node.entries.values()
    lamport, feed, seq = stamp
    where, packed = at[feed], node.packed
    if packed is not None and packed[0] is content and packed[1] is stamp and packed[2] == where:
        return packed[3]
    if type(content) is str:
        value = content.encode()
        size = len(value)
        if size > 63:
            return b""
        value = TEXT_FORM % (size, value)
    elif type(content) is int:
        value = VALUE.integer + varint((content << 1) ^ (content >> 63))
    else:
        return b""
    name, first, second = key.encode(), varint(lamport), varint(seq)
    size, length = len(value), len(name)
    inner = 6 + len(first) + len(second) + size
    if length + inner > 120 or where > 127 or not seq or not lamport:  # a 0 is not written
        return b""
    row = _REGISTER_FORM % (length + inner + 4, length, name, inner, where, first, second, size, value)
    node.packed = (content, stamp, where, row) if cached else None
    return row


def _register(path: Path, node: Node, at: dict[bytes, int], cached: bool) -> bytes:
    """Encode any register. With `cached`, the node keeps the bytes, unless they are long, and their entries."""
    entries = node.entries
    held = [(stamp, content, at[stamp[1]]) for stamp, content in entries.values()]
    known = node.packed
    if known is not None and known[0] is _ANY and known[1] == held:
        return known[3]
    rows = [_path(path)]
    for stamp, content in sorted(entries.values()) if len(entries) > 1 else entries.values():
        rows.append(field(_ROW.entries, stamp_fields(at[stamp.feed], stamp) + _content(content)))
    row = field(_OBJECT.registers, b"".join(rows))
    node.packed = (_ANY, held, 0, row) if cached and len(row) <= _PACKED_MAX else None
    return row


def _path(path: Path) -> bytes:
    row = b""
    for segment in path:
        row += field(_ROW.path, segment.encode()) if isinstance(segment, str) else field(_ROW.element, segment)
    return row


def _content(content: Content) -> bytes:
    kind = type(content)
    if kind is str:
        return field(_ENTRY.value, field(VALUE.text, content.encode()))
    if kind is Mark:
        return _ENTRY.mark + varint(content.value)
    if kind is Counter:
        return field(_ENTRY.counter, _total(content.total))
    return field(_ENTRY.value, value_bytes(content))


def _total(total: int) -> bytes:
    return total.to_bytes((total.bit_length() + 8) // 8, "big", signed=True)


def _kept(state: ObjectState, at: dict[bytes, int]) -> Iterator[bytes]:
    """Encode pending effects by path, so that a long path with many names takes no more room than in its mutation."""
    gone: dict[Path, list[Stamp]] = {}
    increments: dict[Path, list[tuple[Stamp, int]]] = {}
    for feed, effects in state.kept.feeds.items():
        for path, bounds in effects.bounds.items():
            gone.setdefault(path, []).extend(Stamp(lamport, feed, seq) for seq, lamport in bounds.pairs)
        for stamp, sums in effects.increments.items():
            for path, by in sums.items():
                increments.setdefault(path, []).append((stamp, by))
    for path in sorted(gone.keys() | increments.keys(), key=path_order):
        parts = [_path(path)]
        parts += [field(_PENDING.gone, stamp_fields(at[stamp.feed], stamp)) for stamp in sorted(gone.get(path, ()))]
        for stamp, by in sorted(increments.get(path, ())):
            increment = stamp_fields(at[stamp.feed], stamp) + field(_ENTRY.counter, _total(by))
            parts.append(field(_PENDING.increments, increment))
        yield field(_OBJECT.kept, b"".join(parts))


# -- reading


def read_snapshot(data: bytes) -> ObjectState:
    """Read a snapshot, or raise `BadEncoding` if the bytes are not canonical."""
    return read_plain(data) or _read_any(data)


def _read_any(data: bytes) -> ObjectState:
    try:
        proto = object_pb2.ObjectSnapshot.FromString(data)
        state = _read(proto)
        # Serialising again checks the form of known fields. `_read` checks the order of rows and the form of values.
        proto.DiscardUnknownFields()
        _need(proto.SerializeToString(deterministic=True) == data, "it is not in its one canonical form")
    except (DecodeError, InvalidMutation) as error:
        raise BadEncoding(f"snapshot of an object: {error}") from None
    return state


def _need(condition: bool, reason: str) -> None:
    if not condition:
        raise BadEncoding(f"snapshot of an object: {reason}")


def _read(proto: object_pb2.ObjectSnapshot) -> ObjectState:
    state = ObjectState()
    # Their number is not limited: a hostile writer can name any number of feeds, and every state must be readable.
    table = proto.feeds[:]
    _need(_ascend(table) and all(len(feed) == _FEED_SIZE for feed in table), "its table of feeds is none")
    feeds = (b"", *table)
    heard = state.heard
    last = 0
    for name in proto.heard[:]:
        _need(name.feed > last and not name.lamport, "what it has heard of is not in order")
        last = name.feed
        heard[kept_stamp(name, feeds).feed] = name.seq
    _read_registers(proto.registers[:], state, feeds)
    kept = proto.kept[:]
    if kept:
        _read_kept(kept, state, feeds)
    used = heard.keys() | state.kept.feeds.keys() if kept else heard.keys()
    _need(len(used) == len(table), "its table has feeds of which it says nothing")
    return state


def _ascend(rows: Sequence[Any]) -> bool:
    return len(rows) < 2 or all(one < other for one, other in pairwise(rows))


def _read_registers(rows: list[object_pb2.ObjectRegister], state: ObjectState, feeds: tuple[bytes, ...]) -> None:
    heard, root = state.heard, state.tree
    above: Path = ()
    for row in rows:
        path = _read_path(row)
        _need(_before(above, path), "its registers are not in order")
        above = path
        entries = (root.child(path[0]) if len(path) == 1 else grow(root, path)).entries
        rows_of = row.entries
        count = len(rows_of)
        for position in range(count):  # far faster than iterating over this container
            entry = rows_of[position]
            stamp = _read_stamp(entry, feeds)
            if heard.get(stamp[1], -1) < stamp[2]:
                raise BadEncoding(f"snapshot of an object: an entry of {stamp}, of which it has not heard")
            content = _read_content(entry)
            check_holds(path, content)
            entries[stamp[1]] = stamp, content
        if count != 1:
            stamps = [stamp for stamp, _ in entries.values()]
            _need(len(stamps) == count > 0 and _ascend(stamps), "the entries of a register are not in order")


def _before(one: Path, other: Path) -> bool:
    """True if a path sorts before another. Keys are compared as text, which has the order of UTF-8."""
    if one and (type(one[-1]) is bytes or type(other[-1]) is bytes):
        return path_order(one) < path_order(other)
    return one < other


def _read_path(row: object_pb2.ObjectRegister | object_pb2.ObjectKept) -> Path:
    path = read_path(row)
    last = path[-1]
    if type(last) is bytes:
        _need(last == row.element.SerializeToString(deterministic=True), "an element that is not in its one form")
    return path


def _read_kept(rows: list[object_pb2.ObjectKept], state: ObjectState, feeds: tuple[bytes, ...]) -> None:
    above: Path = ()
    for row in rows:
        path = _read_path(row)
        _need(_before(above, path), "what it waits for is not in order")
        above = path
        gone = [kept_stamp(name, feeds) for name in row.gone]
        increments = {_read_stamp(entry, feeds): entry for entry in row.increments}
        _need(_ascend(gone) and _ascend([*increments]), "what it waits for is not in order")
        _need(len(increments) == len(row.increments) and bool(gone or increments), "it waits for nothing")
        for stamp in gone:
            _need(_pending_feed(state, stamp).replace(path, stamp), "it names a message twice")
        for stamp, entry in increments.items():
            _need(entry.WhichOneof("kind") == "counter", "an increment that is no number")
            _pending_feed(state, stamp).increment(path, stamp, _read_total(entry))


def _pending_feed(state: ObjectState, stamp: Stamp) -> PendingFeed:
    _need(not state.heard.has(stamp), f"it waits for {stamp}, which has been here")
    return state.kept.at(stamp.feed)


def _read_stamp(entry: object_pb2.ObjectEntry, feeds: tuple[bytes, ...]) -> Stamp:
    feed, lamport, seq = entry.feed, entry.lamport, entry.seq
    if not 0 < feed < len(feeds) or lamport >= 1 << 63 or seq >= 1 << 63:
        raise BadEncoding(f"snapshot of an object: a stamp of feed {feed} of a table of {len(feeds) - 1}")
    return Stamp(lamport, feeds[feed], seq)


def _read_content(entry: object_pb2.ObjectEntry) -> Content:
    kind = entry.WhichOneof("kind")
    if kind == "value":
        proto = entry.value
        if proto.WhichOneof("kind") == "text":
            return proto.text
        value = read_value(proto)
        _need(value_bytes(value) == proto.SerializeToString(deterministic=True), "a value that is not in its one form")
        return value
    if kind == "counter":
        return Counter(_read_total(entry))
    try:
        return Mark(entry.mark)
    except ValueError:
        raise BadEncoding(f"snapshot of an object: a mark {entry.mark} that this version does not know") from None


def _read_total(entry: object_pb2.ObjectEntry) -> int:
    total = int.from_bytes(entry.counter[:_TOTAL_SIZE_MAX], "big", signed=True)
    _need(_total(total) == entry.counter, "a total that no counter reaches, or not in its one form")
    return total
