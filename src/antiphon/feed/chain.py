"""The hash chain and its signed heads.

    hash[i] = SHA-256("antiphon.block.1" and 48 zeros ‖ party ‖ feed ‖ hash[i-1] ‖ header[i])
    head    = Ed25519 by the feed over "antiphon.head.v1" ‖ party ‖ feed ‖ length ‖ hash[length-1]

A body is in the chain only through its own hash in the header. So a body can be left out or erased, and everything else
stays verifiable. The party key is in every hash, so one party's blocks cannot be served in another (rule 4).
A signature covers a whole span: making one takes as long as hashing some fifty blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.core.codec import Reader, u64
from antiphon.core.errors import BadSignature, BrokenChain
from antiphon.core.keys import SIGNATURE_SIZE, KeyPair, verify
from antiphon.feed import hashing
from antiphon.feed.header import HASH_SIZE, HEADER_SIZE
from antiphon.feed.span import BLOCK_TAG, Span

HEAD_TAG = b"antiphon.head.v1"


@dataclass(frozen=True, slots=True)
class Head:
    """A signed statement of a feed's writer: the first `length` blocks end in `hash`."""

    length: int
    hash: bytes
    signature: bytes

    def encode(self) -> bytes:
        """Encode length, hash and signature."""
        return u64(self.length) + self.hash + self.signature

    @classmethod
    def read(cls, reader: Reader) -> Head:
        """Read an encoded head from a reader. The signature is not checked."""
        return cls(reader.u64(), reader.take(HASH_SIZE), reader.take(SIGNATURE_SIZE))

    def signed_by(self, party: bytes, feed: bytes) -> bool:
        """True if the signature is the feed's, over this head in this party."""
        return verify(feed, head_message(party, feed, self.length, self.hash), self.signature)


def head_message(party: bytes, feed: bytes, length: int, last: bytes) -> bytes:
    """Return the bytes that a head's signature covers."""
    return HEAD_TAG + party + feed + u64(length) + last


def sign_head(pair: KeyPair, party: bytes, length: int, last: bytes) -> bytes:
    """Return the signature of the head with this length and last hash."""
    return pair.sign(head_message(party, pair.key, length, last))


def link(party: bytes, feed: bytes, previous: bytes, headers: list[bytes]) -> list[bytes]:
    """Return the hashes of consecutive headers (entries included), given the hash before them."""
    return hashing.link(BLOCK_TAG + party + feed, previous, headers)


def span_headers(span: Span) -> list[bytes]:
    """Return the headers of a span, each with its entries."""
    raw = span.headers
    if not span.advance:
        return [raw[at : at + HEADER_SIZE] for at in range(0, len(raw), HEADER_SIZE)]
    entries, bounds = span.advance, span.advance_offsets.tolist()
    return [
        raw[i * HEADER_SIZE : (i + 1) * HEADER_SIZE] + entries[bounds[i] : bounds[i + 1]] for i in range(span.count)
    ]


def span_hashes(span: Span) -> bytes:
    """Compute the hash column of a span from its headers and `previous`."""
    prefix = BLOCK_TAG + span.party + span.feed
    return hashing.chain(prefix, span.previous, span.headers, span.advance, span.advance_offsets)


def check_bodies(span: Span) -> int | None:
    """Return the index of the first body that does not match the hash in its header; None if all match."""
    if not span.bodies and span.states:
        return None
    found, wanted = hashing.digests(span.bodies, span.body_offsets), span.columns["body_hash"].tobytes()
    if found == wanted:
        return None
    for i, here in enumerate(span.present.tolist()):
        at = i * HASH_SIZE
        if here and found[at : at + HASH_SIZE] != wanted[at : at + HASH_SIZE]:
            return i
    return None


def verify_span(span: Span) -> Span:
    """Verify the chain, the signed head and every present body of a span; return the span with its hashes.

    The hash before the span is not verified: the caller compares `span.previous` with the block that it holds. A span
    that a sender forged fails here; faults of the feed's own writer are found by `rules`.
    """
    where = f"feed {span.feed.hex()[:8]}, blocks {span.first} to {span.end - 1}"
    if not span.fits:
        raise BrokenChain(f"{where}: its columns do not fit each other", feed=span.feed, seq=span.first)
    hashes = span_hashes(span)
    if span.hashes and span.hashes != hashes:
        raise BrokenChain(f"{where}: the hashes sent are not those of the headers", feed=span.feed, seq=span.first)
    if not verify(span.feed, head_message(span.party, span.feed, span.end, hashes[-HASH_SIZE:]), span.signature):
        raise BadSignature(
            f"{where}: the head is not signed by the feed's key; ask another peer for this range",
            feed=span.feed,
            seq=span.end - 1,
        )
    wrong = check_bodies(span)
    if wrong is not None:
        raise BrokenChain(
            f"{where}: the body of block {span.first + wrong} is not the one that its header names",
            feed=span.feed,
            seq=span.first + wrong,
        )
    return span.with_hashes(hashes)
