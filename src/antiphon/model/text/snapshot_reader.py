"""A text from its snapshot. Bytes that `encode` would not write are refused, because peers may be hostile."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from google.protobuf.message import DecodeError

from antiphon.core.errors import BadEncoding, InvalidInput
from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.core.v1 import text_pb2
from antiphon.model.text.codec import MARK_NAME_MAX, Anchor, Mark, read_mark_value
from antiphon.model.text.marks import KeptMark, TextState
from antiphon.model.text.runs import (
    EMBED,
    HOLE,
    HOLES_MAX,
    LAMPORT,
    LEAF_MAX,
    OFFSET_BITS,
    OFFSET_MAX,
    RUN_MAX,
    Leaf,
    Run,
    Unit,
    Writer,
    in_order,
    some_text,
)
from antiphon.model.text.snapshot_writer import CHUNK_AT, TYPED, encode
from antiphon.model.value import value_bytes

_LAMPORT_MAX = (1 << 63) - 1


def decode(data: bytes) -> TextState:
    """Read a canonical snapshot, or raise `BadEncoding`."""
    try:
        proto = text_pb2.TextSnapshot.FromString(data)
    except DecodeError:
        raise BadEncoding("text snapshot: no protobuf") from None
    state = TextState()
    for row in proto.writers:
        if len(row.feed) != 32 or row.feed in state.writers:
            raise BadEncoding("text snapshot: a feed that is no key, or listed twice")
        _check(row.floor_lamport <= _LAMPORT_MAX + 1 and row.floor_offset <= OFFSET_MAX, "a floor out of bounds")
        state.writer(row.feed).floor = row.floor_lamport << OFFSET_BITS | row.floor_offset
    writers = list(state.writers.values())
    columns = [_Columns(row, writer) for row, writer in zip(proto.writers, writers, strict=True)]
    units = [_unit(waiting, writers) for waiting in proto.waiting]
    for waiting, unit in zip(proto.waiting, units, strict=True):
        columns[waiting.writer].cut_for_unit(unit.start)
    _build(state, columns)
    for row, writer in zip(proto.writers, writers, strict=True):
        _read_doomed(row, writer)
    _read_waiting(units)
    state.orphans = len(units)
    _read_marks(state, proto, writers)
    if encode(state) != data:
        raise BadEncoding("text snapshot: not the canonical bytes of its state")
    return state


def _check(condition: object, reason: str) -> None:
    if not condition:
        raise BadEncoding(f"text snapshot: {reason}")


class _Columns:
    """The columns of one writer, and the ordinals at which its runs are divided."""

    def __init__(self, row: text_pb2.TextWriter, writer: Writer) -> None:
        self.writer = writer
        self.text = text = row.text
        items = row.items  # read once: each access to a field copies it
        self.steps = self._steps(row.clocks)  # first ordinal, first clock, stride
        self.turns = list(accumulate(row.shown))
        self.heads = self._heads(row.chains)  # first ordinal: (writer, left, ordinal of the parent)
        _check((self.turns[-1] if self.turns else 0) == self.count, "counts that differ between its columns")
        _check(len(text) == sum(row.shown[::2]), "text that is not as long as what is shown")
        _check(len(items) == ITEM_ID_SIZE * len(row.embeds), "items that are not as many as their places")
        self.embeds = list(accumulate(row.embeds))
        self.items = [items[at : at + ITEM_ID_SIZE] for at in range(0, len(items), ITEM_ID_SIZE)]
        ascend = all(row.embeds[1:]) and (not self.embeds or self.embeds[-1] < len(text))
        _check(ascend and all(text[at] == EMBED for at in self.embeds), "items that stand nowhere")
        self.cuts: set[int] = {self.count, *self.heads, *(step[0] for step in self.steps)}
        self.turn = self.position = self.embed = 0  # of the next run: in `turns`, in `text`, in `embeds`
        self.begins: dict[int, Run] = {}
        self.ends: dict[int, Run] = {}

    def _steps(self, column: Sequence[int]) -> list[tuple[int, int, int]]:
        steps = []
        count = lamport = floor = 0
        values = iter(column)
        for step in values:
            size, kind = divmod(next(values, 0), 4)
            offset = next(values, 0) if kind == CHUNK_AT else 0
            lamport += step
            clock = lamport << OFFSET_BITS | offset
            last = lamport if kind else lamport + size - 1
            fits = kind <= CHUNK_AT and size and last <= _LAMPORT_MAX and offset + (size if kind else 1) <= LAMPORT
            _check(fits and clock >= floor, "clocks that do not ascend")
            steps.append((count, clock, LAMPORT if kind == TYPED else 1))
            count += size
            floor = (last << OFFSET_BITS) + 1 if kind == TYPED else clock + size
            lamport = last
        _check(floor <= self.writer.floor, "elements above their writer's floor")
        self.count = count
        return steps

    def _heads(self, column: Sequence[int]) -> dict[int, tuple[int, bool, int]]:
        heads = {}
        at = 0
        _check(len(column) % 3 == 0 and all(column[::3]), "chains that are cut off or empty")
        for size, where, ordinal in zip(column[::3], column[1::3], column[2::3], strict=True):
            heads[at] = (where >> 1, bool(where & 1), at - ordinal if where >> 1 == 1 else ordinal)
            at += size
        _check(at == self.count, "chains that are not as long as its clocks")
        return heads

    def cut_for_children(self, columns: Sequence[_Columns]) -> None:
        """Divide the runs of parents: children belong to the first or the last element of a run."""
        for where, left, ordinal in self.heads.values():
            if where == 0:
                _check(not left and ordinal == 0, "something left of the root")
                continue
            _check(where == 1 or where - 2 < len(columns), "a parent of no writer")
            parent = self if where == 1 else columns[where - 2]
            _check(0 <= ordinal < parent.count, "a parent that is not there")
            parent.cuts.add(ordinal if left else ordinal + 1)

    def cut_for_unit(self, clock: int) -> None:
        """Divide the runs at a waiting insertion: no run may extend across its clocks."""
        at = bisect_right(self.steps, clock, key=lambda step: step[1]) - 1
        if at >= 0:
            first, start, stride = self.steps[at]
            ordinal = first - (start - clock) // stride
            if ordinal < (self.steps[at + 1][0] if at + 1 < len(self.steps) else self.count):
                self.cuts.add(ordinal)

    def make_runs(self) -> None:
        """Make the runs, each attached to the one before only."""
        writer, steps = self.writer, self.steps
        step = last = 0
        for begin, stop in pairwise(sorted(self.cuts | {0})):
            while step + 1 < len(steps) and steps[step + 1][0] <= begin:
                step += 1
            first, clock, stride = steps[step]
            for size, text, item in self._texts(begin, stop):
                run = Run(writer, clock + (begin - first) * stride, size, text, item, writer, last, False)
                run.stride = stride
                last = run.end
                writer.runs.append(run)
                self.begins[begin] = run
                begin += size
                self.ends[begin - 1] = run
        if writer.runs.last is not None:
            writer.last = last

    def _texts(self, begin: int, stop: int) -> Iterator[tuple[int, str | None, bytes | None]]:
        """Yield the length, text and item of each run of a part. Short deleted parts are holes, long ones are runs."""
        parts: list[str] = []
        count = 0
        while begin < stop:
            while self.turns[self.turn] <= begin:
                self.turn += 1
            end = min(self.turns[self.turn], stop)
            deleted = self.turn % 2 == 1
            for size in [end - begin] if deleted else self._pieces(self.position, end - begin):
                embed = not deleted and self.embed < len(self.embeds) and self.embeds[self.embed] == self.position
                alone = embed or (deleted and size > HOLES_MAX)
                if count and (alone or count + size > RUN_MAX):
                    yield count, some_text("".join(parts)), None
                    parts, count = [], 0
                text = None if deleted else self.text[self.position : self.position + size]
                self.position += 0 if deleted else size
                if alone:
                    yield size, text, self.items[self.embed] if embed else None
                    self.embed += embed
                else:
                    parts.append(HOLE * size if text is None else text)
                    count += size
            begin = end
        if count:
            yield count, some_text("".join(parts)), None

    def _pieces(self, position: int, size: int) -> list[int]:
        """Return the lengths of the runs of a part that is shown: an embedded item is a run, and none is too long."""
        bounds = {0, size, *range(0, size, RUN_MAX)}
        if self.embeds:
            low, high = bisect_left(self.embeds, position), bisect_left(self.embeds, position + size)
            for at in self.embeds[low:high]:
                bounds |= {at - position, at - position + 1}
        ordered = sorted(bounds)
        return [stop - start for start, stop in pairwise(ordered)]

    def hang(self, root: Run, columns: Sequence[_Columns]) -> None:
        """Set the parents, and list the children, which ascend because writers and their runs do."""
        above: Run | None = None
        for ordinal, run in self.begins.items():
            head = self.heads.get(ordinal)
            if head is None:
                assert above is not None
                parent = above
            elif head[0] == 0:
                parent, run.above, run.above_clock = root, None, 0
            else:
                column = self if head[0] == 1 else columns[head[0] - 2]
                run.left = head[1]
                parent = column.begins[head[2]] if run.left else column.ends[head[2]]
                run.above, run.above_clock = column.writer, parent.start if run.left else parent.end
                self._check_seen(run)
            siblings = parent.lefts if run.left else parent.rights
            if siblings is not None:
                siblings.append(run)
            elif run.left:
                parent.lefts = [run]
            else:
                parent.rights = [run]
            above = run

    def _check_seen(self, run: Run) -> None:
        lower = run.above_clock >> OFFSET_BITS < run.start >> OFFSET_BITS
        own = run.above is run.writer and run.above_clock < run.start
        _check(lower or own, "an element whose parent is later than itself")


def _build(state: TextState, columns: Sequence[_Columns]) -> None:
    for column in columns:
        column.cut_for_children(columns)
    for column in columns:
        column.make_runs()
    for column in columns:
        column.hang(state.root, columns)
    leaf = state.head
    leaf.runs.clear()
    for run in in_order(state.root):  # every parent is earlier than its children, so this reaches all of them
        if len(leaf.runs) >= LEAF_MAX * 2 // 3:
            new = Leaf()
            leaf.after, new.before = new, leaf
            leaf = new
        leaf.runs.append(run)
        run.leaf = leaf
        count = run.shown
        leaf.shown += count
        state.length += count


def _read_doomed(row: text_pb2.TextWriter, writer: Writer) -> None:
    _check(len(row.doomed) % 4 == 0, "a deletion that is cut off")
    values = [iter(row.doomed)] * 4
    floor = writer.floor
    for low, low_offset, high, high_offset in zip(*values, strict=True):
        _check(max(low, high) <= _LAMPORT_MAX and max(low_offset, high_offset) <= OFFSET_MAX, "a deletion too far")
        first, last = low << OFFSET_BITS | low_offset, high << OFFSET_BITS | high_offset
        _check(floor <= first <= last, "deletions that do not ascend")
        writer.doomed.append((first, last))
        floor = last + 2  # adjacent ranges would be one


def _read_waiting(units: Sequence[Unit]) -> None:
    for unit in units:
        assert unit.above is not None
        writer, end = unit.writer, unit.start + unit.length
        _check(end <= writer.floor, "a waiting insertion above its writer's floor")
        _check(not writer.units or writer.units[-1].start + writer.units[-1].length <= unit.start, "two of one clock")
        run = writer.runs.at(end - 1)
        _check(run is None or run.end < unit.start, "an element that waits and does not")
        writer.units.append(unit)
        unit.above.waiting.setdefault(unit.above_clock, []).append(unit)
        _check(unit.above.find(unit.above_clock) is None, "an insertion that waits for an element that is present")


def _read_marks(state: TextState, proto: text_pb2.TextSnapshot, writers: Sequence[Writer]) -> None:
    for row in proto.marks:
        _check(row.writer < len(writers), "a mark by nobody")
        writer = writers[row.writer]
        bounds = row.lamport <= writer.floor >> OFFSET_BITS and row.seq <= _LAMPORT_MAX
        _check(bounds and 0 < len(row.name) <= MARK_NAME_MAX, "a mark out of bounds")
        start, end = _anchor(row.start, writers), _anchor(row.end, writers)
        for anchor in (start, end):
            lamport = anchor.clock >> OFFSET_BITS
            seen = lamport <= row.lamport if anchor.feed == writer.feed else lamport < row.lamport
            _check(seen or not anchor.feed, "a mark on what its writer cannot have seen")
        value = None
        if row.HasField("value"):
            value = row.value.SerializeToString(deterministic=True)
            try:
                _check(value_bytes(read_mark_value(value)) == value, "a value that is not canonical")
            except InvalidInput as error:
                raise BadEncoding(f"text snapshot: {error}") from None
        kept = KeptMark((row.lamport, writer.feed, row.seq, row.nth), Mark(row.name, value, start, end))
        state.marks[row.name, start, end] = kept


def _unit(proto: text_pb2.TextWaiting, writers: Sequence[Writer]) -> Unit:
    """Read a waiting insertion. Encoding it again checks the rest of its form."""
    if max(proto.writer, proto.parent_writer) >= len(writers) or (bool(proto.item) and proto.text):
        raise BadEncoding("text snapshot: a waiting insertion that names no writer, or holds both text and item")
    start = proto.lamport << OFFSET_BITS | proto.offset
    parent = proto.parent_lamport << OFFSET_BITS | proto.parent_offset
    writer, above = writers[proto.writer], writers[proto.parent_writer]
    if max(proto.offset, proto.parent_offset) > OFFSET_MAX or start >= writer.floor:
        raise BadEncoding("text snapshot: a waiting insertion above its writer's floor")
    if not (parent < start if above is writer else proto.parent_lamport < proto.lamport):
        raise BadEncoding("text snapshot: a waiting insertion names what it cannot have seen")
    text = EMBED if proto.item else proto.text
    length = sum(proto.shown)
    if not 0 < length <= OFFSET_MAX + 1 - proto.offset or len(text) != sum(proto.shown[::2]):
        raise BadEncoding("text snapshot: a waiting insertion that is not as long as its text")
    unit = Unit(writer, start, length, None, None)
    unit.above, unit.above_clock, unit.left = above, parent, proto.left
    unit.item = proto.item or None
    unit.pieces = []
    at = 0
    for nth, count in enumerate(proto.shown):
        if count:
            unit.pieces.append((count, None if nth % 2 else text[at : at + count]))
            at += 0 if nth % 2 else count
    return unit


def _anchor(proto: text_pb2.TextAnchor, writers: Sequence[Writer]) -> Anchor:
    if proto.edge:
        return Anchor(b"", 0, proto.after)
    if proto.feed >= len(writers) or proto.offset > OFFSET_MAX or proto.inserted:
        raise BadEncoding("text snapshot: an anchor that names no element")
    return Anchor(writers[proto.feed].feed, proto.lamport << OFFSET_BITS | proto.offset, proto.after)
