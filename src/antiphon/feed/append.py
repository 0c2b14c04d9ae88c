"""From drafts to signed blocks: seq, lamport, advance, batch marks, hashes, one signature per span."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from antiphon.core.errors import FeedRetired, InvalidInput, TooLarge
from antiphon.core.keys import KeyPair
from antiphon.feed.chain import link, sign_head
from antiphon.feed.header import ENTRY_SIZE, HEADER, HEADER_SIZE, VERSION, Entry, Flag, Headers, Kind, encode_entries
from antiphon.feed.limits import (
    ADVANCE_MAX,
    BODY_SIZE_MAX,
    LAMPORT_MAX,
    LAMPORT_STEP_MAX,
    SALT_SIZE,
    SPAN_BLOCKS_MAX,
    SPAN_HEADERS_SIZE_MAX,
    SPAN_SIZE_MAX,
)
from antiphon.feed.record import Record
from antiphon.feed.rules import Frontier
from antiphon.feed.span import Span, fixed_size

_SPAN_BODIES_MAX = SPAN_SIZE_MAX - SPAN_HEADERS_SIZE_MAX - SPAN_BLOCKS_MAX * 33 - fixed_size()


class Draft(NamedTuple):
    """A message that is not yet a block."""

    kind: Kind
    item: bytes
    message: bytes


@dataclass(frozen=True, slots=True)
class Append:
    """Drafts for one feed. With `atomic` they become a batch: one lamport, seen all or none."""

    pair: KeyPair
    party: bytes
    drafts: Sequence[Draft]
    seen: Sequence[Entry] = ()
    atomic: bool = False
    created_ms: int = 0
    salts: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        """Refuse here what could fail later, when others share the transaction."""
        count = len(self.drafts)
        if not count:
            raise InvalidInput(f"nothing to append to feed {self.pair.key.short}")
        if len(self.salts) != count * SALT_SIZE:
            raise InvalidInput(f"feed {self.pair.key.short}: {count} drafts need {count * SALT_SIZE} bytes of salt")
        sizes = [len(draft.message) for draft in self.drafts]
        if max(sizes) > BODY_SIZE_MAX - SALT_SIZE:
            raise TooLarge(
                f"feed {self.pair.key.short}: a message of {max(sizes)} bytes; at most {BODY_SIZE_MAX - SALT_SIZE} "
                "fit into a block, larger content belongs into blobs"
            )
        if any(len(draft.item) != 16 for draft in self.drafts):
            raise InvalidInput(f"feed {self.pair.key.short}: an item id has 16 bytes")
        if not 0 <= self.created_ms < 1 << 62:
            raise InvalidInput(f"feed {self.pair.key.short}: the time {self.created_ms} ms is out of range")
        headers = count * HEADER_SIZE + min(len(self.seen), ADVANCE_MAX) * ENTRY_SIZE
        bodies = sum(sizes) + count * SALT_SIZE
        if self.atomic and (count > SPAN_BLOCKS_MAX or headers > SPAN_HEADERS_SIZE_MAX or bodies > _SPAN_BODIES_MAX):
            raise TooLarge(
                f"feed {self.pair.key.short}: a batch of {count} blocks and {bodies} bytes; at most {SPAN_BLOCKS_MAX} "
                f"blocks and {_SPAN_BODIES_MAX} bytes are seen all or none, so split it"
            )


class Built(NamedTuple):
    """What an append writes: the spans, the feed's new record, the entries that moved, the lamport of each block."""

    spans: list[Span]
    record: Record
    moved: dict[bytes, Entry]
    lamports: list[int]


class _Piece(NamedTuple):
    """Blocks that one signature may cover: a batch whole, other blocks in any number."""

    headers: Headers
    advance: bytes
    bodies: list[bytes]


def build(record: Record, appends: Sequence[Append], frontier: Frontier) -> Built:
    """The blocks of several appends to one feed, under as few signatures as the limits allow."""
    pair, party = appends[0].pair, appends[0].party
    if record.retired or record.end <= record.length:
        raise FeedRetired(
            f"feed {record.feed.hex()[:8]} must not be written any more "
            f"({'it was restored or closed' if record.retired else 'it has ended'}); open a new feed"
        )
    if party != record.party:
        raise InvalidInput(f"feed {pair.key.short} belongs to party {record.party.hex()[:8]}, not {party.hex()[:8]}")
    moved: dict[bytes, Entry] = {}
    lamports: list[int] = []
    spans: list[Span] = []
    now = record
    for append in appends:
        entries = _entries(append, moved, frontier)
        base = max([now.lamport, *(entry.lamport for entry in entries)]) + 1
        if base - now.lamport > LAMPORT_STEP_MAX or base + len(append.drafts) > LAMPORT_MAX:
            raise InvalidInput(
                f"feed {pair.key.short}: the lamport {base} steps too far; what it has seen is no history"
            )
        for piece in _pieces(append, now.length, base, entries):
            span = _chained(pair, now, piece)
            spans.append(span)
            last = piece.headers[-1]
            now = replace(now, length=span.end, hash=span.hashes[-32:], lamport=int(last["lamport"]))
            lamports.extend(piece.headers["lamport"].tolist())
        moved.update((entry.feed, entry) for entry in entries)
    signed = _merged(pair, spans)
    return Built(signed, replace(now, signature=signed[-1].signature), moved, lamports)


def _entries(append: Append, moved: dict[bytes, Entry], frontier: Frontier) -> list[Entry]:
    """The entries of `seen` that moved since this feed's previous block."""
    entries = {}
    for entry in append.seen:
        known = moved.get(entry.feed) or frontier(entry.feed)
        if entry.feed != append.pair.key and (known is None or entry.seq > known.seq):
            entries[entry.feed] = entry
    return sorted(entries.values())[:ADVANCE_MAX]


def _pieces(append: Append, first: int, base: int, entries: list[Entry]) -> list[_Piece]:
    drafts, salts = append.drafts, append.salts
    count = len(drafts)
    bodies = [salts[16 * i : 16 * i + 16] + draft.message for i, draft in enumerate(drafts)]
    headers = np.zeros(count, dtype=HEADER)
    headers["version"] = VERSION
    headers["kind"] = [draft.kind for draft in drafts]
    headers["seq"] = np.arange(first, first + count)
    headers["created_ms"] = append.created_ms
    headers["item"] = np.frombuffer(b"".join([draft.item for draft in drafts]), dtype="V16")
    headers["body_size"] = [len(body) for body in bodies]
    headers["body_hash"] = np.frombuffer(b"".join([sha256(body).digest() for body in bodies]), dtype="V32")
    headers["advance"][0] = len(entries)
    advance = encode_entries(entries)
    if append.atomic:
        headers["lamport"] = base
        headers["flags"][:-1] |= np.uint16(Flag.MORE)
        headers["flags"][1:] |= np.uint16(Flag.CONTINUED)
        return [_Piece(headers, advance, bodies)]
    headers["lamport"] = np.arange(base, base + count)
    pieces = []
    start = 0
    while start < count:
        stop = _fit(bodies, start, len(advance) if start == 0 else 0)
        pieces.append(_Piece(headers[start:stop], advance if start == 0 else b"", bodies[start:stop]))
        start = stop
    return pieces


def _fit(bodies: list[bytes], start: int, advance_size: int) -> int:
    """How far the blocks from `start` fit under one head."""
    most = min(SPAN_BLOCKS_MAX, (SPAN_HEADERS_SIZE_MAX - advance_size) // HEADER_SIZE)
    stop = min(len(bodies), start + most)
    if sum(map(len, bodies[start:stop])) <= _SPAN_BODIES_MAX:
        return stop
    size = 0
    for at in range(start, stop):
        size += len(bodies[at])
        if size > _SPAN_BODIES_MAX:
            return at
    return stop


def _chained(pair: KeyPair, record: Record, piece: _Piece) -> Span:
    """A span without its signature, which is given once it is known how many spans are merged."""
    raw = piece.headers.tobytes()
    parts = [raw[at : at + HEADER_SIZE] for at in range(0, len(raw), HEADER_SIZE)]
    parts[0] += piece.advance
    return Span(
        party=record.party,
        feed=pair.key,
        first=record.length,
        previous=record.hash,
        signature=b"",
        headers=raw,
        advance=piece.advance,
        bodies=b"".join(piece.bodies),
        hashes=b"".join(link(record.party, pair.key, record.hash, parts)),
    )


def _merged(pair: KeyPair, spans: list[Span]) -> list[Span]:
    """As few spans as the limits allow, each signed."""
    merged: list[Span] = []
    for span in spans:
        if merged and _mergeable(merged[-1], span):
            merged[-1] = merged[-1].joined(span)
        else:
            merged.append(span)
    return [replace(span, signature=sign_head(pair, span.party, span.end, span.hashes[-32:])) for span in merged]


def _mergeable(first: Span, second: Span) -> bool:
    return (
        first.count + second.count <= SPAN_BLOCKS_MAX
        and len(first.headers) + len(first.advance) + len(second.headers) + len(second.advance) <= SPAN_HEADERS_SIZE_MAX
        and len(first.bodies) + len(second.bodies) <= _SPAN_BODIES_MAX
    )
