"""Snapshots of a text: columns of each writer's elements in the order of their clocks.

The division into runs in memory leaves no trace, so the bytes depend on the messages alone. A restored text is encoded
again and compared, so that a state has exactly one snapshot.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator

from antiphon.core.v1 import text_pb2
from antiphon.model.text.marks import TextState
from antiphon.model.text.runs import HOLE, LAMPORT, OFFSET_BITS, OFFSET_MAX, Run, Writer

TYPED, CHUNK, CHUNK_AT = 0, 1, 2  # kinds of a step in the column of clocks
_PARTS = re.compile(f"{HOLE}+|[^{HOLE}]+").findall


def encode(state: TextState) -> bytes:
    """Encode the canonical snapshot."""
    writers = _listed(state)
    at = {writer.feed: place for place, writer in enumerate(writers)}
    ordinals = {writer: writer.runs.counts() for writer in writers}
    proto = text_pb2.TextSnapshot()
    for writer in writers:
        _encode_writer(proto.writers.add(), writer, at, ordinals)
    for unit in (unit for writer in writers for unit in writer.units):
        assert unit.above is not None
        proto.waiting.add(
            writer=at[unit.writer.feed],
            lamport=unit.start >> OFFSET_BITS,
            offset=unit.start & OFFSET_MAX,
            parent_writer=at[unit.above.feed],
            parent_lamport=unit.above_clock >> OFFSET_BITS,
            parent_offset=unit.above_clock & OFFSET_MAX,
            left=unit.left,
            shown=_turns((count, text is not None) for count, text in unit.pieces),
            text="" if unit.item else "".join(text for _, text in unit.pieces if text is not None),
            item=unit.item or b"",
        )
    for kept in sorted(state.marks.values(), key=lambda kept: (kept.mark.name, kept.key)):
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


def _encode_writer(
    proto: text_pb2.TextWriter, writer: Writer, at: dict[bytes, int], ordinals: dict[Writer, list[array[int]]]
) -> None:
    proto.feed = writer.feed
    proto.floor_lamport, proto.floor_offset = writer.floor >> OFFSET_BITS, writer.floor & OFFSET_MAX
    proto.clocks.extend(_clock_column(writer.runs))
    proto.shown.extend(_turns(_parts(writer.runs)))
    proto.text = "".join([run.text for run in writer.runs if run.text is not None]).replace(HOLE, "")
    chains: list[int] = []
    items = []
    position = embedded = count = 0
    last = -1
    for run in writer.runs:
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
                chains += (0, at[above.feed] + 2 << 1 | run.left, ordinal)
        chains[-3] += run.length
        count += run.length
        last = run.start + (run.length - 1) * run.stride
        if run.text is not None:
            if run.item is not None:
                proto.embeds.append(position - embedded)
                embedded = position
                items.append(run.item)
            position += run.shown
    proto.chains.extend(chains)
    proto.items = b"".join(items)
    for low, high in writer.doomed:
        proto.doomed.extend((low >> OFFSET_BITS, low & OFFSET_MAX, high >> OFFSET_BITS, high & OFFSET_MAX))


def _parts(runs: Iterable[Run]) -> Iterator[tuple[int, bool]]:
    """Yield the lengths of parts of runs, and whether their elements are shown."""
    for run in runs:
        if run.text is None or HOLE not in run.text:
            yield run.length, run.text is not None
        else:
            for part in _PARTS(run.text):
                yield len(part), part[0] != HOLE


def _turns(counts: Iterable[tuple[int, bool]]) -> list[int]:
    """Return alternating counts of elements that are shown and deleted, beginning with the shown, perhaps 0."""
    turns: list[int] = []
    for count, shown in counts:
        if not turns and not shown:
            turns += (0, count)
        elif turns and shown is bool(len(turns) % 2):  # the last count is of the same kind
            turns[-1] += count
        else:
            turns.append(count)
    return turns


def _clock_column(runs: Iterable[Run]) -> list[int]:
    """Encode the clocks in steps: elements with one lamport each, or a chunk of one lamport."""
    steps: list[tuple[int, int, int, bool]] = []  # lamport, offset, count, typed
    for lamport, offset, count, typed in _pieces(runs):
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
    column: list[int] = []
    now = 0
    for lamport, offset, count, typed in steps:
        kind = TYPED if typed else CHUNK_AT if offset else CHUNK
        column += (lamport - now, count << 2 | kind)
        if kind == CHUNK_AT:
            column.append(offset)
        now = lamport + count - 1 if typed else lamport
    return column


def _pieces(runs: Iterable[Run]) -> Iterator[tuple[int, int, int, bool]]:
    """Yield the parts of runs: lamport, first offset, count, and whether each element has a lamport of its own."""
    begin = end = 0  # clocks of a chunk within one lamport that goes on
    for run in runs:
        start, length = run.start, run.length
        chunk = (length == 1 or run.stride == 1) and start & OFFSET_MAX > 0
        if chunk and start == end:
            end += length
            continue
        if begin < end:
            yield begin >> OFFSET_BITS, begin & OFFSET_MAX, end - begin, False
            begin = end = 0
        if chunk:
            begin, end = start, start + length
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
    if begin < end:
        yield begin >> OFFSET_BITS, begin & OFFSET_MAX, end - begin, False
