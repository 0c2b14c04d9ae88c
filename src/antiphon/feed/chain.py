"""The hash chain and its signed heads.

    hash[i] = SHA-256("antiphon.block.1" and 48 zeros ‖ party ‖ feed ‖ hash[i-1] ‖ header[i])
    head    = Ed25519 by the feed over "antiphon.head.v1" ‖ party ‖ feed ‖ length ‖ hash[length-1]

A body stands in the chain only through its own hash in the header, so it can be left out or erased while everything
else stays verifiable. The party key is in every hash, so one party's blocks cannot be served in another (rule 4).
A signature covers a whole span: one costs as much as hashing some fifty blocks.
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
    """A writer's word that its feed's first `length` blocks end in `hash`."""

    length: int
    hash: bytes
    signature: bytes

    def encode(self) -> bytes:
        return u64(self.length) + self.hash + self.signature

    @classmethod
    def read(cls, reader: Reader) -> Head:
        return cls(reader.u64(), reader.take(HASH_SIZE), reader.take(SIGNATURE_SIZE))

    def signed_by(self, party: bytes, feed: bytes) -> bool:
        return verify(feed, head_message(party, feed, self.length, self.hash), self.signature)


def head_message(party: bytes, feed: bytes, length: int, last: bytes) -> bytes:
    return HEAD_TAG + party + feed + u64(length) + last


def sign_head(pair: KeyPair, party: bytes, length: int, last: bytes) -> bytes:
    return pair.sign(head_message(party, pair.key, length, last))


def link(party: bytes, feed: bytes, previous: bytes, headers: list[bytes]) -> list[bytes]:
    """The hashes of consecutive headers (entries included), given the hash before them."""
    return hashing.link(BLOCK_TAG + party + feed, previous, headers)


def span_headers(span: Span) -> list[bytes]:
    raw = span.headers
    if not span.advance:
        return [raw[at : at + HEADER_SIZE] for at in range(0, len(raw), HEADER_SIZE)]
    entries, bounds = span.advance, span.advance_offsets.tolist()
    return [
        raw[i * HEADER_SIZE : (i + 1) * HEADER_SIZE] + entries[bounds[i] : bounds[i + 1]] for i in range(span.count)
    ]


def span_hashes(span: Span) -> bytes:
    """The hash column of a span, computed from its headers and `previous`."""
    prefix = BLOCK_TAG + span.party + span.feed
    return hashing.chain(prefix, span.previous, span.headers, span.advance, span.advance_offsets)


def check_bodies(span: Span) -> int | None:
    """The index of the first body here that is not the one in its header; None if all are right."""
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
    """The same span with its hashes, once chain, signed head and every body that is here are right.

    Only the hash before it is taken on trust: a caller compares `span.previous` with what it holds. A span that a
    sender made up fails here; what a feed's own writer did wrong is found by `rules`.
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
