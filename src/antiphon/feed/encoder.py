"""From drafts to signed blocks: seq, lamport, advance, batch marks, hashes, one signature per span."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple, cast, overload

import numpy as np

from antiphon.core.errors import FeedRetired, InvalidInput, MovedOn, TooLarge
from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.core.keys import KeyPair
from antiphon.core.stamp import Stamp
from antiphon.feed import hashing
from antiphon.feed.chain import sign_head
from antiphon.feed.feed_record import Record
from antiphon.feed.header import (
    ENTRY_SIZE,
    HASH_SIZE,
    HEADER,
    HEADER_SIZE,
    KIND_MAX,
    KIND_MIN,
    PACK,
    VERSION,
    Entry,
    Flag,
    Kind,
    encode_entries,
)
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
from antiphon.feed.rules import Frontier
from antiphon.feed.span import BLOCK_TAG, FIXED_SIZE, Span

_Columns = tuple[Sequence[Kind], Sequence[bytes], Sequence[bytes]]
_FEW = 8  # blocks
_MORE, _CONTINUED = int(Flag.MORE), int(Flag.CONTINUED)
_SALT = np.dtype((np.void, SALT_SIZE))
_HASH = np.dtype((np.void, HASH_SIZE))
_ITEM = np.dtype((np.void, ITEM_ID_SIZE))
_SPAN_BODIES_MAX = SPAN_SIZE_MAX - SPAN_HEADERS_SIZE_MAX - SPAN_BLOCKS_MAX * 33 - FIXED_SIZE


class Draft(NamedTuple):
    """A message that is not yet a block."""

    kind: Kind
    item: bytes
    message: bytes


class Append:
    """Drafts for one feed. With `atomic` they become a batch: one lamport, seen all or none.

    What could fail is refused here, before others share the transaction.
    """

    __slots__ = (
        "atomic",
        "count",
        "created_ms",
        "expect",
        "items",
        "kinds",
        "messages",
        "pair",
        "party",
        "salts",
        "seen",
        "sizes",
    )

    def __init__(
        self,
        pair: KeyPair,
        party: bytes,
        drafts: Sequence[Draft],
        seen: Sequence[Entry],
        *,
        atomic: bool,
        created_ms: int,
        salts: bytes,
        expect: tuple[int, int] | None = None,
    ) -> None:
        count = len(drafts)
        self.pair = pair
        self.party = party
        self.count = count
        self.seen = seen
        self.expect = expect  # the seq and lamport that its first block must get, or nothing is written
        self.atomic = atomic and count > 1
        self.created_ms = created_ms
        self.salts = salts
        columns = zip(*drafts, strict=True) if count else ((), (), ())
        self.kinds, self.items, self.messages = cast(_Columns, columns)
        self.sizes = list(map(len, self.messages))
        if not count or len(salts) != count * SALT_SIZE or not 0 <= created_ms < 1 << 62:
            raise InvalidInput(
                f"feed {pair.key.short}: an append takes drafts, {SALT_SIZE} bytes of salt for each, and a time"
            )
        if max(self.sizes) > BODY_SIZE_MAX - SALT_SIZE:
            raise TooLarge(
                f"feed {pair.key.short}: a message of {max(self.sizes)} bytes; at most "
                f"{BODY_SIZE_MAX - SALT_SIZE} fit into a block, larger content belongs into blobs"
            )
        if set(map(len, self.items)) != {ITEM_ID_SIZE}:
            raise InvalidInput(f"feed {pair.key.short}: an item id has {ITEM_ID_SIZE} bytes")
        if min(self.kinds) < KIND_MIN or max(self.kinds) > KIND_MAX:
            raise InvalidInput(f"feed {pair.key.short}: a kind of block that no receiver knows")
        if not self.atomic:
            return
        headers = count * HEADER_SIZE + min(len(seen), ADVANCE_MAX) * ENTRY_SIZE
        bodies = sum(self.sizes) + count * SALT_SIZE
        if count > SPAN_BLOCKS_MAX or headers > SPAN_HEADERS_SIZE_MAX or bodies > _SPAN_BODIES_MAX:
            raise TooLarge(
                f"feed {pair.key.short}: a batch of {count} blocks, {bodies} bytes; at most {SPAN_BLOCKS_MAX} blocks "
                f"and {_SPAN_BODIES_MAX} bytes are seen all or none, so split it"
            )


class Written(Sequence[Stamp]):
    """The stamps of appended blocks; made one by one only where somebody asks."""

    __slots__ = ("_lamports", "advance", "alone", "feed", "first", "hash")

    def __init__(
        self, feed: bytes, first: int, lamports: Sequence[int], hash_: bytes = b"", advance: Sequence[Entry] = ()
    ) -> None:
        self.feed = feed
        self.first = first
        self.hash = hash_  # of the last block
        self.advance = advance  # what the first block came to see
        self.alone = False  # whether nothing else was written in the same transaction
        self._lamports = lamports

    def __len__(self) -> int:
        return len(self._lamports)

    @overload
    def __getitem__(self, at: int) -> Stamp: ...
    @overload
    def __getitem__(self, at: slice) -> list[Stamp]: ...
    def __getitem__(self, at: int | slice) -> Stamp | list[Stamp]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        index = range(len(self))[at]
        return Stamp(self._lamports[index], self.feed, self.first + index)


class Built(NamedTuple):
    """What appends write: the spans, the feed's new record, the entries that moved, the stamps of each append."""

    spans: list[Span]
    record: Record
    moved: dict[bytes, Entry]
    written: list[Written]


def build(record: Record, appends: Sequence[Append], frontier: Frontier) -> Built:
    """The blocks of several appends to one feed, under as few signatures as the limits allow."""
    pair = appends[0].pair
    if record.retired or not record.writable or record.end <= record.length:
        why = "it came from peers" if not record.writable else "it was restored or closed"
        why = why if record.end > record.length else "it has ended"
        raise FeedRetired(f"feed {pair.key.short} must not be written from here any more ({why}); open a new feed")
    chain = _Chain(pair, record)
    moved: dict[bytes, Entry] = {}
    written = []
    for append in appends:
        if append.party != record.party:
            raise InvalidInput(f"feed {pair.key.short} belongs to party {record.party.hex()[:8]}")
        entries = _entries(append, moved, frontier)
        written.append(chain.add(append, entries))
        moved.update((entry.feed, entry) for entry in entries)
    chain.seal()
    return Built(chain.spans, chain.record(), moved, written)


def _entries(append: Append, moved: dict[bytes, Entry], frontier: Frontier) -> list[Entry]:
    """The entries of `seen` that moved since this feed's previous block, as `rules` asks for it."""
    entries: dict[bytes, Entry] = {}
    for entry in append.seen:
        known = entries.get(entry.feed) or moved.get(entry.feed) or frontier(entry.feed)
        if known is not None and (entry.seq <= known.seq or entry.lamport < known.lamport):
            continue
        if entry.feed != append.pair.key:
            entries[entry.feed] = entry
    return sorted(entries.values())[:ADVANCE_MAX]


class _Chain:
    """Grows a feed's chain block by block, and seals a span with a signature where the limits ask for it."""

    def __init__(self, pair: KeyPair, record: Record) -> None:
        self._pair = pair
        self._before = record
        self._length = record.length
        self._hash = record.hash
        self._lamport = record.lamport
        self.spans: list[Span] = []
        self._begin()

    def _begin(self) -> None:
        self._previous = self._hash
        self._first = self._length
        self._headers = b""
        self._advance = b""
        self._bodies: list[bytes] = []
        self._hashes = b""
        self._bodies_size = 0

    def add(self, append: Append, entries: list[Entry]) -> Written:
        first, count = self._length, append.count
        base = max([self._lamport, *(entry.lamport for entry in entries)]) + 1
        if base - self._lamport > LAMPORT_STEP_MAX or base + count > LAMPORT_MAX:
            raise InvalidInput(
                f"feed {self._pair.key.short}: the lamport {base} steps too far; what it has seen is no history"
            )
        if append.expect not in (None, (first, base)):
            raise MovedOn(
                f"feed {self._pair.key.short}: block {first} would have lamport {base}, not what was expected; nothing "
                "was written: look at what is new, and try again"
            )
        advance = encode_entries(entries)
        start = 0
        while start < count:
            stop = self._fit(append, start, len(advance))
            if stop == start:
                self.seal()
                continue
            self._extend(append, start, stop, base, advance)
            advance, start = b"", stop
        self._lamport = base if append.atomic else base + count - 1
        lamports = [base] * count if append.atomic else range(base, base + count)
        return Written(self._pair.key, first, lamports, self._hash, entries)

    def _fit(self, append: Append, start: int, advance_size: int) -> int:
        """How far the drafts from `start` fit under the head of the open span; a batch fits whole or not at all."""
        used = len(self._headers) + len(self._advance) + advance_size
        room = min(SPAN_BLOCKS_MAX - len(self._headers) // HEADER_SIZE, (SPAN_HEADERS_SIZE_MAX - used) // HEADER_SIZE)
        sizes = append.sizes
        stop = max(start, min(len(sizes), start + room))
        left = _SPAN_BODIES_MAX - self._bodies_size
        if sum(sizes[start:stop]) + (stop - start) * SALT_SIZE > left:
            ends = itertools.accumulate(size + SALT_SIZE for size in sizes[start:stop])
            stop = start + sum(1 for end in ends if end <= left)
        return stop if not append.atomic or stop == len(sizes) else start

    def _extend(self, append: Append, start: int, stop: int, base: int, advance: bytes) -> None:
        """Two hashes and a header for each block, column by column: hardly a line of Python runs for each."""
        count = stop - start
        if count <= _FEW:
            self._extend_by_few(append, start, stop, base, advance)
            return
        salts = np.frombuffer(append.salts, dtype=_SALT)[start:stop].tolist()
        bodies = b"".join(itertools.chain.from_iterable(zip(salts, append.messages[start:stop], strict=True)))
        offsets = np.zeros(count + 1, dtype=np.int64)
        np.add.accumulate(np.array(append.sizes[start:stop]) + SALT_SIZE, out=offsets[1:])
        columns = np.zeros(count, dtype=HEADER)
        columns["version"] = VERSION
        columns["kind"] = np.frombuffer(bytes(append.kinds[start:stop]), dtype=np.uint8)
        columns["seq"] = np.arange(self._length, self._length + count)
        columns["lamport"] = base if append.atomic else np.arange(base + start, base + stop)
        columns["created_ms"] = append.created_ms
        columns["item"] = np.frombuffer(b"".join(append.items[start:stop]), dtype=_ITEM)
        columns["body_size"] = offsets[1:] - offsets[:-1]
        columns["body_hash"] = np.frombuffer(hashing.digests(bodies, offsets), dtype=_HASH)
        columns["advance"][0] = len(advance) // ENTRY_SIZE
        if append.atomic:  # a batch is never split, so it begins and ends here
            columns["flags"] = Flag.MORE | Flag.CONTINUED
            columns["flags"][0], columns["flags"][-1] = Flag.MORE, Flag.CONTINUED
        headers = columns.tobytes()
        moving = np.full(count + 1, len(advance), dtype=np.int64)
        moving[0] = 0
        prefix = BLOCK_TAG + self._before.party + self._pair.key
        hashes = hashing.chain(prefix, self._hash, headers, advance, moving)
        self._headers += headers
        self._bodies.append(bodies)
        self._advance += advance
        self._hashes += hashes
        self._bodies_size += len(bodies)
        self._hash = hashes[-HASH_SIZE:]
        self._length += count

    def _extend_by_few(self, append: Append, start: int, stop: int, base: int, advance: bytes) -> None:
        """The same for a few blocks, as most appends have: one by one takes less time than to begin with columns."""
        prefix, created_ms, atomic = BLOCK_TAG + self._before.party + self._pair.key, append.created_ms, append.atomic
        entries, hash_ = advance, self._hash
        for at in range(start, stop):
            body = append.salts[at * SALT_SIZE : (at + 1) * SALT_SIZE] + append.messages[at]
            flags = (_MORE if at + 1 < stop else 0) | (_CONTINUED if at > start else 0) if atomic else 0
            header = PACK(
                VERSION,
                append.kinds[at],
                flags,
                self._length,
                base if atomic else base + at,
                created_ms,
                append.items[at],
                len(body),
                sha256(body).digest(),
                len(entries) // ENTRY_SIZE,
            )
            hash_ = sha256(prefix + hash_ + header + entries).digest()
            self._headers += header
            self._bodies.append(body)
            self._hashes += hash_
            self._bodies_size += len(body)
            self._length += 1
            entries = b""
        self._advance += advance
        self._hash = hash_

    def seal(self) -> None:
        """Sign what is open as a span."""
        if self._headers:
            self.spans.append(
                Span(
                    party=self._before.party,
                    feed=self._pair.key,
                    first=self._first,
                    previous=self._previous,
                    signature=sign_head(self._pair, self._before.party, self._length, self._hash),
                    headers=self._headers,
                    advance=self._advance,
                    bodies=b"".join(self._bodies),
                    hashes=self._hashes,
                )
            )
        self._begin()

    def record(self) -> Record:
        return self._before.extended(self._length, self._hash, self._lamport, self.spans[-1].signature)
