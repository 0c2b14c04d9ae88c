"""`Reader`: reads bytes that may be hostile. Every length is checked before bytes are sliced or allocated."""

from __future__ import annotations

from antiphon.core.errors import BadEncoding


class Reader:
    """A bounded cursor over bytes. `what` names the structure in every error.

    >>> reader = Reader(bytes.fromhex("0500000068656c6c6f"), "greeting")
    >>> reader.take(reader.u32()), reader.done()
    (b'hello', None)
    """

    __slots__ = ("_at", "_data", "_what")

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._at = 0
        self._what = what

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes; refuse if fewer are left."""
        end = self._at + count
        if count < 0 or end > len(self._data):
            raise BadEncoding(
                f"{self._what}: {count} bytes wanted at offset {self._at}, {len(self._data) - self._at} are left"
            )
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def u8(self) -> int:
        return self.take(1)[0]

    def u16(self) -> int:
        return int.from_bytes(self.take(2), "little")

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        value = int.from_bytes(self.take(8), "little")
        if value >= 1 << 63:
            raise BadEncoding(f"{self._what}: the integer {value} is above 2^63 - 1")
        return value

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self._at

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def done(self) -> None:
        """Refuse bytes that are left over."""
        if self._at != len(self._data):
            raise BadEncoding(f"{self._what}: {len(self._data) - self._at} bytes too many")


def u64(value: int) -> bytes:
    return value.to_bytes(8, "little")


def u32(value: int) -> bytes:
    return value.to_bytes(4, "little")
