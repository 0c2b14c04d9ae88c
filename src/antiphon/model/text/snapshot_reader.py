"""A text from its snapshot. Bytes that `encode` would not write are refused, because peers may be hostile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from google.protobuf.message import DecodeError

from antiphon.core.errors import BadEncoding, InvalidInput
from antiphon.core.v1 import text_pb2
from antiphon.model.text.clock_ranges import with_range
from antiphon.model.text.codec import MARK_NAME_MAX, Anchor, Mark, read_mark_value
from antiphon.model.text.kept_marks import KeptMark
from antiphon.model.text.marks import TextState
from antiphon.model.text.runs import EMBED, OFFSET_BITS, OFFSET_MAX, Writer
from antiphon.model.text.snapshot_columns import LAMPORT_MAX, WriterColumns, check
from antiphon.model.text.snapshot_tree import build
from antiphon.model.text.snapshot_writer import encode
from antiphon.model.text.waiting import read_row
from antiphon.model.value import value_bytes


def decode(data: bytes) -> TextState:
    """Read a canonical snapshot, or raise `BadEncoding`."""
    proto = _parse(data)
    count = len(proto.writers)
    named = all(max(row.writer, row.parent_writer) < count for row in proto.waiting)
    check(named, "a waiting insertion that names no writer")
    state = _read(proto, ((row.writer, row.lamport << OFFSET_BITS | row.offset) for row in proto.waiting))
    _read_waiting(state, proto.waiting)
    if encode(state) != data:
        raise BadEncoding("text snapshot: not the canonical bytes of its state")
    return state


def without_waiting(state: TextState) -> TextState:
    """Return a copy of a text without the insertions that wait, but with room for each."""
    proto = _parse(encode(state, waiting=False))
    units = [state.writers[row.feed].units for row in proto.writers]
    return _read(proto, ((at, start) for at, found in enumerate(units) if found for start in found.starts()))


def _parse(data: bytes) -> text_pb2.TextSnapshot:
    try:
        return text_pb2.TextSnapshot.FromString(data)
    except DecodeError:
        raise BadEncoding("text snapshot: no protobuf") from None


def _read(proto: text_pb2.TextSnapshot, starts: Iterable[tuple[int, int]]) -> TextState:
    """Read all but insertions that wait. Of those, the places of writers and the first clocks are given."""
    state = TextState()
    for row in proto.writers:
        if len(row.feed) != 32 or row.feed in state.writers:
            raise BadEncoding("text snapshot: a feed that is no key, or listed twice")
        check(row.floor_lamport <= LAMPORT_MAX + 1 and row.floor_offset <= OFFSET_MAX, "a floor out of bounds")
        state.writer(row.feed).floor = row.floor_lamport << OFFSET_BITS | row.floor_offset
    writers = list(state.writers.values())
    columns = [_columns(row, writer) for row, writer in zip(proto.writers, writers, strict=True)]
    for at, start in starts:
        column = columns[at]
        if column is not None:
            column.cut_for_unit(start)
    build(state, columns)
    for row, writer in zip(proto.writers, writers, strict=True):
        _read_doomed(row, writer)
    _read_marks(state, proto, writers)
    return state


def _columns(row: text_pb2.TextWriter, writer: Writer) -> WriterColumns | None:
    """Read the columns of a writer; None for one without elements, as a hostile deletion makes with a name."""
    if row.clocks:
        return WriterColumns(row, writer)
    check(not (row.shown or row.chains or row.text or row.embeds or row.items), "columns of no elements")
    return None


def _read_doomed(row: text_pb2.TextWriter, writer: Writer) -> None:
    check(len(row.doomed) % 4 == 0, "a deletion that is cut off")
    values = [iter(row.doomed)] * 4
    floor = writer.floor
    for low, low_offset, high, high_offset in zip(*values, strict=True):
        check(max(low, high) <= LAMPORT_MAX and max(low_offset, high_offset) <= OFFSET_MAX, "a deletion too far")
        first, last = low << OFFSET_BITS | low_offset, high << OFFSET_BITS | high_offset
        check(floor <= first <= last, "deletions that do not ascend")
        writer.doomed = with_range(writer.doomed, first, last)
        floor = last + 2  # adjacent ranges would be one


def _read_waiting(state: TextState, rows: Iterable[text_pb2.TextWaiting]) -> None:
    """Read the insertions that wait. Encoding them again checks the rest of their form."""
    writers = list(state.writers.values())
    ends: dict[Writer, int] = {}
    for row in rows:
        check(not (row.item and row.text), "a waiting insertion that holds both text and item")
        check(max(row.offset, row.parent_offset) <= OFFSET_MAX, "a waiting insertion that is nowhere")
        length, text = sum(row.shown), EMBED if row.item else row.text
        fits = 0 < length <= OFFSET_MAX + 1 - row.offset and len(text) == sum(row.shown[::2])
        check(fits, "a waiting insertion that is not as long as its text")
        unit = read_row(row, writers.__getitem__)
        writer, above, end = unit.writer, unit.above, unit.start + unit.length
        assert above is not None
        check(end <= writer.floor, "a waiting insertion above its writer's floor")
        seen = unit.above_clock < unit.start if above is writer else row.parent_lamport < row.lamport
        check(seen, "a waiting insertion names what it cannot have seen")
        check(ends.get(writer, 0) <= unit.start, "two of one clock")
        ends[writer] = end
        run = writer.runs.at(end - 1)
        check(run is None or run.end < unit.start, "an element that waits and does not")
        check(above.find(unit.above_clock) is None, "an insertion that waits for an element that is present")
        state.keep_waiting(unit)
        state.leaves.tidy()


def _read_marks(state: TextState, proto: text_pb2.TextSnapshot, writers: Sequence[Writer]) -> None:
    for row in proto.marks:
        check(row.writer < len(writers), "a mark by nobody")
        writer = writers[row.writer]
        bounds = row.lamport <= writer.floor >> OFFSET_BITS and row.seq <= LAMPORT_MAX
        check(bounds and 0 < len(row.name) <= MARK_NAME_MAX, "a mark out of bounds")
        start, end = _anchor(row.start, writers), _anchor(row.end, writers)
        for anchor in (start, end):
            lamport = anchor.clock >> OFFSET_BITS
            seen = lamport <= row.lamport if anchor.feed == writer.feed else lamport < row.lamport
            check(seen or not anchor.feed, "a mark on what its writer cannot have seen")
        value = None
        if row.HasField("value"):
            value = row.value.SerializeToString(deterministic=True)
            try:
                check(value_bytes(read_mark_value(value)) == value, "a value that is not canonical")
            except InvalidInput as error:
                raise BadEncoding(f"text snapshot: {error}") from None
        state.marks.add(KeptMark((row.lamport, writer.feed, row.seq, row.nth), Mark(row.name, value, start, end)))


def _anchor(proto: text_pb2.TextAnchor, writers: Sequence[Writer]) -> Anchor:
    if proto.edge:
        return Anchor(b"", 0, proto.after)
    if proto.feed >= len(writers) or proto.offset > OFFSET_MAX or proto.inserted:
        raise BadEncoding("text snapshot: an anchor that names no element")
    return Anchor(writers[proto.feed].feed, proto.lamport << OFFSET_BITS | proto.offset, proto.after)
