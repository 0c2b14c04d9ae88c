"""Mutations and snapshots of arrays as protobuf. Reading checks everything, because peers may be hostile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import NamedTuple

from google.protobuf.message import DecodeError

from antiphon.core.errors import InvalidInput, TooLarge
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import array_pb2 as pb
from antiphon.model.array.pieces import ElementId, Piece, Writes, stamp_of
from antiphon.model.array.position import KEY_SIZE_MAX, SELF, KeyReader, Place, Span, check_span, encode_int, span_of
from antiphon.model.array.state import ArrayState, Said
from antiphon.model.bounds import Waits, is_waited, waited
from antiphon.model.heard import (
    FeedTable,
    heard_fields,
    kept_stamp,
    read_canonical,
    read_feeds,
    read_heard,
    read_name,
    read_waits,
)
from antiphon.model.model import InvalidMutation, need
from antiphon.model.value import Value, read_value, to_proto, value_bytes
from antiphon.model.wire import field, number_field, tags

OPS_MAX = 1 << 12  # in a mutation
ELEMENTS_MAX = 1 << 16  # inserted, or named, by an operation
_STATE, _ELEMENT, _WRITE = tags("ArrayState", "ArrayElement", "ArrayWrite")
_NULL = field(_ELEMENT.more, value_bytes(None))
_parse = pb.ArrayMutation.FromString  # bound here: the lookup takes as long as parsing


# -- acts: the ops of a mutation, read and checked


@dataclass(slots=True)
class Insert:
    """Insert elements at position keys."""

    first: int
    span: Span
    values: list[Value]
    copies: Sequence[ElementId] = ()  # the elements that these are copies of, one for each

    def change(self, state: ArrayState, stamp: Stamp) -> None:
        """Apply the act to a state."""
        state.insert(stamp, self.first, self.span, self.values)
        for number, name in enumerate(self.copies, self.first):
            state.copies[stamp.feed, name] = ElementId(stamp, number)


@dataclass(slots=True)
class Delete:
    """Delete elements."""

    names: list[ElementId]

    def change(self, state: ArrayState, stamp: Stamp) -> None:
        """Apply the act to a state."""
        state.delete(self.names)


@dataclass(slots=True)
class Set:
    """Replace the value of an element."""

    name: ElementId
    value: Value
    replaces: list[Stamp]

    def change(self, state: ArrayState, stamp: Stamp) -> None:
        """Apply the act to a state."""
        state.write(self.name, stamp, self.value, self.replaces)


@dataclass(slots=True)
class Move:
    """Move elements to position keys."""

    names: list[ElementId]
    span: Span
    in_place: bool

    def change(self, state: ArrayState, stamp: Stamp) -> None:
        """Apply the act to a state."""
        state.move(self.names, stamp, self.span)


Act = Insert | Delete | Set | Move


def read_mutation(data: bytes, stamp: Stamp) -> list[Act]:
    """Read the acts of a mutation, or raise `InvalidMutation`. The outcome depends on its bytes and stamp alone."""
    try:
        mutation = _parse(data)
    except DecodeError as error:
        raise InvalidMutation(f"no mutation of an array: {error}") from None
    ops = mutation.ops
    if not 0 < len(ops) <= OPS_MAX:
        raise InvalidMutation(f"a mutation of an array has 1 to {OPS_MAX} ops, not {len(ops)}")
    table = mutation.feeds
    feeds = read_feeds(table, stamp.feed) if table else (stamp.feed,)
    if len(ops) == 1:
        return [_read_op(ops[0], feeds, stamp, 0)]
    acts: list[Act] = []
    count = 0
    for op in ops:
        act = _read_op(op, feeds, stamp, count)
        if isinstance(act, Insert):
            count += len(act.values)
        acts.append(act)
    _check_once(acts)
    return acts


def _read_op(op: pb.ArrayOp, feeds: Sequence[bytes], stamp: Stamp, first: int) -> Act:
    kind = op.WhichOneof("op")
    if kind == "insert":
        insert = op.insert
        given = insert.values
        if len(given) > ELEMENTS_MAX:
            raise InvalidMutation(f"an op that inserts {len(given)} elements, more than {ELEMENTS_MAX}")
        # One value is the common case, and iterating takes three times as long as indexing.
        values = [read_value(given[0])] if len(given) == 1 else [read_value(value) for value in given]
        place = insert.place
        span = span_of(place.path, place.extends, place.offset, len(values), stamp)
        if not insert.copies:
            return Insert(first, span, values)
        copies = _names(insert.copies, feeds, stamp)
        need(len(copies) == len(values), "an op that brings back more or less than it inserts")
        return Insert(first, span, values, copies)
    if kind == "delete":
        return Delete(_names(op.delete.elements, feeds, stamp))
    if kind == "set":
        change = op.set
        replaces = [read_name(name, feeds, stamp) for name in change.replaces]
        name = ElementId(read_name(change.name, feeds, stamp), change.index)
        return Set(name, read_value(change.value), replaces)
    need(kind == "move", "an op of a kind that this version does not know")
    names = _names(op.move.elements, feeds, stamp)
    place = op.move.place
    return Move(names, span_of(place.path, place.extends, place.offset, len(names), stamp), op.move.in_place)


def _names(groups: Iterable[pb.ArrayElements], feeds: Sequence[bytes], stamp: Stamp) -> list[ElementId]:
    names: list[ElementId] = []
    for group in groups:
        inserted = read_name(group.name, feeds, stamp)
        names += [ElementId(inserted, index) for index in group.indexes]
    need(names, "an op that names no element")
    need(len(names) <= ELEMENTS_MAX and len(set(names)) == len(names), "an op that names an element twice, or too many")
    return names


def _check_once(acts: list[Act]) -> None:
    """Refuse two elements at one key, and two values or places for one element: a message does not order them."""
    spans = sorted(act.span for act in acts if isinstance(act, Insert | Move))
    apart = all(one.run != other.run or one.offset + one.size <= other.offset for one, other in pairwise(spans))
    need(apart, "a mutation that puts two elements at one place")
    moved = [name for act in acts if isinstance(act, Move) for name in act.names]
    written = [act.name for act in acts if isinstance(act, Set)]
    for names in (moved, written):
        need(len(set(names)) == len(names), "a mutation that moves or sets an element twice")


# -- writing mutations


class Item(NamedTuple):
    """An element for a place: a new value, perhaps as a copy of another element, or the existing element `name`."""

    name: ElementId | None
    value: Value = None
    in_place: bool = False
    copy_of: ElementId | None = None


class Draft:
    """A mutation in the making."""

    def __init__(self, feed: bytes) -> None:
        self.feed = feed
        self._table = FeedTable(feed)
        self._mutation = pb.ArrayMutation()

    def put(self, place: Place, items: Sequence[Item]) -> None:
        """Put items at consecutive offsets, with as few operations as possible."""
        if len(items) > ELEMENTS_MAX:
            raise TooLarge(f"one mutation puts at most {ELEMENTS_MAX} elements at a place, not {len(items)}")
        start = 0
        for end in range(1, len(items) + 1):
            if end < len(items) and _kind(items[end]) == _kind(items[start]):
                continue
            group = items[start:end]
            at = pb.ArrayPlace(path=place.path, offset=place.offset + start, extends=place.extends)
            if group[0].name is None:
                values = [to_proto(item.value) for item in group]
                copies = self._elements(item.copy_of for item in group if item.copy_of is not None)
                self._mutation.ops.add(insert=pb.ArrayInsert(place=at, values=values, copies=copies))
            else:
                elements = self._elements(item.name for item in group if item.name is not None)
                move = pb.ArrayMove(place=at, elements=elements, in_place=group[0].in_place)
                self._mutation.ops.add(move=move)
            start = end  # ops that open a run at one path share it, since its id comes from the stamp

    def delete(self, names: Iterable[ElementId]) -> None:
        """Delete elements, with as many operations as that takes."""
        left = list(names)
        for start in range(0, max(len(left), 1), ELEMENTS_MAX):
            some = left[start : start + ELEMENTS_MAX]
            self._mutation.ops.add(delete=pb.ArrayDelete(elements=self._elements(some)))

    def set(self, name: ElementId, value: Value, replaces: Iterable[Stamp]) -> None:
        """Replace the value of an element."""
        change = pb.ArraySet(
            name=self._table.name(name.stamp),
            index=name.number,
            value=to_proto(value),
            replaces=[self._table.name(stamp) for stamp in replaces],
        )
        self._mutation.ops.add(set=change)

    def _elements(self, names: Iterable[ElementId]) -> list[pb.ArrayElements]:
        groups: list[pb.ArrayElements] = []
        last: Stamp | None = None
        for stamp, index in names:
            if stamp != last:
                groups.append(pb.ArrayElements(name=self._table.name(stamp)))
                last = stamp
            groups[-1].indexes.append(index)
        return groups

    def encode(self) -> list[bytes]:
        """Return the mutation, or an empty list if it has no effect."""
        if not self._mutation.ops:
            return []
        self._mutation.feeds.extend(self._table.feeds)
        return [self._mutation.SerializeToString(deterministic=True)]


def _kind(item: Item) -> tuple[bool, bool, bool]:
    return item.name is None, item.in_place, item.copy_of is None


# -- snapshots


def write_state(state: ArrayState) -> bytes:
    """Encode the canonical snapshot of a state."""
    table = FeedTable.of(_feeds(state))
    rows = bytearray().join(heard_fields(state.heard, table))
    last = b""
    for pieces in _in_rows(state.order):
        first = pieces[0]
        span, own = first.span, first.origin
        path = span.run + encode_int(span.offset) + SELF
        shared = _shared(last, path)
        row = [_begin(first.name(), path[shared:], shared, table)]
        if span.stamp != own:
            row.append(table.named(_ELEMENT.placed, span.stamp))
        row.append(_versions(first.written(), first.waits, own, table))
        if first.writes is None:
            values = chain.from_iterable(piece.winners() for piece in pieces)
            row += [
                _NULL if value is None else field(_ELEMENT.more, value_bytes(value))
                for value in islice(values, 1, None)
            ]
        rows += field(_STATE.elements, b"".join(row))
        last = path
    last = b""
    for said in (state.pending[name] for name in sorted(state.pending)):
        path = b"" if said.span is None else said.span.run + encode_int(said.span.offset) + SELF
        shared = _shared(last, path)
        rows += field(_STATE.pending, _said_row(said, path[shared:], shared, table))
        last = path
    return bytes(rows)


def _more(value: Value) -> bytes:
    return _NULL if value is None else field(_ELEMENT.more, value_bytes(value))


def _in_rows(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Yield the pieces of each row: however they were split, what goes on unchanged is one row."""
    row: list[Piece] = []
    for piece in pieces:
        if row and not row[-1].goes_on_with(piece):
            yield row
            row = []
        row.append(piece)
    if row:
        yield row


def _begin(name: ElementId, path: bytes, shared: int, table: FeedTable) -> bytes:
    """Encode the fields that every row begins with."""
    own, number = name
    row = table.named(_ELEMENT.name, own) + number_field(_ELEMENT.index, number) + number_field(_ELEMENT.shared, shared)
    return row + field(_ELEMENT.path, path) if path else row


def _shared(last: bytes, path: bytes) -> int:
    """Return the length of what two paths begin with alike."""
    if path.startswith(last):  # the common case, of a run
        return len(last)
    low, high = 0, min(len(last), len(path))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if last[low:middle] == path[low:middle] else (low, middle - 1)
    return low


def _feeds(state: ArrayState) -> set[bytes]:
    found = {*state.heard, *(stamp.feed for stamp in state.pieces)}
    for piece in state.order:
        found.add(piece.span.stamp.feed)
        found.update(piece.writes or ())
        found.update(piece.waits or ())
    for said in state.pending.values():
        found.add(said.id.stamp.feed)
        if said.span is not None:
            found.add(said.span.stamp.feed)
        found.update(said.writes, said.waits or ())
    return found


def _said_row(said: Said, path: bytes, shared: int, table: FeedTable) -> bytes:
    row = _begin(said.id, path, shared, table)
    if said.span is not None:
        row += table.named(_ELEMENT.placed, said.span.stamp)
    row += _versions(said.writes, said.waits, said.id.stamp, table)
    return row + number_field(_ELEMENT.deleted, said.deleted)


def _versions(writes: Writes, waits: Waits | None, own: Stamp, table: FeedTable) -> bytes:
    rows = []
    for stamp, value in sorted(writes.values(), key=stamp_of):
        name = b"" if stamp == own else table.named(_WRITE.name, stamp)
        rows.append(field(_ELEMENT.writes, name + field(_WRITE.value, value_bytes(value))))
    if waits:
        rows += [table.named(_ELEMENT.waits, stamp) for stamp in sorted(waited(waits))]
    return b"".join(rows)


def read_state(data: bytes) -> ArrayState:
    """Read a snapshot, or raise `BadEncoding` if the bytes are not canonical."""
    return read_canonical(data, "an array", lambda: _read_state(pb.ArrayState.FromString(data)), write_state)


def _read_state(proto: pb.ArrayState) -> ArrayState:
    feeds = read_feeds(proto.feeds)
    state = ArrayState()
    state.heard = read_heard(proto.heard, feeds)
    path, piece, reader = b"", None, KeyReader()
    pieces: list[Piece] = []
    for row in proto.elements:
        path = _path(path, row)
        own = kept_stamp(row.name, feeds)
        need(state.heard.has(own), "an element that was not heard")
        placed = kept_stamp(row.placed, feeds) if row.HasField("placed") else own
        writes, waits = _read_versions(row, own, feeds, state)
        need(writes and not row.deleted, "an element without a value")
        plain = len(writes) == 1 and not waits and writes.get(own.feed, (None,))[0] == own
        if piece is not None:
            # Stamps that are equal are one object from here on.
            own = piece.origin if piece.origin == own else own
            placed = own if placed == own else piece.span.stamp if piece.span.stamp == placed else placed
        span, more = reader.read(path, placed), row.more
        if more:
            need(plain and row.index + len(more) < 1 << 32, "values after an element that was changed, or too many")
            span = check_span(span._replace(size=1 + len(more)))
        values = [writes[own.feed][1] if plain else None, *map(read_value, more)]
        piece = Piece(own, row.index, span, values)
        piece.writes, piece.waits = None if plain else writes, waits
        pieces.append(piece)
    path = b""
    for row in proto.pending:
        path = _path(path, row)
        said = _read_said(row, path, feeds, state)
        need(said.id not in state.pending, "an element twice")
        state.pending[said.id] = said
    need(all(one.last_key < other.first_key for one, other in pairwise(pieces)), "elements that are not in order")
    need(state.adopt(pieces), "an element twice")
    return state


def _path(last: bytes, row: pb.ArrayElement) -> bytes:
    need(row.shared <= len(last) and len(last) <= KEY_SIZE_MAX, "a path shares more than there is")
    return last[: row.shared] + row.path


def _read_said(row: pb.ArrayElement, path: bytes, feeds: Sequence[bytes], state: ArrayState) -> Said:
    own = kept_stamp(row.name, feeds)
    need(not state.heard.has(own) and not row.more, "an element that is pending and heard, or more than one")
    placed = kept_stamp(row.placed, feeds) if row.HasField("placed") else None
    need((placed is None) == (not path), "an element with half a place")
    said = Said(ElementId(own, row.index))
    said.span = KeyReader().read(path, placed) if placed is not None else None
    said.writes, said.waits = _read_versions(row, own, feeds, state)
    said.deleted = row.deleted
    tells = bool(said.writes or placed or said.waits)
    written = {stamp for stamp, _ in said.writes.values()}
    need(own not in written and own != placed and tells is not row.deleted, "a pending element that says nothing")
    return said


def _read_versions(
    row: pb.ArrayElement, own: Stamp, feeds: Sequence[bytes], state: ArrayState
) -> tuple[Writes, Waits | None]:
    """Read the values of an element, and the names of those that are replaced and have not arrived."""
    writes: Writes = {}
    last = None
    for write in row.writes:
        stamp = kept_stamp(write.name, feeds) if write.HasField("name") else own
        need((last is None or last < stamp) and stamp.feed not in writes, "writes that are not in order")
        writes[stamp.feed] = stamp, read_value(write.value)
        last = stamp
    waits = read_waits(row.waits, feeds, state.heard)
    need(not any(is_waited(waits, stamp) for stamp, _ in writes.values()), "a write that is there and waited for")
    return writes, waits


def check_index(index: int, length: int, what: str = "element") -> int:
    """Return an index, or raise `InvalidInput` if it is out of range."""
    if type(index) is not int or not 0 <= index < length:
        raise InvalidInput(f"there is no {what} {index!r} in an array of {length} elements; they count from 0")
    return index
