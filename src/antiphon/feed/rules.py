"""Rules for signed headers: positions, lamports, advance entries, batch marks, sizes.

A writer that breaks a rule has signed the proof. All peers that hold the block find the same fault, and end the feed at
the same place (rule 3). The checks run over columns; only advance entries are checked one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from antiphon.core.reasons import Reason, because
from antiphon.feed.header import ENTRY, KIND_MAX, KIND_MIN, VERSION, Entry, Flag, decode_entries
from antiphon.feed.limits import ADVANCE_MAX, BODY_SIZE_MAX, LAMPORT_MAX, SALT_SIZE
from antiphon.feed.span import Span

Frontier = Callable[[bytes], Entry | None]
_CREATED_MAX = 1 << 62
_MARKS = int(Flag.MORE | Flag.CONTINUED)
_MORE, _CONTINUED = int(Flag.MORE), int(Flag.CONTINUED)
_FEW = 48  # blocks: up to this many, a loop is faster than columns


@dataclass(frozen=True, slots=True)
class Fault:
    """The first block of a span that breaks a rule, and the reason."""

    seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of `judge`: the first fault of a span, and the entries that the headers before it moved."""

    fault: Fault | None
    moved: Mapping[bytes, Entry]


def judge(span: Span, previous_lamport: int | None, frontier: Frontier) -> Verdict:
    """Check the headers of a verified span against the rules.

    `previous_lamport` is the lamport of the block before the span (0 at the start of a feed, None if unknown).
    `frontier` returns, for another feed, the last entry that this feed's earlier headers have for it.
    """
    faults: dict[int, str] = {}
    columns = span.columns
    if not _is_plain(span, previous_lamport):
        _columns(span, faults)
        _marks(columns["flags"], columns["advance"], faults)
        _lamports(span, previous_lamport, faults)
    moved = _advance(span, frontier, faults)
    if not faults:
        return Verdict(None, moved)
    index = min(faults)
    start = batch_start(span, index)
    moved = {} if start == 0 else _advance(span, frontier, {}, stop=start)
    return Verdict(Fault(span.first + start, f"block {span.first + index}: {faults[index]}"), moved)


def batch_start(span: Span, index: int) -> int:
    """Return the index of the first block of the batch that block `index` belongs to, or leaves without an end."""
    # Only the marks before `index` count: its own may be the fault, or differ between two branches.
    flags = span.columns["flags"].tolist()
    while index > 0 and flags[index - 1] & Flag.MORE:
        index -= 1
    return index


def well_formed(span: Span) -> int:
    """Return the index of the first block whose header is malformed by itself; the count if none is.

    Of a branch nobody checks more than this and its lamports: batch marks and the like concern blocks that are applied.
    """
    faults: dict[int, str] = {}
    _columns(span, faults)
    _first(span.columns["lamport"] > LAMPORT_MAX, "its lamport is out of range", faults)
    _advance(span, lambda _: None, faults)
    return min(faults, default=span.count)


def _is_plain(span: Span, before: int | None) -> bool:
    """True if a short span has no fault, apart from its entries. If False, the checks by column find the fault."""
    if span.count > _FEW or before is None:
        return False
    lamports: list[int] = np.frombuffer(span.advance, dtype=ENTRY)["lamport"].tolist() if span.advance else []
    at, more = 0, 0
    for place, row in enumerate(span.columns.tolist(), start=span.first):
        version, kind, flags, seq, lamport, created_ms, _, size, _, count = row
        if version != VERSION or not KIND_MIN <= kind <= KIND_MAX or flags & ~_MARKS or seq != place:
            return False
        if created_ms > _CREATED_MAX or not SALT_SIZE <= size <= BODY_SIZE_MAX or count > ADVANCE_MAX:
            return False
        continued = flags & _CONTINUED
        if bool(continued) is not bool(more) or (continued and count):
            return False
        seen = min(max(lamports[at : at + count], default=0), LAMPORT_MAX) if count else 0
        if lamport != (before if continued else max(before, seen) + 1):
            return False
        if lamport > LAMPORT_MAX:
            return False
        at, more, before = at + count, flags & _MORE, lamport
    return True


def _first(bad: npt.NDArray[np.bool_], reason: str, faults: dict[int, str], shift: int = 0) -> None:
    if bad.any():
        faults.setdefault(int(bad.argmax()) + shift, reason)


def _columns(span: Span, faults: dict[int, str]) -> None:
    columns = span.columns
    kinds = columns["kind"]
    _first(columns["version"] != VERSION, because(Reason.HEADER, "its version is not known"), faults)
    _first((kinds < KIND_MIN) | (kinds > KIND_MAX), because(Reason.HEADER, "its kind is not known"), faults)
    _first((columns["flags"] & ~np.uint16(_MARKS)) != 0, because(Reason.HEADER, "unknown flags"), faults)
    wanted = np.arange(span.first, span.end, dtype=np.uint64)
    _first(columns["seq"] != wanted, because(Reason.HEADER, "its seq is not its position"), faults)
    _first(columns["created_ms"] > _CREATED_MAX, because(Reason.HEADER, "its creation time is out of range"), faults)
    sizes = columns["body_size"]
    _first(
        (sizes < SALT_SIZE) | (sizes > BODY_SIZE_MAX), because(Reason.HEADER, "its body size is out of bounds"), faults
    )
    _first(
        columns["advance"] > ADVANCE_MAX, because(Reason.ENTRIES, f"more than {ADVANCE_MAX} advance entries"), faults
    )


def _marks(flags: npt.NDArray[np.uint16], advance: npt.NDArray[np.uint16], faults: dict[int, str]) -> None:
    continued = (flags & Flag.CONTINUED) != 0
    more = (flags & Flag.MORE) != 0
    _first(continued[1:] & ~more[:-1], because(Reason.BATCH, "it continues a batch that had ended"), faults, shift=1)
    _first(~continued[1:] & more[:-1], because(Reason.BATCH, "the batch before it has no end"), faults, shift=1)
    _first(continued & (advance > 0), because(Reason.BATCH, "only the first block of a batch may advance"), faults)
    if continued[0]:
        faults[0] = because(Reason.BATCH, "it continues a batch of which the beginning is missing")


def _lamports(span: Span, previous: int | None, faults: dict[int, str]) -> None:
    """Check the lamports: 1 + the greatest in the message's timeframe; a batch shares one."""
    lamports = span.columns["lamport"]
    _first(lamports > LAMPORT_MAX, because(Reason.LAMPORT, f"its lamport is above {LAMPORT_MAX}"), faults)
    seen = np.zeros(span.count, dtype=np.uint64)
    counts = span.columns["advance"]
    moving = np.flatnonzero(counts)
    if len(moving):
        entries = np.frombuffer(span.advance, dtype=ENTRY)["lamport"]
        starts = np.cumsum(counts, dtype=np.int64) - counts
        seen[moving] = np.maximum.reduceat(entries, starts[moving])
    known = previous is not None
    before = np.concatenate((np.array([previous or 0], dtype=np.uint64), lamports[:-1]))
    continued = (span.columns["flags"] & Flag.CONTINUED) != 0
    wanted = np.where(continued, before, np.maximum(before, np.minimum(seen, np.uint64(LAMPORT_MAX))) + np.uint64(1))
    wrong = lamports != wanted
    if not known:
        wrong[0] = False
    _first(wrong, because(Reason.LAMPORT, "its lamport is not one above what it has seen"), faults)


def _advance(span: Span, frontier: Frontier, faults: dict[int, str], stop: int | None = None) -> dict[bytes, Entry]:
    """Check that entries ascend by feed and name other feeds. Return the entries that moved.

    An entry that does not move is skipped, not a fault: a peer that joins at an epoch does not know the entries before
    the cut, and must reach the same verdict as peers that do.
    """
    moved: dict[bytes, Entry] = {}
    for index, entries in _moves(span, stop):
        if entries is None:
            faults.setdefault(index, because(Reason.ENTRIES, "an advance entry is out of range"))
            return moved
        last = b""
        for entry in entries:
            known = moved.get(entry.feed) or frontier(entry.feed)
            if entry.feed <= last or entry.feed == span.feed:
                faults.setdefault(
                    index, because(Reason.ENTRIES, "its advance entries do not ascend, or name its own feed")
                )
                return moved
            last = entry.feed
            if known is None or entry.seq > known.seq:
                moved[entry.feed] = entry
    return moved


def _moves(span: Span, stop: int | None) -> Iterator[tuple[int, tuple[Entry, ...] | None]]:
    """Yield the index and entries of each block that has entries; None for entries that cannot be decoded."""
    counts = span.columns["advance"]
    every = _entries(span.advance) if span.count <= _FEW else None
    if every is None:
        offsets = span.advance_offsets
        for index in np.flatnonzero(counts[:stop]).tolist():
            yield index, _entries(span.advance[offsets[index] : offsets[index + 1]])
        return
    at = 0
    for index, count in enumerate(counts[:stop].tolist()):
        if count:
            yield index, every[at : at + count]
            at += count


def _entries(data: bytes) -> tuple[Entry, ...] | None:
    try:
        return decode_entries(data)
    except ValueError:  # an integer above 2^63 - 1
        return None
