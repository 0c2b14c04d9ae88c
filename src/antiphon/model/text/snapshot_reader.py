"""A text from its snapshot. Bytes that `encode` would not write are refused, because peers may be hostile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from google.protobuf.message import DecodeError

from antiphon.core.errors import BadEncoding, InvalidInput
from antiphon.core.v1 import text_pb2
from antiphon.model.text.absent_feeds import FEED_SIZE, RANGES_MAX
from antiphon.model.text.clock_ranges import NONE, ClockRanges, with_range
from antiphon.model.text.codec import MARK_NAME_MAX, Anchor, Mark, read_mark_value
from antiphon.model.text.mark_columns import KeptMark
from antiphon.model.text.marks import TextState
from antiphon.model.text.runs import EMBED, OFFSET_BITS, OFFSET_MAX, Writer
from antiphon.model.text.snapshot_columns import LAMPORT_MAX, WriterColumns, check
from antiphon.model.text.snapshot_tree import build
from antiphon.model.text.snapshot_writer import encode
from antiphon.model.text.waiting_rows import read_row
from antiphon.model.value import value_bytes
from antiphon.model.wire import number_at, tag_numbers

(_SNAPSHOT,) = tag_numbers("TextSnapshot")


def decode(data: bytes) -> TextState:
    """Read a canonical snapshot, or raise `BadEncoding`."""
    state, feeds, columns, rows = _read(data)
    for row in rows:
        check(max(row.writer, row.parent_writer) < len(feeds), "a waiting insertion that names no writer")
        column = columns[row.writer]
        if column is not None:
            column.cut_for_unit(row.lamport << OFFSET_BITS | row.offset)
    build(state, columns)
    _read_waiting(state, feeds, rows)
    if encode(state) != data:
        raise BadEncoding("text snapshot: not the canonical bytes of its state")
    return state


def without_waiting(state: TextState) -> TextState:
    """Return a copy of a text without the insertions that wait, but with room for each."""
    copy, feeds, columns, _ = _read(encode(state, waiting=False))
    for feed, column in zip(feeds, columns, strict=True):
        if column is not None and (units := state.writers[feed].units):
            for start in units.starts():
                column.cut_for_unit(start)
    build(copy, columns)
    return copy


def _read(
    data: bytes,
) -> tuple[TextState, list[bytes], list[WriterColumns | None], Sequence[text_pb2.TextWaiting]]:
    """Read all but the tree and what waits: return the text, its feeds, their columns, and rows that wait.

    Field by field, as very many may be hostile.
    """
    state = TextState()
    feeds: list[bytes] = []
    columns: list[WriterColumns | None] = []
    waiting = bytearray()
    at, size = 0, len(data)
    try:
        while at < size:
            tag, begin = data[at], at
            length, start = number_at(data, at + 1, size)
            at = start + length
            check(at <= size, "a field that is cut off")
            if tag == _SNAPSHOT.writers:
                columns.append(_read_writer(state, text_pb2.TextWriter.FromString(data[start:at]), feeds))
            elif tag == _SNAPSHOT.marks:
                _read_mark(state, text_pb2.TextKeptMark.FromString(data[start:at]), feeds)
            else:
                check(tag == _SNAPSHOT.waiting, "a field that it does not have")
                waiting += data[begin:at]
        return state, feeds, columns, text_pb2.TextSnapshot.FromString(bytes(waiting)).waiting
    except DecodeError:
        raise BadEncoding("text snapshot: no protobuf") from None


def _read_writer(state: TextState, row: text_pb2.TextWriter, feeds: list[bytes]) -> WriterColumns | None:
    """Read the columns of a writer; None for a feed without elements, as a hostile deletion or mark names one."""
    feed = row.feed
    check(len(feed) == FEED_SIZE and (not feeds or feeds[-1] < feed), "a feed that is no key, or not in order")
    check(row.floor_lamport <= LAMPORT_MAX + 1 and row.floor_offset <= OFFSET_MAX, "a floor out of bounds")
    feeds.append(feed)
    floor = row.floor_lamport << OFFSET_BITS | row.floor_offset
    doomed = _doomed(row.doomed, floor)
    if floor or row.clocks or len(doomed) > 2 * RANGES_MAX:
        writer = state.writer(feed)
        writer.floor, writer.doomed = floor, doomed
        if row.clocks:
            return WriterColumns(row, writer)
    elif doomed:
        state.delete_absent(feed, doomed)
    check(not (row.shown or row.chains or row.text or row.embeds or row.items), "columns of no elements")
    return None


def _doomed(column: Sequence[int], floor: int) -> ClockRanges:
    check(len(column) % 4 == 0, "a deletion that is cut off")
    found = NONE
    values = [iter(column)] * 4
    for low, low_offset, high, high_offset in zip(*values, strict=True):
        check(max(low, high) <= LAMPORT_MAX and max(low_offset, high_offset) <= OFFSET_MAX, "a deletion too far")
        first, last = low << OFFSET_BITS | low_offset, high << OFFSET_BITS | high_offset
        check(floor <= first <= last, "deletions that do not ascend")
        found = with_range(found, first, last)
        floor = last + 2  # adjacent ranges would be one
    return found


def _read_waiting(state: TextState, feeds: Sequence[bytes], rows: Iterable[text_pb2.TextWaiting]) -> None:
    """Read the insertions that wait. Encoding them again checks the rest of their form."""
    ends: dict[Writer, int] = {}
    for row in rows:
        check(not (row.item and row.text), "a waiting insertion that holds both text and item")
        check(max(row.offset, row.parent_offset) <= OFFSET_MAX, "a waiting insertion that is nowhere")
        length, text = sum(row.shown), EMBED if row.item else row.text
        fits = 0 < length <= OFFSET_MAX + 1 - row.offset and len(text) == sum(row.shown[::2])
        check(fits, "a waiting insertion that is not as long as its text")
        unit = read_row(row, lambda place: state.writer(feeds[place]))
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


def _read_mark(state: TextState, row: text_pb2.TextKeptMark, feeds: Sequence[bytes]) -> None:
    check(row.writer < len(feeds), "a mark by nobody")
    feed = feeds[row.writer]
    writer = state.writers.get(feed)
    floor = 0 if writer is None else writer.floor
    bounds = row.lamport <= floor >> OFFSET_BITS and row.seq <= LAMPORT_MAX
    check(bounds and 0 < len(row.name) <= MARK_NAME_MAX, "a mark out of bounds")
    start, end = _anchor(row.start, feeds), _anchor(row.end, feeds)
    for anchor in (start, end):
        lamport = anchor.clock >> OFFSET_BITS
        seen = lamport <= row.lamport if anchor.feed == feed else lamport < row.lamport
        check(seen or not anchor.feed, "a mark on what its writer cannot have seen")
    value = None
    if row.HasField("value"):
        value = row.value.SerializeToString(deterministic=True)
        try:
            check(value_bytes(read_mark_value(value)) == value, "a value that is not canonical")
        except InvalidInput as error:
            raise BadEncoding(f"text snapshot: {error}") from None
    state.keep_mark(KeptMark((row.lamport, feed, row.seq, row.nth), Mark(row.name, value, start, end)))


def _anchor(proto: text_pb2.TextAnchor, feeds: Sequence[bytes]) -> Anchor:
    if proto.edge:
        return Anchor(b"", 0, proto.after)
    if proto.feed >= len(feeds) or proto.offset > OFFSET_MAX or proto.inserted:
        raise BadEncoding("text snapshot: an anchor that names no element")
    return Anchor(feeds[proto.feed], proto.lamport << OFFSET_BITS | proto.offset, proto.after)
