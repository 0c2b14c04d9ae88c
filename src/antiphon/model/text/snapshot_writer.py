"""Snapshots of a text: columns of each writer's elements in the order of their clocks.

The division into runs in memory leaves no trace, so the bytes depend on the messages alone. A restored text is encoded
again and compared, so that a state has exactly one snapshot. Columns are encoded while they are made, so that the
numbers of a long text are never all in memory.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator

from antiphon.core.v1 import text_pb2
from antiphon.model.text.marks import KeptMark, TextState
from antiphon.model.text.runs import HOLE, LAMPORT, OFFSET_BITS, OFFSET_MAX, Run, Unit, Writer
from antiphon.model.wire import field, number_at, number_field, tags

TYPED, CHUNK, CHUNK_AT = 0, 1, 2  # kinds of a step in the column of clocks
_ROWS_MAX = 1024  # marks or waiting insertions that are encoded at once
_SNAPSHOT, _WRITER = tags("TextSnapshot", "TextWriter")
_PARTS = re.compile(f"{HOLE}+|[^{HOLE}]+").findall


def encode(state: TextState) -> bytes:
    """Encode the canonical snapshot."""
    writers = _listed(state)
    at = {writer.feed: place for place, writer in enumerate(writers)}
    ordinals = {writer: writer.runs.counts() for writer in writers}
    parts = [field(_SNAPSHOT.writers, _Columns(writer, at, ordinals).encoded()) for writer in writers]
    units = [unit for writer in writers for unit in writer.units]
    parts += [_waiting(units[first : first + _ROWS_MAX], at) for first in range(0, len(units), _ROWS_MAX)]
    marks = sorted(state.marks.values(), key=lambda kept: (kept.mark.name, kept.key))
    parts += [_marks(marks[first : first + _ROWS_MAX], at) for first in range(0, len(marks), _ROWS_MAX)]
    return b"".join(parts)


def _waiting(units: Iterable[Unit], at: dict[bytes, int]) -> bytes:
    proto = text_pb2.TextSnapshot()
    for unit in units:
        assert unit.above is not None
        turns: list[int] = []
        _add_turns(turns, ((count, text is not None) for count, text in unit.pieces), 0)
        proto.waiting.add(
            writer=at[unit.writer.feed],
            lamport=unit.start >> OFFSET_BITS,
            offset=unit.start & OFFSET_MAX,
            parent_writer=at[unit.above.feed],
            parent_lamport=unit.above_clock >> OFFSET_BITS,
            parent_offset=unit.above_clock & OFFSET_MAX,
            left=unit.left,
            shown=turns,
            text="" if unit.item else "".join(text for _, text in unit.pieces if text is not None),
            item=unit.item or b"",
        )
    return proto.SerializeToString(deterministic=True)


def _marks(marks: Iterable[KeptMark], at: dict[bytes, int]) -> bytes:
    proto = text_pb2.TextSnapshot()
    for kept in marks:
        lamport, feed, seq, nth = kept.key
        mark = proto.marks.add(name=kept.mark.name, lamport=lamport, writer=at[feed], seq=seq, nth=nth)
        if kept.mark.value is not None:
            mark.value.ParseFromString(kept.mark.value)
        for target, anchor in ((mark.start, kept.mark.start), (mark.end, kept.mark.end)):
            target.after = anchor.after
            if anchor.feed:
                target.feed = at[anchor.feed]
                target.lamport, target.offset = anchor.clock >> OFFSET_BITS, anchor.clock & OFFSET_MAX
            else:
                target.edge = True
    return proto.SerializeToString(deterministic=True)


def _listed(state: TextState) -> list[Writer]:
    """Return the writers that a snapshot names, by feed: those with messages, and those that stored parts refer to."""
    feeds = {feed for feed, writer in state.writers.items() if writer.floor or writer.doomed or writer.waiting}
    for kept in state.marks.values():
        feeds.update(feed for feed in (kept.key[1], kept.mark.start.feed, kept.mark.end.feed) if feed)
    return [state.writer(feed) for feed in sorted(feeds)]


class _Columns:
    """The columns of one writer, encoded while its runs are read, group by group. Of each, the last entry is open."""

    def __init__(self, writer: Writer, at: dict[bytes, int], ordinals: dict[Writer, list[array[int]]]) -> None:
        self.writer = writer
        self._at = at
        self._ordinals = ordinals
        self._clocks, self._shown, self._chains, self._embeds = bytearray(), bytearray(), bytearray(), bytearray()
        self._text, self._items = bytearray(), bytearray()
        self._begin = self._end = 0  # clocks of a chunk within one lamport that goes on
        self._step: Step | None = None
        self._lamport = 0  # after the steps that are encoded
        self._turn: list[int] = []
        self._turns = 0  # that are encoded
        self._chain: list[int] = []
        self._count = 0  # elements
        self._last = -1  # clock
        self._position = self._embedded = 0  # in the text: of the next element, and of the last item

    def encoded(self) -> bytes:
        """Read all runs, and return the message."""
        writer = self.writer
        for runs in writer.runs.groups(writer):
            self._add_clocks(list(self._pieces(runs)))
            turns = self._turn
            _add_turns(turns, _parts(runs), self._turns)
            self._turn = turns[-1:]
            self._turns += len(turns) - len(self._turn)
            self._shown += _packed(turns[:-1])
            text = "".join([run.text for run in runs if run.text is not None])
            self._text += text.replace(HOLE, "").encode()
            self._add_chains(runs)
        if self._begin < self._end:
            self._add_clocks([self._chunk()])
        self._put_steps([self._step] if self._step else [])
        self._shown += _packed(self._turn)
        self._chains += _packed(self._chain)
        doomed: list[int] = []
        for low, high in writer.doomed:
            doomed += (low >> OFFSET_BITS, low & OFFSET_MAX, high >> OFFSET_BITS, high & OFFSET_MAX)
        parts = [field(_WRITER.feed, writer.feed), number_field(_WRITER.floor_lamport, writer.floor >> OFFSET_BITS)]
        parts.append(number_field(_WRITER.floor_offset, writer.floor & OFFSET_MAX))
        columns = (
            (_WRITER.clocks, self._clocks),
            (_WRITER.shown, self._shown),
            (_WRITER.chains, self._chains),
            (_WRITER.text, self._text),
            (_WRITER.embeds, self._embeds),
            (_WRITER.items, self._items),
            (_WRITER.doomed, _packed(doomed)),
        )
        parts += [field(tag, bytes(column)) for tag, column in columns if column]
        return b"".join(parts)

    def _add_chains(self, runs: Iterable[Run]) -> None:
        """Add the parents of runs, and the places of embedded items."""
        writer, ordinals, last, count = self.writer, self._ordinals, self._last, self._count
        chains, embeds = self._chain, []
        for run in runs:
            above = run.above
            if above is writer and run.above_clock == last and last >= 0:
                if run.left:
                    chains += (0, 3, 1)  # left of the element before
            elif above is None:
                chains += (0, int(run.left), 0)
            else:
                ordinal = above.runs.ordinal(run.above_clock, ordinals[above])
                if above is writer:
                    chains += (0, 2 | run.left, count - ordinal)
                else:
                    chains += (0, self._at[above.feed] + 2 << 1 | run.left, ordinal)
            chains[-3] += run.length
            count += run.length
            last = run.start + (run.length - 1) * run.stride
            if run.text is not None:
                if run.item is not None:
                    embeds.append(self._position - self._embedded)
                    self._embedded = self._position
                    self._items += run.item
                self._position += run.shown
        self._last, self._count, self._chain = last, count, chains[-3:]
        self._chains += _packed(chains[:-3])
        self._embeds += _packed(embeds)

    def _add_clocks(self, pieces: Iterable[Step]) -> None:
        """Add the clocks in steps: elements with one lamport each, or a chunk of one lamport."""
        steps: list[Step] = [self._step] if self._step else []
        for lamport, offset, count, typed in pieces:
            if steps:
                before = steps[-1]
                if typed and before[3] and before[0] + before[2] == lamport:
                    steps[-1] = (before[0], 0, before[2] + count, True)
                    continue
                if not typed and not before[3] and before[0] == lamport and before[1] + before[2] == offset:
                    steps[-1] = (lamport, before[1], before[2] + count, False)
                    continue
                if not typed and before[3] and before[0] + before[2] - 1 == lamport and offset == 1:
                    steps[-1:] = [(before[0], 0, before[2] - 1, True)] if before[2] > 1 else []
                    steps.append((lamport, 0, count + 1, False))
                    continue
            steps.append((lamport, offset, count, typed))
        self._step = steps.pop() if steps else None
        self._put_steps(steps)

    def _put_steps(self, steps: Iterable[Step]) -> None:
        column: list[int] = []
        for lamport, offset, count, typed in steps:
            kind = TYPED if typed else CHUNK_AT if offset else CHUNK
            column += (lamport - self._lamport, count << 2 | kind)
            if kind == CHUNK_AT:
                column.append(offset)
            self._lamport = lamport + count - 1 if typed else lamport
        self._clocks += _packed(column)

    def _chunk(self) -> Step:
        return self._begin >> OFFSET_BITS, self._begin & OFFSET_MAX, self._end - self._begin, False

    def _pieces(self, runs: Iterable[Run]) -> Iterator[Step]:
        """Yield the parts of runs. A chunk that may go on in the next run is yielded after that."""
        for run in runs:
            start, length = run.start, run.length
            chunk = (length == 1 or run.stride == 1) and start & OFFSET_MAX > 0
            if chunk and start == self._end:
                self._end += length
                continue
            if self._begin < self._end:
                yield self._chunk()
                self._begin = self._end = 0
            if chunk:
                self._begin, self._end = start, start + length
                continue
            lamport, offset = start >> OFFSET_BITS, start & OFFSET_MAX
            if run.length == 1 or run.stride == 1:
                yield lamport, offset, run.length, run.length == 1 and offset == 0
            elif run.stride == LAMPORT and offset == 0:
                yield lamport, 0, run.length, True
            else:
                for at in range(run.length):
                    clock = run.clock(at)
                    yield clock >> OFFSET_BITS, clock & OFFSET_MAX, 1, clock & OFFSET_MAX == 0


Step = tuple[int, int, int, bool]  # lamport, first offset, count, and True if each element has a lamport of its own


def _packed(numbers: list[int]) -> bytes:
    """Encode numbers without a tag and a length, so that a field can be put together of several parts."""
    if not numbers:
        return b""
    data = text_pb2.TextWriter(chains=numbers).SerializeToString()
    return data[number_at(data, 1, len(data))[1] :]


def _parts(runs: Iterable[Run]) -> Iterator[tuple[int, bool]]:
    """Yield the lengths of parts of runs, and whether their elements are shown."""
    for run in runs:
        if run.text is None or HOLE not in run.text:
            yield run.length, run.text is not None
        else:
            for part in _PARTS(run.text):
                yield len(part), part[0] != HOLE


def _add_turns(turns: list[int], counts: Iterable[tuple[int, bool]], before: int) -> None:
    """Add to alternating counts of elements that are shown and deleted, of which the first is shown, perhaps 0.

    `before` is the number of counts that precede these.
    """
    for count, shown in counts:
        length = before + len(turns)
        if not length and not shown:
            turns += (0, count)
        elif turns and shown is bool(length % 2):  # the last count is of the same kind
            turns[-1] += count
        else:
            turns.append(count)
