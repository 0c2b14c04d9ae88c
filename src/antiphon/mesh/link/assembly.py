"""`Assembly`: the messages that are arriving in pieces."""

from __future__ import annotations

from antiphon.core.errors import TooLarge
from antiphon.mesh.link.frames import Data
from antiphon.mesh.link.limits import ASSEMBLED_SIZE_MAX
from antiphon.mesh.replication.limits import MESSAGE_SIZE_MAX


class Assembly:
    """Puts pieces together, party by party. `size` is the number of bytes of unfinished messages.

    An honest end has no more under way than fits. If more comes, the message that has longest been without a piece is
    dropped; its session asks again.
    """

    def __init__(self) -> None:
        self.size = 0
        self._partial: dict[bytes, bytearray] = {}  # by party, the latest piece last

    def add(self, party: bytes, data: Data) -> bytes | None:
        """Add a piece. Return the message that it completes, if it does."""
        if data.first:
            self.drop(party)  # the other end has begun anew
            if data.last:
                return data.piece
        message = self._partial.pop(party, None)
        if message is None:
            if not data.first:
                return None  # of a message whose beginning was dropped here
            message = bytearray()
        if len(message) + len(data.piece) > MESSAGE_SIZE_MAX:
            self.size -= len(message)
            raise TooLarge(f"a message has more than {MESSAGE_SIZE_MAX} bytes; drop the connection")
        message += data.piece
        self.size += len(data.piece)
        if data.last:
            self.size -= len(message)
            return bytes(message)
        self._partial[party] = message
        while self.size > ASSEMBLED_SIZE_MAX:
            self.drop(next(iter(self._partial)))
        return None

    def drop(self, party: bytes) -> None:
        """Forget the unfinished message of a party."""
        self.size -= len(self._partial.pop(party, b""))
