"""Convert feeds and spans to rows of an archive, and back. Rows may be hostile, so every value is checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from antiphon.core.errors import BadEncoding
from antiphon.core.keys import KEY_SIZE, SIGNATURE_SIZE
from antiphon.feed import span as spans
from antiphon.feed.block import BodyState
from antiphon.feed.chain import span_hashes, verify_span
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.fork import Branch, Fork
from antiphon.feed.header import HASH_SIZE, HEADER_SIZE, NO_END
from antiphon.feed.span import Span

_SIZES = {
    "party": KEY_SIZE,
    "feed": KEY_SIZE,
    "start_hash": HASH_SIZE,
    "hash": HASH_SIZE,
    "signature": SIGNATURE_SIZE,
    "previous": HASH_SIZE,
}
_NUMBERS = ("start", "start_lamport", "length", "lamport", "first", "count")


@dataclass(frozen=True, slots=True)
class FeedRow:
    """A feed in an archive: its record, the evidence of a fork, the seqs of blocks whose bodies were erased, and the
    spans of other branches that blocks in the archive refer to.
    """

    record: FeedRecord
    fork: bytes | None = None
    erased: tuple[int, ...] = ()
    branches: tuple[bytes, ...] = ()

    def row(self) -> dict[str, Any]:
        """The row of the `records` file."""
        record = self.record
        return {
            "party": record.party,
            "feed": record.feed,
            "start": record.start,
            "start_hash": record.start_hash,
            "start_lamport": record.start_lamport,
            "length": record.length,
            "hash": record.hash,
            "lamport": record.lamport,
            "signature": record.signature,
            "end": None if record.why is End.NONE else record.end,
            "why": int(record.why),
            "fork": self.fork,
            "erased": list(self.erased),
            "branches": list(self.branches),
        }

    def branch_spans(self) -> Iterator[Span]:
        """Yield the spans of other branches, each verified."""
        for data in self.branches:
            span = verify_span(spans.decode(data))
            if (span.party, span.feed) != (self.record.party, self.record.feed):
                raise BadEncoding(f"feed {self.record.feed.hex()[:8]}: a branch of it is one of another feed")
            yield span

    @classmethod
    def of(cls, row: dict[str, Any]) -> FeedRow:
        """Read a row of the `records` file. Refuse sizes, positions and ends that no feed can have."""
        where = _checked(row, "a feed")
        why, end = row["why"], row["end"]
        if why not in {int(known) for known in End} or (end is None) != (why == End.NONE):
            raise BadEncoding(f"{where}: it cannot end like that")
        end = NO_END if end is None else end
        if not (row["start"] <= row["length"] and row["start"] <= end):
            raise BadEncoding(f"{where}: blocks {row['start']} to {row['length']} with an end at {end}")
        erased = tuple(row["erased"] or ())
        if not all(isinstance(seq, int) and 0 <= seq < row["length"] for seq in erased):
            raise BadEncoding(f"{where}: blocks are erased that it does not have")
        record = FeedRecord(
            feed=row["feed"],
            party=row["party"],
            start=row["start"],
            start_hash=row["start_hash"],
            start_lamport=row["start_lamport"],
            length=row["length"],
            hash=row["hash"],
            lamport=row["lamport"],
            signature=row["signature"],
            end=end,
            why=End(why),
            branches=len(row["branches"]),
        )
        return cls(record, row["fork"], erased, tuple(row["branches"]))


def span_row(span: Span) -> dict[str, Any]:
    """The row of the `spans` file."""
    return {
        "party": span.party,
        "feed": span.feed,
        "first": span.first,
        "count": span.count,
        "previous": span.previous,
        "signature": span.signature,
        "headers": span.headers,
        "advance": span.advance,
        "states": span.states,
        "bodies": span.bodies,
    }


def span_of(row: dict[str, Any]) -> Span:
    """Read a row of the `spans` file. `antiphon.feed.span.decode` checks that its sizes are bounded and add up."""
    where = _checked(row, "a range")
    names = ("party", "feed", "first", "previous", "signature", "headers", "advance", "bodies", "states")
    made = Span(**{name: row[name] for name in names})
    if len(made.headers) != row["count"] * HEADER_SIZE:
        raise BadEncoding(f"{where} at {made.first}: {row['count']} blocks are announced, others are there")
    return spans.decode(made.encode())


def with_hashes(span: Span) -> Span:
    """The span with the block hashes computed from its headers. A span of a store has them already."""
    return replace(span, hashes=span_hashes(span))


def without(span: Span, seqs: Sequence[int]) -> Span:
    """The span without the bodies of some blocks."""
    bodies, states = span.body_list(), bytearray(span.states or bytes(span.count))
    for seq in seqs:
        bodies[seq - span.first], states[seq - span.first] = None, BodyState.ERASED
    return span.with_bodies(bodies, bytes(states))


def other_branch(evidence: bytes, record: FeedRecord, held: bytes) -> Span:
    """The branch in the evidence of a fork that contradicts the archived history, whose block has the hash `held`."""
    fork = Fork.decode(evidence)
    if (fork.party, fork.feed) != (record.party, record.feed):
        raise BadEncoding(f"feed {record.feed.hex()[:8]}: the evidence of a fork is one against another feed")
    found = [branch_span(fork, branch) for branch in fork.branches]
    others = [span for span in found if span_hashes(span)[:HASH_SIZE] != held]
    if len(others) != 1:
        raise BadEncoding(f"feed {record.feed.hex()[:8]}: the evidence of a fork is about other blocks than are here")
    return others[0]


def branch_span(fork: Fork, branch: Branch) -> Span:
    """The headers of one branch of a fork as a span without bodies."""
    headers = b"".join(header[:HEADER_SIZE] for header in branch.headers)
    advance = b"".join(header[HEADER_SIZE:] for header in branch.headers)
    states = bytes([BodyState.LEFT_OUT]) * len(branch.headers)
    signature = branch.head.signature
    return Span(fork.party, fork.feed, fork.seq, fork.previous, signature, headers, advance, b"", states=states)


def _checked(row: dict[str, Any], what: str) -> str:
    """Check the sizes of keys, hashes and numbers. Return the name of the feed for error texts."""
    feed = row["feed"]
    where = f"feed {feed.hex()[:8]}" if isinstance(feed, bytes) else what
    for name, size in _SIZES.items():
        if name in row and (not isinstance(row[name], bytes) or len(row[name]) != size):
            raise BadEncoding(f"{where}: {name} has not {size} bytes")
    for name in _NUMBERS:
        if name in row and not (isinstance(row[name], int) and 0 <= row[name] < 1 << 63):
            raise BadEncoding(f"{where}: {row[name]!r:.40} is no {name}")
    return where
