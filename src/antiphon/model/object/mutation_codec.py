"""Mutations of an object as protobuf. Reading does all checks before the state changes.

A mutation is refused by its bytes and its stamp alone, never by the state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from google.protobuf.message import DecodeError

from antiphon.core.errors import InvalidInput, TooLarge
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import object_pb2, value_pb2
from antiphon.model.heard import FeedTable, read_feeds, read_name
from antiphon.model.model import InvalidMutation, need
from antiphon.model.object.register import (
    OPS_MAX,
    PATH_LENGTH_MAX,
    SEGMENT_SIZE_MAX,
    Content,
    Counter,
    Mark,
    Path,
    check_path,
    element_segment,
)
from antiphon.model.object.state import DELETE, Increment, Op
from antiphon.model.value import read_value, to_proto

_SEQ_MAX = (1 << 63) - 1
_MARKS: dict[int, Content] = {1: DELETE, 2: Mark.MAP, 3: Mark.SET, 4: Mark.MEMBER}

# -- reading


def read_mutation(data: bytes, stamp: Stamp) -> Sequence[Op]:
    """Read the operations of a received mutation, or raise `InvalidMutation`."""
    try:
        proto = object_pb2.ObjectMutation.FromString(data)
    except DecodeError as error:
        raise InvalidMutation(f"it is no mutation of an object: {error}") from None
    table, rows = proto.feeds, proto.ops
    # Indexing is far cheaper than iterating over these containers, and most mutations name one feed and one path.
    feeds = read_feeds(table, stamp.feed) if len(table) else (stamp.feed,)
    count = len(rows)
    if count == 1:
        return (_read_op(rows[0], feeds, stamp),)
    need(0 < count <= OPS_MAX, f"it has {count} operations; a mutation has 1 to {OPS_MAX}")
    ops = [_read_op(row, feeds, stamp) for row in rows]
    need(len({op.path for op in ops}) == count, "it has two operations for one path")
    return ops


def _read_op(row: object_pb2.ObjectOp, feeds: Sequence[bytes], stamp: Stamp) -> Op:
    kind = row.WhichOneof("kind")
    path, content = _read_plain(row) if kind == "write" else _read_other(row, kind)
    rows = row.replaces
    count = len(rows)
    if not count:
        names: Sequence[Stamp] = ()
    elif count == 1:
        names = (_read_name(rows[0], feeds, stamp),)
    else:
        names = [_read_name(name, feeds, stamp) for name in rows]
    if type(content) is Increment:
        need(count == 1, f"an increment names the counter that it adds to, and not {count} messages")
    return Op(path, content, names)


def _read_name(name: value_pb2.Name, feeds: Sequence[bytes], stamp: Stamp) -> Stamp:
    """Do `read_name`, faster for the common case."""
    feed, lamport, seq = name.feed, name.lamport, name.seq
    if seq > _SEQ_MAX:  # a snapshot cannot hold it
        raise InvalidMutation(f"it names the seq {seq}, which no feed reaches")
    if feed < len(feeds) and lamport < stamp.lamport:
        return Stamp(lamport, feeds[feed], seq)
    return read_name(name, feeds, stamp)


def _read_plain(row: object_pb2.ObjectOp) -> tuple[Path, Content]:
    path = read_path(row)
    if type(path[-1]) is bytes:
        check_holds(path, None)
    write = row.write
    return path, write.text if write.WhichOneof("kind") == "text" else read_value(write)


def read_path(row: object_pb2.ObjectOp | object_pb2.ObjectRegister | object_pb2.ObjectKept) -> Path:
    """Read the path of a row, with its element if it has one, or raise `InvalidMutation`."""
    keys = row.path
    if len(keys) == 1:
        key = keys[0]
        if len(key) > SEGMENT_SIZE_MAX >> 2:
            _check((key,))
        path: Path = (key,)
    else:
        path = tuple(keys)
        _check(path)
    if row.HasField("element"):
        need(len(path) < PATH_LENGTH_MAX, f"a path of more than {PATH_LENGTH_MAX} segments")
        try:
            return (*path, element_segment(read_value(row.element)))
        except TooLarge as error:
            raise InvalidMutation(str(error)) from None
    return path


def _check(path: Path) -> None:
    try:
        check_path(path)
    except InvalidInput as error:
        raise InvalidMutation(str(error)) from None


def _read_other(row: object_pb2.ObjectOp, kind: str | None) -> tuple[Path, Content]:
    path = read_path(row)
    if kind == "mark":
        content = _MARKS.get(row.mark)
        need(content is not None, f"a mark {row.mark} that this version does not know")
        if content is DELETE:
            return path, content
    elif kind == "counter":
        content = Counter(row.counter)
    else:
        need(kind == "increment", "an operation of a kind that this version does not know")
        content = Increment(row.increment)
    check_holds(path, content)
    return path, content


def check_holds(path: Path, content: Content) -> None:
    """Raise `InvalidMutation` unless a path may hold a content: elements hold exactly the mark of a member."""
    if (type(path[-1]) is bytes) is not (content is Mark.MEMBER):
        raise InvalidMutation("an element of a set is a member, and holds nothing else; and only elements are members")


# -- writing


def write_mutation(ops: Collection[Op], feed: bytes) -> bytes:
    """Encode a mutation of the writer of `feed`."""
    if len(ops) > OPS_MAX:
        raise TooLarge(f"a change of {len(ops)} paths at once; a mutation has at most {OPS_MAX}")
    proto = object_pb2.ObjectMutation()
    table = FeedTable(feed)
    rows = proto.ops
    try:
        for op in ops:
            _write_op(rows.add(), op, table)
    except UnicodeEncodeError as error:
        raise InvalidInput(f"text that is not valid Unicode: {error}") from None
    if table.feeds:
        proto.feeds.extend(table.feeds)
    return proto.SerializeToString()


def _write_op(row: object_pb2.ObjectOp, op: Op, table: FeedTable) -> None:
    path, content, names = op
    write_path(row, path)
    kind = type(content)
    if kind is str:
        row.write.text = content
    elif content is DELETE:
        row.mark = object_pb2.OBJECT_MARK_DELETE
    elif kind is Mark:
        row.mark = content.value
    elif kind is Counter:
        row.counter = content.total
    elif kind is Increment:
        row.increment = content.by
    else:
        row.write.CopyFrom(to_proto(content))
    if names:
        write_names(row.replaces, names, table)


def write_path(row: object_pb2.ObjectOp | object_pb2.ObjectRegister | object_pb2.ObjectKept, path: Path) -> None:
    """Write a path into a row."""
    last = path[-1]
    if isinstance(last, bytes):
        path = path[:-1]
        row.element.ParseFromString(last)
    row.path.extend(path)  # type: ignore[arg-type]  # only the last can be an element


def write_names(rows: object, names: Iterable[Stamp], table: FeedTable) -> None:
    """Add the names of messages to a repeated field."""
    for name in names:
        row: value_pb2.Name = rows.add()  # type: ignore[attr-defined]
        at = table.index(name.feed)
        if at:
            row.feed = at
        row.lamport = name.lamport
        row.seq = name.seq
