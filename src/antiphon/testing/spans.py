"""Feeds made to order: honest blocks without a store, and blocks that break a rule under a good signature.

>>> pair, party = key_pair("alice"), key_pair("party").key
>>> writer = SpanWriter(pair, party)
>>> writer.write(3).end, writer.write(2, atomic=True).end
(3, 5)
>>> hostile_span(pair, party, [Forged(lamport=99)]).block(0).lamport
99
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from antiphon.core.keys import KeyPair
from antiphon.feed.chain import link, sign_head
from antiphon.feed.encoder import Append, Draft, build
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import ENTRY_SIZE, HASH_SIZE, HEADER_SIZE, NO_HASH, PACK, VERSION, Entry, Flag, Kind
from antiphon.feed.limits import SALT_SIZE
from antiphon.feed.span import FIXED_SIZE, Span


def key_pair(name: str) -> KeyPair:
    """The same key for the same name, in every process."""
    return KeyPair.from_seed(sha256(name.encode()).digest())


def drafts(count: int, size: int = 20, label: str = "") -> list[Draft]:
    """Messages of about `size` bytes that differ from each other."""
    return [Draft(Kind.MUTATION, bytes(16), f"{label}{at} ".encode().ljust(size, b".")) for at in range(count)]


class StillClock:
    """A clock that shows what it was set to."""

    def __init__(self, now_ms: int = 1_000) -> None:
        self.now = now_ms

    def now_ms(self) -> int:
        return self.now


class SeededRandomness:
    """The same bytes for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._source = random.Random(seed)  # noqa: S311 - for tests

    def bytes(self, count: int) -> bytes:
        return self._source.randbytes(count)


@dataclass(frozen=True, slots=True)
class Forged:
    """A block in which every field can be wrong; a field that is None gets the honest value."""

    body: bytes = bytes(SALT_SIZE) + b"forged"
    version: int = VERSION
    kind: int = Kind.MUTATION
    flags: int = 0
    seq: int | None = None
    lamport: int | None = None
    created_ms: int = 1_000
    item: bytes = bytes(16)
    body_size: int | None = None
    body_hash: bytes | None = None
    advance: tuple[Entry, ...] = ()  # kept in the order given


def hostile_span(
    pair: KeyPair,
    party: bytes,
    blocks: Sequence[Forged],
    *,
    first: int = 0,
    previous: bytes = NO_HASH,
    lamport: int = 0,
) -> Span:
    """A span with correct links and signature, and arbitrary headers. `lamport` is that of the block before it."""
    headers, entries = [], []
    for at, block in enumerate(blocks):
        if block.lamport is not None:
            lamport = block.lamport
        elif not block.flags & Flag.CONTINUED:
            lamport = (1 + max([lamport, *(entry.lamport for entry in block.advance)])) % (1 << 64)
        headers.append(
            PACK(
                block.version,
                block.kind,
                block.flags,
                first + at if block.seq is None else block.seq,
                lamport,
                block.created_ms,
                block.item,
                len(block.body) if block.body_size is None else block.body_size,
                sha256(block.body).digest() if block.body_hash is None else block.body_hash,
                len(block.advance),
            )
        )
        entries.append(b"".join(entry.encode() for entry in block.advance))
    hashes = link(party, pair.key, previous, [fixed + more for fixed, more in zip(headers, entries, strict=True)])
    return Span(
        party=bytes(party),
        feed=bytes(pair.key),
        first=first,
        previous=previous,
        signature=sign_head(pair, party, first + len(blocks), hashes[-1]),
        headers=b"".join(headers),
        advance=b"".join(entries),
        bodies=b"".join(block.body for block in blocks),
        hashes=b"".join(hashes),
    )


class SpanWriter:
    """A feed's writer in memory. Each call continues where the last one ended; a `fork` writes a second history."""

    def __init__(self, pair: KeyPair, party: bytes, seed: int = 0) -> None:
        self.pair = pair
        self.party = bytes(party)
        self.record = FeedRecord(feed=bytes(pair.key), party=self.party, writable=True)
        self.frontier: dict[bytes, Entry] = {}
        self._randomness = SeededRandomness(seed)

    def extend(
        self, messages: Sequence[Draft], *, atomic: bool = False, seen: Sequence[Entry] = (), created_ms: int = 1_000
    ) -> list[Span]:
        """Honest blocks: what `FeedStore.append` would sign."""
        salts = self._randomness.bytes(len(messages) * SALT_SIZE)
        append = Append(self.pair, self.party, messages, seen, atomic=atomic, created_ms=created_ms, salts=salts)
        built = build(self.record, [append], self.frontier.get)
        self.record = built.record
        self.frontier.update(built.moved)
        return built.spans

    def write(self, count: int = 1, *, size: int = 20, atomic: bool = False, seen: Sequence[Entry] = ()) -> Span:
        """Honest blocks that fit under one signature."""
        (span,) = self.extend(drafts(count, size, f"{self.record.length}+"), atomic=atomic, seen=seen)
        return span

    def forge(self, *blocks: Forged) -> Span:
        """Blocks that may break any rule of headers, signed by the feed's key."""
        record = self.record
        span = hostile_span(
            self.pair, self.party, blocks, first=record.length, previous=record.hash, lamport=record.lamport
        )
        last = span.columns[-1]
        self.record = record.extended(span.end, span.hash_at(span.end - 1), int(last["lamport"]), span.signature)
        return span

    def fork(self, seed: int = 1) -> SpanWriter:
        """The same writer at this moment, to sign a second history (with other salts, so its blocks differ)."""
        other = copy.copy(self)
        other.frontier = dict(self.frontier)
        other._randomness = SeededRandomness(seed)
        return other


def joined(*spans: Span) -> Span:
    """Join consecutive spans into one, under the last head."""
    whole = spans[0]
    for span in spans[1:]:
        whole = whole.joined(span)
    return whole


def byte_owners(span: Span) -> list[int | None]:
    """For each byte of a stored span, the seq of its block; None for bytes of the whole span."""
    blocks = [(span.first + index, span.block(index)) for index in range(span.count)]
    owners: list[int | None] = [None] * FIXED_SIZE
    owners += [seq for seq, _ in blocks for _ in range(HEADER_SIZE)]
    owners += [seq for seq, block in blocks for _ in range(ENTRY_SIZE * len(block.advance))]
    owners += [seq for seq, _ in blocks for _ in range(HASH_SIZE)]
    owners += [None] * len(span.states)
    owners += [seq for seq, block in blocks for _ in range(len(block.body or b""))]
    return [*owners, *[None] * 4]  # the checksum


def on_the_wire(span: Span) -> Span:
    """The span as a receiving peer holds it: without the hashes that the receiver computes itself."""
    return replace(span, hashes=b"")
