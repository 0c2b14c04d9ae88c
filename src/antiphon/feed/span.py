"""`Span`: contiguous blocks of one feed in columns, with the signed head at its end.

The same structure is used on disk, on the wire and in memory, so received blocks are not encoded again. The layout is
by column (headers, then advance entries, then bodies), because bulk readers use columns: numpy reads them in place.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from antiphon.core.codec import u32
from antiphon.core.errors import BadEncoding, TooLarge
from antiphon.core.lazy import lazy
from antiphon.feed.block import STATES, Block, BodyState
from antiphon.feed.header import (
    ENTRY_SIZE,
    FLAGS,
    HASH_SIZE,
    HEADER,
    HEADER_SIZE,
    KINDS,
    UNPACK,
    Headers,
    decode_entries,
)
from antiphon.feed.limits import BODY_SIZE_MAX, SPAN_BLOCKS_MAX, SPAN_HEADERS_SIZE_MAX, SPAN_SIZE_MAX

MAGIC = b"APs1"
#: 64 bytes: tag, party and feed fill two blocks of SHA-256, whose state is computed once (measured: 1.4 times as fast).
BLOCK_TAG = b"antiphon.block.1" + bytes(48)
_HAS_HASHES = 1  # stored spans keep the hash of each block, so that one block can be verified alone
_HAS_STATES = 2  # some bodies are missing
_FIXED = struct.Struct("<4sB32s32sQIII32s64s")  # magic, flags, party, feed, first, three sizes, previous, signature
FIXED_SIZE = _FIXED.size
_COMPUTED = ("columns", "present", "body_offsets", "advance_offsets")  # from headers and states alone
_FEW = 48  # blocks: up to this many, Python adds their sizes faster than numpy

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, init=False)
class Span:
    """Blocks [first, first + count) of `feed`. Decoding verifies nothing: see `chain.verify_span`."""

    party: bytes
    feed: bytes
    first: int
    previous: bytes  # hash of the block before the first
    signature: bytes  # of the head at `end`, by the feed's key
    headers: bytes
    advance: bytes
    bodies: bytes
    hashes: bytes = b""  # of each block; kept on disk, recomputed by a receiver
    states: bytes = b""  # BodyState of each block; empty if all bodies are present
    count: int = field(init=False, compare=False, repr=False)

    def __init__(
        self,
        party: bytes,
        feed: bytes,
        first: int,
        previous: bytes,
        signature: bytes,
        headers: bytes,
        advance: bytes,
        bodies: bytes,
        hashes: bytes = b"",
        states: bytes = b"",
    ) -> None:
        own = self.__dict__  # takes a third of the time of the `__init__` of a frozen dataclass
        own["party"] = party
        own["feed"] = feed
        own["first"] = first
        own["previous"] = previous
        own["signature"] = signature
        own["headers"] = headers
        own["advance"] = advance
        own["bodies"] = bodies
        own["hashes"] = hashes
        own["states"] = states
        own["count"] = len(headers) // HEADER_SIZE

    @property
    def end(self) -> int:
        """Seq after the last block."""
        return self.first + self.count

    @property
    def size(self) -> int:
        """Bytes in all columns."""
        return len(self.headers) + len(self.advance) + len(self.bodies) + len(self.hashes) + len(self.states)

    @property
    def whole_size(self) -> int:
        """The size it would have with every body present."""
        return self.size - len(self.bodies) + int(self.columns["body_size"].sum()) if self.states else self.size

    @property
    def fits(self) -> bool:
        """True if the columns have the sizes that the headers give, as they have after `decode`."""
        return (
            len(self.headers) == self.count * HEADER_SIZE > 0
            and len(self.previous) == HASH_SIZE
            and len(self.hashes) in (0, self.count * HASH_SIZE)
            and len(self.states) in (0, self.count)
            and self.body_offsets[-1] == len(self.bodies)
            and self.advance_offsets[-1] == len(self.advance)
        )

    @lazy
    def columns(self) -> Headers:
        return np.frombuffer(self.headers, dtype=HEADER)

    @lazy
    def present(self) -> npt.NDArray[np.bool_]:
        if not self.states:
            return np.ones(self.count, dtype=np.bool_)
        return np.equal(np.frombuffer(self.states, dtype=np.uint8), BodyState.PRESENT)

    @lazy
    def body_offsets(self) -> Ints:
        """count + 1 offsets into `bodies`; a missing body takes no bytes."""
        sizes = self.columns["body_size"]
        return offsets_of(np.where(self.present, sizes, 0) if self.states else sizes)

    @lazy
    def advance_offsets(self) -> Ints:
        return offsets_of(self.columns["advance"].astype(np.int64) * ENTRY_SIZE)

    def hash_at(self, seq: int) -> bytes:
        """Return the hash of block `seq`, or of the block before the first; needs `hashes`."""
        at = (seq - self.first) * HASH_SIZE
        return self.hashes[at : at + HASH_SIZE] if at >= 0 else self.previous

    def header_bytes(self, index: int) -> bytes:
        """Return the bytes of one header, entries included: the part of a block that is hashed."""
        start, stop = self.advance_offsets[index], self.advance_offsets[index + 1]
        return self.headers[index * HEADER_SIZE : (index + 1) * HEADER_SIZE] + self.advance[start:stop]

    def block(self, index: int) -> Block:
        """Return the block at an index, which counts from the span's first block."""
        return next(self.blocks(index, index + 1))

    def blocks(self, low: int, high: int) -> Iterator[Block]:
        """Yield blocks [low, high) by index; whole columns are converted to Python values at once."""
        rows = self.columns[low:high].tolist()
        bodies = self.body_offsets[low : high + 1].tolist()
        entries = self.advance_offsets[low : high + 1].tolist()
        for i, (_, kind, flags, seq, lamport, created_ms, item, _, body_hash, advance) in enumerate(rows):
            state = self.states[low + i] if self.states else BodyState.PRESENT
            at = (low + i) * HASH_SIZE
            yield Block(
                self.feed,
                seq,
                lamport,
                KINDS[kind],
                FLAGS[flags],
                created_ms,
                item,
                decode_entries(self.advance[entries[i] : entries[i + 1]]) if advance else (),
                self.hashes[at : at + HASH_SIZE],
                body_hash,
                self.bodies[bodies[i] : bodies[i + 1]] if state == BodyState.PRESENT else None,
                STATES[state],
            )

    def verified(self, index: int) -> Block | None:
        """Return one block, checked by its own hashes; None if they do not match. The columns may be views of the map.

        Of the other blocks only the sizes are read, to find the offsets of this one.
        """
        sizes, counts = self.columns["body_size"], self.columns["advance"]
        if sizes.sum() != len(self.bodies) or counts.sum() * ENTRY_SIZE != len(self.advance):
            return None
        header = bytes(self.headers[index * HEADER_SIZE : (index + 1) * HEADER_SIZE])
        _, kind, flags, seq, lamport, created_ms, item, size, body_hash, count = UNPACK(header)
        at, entries_at = int(sizes[:index].sum()), int(counts[:index].sum()) * ENTRY_SIZE
        body = bytes(self.bodies[at : at + size])
        entries = bytes(self.advance[entries_at : entries_at + count * ENTRY_SIZE])
        before, own = bytes(self.hash_at(self.first + index - 1)), bytes(self.hash_at(self.first + index))
        prefix = BLOCK_TAG + self.party + self.feed
        if sha256(prefix + before + header + entries).digest() != own or sha256(body).digest() != body_hash:
            return None
        if kind not in KINDS or flags >= len(FLAGS):  # perhaps signed, but no store accepts it as history
            return None
        advance = decode_entries(entries) if entries else ()
        return Block(
            self.feed,
            seq,
            lamport,
            KINDS[kind],
            FLAGS[flags],
            created_ms,
            item,
            advance,
            own,
            body_hash,
            body,
            BodyState.PRESENT,
        )

    def with_hashes(self, hashes: bytes) -> Span:
        """Return the span with the hash of each block; computed columns are kept."""
        made = Span(
            self.party,
            self.feed,
            self.first,
            self.previous,
            self.signature,
            self.headers,
            self.advance,
            self.bodies,
            hashes,
            self.states,
        )
        own, known = made.__dict__, self.__dict__
        for name in _COMPUTED:
            if name in known:
                own[name] = known[name]
        return made

    def tail(self, seq: int) -> Span:
        """Return the blocks from `seq` on, under the same head; needs `hashes`."""
        skip = seq - self.first
        assert 0 <= skip <= self.count
        if skip == 0:
            return self
        return Span(
            party=self.party,
            feed=self.feed,
            first=seq,
            previous=self.hash_at(seq - 1),
            signature=self.signature,
            headers=self.headers[skip * HEADER_SIZE :],
            advance=self.advance[self.advance_offsets[skip] :],
            bodies=self.bodies[self.body_offsets[skip] :],
            hashes=self.hashes[skip * HASH_SIZE :],
            states=self.states[skip:] if any(self.states[skip:]) else b"",
        )

    def joined(self, after: Span) -> Span:
        """Join this span and the span that follows it, under the latter's head."""
        return Span.joined_all((self, after))

    @staticmethod
    def joined_all(parts: Sequence[Span]) -> Span:
        """Join spans that follow each other, under the last head. Hashes are kept if all parts have them."""
        first, last = parts[0], parts[-1]
        if first is last:
            return first
        assert all(after.first == one.end for one, after in pairwise(parts))
        states = any(part.states for part in parts)
        hashed = all(part.hashes for part in parts)
        return Span(
            party=first.party,
            feed=first.feed,
            first=first.first,
            previous=first.previous,
            signature=last.signature,
            headers=b"".join([part.headers for part in parts]),
            advance=b"".join([part.advance for part in parts]),
            bodies=b"".join([part.bodies for part in parts]),
            hashes=b"".join([part.hashes for part in parts]) if hashed else b"",
            states=b"".join([part.states or bytes(part.count) for part in parts]) if states else b"",
        )

    def with_bodies(self, bodies: list[bytes | None], states: bytes) -> Span:
        """Return the span with other bodies present."""
        here = b"".join(body for body in bodies if body is not None)
        return replace(self, bodies=here, states=states if any(states) else b"")

    def body_list(self) -> list[bytes | None]:
        """Return the bodies; None for missing ones."""
        offsets = self.body_offsets.tolist()
        return [
            self.bodies[offsets[i] : offsets[i + 1]] if here else None for i, here in enumerate(self.present.tolist())
        ]

    def without_bodies(self) -> Span:
        """Return the span with every body left out, as it is sent to a partial peer."""
        kept = bytes(self.states or self.count)
        states = bytes(BodyState.ERASED if state == BodyState.ERASED else BodyState.LEFT_OUT for state in kept)
        return self.with_bodies([], states)

    def keeping(self, keep: Callable[[int, bytes], bool]) -> Span:
        """Return the span with only the bodies for which `keep(kind, item)` is true; the others are left out."""
        heads = self.columns[["kind", "item"]].tolist()
        left = [here and not keep(kind, item) for (kind, item), here in zip(heads, self.present.tolist(), strict=True)]
        if not any(left):
            return self
        states = bytearray(self.states or bytes(self.count))
        for index in np.flatnonzero(left):
            states[index] = BodyState.LEFT_OUT
        bodies = [None if out else body for body, out in zip(self.body_list(), left, strict=True)]
        return self.with_bodies(bodies, bytes(states))

    def encode(self) -> bytes:
        """Encode the span for the wire: without hashes, which a receiver computes anyway."""
        return b"".join(self._parts(hashes=False))

    def encode_stored(self, key: bytes) -> bytes:
        """Encode the span for the disk: with hashes, and a checksum that covers the key of the entry as well."""
        parts = self._parts(hashes=True)
        check = zlib.crc32(key)
        for part in parts:
            if part:
                check = zlib.crc32(part, check)
        return b"".join((*parts, u32(check)))

    def _parts(self, *, hashes: bool) -> tuple[bytes, ...]:
        flags = (_HAS_HASHES if hashes else 0) | (_HAS_STATES if self.states else 0)
        fixed = _FIXED.pack(
            MAGIC,
            flags,
            self.party,
            self.feed,
            self.first,
            self.count,
            len(self.advance),
            len(self.bodies),
            self.previous,
            self.signature,
        )
        return fixed, self.headers, self.advance, self.hashes if hashes else b"", self.states, self.bodies


def decode(data: bytes) -> Span:
    """Decode bytes that may be hostile. Sizes are bounded and add up; nothing else is checked."""
    span = split(data)
    _check_sizes(span)
    return span


def claimed_feed(data: bytes) -> bytes | None:
    """Return the feed named in the bytes of a span, even if the rest is broken; None if they do not begin as a span."""
    return data[37:69] if len(data) >= FIXED_SIZE and data[:4] == MAGIC else None


def first_of(data: bytes) -> int:
    """Return the seq of the first block in the bytes of a span, without reading more."""
    first: int = _FIXED.unpack_from(data)[4]
    return first


def end_of(data: bytes) -> int:
    """Return the seq behind the last block in the bytes of a span, without reading more."""
    fixed = _FIXED.unpack_from(data)
    end: int = fixed[4] + fixed[5]
    return end


def split(data: bytes) -> Span:
    """Cut the bytes of a span into its columns, without reading those. A memoryview is cut into views."""
    if not FIXED_SIZE <= len(data) <= SPAN_SIZE_MAX:
        raise TooLarge(
            f"span: {len(data)} bytes; {FIXED_SIZE} to {SPAN_SIZE_MAX} are allowed, so split it at a signed head"
        )
    magic, flags, party, feed, first, count, advance_size, bodies_size, previous, signature = _FIXED.unpack_from(data)
    if magic != MAGIC or flags & ~(_HAS_HASHES | _HAS_STATES) or first + count >= 1 << 63:
        raise BadEncoding("span: does not begin as a span of version 1")
    if not 0 < count <= SPAN_BLOCKS_MAX or count * HEADER_SIZE + advance_size > SPAN_HEADERS_SIZE_MAX:
        raise TooLarge(
            f"span of feed {feed.hex()[:8]}: {count} blocks with {advance_size} bytes of entries; a signed head covers "
            f"1 to {SPAN_BLOCKS_MAX} blocks and {SPAN_HEADERS_SIZE_MAX} bytes of headers"
        )
    headers_end = FIXED_SIZE + count * HEADER_SIZE
    advance_end = headers_end + advance_size
    hashes_end = advance_end + (count * HASH_SIZE if flags & _HAS_HASHES else 0)
    states_end = hashes_end + (count if flags & _HAS_STATES else 0)
    if states_end + bodies_size != len(data):
        raise BadEncoding(
            f"span of feed {feed.hex()[:8]} at {first}: {states_end + bodies_size} bytes announced, {len(data)} there"
        )
    return Span(
        party=party,
        feed=feed,
        first=first,
        previous=previous,
        signature=signature,
        headers=data[FIXED_SIZE:headers_end],
        advance=data[headers_end:advance_end],
        hashes=data[advance_end:hashes_end],
        states=data[hashes_end:states_end],
        bodies=data[states_end:],
    )


def _check_sizes(span: Span) -> None:
    where = f"span of feed {span.feed.hex()[:8]} at {span.first}"
    if span.states and (max(span.states) > BodyState.ERASED or not any(span.states)):
        raise BadEncoding(f"{where}: body states are not canonical")
    sizes = span.columns["body_size"]
    few = sizes.tolist() if span.count <= _FEW else ()
    if (max(few) if few else int(sizes.max())) > BODY_SIZE_MAX:
        raise TooLarge(f"{where}: a body above {BODY_SIZE_MAX} bytes")
    # Stored, the span also has its hashes; states and missing bodies may be added.
    stored = FIXED_SIZE + len(span.headers) + len(span.advance) + span.count * (HASH_SIZE + 1)
    if stored + (sum(few) if few else int(sizes.sum())) > SPAN_SIZE_MAX:
        raise TooLarge(f"{where}: above {SPAN_SIZE_MAX} bytes with every hash and body")
    if span.body_offsets[-1] != len(span.bodies) or span.advance_offsets[-1] != len(span.advance):
        raise BadEncoding(f"{where}: the sizes in the headers do not add up to those of the columns")


def offsets_of(sizes: npt.NDArray[np.generic] | list[int]) -> Ints:
    """Return the offsets of values of these sizes when joined, and the end."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.add.accumulate(sizes, out=offsets[1:])  # `np.cumsum` does the same with more overhead
    return offsets
