"""`HeadProof`: evidence that a feed's writer signed a history with a certain block. It needs no block up to that one.

A peer that has pruned a feed still has the hash of the last block that it dropped, and what follows it up to a signed
head. That shows others, who hold another block there, that the writer signed two histories.
"""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.core.codec import Reader
from antiphon.core.errors import TooLarge
from antiphon.feed.chain import Head, link, span_headers
from antiphon.feed.fork import Branch
from antiphon.feed.limits import EVIDENCE_SIZE_MAX
from antiphon.feed.span import Span


@dataclass(frozen=True, slots=True)
class HeadProof:
    """The headers after a block, perhaps none, up to a head with the writer's signature."""

    headers: tuple[bytes, ...]
    head: Head

    @classmethod
    def after(cls, span: Span, seq: int) -> HeadProof:
        """Make the proof of block `seq` from a verified span that has it, or follows it."""
        head = Head(span.end, span.hash_at(span.end - 1), span.signature)
        return cls(tuple(span_headers(span)[seq + 1 - span.first :]), head)

    def proves(self, party: bytes, feed: bytes, seq: int, hash_: bytes) -> bool:
        """True if the feed's writer signed a history of this party in which block `seq` has this hash."""
        last = link(party, feed, hash_, list(self.headers))[-1] if self.headers else hash_
        return (
            self.head.length == seq + 1 + len(self.headers)
            and self.head.hash == last
            and self.head.signed_by(party, feed)
        )

    def encode(self) -> bytes:
        """Encode the headers and the head, as in the evidence of a fork."""
        return Branch(self.headers, self.head).encode()

    @classmethod
    def decode(cls, data: bytes) -> HeadProof:
        """Decode a proof. What it proves is not checked."""
        if len(data) > EVIDENCE_SIZE_MAX:
            raise TooLarge(f"a proof of a head: {len(data)} bytes, at most {EVIDENCE_SIZE_MAX} are allowed")
        reader = Reader(data, "a proof of a head")
        found = Branch.read(reader, least=0)
        reader.done()
        return cls(found.headers, found.head)
