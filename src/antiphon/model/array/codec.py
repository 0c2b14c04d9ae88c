"""Mutations and snapshots of arrays as protobuf. Reading checks everything, because peers may be hostile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from google.protobuf.message import DecodeError

from antiphon.core.errors import InvalidInput, TooLarge
from antiphon.core.stamp import STAMP_SIZE, Stamp
from antiphon.core.v1 import array_pb2 as pb, value_pb2
from antiphon.model.array.position import KEY_SIZE_MAX, KEYS_SIZE_MAX, Place, check_key, key_size, keys_of
from antiphon.model.array.state import ArrayState, Element, ElementId
from antiphon.model.heard import FeedTable, heard_fields, kept_stamp, read_canonical, read_feeds, read_heard, read_name
from antiphon.model.model import InvalidMutation, need
from antiphon.model.value import Value, read_value, to_proto, value_bytes
from antiphon.model.wire import field, number_field, tags

OPS_MAX = 1 << 12  # in a mutation
ELEMENTS_MAX = 1 << 18  # inserted, and named, by a mutation
_STATE, _ELEMENT, _WRITE = tags("ArrayState", "ArrayElement", "ArrayWrite")
_parse = pb.ArrayMutation.FromString  # bound here: the lookup takes as long as parsing


# -- acts: the ops of a mutation, read and checked


@dataclass(slots=True)
class Insert:
    """Insert elements at position keys."""

    first: int
    keys: list[bytes]
    values: list[Value]
    copies: Sequence[ElementId] = ()  # the elements that these are copies of, one for each

    def change(self, state: ArrayState, stamp: Stamp) -> None:
        """Apply the act to a state."""
        state.insert(stamp, self.first, self.keys, self.values)
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
    keys: list[bytes]
    in_place: bool

    def change(self, state: ArrayState, stamp: Stamp) -> None:
        """Apply the act to a state."""
        state.move(self.names, stamp, self.keys)


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
    count, room = 0, KEYS_SIZE_MAX
    for op in ops:
        act = _read_op(op, feeds, stamp, count, room)
        if isinstance(act, Insert):
            count += len(act.values)
        if isinstance(act, Insert | Move):
            room -= sum(map(len, act.keys))
        acts.append(act)
    _check_once(acts)
    return acts


def _read_op(op: pb.ArrayOp, feeds: Sequence[bytes], stamp: Stamp, first: int, room: int = KEYS_SIZE_MAX) -> Act:
    kind = op.WhichOneof("op")
    if kind == "insert":
        insert = op.insert
        given = insert.values
        if len(given) > ELEMENTS_MAX:
            raise InvalidMutation(f"an op that inserts {len(given)} elements, more than {ELEMENTS_MAX}")
        # One value is the common case, and iterating takes three times as long as indexing.
        values = [read_value(given[0])] if len(given) == 1 else [read_value(value) for value in given]
        place = insert.place
        keys = keys_of(place.path, place.extends, place.offset, len(values), stamp, room)
        if not insert.copies:
            return Insert(first, keys, values)
        copies = _names(insert.copies, feeds, stamp)
        need(len(copies) == len(values), "an op that brings back more or less than it inserts")
        return Insert(first, keys, values, copies)
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
    return Move(names, keys_of(place.path, place.extends, place.offset, len(names), stamp, room), op.move.in_place)


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
    keys = [key for act in acts if isinstance(act, Insert | Move) for key in act.keys]
    need(len(set(keys)) == len(keys), "a mutation that puts two elements at one place")
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
        self._room = KEYS_SIZE_MAX
        self._table = FeedTable(feed)
        self._mutation = pb.ArrayMutation()

    def put(self, place: Place, items: Sequence[Item]) -> None:
        """Put items at consecutive offsets, with as few operations as possible."""
        self._room -= key_size(place, len(items)) * len(items)
        if self._room < 0:
            raise TooLarge(f"{len(items)} elements at once are too many at this place; insert in parts")
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
        """Delete elements."""
        self._mutation.ops.add(delete=pb.ArrayDelete(elements=self._elements(names)))

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
    rows = heard_fields(state.heard, table)
    for elements, tag in (
        ((state.at[key] for key in state.order), _STATE.elements),
        ((state.pending[name] for name in sorted(state.pending)), _STATE.pending),
    ):
        last = b""
        for element in elements:
            path = element.key[:-STAMP_SIZE]
            shared = _shared(last, path)
            rows.append(field(tag, _row(element, path[shared:], shared, table)))
            last = path
    return b"".join(rows)


def _shared(last: bytes, path: bytes) -> int:
    if path.startswith(last):  # the common case, of a run
        return len(last)
    for at, (one, other) in enumerate(zip(last, path, strict=False)):
        if one != other:
            return at
    return min(len(last), len(path))


def _feeds(state: ArrayState) -> Iterator[bytes]:
    yield from state.heard
    for elements in (state.elements, state.pending):
        for element in elements.values():
            yield element.id.stamp.feed
            if element.placed is not None:
                yield element.placed.feed
            yield from (stamp.feed for stamp in element.writes)
            yield from (stamp.feed for stamp in element.waits)


def _row(element: Element, path: bytes, shared: int, table: FeedTable) -> bytes:
    """Encode an `ArrayElement` by hand: a party has thousands of them, and the library takes half as long again."""
    own, number = element.id
    row = table.named(_ELEMENT.name, own) + number_field(_ELEMENT.index, number) + number_field(_ELEMENT.shared, shared)
    if path:
        row += field(_ELEMENT.path, path)
    if element.placed is not None and element.placed != own:
        row += table.named(_ELEMENT.placed, element.placed)
    for stamp in sorted(element.writes):
        written = b"" if stamp == own else table.named(_WRITE.name, stamp)
        row += field(_ELEMENT.writes, written + field(_WRITE.value, value_bytes(element.writes[stamp])))
    for stamp in sorted(element.waits):
        row += table.named(_ELEMENT.waits, stamp)
    return row + number_field(_ELEMENT.deleted, element.deleted)


def read_state(data: bytes) -> ArrayState:
    """Read a snapshot, or raise `BadEncoding` if the bytes are not canonical."""
    return read_canonical(data, "an array", lambda: _read_state(pb.ArrayState.FromString(data)), write_state)


def _read_state(proto: pb.ArrayState) -> ArrayState:
    feeds = read_feeds(proto.feeds)
    state = ArrayState()
    state.heard = read_heard(proto.heard, feeds)
    for rows, pending in ((proto.elements, False), (proto.pending, True)):
        path = b""
        for row in rows:
            need(row.shared <= len(path) and len(path) <= KEY_SIZE_MAX, "a path shares more than there is")
            path = path[: row.shared] + row.path
            element = _read_row(row, path, feeds, pending)
            need(element.id not in state.elements and element.id not in state.pending, "an element twice")
            need(state.heard.has(element.id.stamp) is not pending, "an element that is pending and heard, or neither")
            need(not any(map(state.heard.has, element.waits)), "a write that came and is waited for")
            if pending:
                state.pending[element.id] = element
            else:
                need(element.key not in state.at, "two elements at one place")
                state.elements[element.id] = state.at[element.key] = element
    state.index()
    return state


def _read_row(row: pb.ArrayElement, path: bytes, feeds: Sequence[bytes], pending: bool) -> Element:
    own = kept_stamp(row.name, feeds)
    placed = kept_stamp(row.placed, feeds) if row.HasField("placed") else None if pending else own
    need((placed is None) == (not path), "an element with half a place")
    stamps = [_written(write.name, own, feeds, write) for write in row.writes]
    writes = {stamp: read_value(write.value) for stamp, write in zip(stamps, row.writes, strict=True)}
    element = Element(ElementId(own, row.index), check_key(path, placed) if placed else b"", placed, writes)
    element.waits = {kept_stamp(name, feeds) for name in row.waits} or element.waits
    element.deleted = row.deleted
    need(all(one < next_ for one, next_ in pairwise(stamps)), "writes that are not in order")
    need(not element.waits.intersection(stamps), "a write that is there and waited for")
    if pending:
        said = bool(writes or placed or element.waits)
        need(own not in stamps and own != placed and said is not row.deleted, "a pending element that says nothing")
    else:
        need(writes and not row.deleted, "an element without a value")
    return element


def _written(name: value_pb2.Name, own: Stamp, feeds: Sequence[bytes], write: pb.ArrayWrite) -> Stamp:
    return kept_stamp(name, feeds) if write.HasField("name") else own


def check_index(index: int, length: int, what: str = "element") -> int:
    """Return an index, or raise `InvalidInput` if it is out of range."""
    if type(index) is not int or not 0 <= index < length:
        raise InvalidInput(f"there is no {what} {index!r} in an array of {length} elements; they count from 0")
    return index
