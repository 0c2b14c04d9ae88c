"""`Fork`: evidence that a writer signed two histories. Any peer can check it without holding the feed.

Both branches start from the same hash, their first headers differ, and each runs to a head with the writer's
signature. A head covers at most `SPAN_HEADERS_SIZE_MAX` bytes of headers, so the evidence always fits a credential.
"""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.core.codec import Reader, u32, u64
from antiphon.core.errors import BadEncoding, BadSignature, BrokenChain, TooLarge
from antiphon.core.keys import KEY_SIZE
from antiphon.feed.chain import Head, link, span_headers
from antiphon.feed.header import ENTRY_SIZE, HASH_SIZE, HEADER, HEADER_SIZE
from antiphon.feed.limits import EVIDENCE_SIZE_MAX, SPAN_BLOCKS_MAX
from antiphon.feed.span import Span

MAGIC = b"APf1"
_ADVANCE_AT = HEADER.fields["advance"][1] if HEADER.fields else HEADER_SIZE - 2


@dataclass(frozen=True, slots=True)
class Branch:
    """One of the two histories: headers (entries included) from the fork to a signed head."""

    headers: tuple[bytes, ...]
    head: Head

    def encode(self) -> bytes:
        return u32(len(self.headers)) + b"".join(self.headers) + self.head.encode()

    @classmethod
    def read(cls, reader: Reader, *, least: int = 1) -> Branch:
        count = reader.u32()
        if not least <= count <= SPAN_BLOCKS_MAX:
            raise TooLarge(f"fork evidence: a branch of {count} blocks; {least} to {SPAN_BLOCKS_MAX} are allowed")
        headers = []
        for _ in range(count):
            fixed = reader.take(HEADER_SIZE)
            entries = int.from_bytes(fixed[_ADVANCE_AT : _ADVANCE_AT + 2], "little")
            headers.append(fixed + reader.take(entries * ENTRY_SIZE))
        return cls(tuple(headers), Head.read(reader))


@dataclass(frozen=True, slots=True)
class Fork:
    """Two different blocks at `seq`, signed by the feed's writer. `previous` is the hash of the last common block."""

    party: bytes
    feed: bytes
    seq: int
    previous: bytes
    branches: tuple[Branch, Branch]

    @classmethod
    def between(cls, mine: Span, theirs: Span) -> Fork:
        """Make evidence of two verified spans that start at the same seq after the same block, and differ there."""
        assert mine.first == theirs.first
        assert mine.previous == theirs.previous
        assert mine.hash_at(mine.first) != theirs.hash_at(theirs.first)
        branches = sorted((_branch(mine), _branch(theirs)), key=Branch.encode)
        return cls(mine.party, mine.feed, mine.first, mine.previous, (branches[0], branches[1]))

    def encode(self) -> bytes:
        """Encode the evidence: party, feed, seq, hash of the last common block, both branches."""
        first, second = self.branches
        return MAGIC + self.party + self.feed + u64(self.seq) + self.previous + first.encode() + second.encode()

    @classmethod
    def decode(cls, data: bytes) -> Fork:
        """Decode evidence and check it; refuse evidence that is malformed or proves no fork."""
        if len(data) > EVIDENCE_SIZE_MAX:
            raise TooLarge(f"fork evidence: {len(data)} bytes, at most {EVIDENCE_SIZE_MAX} are allowed")
        reader = Reader(data, "fork evidence")
        if reader.take(4) != MAGIC:
            raise BadEncoding("fork evidence: does not begin as evidence of version 1")
        party, feed = reader.take(KEY_SIZE), reader.take(KEY_SIZE)
        seq, previous = reader.u64(), reader.take(HASH_SIZE)
        fork = cls(party, feed, seq, previous, (Branch.read(reader), Branch.read(reader)))
        reader.done()
        fork._check()
        return fork

    def _check(self) -> None:
        where = f"fork evidence against feed {self.feed.hex()[:8]} at {self.seq}"
        first, second = self.branches
        if first.headers[0] == second.headers[0]:
            raise BrokenChain(f"{where}: the branches do not differ in their first block", feed=self.feed, seq=self.seq)
        if first.encode() > second.encode():
            raise BadEncoding(f"{where}: the branches are not in order")
        for branch in self.branches:
            last = link(self.party, self.feed, self.previous, list(branch.headers))[-1]
            if branch.head.length != self.seq + len(branch.headers) or branch.head.hash != last:
                raise BrokenChain(f"{where}: a branch does not lead to its head", feed=self.feed, seq=self.seq)
            if not branch.head.signed_by(self.party, self.feed):
                raise BadSignature(f"{where}: a head is not the writer's", feed=self.feed, seq=self.seq)


def _branch(span: Span) -> Branch:
    head = Head(span.end, span.hash_at(span.end - 1), span.signature)
    return Branch(tuple(span_headers(span)), head)
