"""Pieces of an array: elements of one message at consecutive offsets, as one object; and their order.

A message may insert thousands of elements with a few bytes each. As long as nobody changes one of them or puts another
between them, they are one piece, which costs about as much as its values. A change splits a piece.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.array.position import Span
from antiphon.model.bounds import Waits
from antiphon.model.value import Value

CHUNK_MAX = 64  # pieces in a chunk of the order
_KEPT_MAX = 96  # bytes of a run whose keys pieces keep; longer ones are shared, and their keys are made when needed

Writes = dict[bytes, tuple[Stamp, Value]]  # by feed, the last of each: the greatest stamp wins, others are concurrent


class ElementId(NamedTuple):
    """The message that inserted an element, and the index of the element in it."""

    stamp: Stamp
    number: int


class Piece:
    """Elements of one message at consecutive keys, with the values that they were inserted with, or one element."""

    __slots__ = ("_base", "_first", "_values", "chunk", "number", "origin", "span", "waits", "writes")

    def __init__(self, origin: Stamp, number: int, span: Span, values: Sequence[Value], base: int = 0) -> None:
        self.origin = origin
        self.number = number  # of the first element
        self.span = span
        self._values = values
        self._base = base  # the index of the first element's value
        self.writes: Writes | None = None  # of one element that was changed; None: the value that it was inserted with
        self.waits: Waits | None = None
        self._first: bytes | None = None
        self.chunk: Chunk | None = None

    @property
    def count(self) -> int:
        """The number of elements."""
        return self.span.size

    @property
    def end(self) -> int:
        """The number after that of the last element."""
        return self.number + self.span.size

    @property
    def first_key(self) -> bytes:
        """The key of the first element."""
        key = self._first
        if key is None:
            key = self.span.key(0)
            if len(self.span.run) <= _KEPT_MAX:
                self._first = key
        return key

    @property
    def last_key(self) -> bytes:
        """The key of the last element."""
        return self.span.key(self.span.size - 1)

    def name(self, at: int = 0) -> ElementId:
        """Return the id of the element at an index."""
        return ElementId(self.origin, self.number + at)

    def written(self, at: int = 0) -> Writes:
        """Return the values of the element at an index."""
        return {self.origin.feed: (self.origin, self._values[self._base + at])} if self.writes is None else self.writes

    def winners(self) -> Sequence[Value]:
        """Return the value of each element that shows."""
        if self.writes is not None:
            return (max(self.writes.values(), key=stamp_of)[1],)
        return self._values[self._base : self._base + self.span.size]

    def winner(self, at: int) -> Value:
        """Return the value that shows of the element at an index."""
        return self._values[self._base + at] if self.writes is None else max(self.writes.values(), key=stamp_of)[1]

    def own_values(self) -> Writes:
        """Return the values of the only element, for changing them."""
        if self.writes is None:
            self.writes = self.written()
        return self.writes

    def goes_on_with(self, other: Piece) -> bool:
        """True if nobody changed an element of this piece or of another one, which is the rest of a former piece."""
        one, two = self.span, other.span
        after = one.offset + one.size == two.offset and one.run == two.run and one.stamp == two.stamp
        plain = self.writes is None and self.waits is None and other.writes is None and other.waits is None
        return after and plain and self.origin == other.origin and self.end == other.number

    def place(self, span: Span) -> None:
        """Put the elements at other keys."""
        self.span = span
        self._first = None

    def cut(self, at: int) -> Piece:
        """Keep the elements before an index, and return a piece of the others."""
        span = self.span
        rest = Piece(self.origin, self.number + at, span.part(at, span.size), self._values, self._base + at)
        self.span = span.part(0, at)
        return rest

    def index(self, key: bytes) -> int:
        """Return the number of elements before a key."""
        if not key.startswith(self.span.run):
            return 0 if key <= self.first_key else self.count
        return bisect_left(range(self.count), key, key=self.span.key)


def stamp_of(entry: tuple[Stamp, Value]) -> Stamp:
    """Return the stamp of a write."""
    return entry[0]


class Chunk:
    """Some adjacent pieces, and the number of their elements."""

    __slots__ = ("length", "pieces")

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces
        self.length = sum(piece.count for piece in pieces)
        for piece in pieces:
            piece.chunk = self


class PieceOrder:
    """All pieces by key. `split` is called with a piece and a new one that has its last elements."""

    __slots__ = ("_chunks", "_split", "length")

    def __init__(self, split: Callable[[Piece, Piece], None]) -> None:
        self._chunks: list[Chunk] = []
        self._split = split
        self.length = 0  # the number of elements

    def __iter__(self) -> Iterator[Piece]:
        for chunk in self._chunks:
            yield from chunk.pieces

    # -- changes

    def append(self, piece: Piece) -> None:
        """Add a piece after all others."""
        if not self._chunks or len(self._chunks[-1].pieces) >= CHUNK_MAX:
            self._chunks.append(Chunk([]))
        self._insert(len(self._chunks) - 1, len(self._chunks[-1].pieces), piece)

    def add(self, piece: Piece) -> None:
        """Add a piece at its keys. Pieces are split where keys of one lie between those of another."""
        while True:
            key = piece.first_key
            chunk, at = self._locate(key)
            if at >= 0:
                before = self._chunks[chunk].pieces[at]
                if before.count > 1 and before.last_key > key:
                    self.split(before, before.index(key))
                    chunk, at = self._locate(key)
            following = self._following(chunk, at) if piece.count > 1 else None
            rest = None
            if following is not None:
                size = piece.index(following.first_key)
                if size < piece.count:
                    rest = piece.cut(size)
                    self._split(piece, rest)
            if not self._chunks:
                self._chunks.append(Chunk([]))
            self._insert(chunk, at + 1, piece)
            if rest is None:
                return
            piece = rest

    def remove(self, piece: Piece) -> None:
        """Remove a piece."""
        chunk = piece.chunk
        assert chunk is not None
        chunk.pieces.remove(piece)
        chunk.length -= piece.count
        self.length -= piece.count
        piece.chunk = None
        if not chunk.pieces:
            self._chunks.remove(chunk)

    def split(self, piece: Piece, at: int) -> Piece:
        """Split a piece before the element at an index; return the second part."""
        chunk = piece.chunk
        assert chunk is not None
        rest = piece.cut(at)
        chunk.length -= rest.count
        self.length -= rest.count
        where = self._chunks.index(chunk) if len(chunk.pieces) >= CHUNK_MAX else -1
        self._insert(where, chunk.pieces.index(piece) + 1, rest, chunk)
        self._split(piece, rest)
        return rest

    def _insert(self, where: int, at: int, piece: Piece, chunk: Chunk | None = None) -> None:
        chunk = chunk or self._chunks[where]
        chunk.pieces.insert(at, piece)
        chunk.length += piece.count
        self.length += piece.count
        piece.chunk = chunk
        if len(chunk.pieces) > CHUNK_MAX:
            half = len(chunk.pieces) // 2
            new = Chunk(chunk.pieces[half:])
            del chunk.pieces[half:]
            chunk.length -= new.length
            self._chunks.insert(where + 1, new)

    # -- places

    def _locate(self, key: bytes) -> tuple[int, int]:
        """Return the chunk and the index of the last piece that begins at a key or before; index -1 if none does."""
        chunks = self._chunks
        if not chunks:
            return 0, -1
        where = max(bisect_right(chunks, key, key=_chunk_key) - 1, 0) if len(chunks) > 1 else 0
        pieces = chunks[where].pieces
        if pieces[-1].first_key <= key:
            return where, len(pieces) - 1
        return where, bisect_right(pieces, key, key=_first_key) - 1

    def _following(self, chunk: int, at: int) -> Piece | None:
        if chunk >= len(self._chunks):
            return None
        if at + 1 < len(self._chunks[chunk].pieces):
            return self._chunks[chunk].pieces[at + 1]
        return self._chunks[chunk + 1].pieces[0] if chunk + 1 < len(self._chunks) else None

    def at(self, index: int) -> tuple[Piece, int]:
        """Return the piece that holds the element at an index of the array, and the index of the element in it."""
        for chunk in self._chunks:
            if index < chunk.length:
                for piece in chunk.pieces:
                    size = piece.span.size
                    if index < size:
                        return piece, index
                    index -= size
            index -= chunk.length
        raise IndexError("there is no element at this index")

    def between(self, start: int, stop: int) -> Iterator[tuple[Piece, int, int]]:
        """Yield the pieces that hold elements from index `start` to before `stop`, with the part of each that does."""
        first = 0
        for chunk in self._chunks:
            if first + chunk.length > start:
                for piece in chunk.pieces:
                    low, high = max(start - first, 0), min(stop - first, piece.count)
                    if low < high:
                        yield piece, low, high
                    first += piece.count
                    if first >= stop:
                        return
            else:
                first += chunk.length

    def index(self, piece: Piece) -> int:
        """Return the number of elements before a piece."""
        count = 0
        for chunk in self._chunks:
            if chunk is piece.chunk:
                break
            count += chunk.length
        assert piece.chunk is not None
        for other in piece.chunk.pieces:
            if other is piece:
                break
            count += other.span.size
        return count

    def bisect(self, key: bytes) -> int:
        """Return the number of elements before a key."""
        where, at = self._locate(key)
        if at < 0:
            return sum(chunk.length for chunk in self._chunks[:where])
        piece = self._chunks[where].pieces[at]
        return self.index(piece) + piece.index(key)


def _first_key(piece: Piece) -> bytes:
    return piece.first_key


def _chunk_key(chunk: Chunk) -> bytes:
    return chunk.pieces[0].first_key


class OrderWithout:
    """The order of an array without the elements at some indexes."""

    __slots__ = ("_order", "_skipped", "length")

    def __init__(self, order: PieceOrder, without: Sequence[int] = ()) -> None:
        self._order = order
        self._skipped = [index - nth for nth, index in enumerate(sorted(without))]
        self.length = order.length - len(self._skipped)

    def _at(self, index: int) -> tuple[Piece, int]:
        return self._order.at(index + bisect_right(self._skipped, index))

    def key(self, index: int) -> bytes:
        """Return the key of the element at an index."""
        piece, at = self._at(index)
        return piece.span.key(at)

    def name(self, index: int) -> ElementId:
        """Return the id of the element at an index."""
        piece, at = self._at(index)
        return piece.name(at)

    def bisect(self, key: bytes) -> int:
        """Return the number of elements before a key."""
        found = self._order.bisect(key)
        skipped = sum(1 for nth, index in enumerate(self._skipped) if index + nth < found) if self._skipped else 0
        return found - skipped
