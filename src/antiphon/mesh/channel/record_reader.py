"""`RecordReader`: cuts a stream of bytes into messages and records. Each is preceded by its size in two bytes."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon.core.errors import ChannelFault

PREFIX_SIZE = 2


class RecordReader:
    """The bytes of a record that is not complete yet. They are copied once; those of complete records are not."""

    __slots__ = ("_partial", "size_max")

    def __init__(self, size_max: int) -> None:
        self.size_max = size_max  # of a record; may change between two records
        self._partial = bytearray()

    @property
    def held(self) -> int:
        """How many bytes are kept until the rest of their record comes."""
        return len(self._partial)

    def split(self, data: bytes) -> Iterator[memoryview]:
        """Yield each record that is complete, without its size, and keep the rest of `data`."""
        view, at, end = memoryview(data), 0, len(data)
        while partial := self._partial:
            stop = self._end(partial[0], partial[1]) if len(partial) >= PREFIX_SIZE else PREFIX_SIZE
            if len(partial) == stop:  # never after one byte
                self._partial = bytearray()
                yield memoryview(partial)[PREFIX_SIZE:]
            elif at == end:
                return
            else:
                piece = view[at : at + stop - len(partial)]
                partial += piece
                at += len(piece)
        while end - at >= PREFIX_SIZE:
            stop = at + self._end(data[at], data[at + 1])
            if stop > end:
                break
            yield view[at + PREFIX_SIZE : stop]
            at = stop
        self._partial += view[at:]

    def _end(self, high: int, low: int) -> int:
        """Return the size of a record with its prefix, from the prefix."""
        size = high << 8 | low
        if size > self.size_max:
            raise ChannelFault(
                f"a record of {size} bytes was announced, and {self.size_max} are allowed here: drop the connection"
            )
        return PREFIX_SIZE + size
