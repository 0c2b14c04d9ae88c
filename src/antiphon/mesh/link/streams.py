"""`StreamQueue`: messages that wait to be sent, cut into pieces, party by party in turns.

Deficit round robin: in a turn, a party may send the bytes of one piece, and what it leaves is added to its next turn.
So a party with many small messages gets as many bytes as one with a large one, and a small message waits for one turn
of each other party.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from antiphon.core.errors import TooLarge
from antiphon.mesh.link.frames import Data
from antiphon.mesh.link.limits import ASSEMBLED_SIZE_MAX, PIECE_SIZE_MAX, QUEUE_SIZE_MAX, STREAM_SIZE_MAX
from antiphon.mesh.replication.limits import MESSAGE_SIZE_MAX


@dataclass(slots=True)
class _Stream:
    """The messages of one party; `sent` bytes of the first one have left."""

    tag: bytes
    messages: deque[bytes] = field(default_factory=deque)
    size: int = 0
    sent: int = 0
    credit: int = 0
    has_turn: bool = False

    @property
    def has_begun(self) -> bool:
        return self.sent > 0


class StreamQueue:
    """The outgoing messages of a link. `size` is the number of bytes that wait."""

    def __init__(self) -> None:
        self.size = 0
        self._streams: dict[bytes, _Stream] = {}  # by party; those with messages, in the order of their turns
        self._begun_size = 0  # of messages of several pieces, some of which have left
        self._waiting: bytes | None = None  # the party whose message may begin next, when others have been sent

    def put(self, party: bytes, tag: bytes, messages: Iterable[bytes]) -> None:
        """Queue messages of a party."""
        for message in messages:
            if len(message) > MESSAGE_SIZE_MAX:
                raise TooLarge(f"a message of a session has {len(message)} bytes, {MESSAGE_SIZE_MAX} are allowed")
            if message:
                stream = self._streams.setdefault(party, _Stream(tag))
                stream.messages.append(message)
                stream.size += len(message)
                self.size += len(message)

    def drop(self, party: bytes) -> None:
        """Forget the messages of a party, also one of which pieces have left."""
        stream = self._streams.pop(party, None)
        if stream is None:
            return
        self.size -= stream.size
        if stream.has_begun:
            self._begun_size -= len(stream.messages[0])
        if self._waiting == party:
            self._waiting = None

    def room(self, party: bytes) -> int:
        """Return how many bytes of a party can still be queued."""
        stream = self._streams.get(party)
        own = STREAM_SIZE_MAX - (0 if stream is None else stream.size)
        return max(0, min(own, QUEUE_SIZE_MAX - self.size))

    def take(self, budget: int) -> Iterator[Data]:
        """Yield the next pieces, of at least `budget` bytes together if so many wait."""
        while budget > 0 and self._streams:
            party, stream = next(iter(self._streams.items()))
            if not stream.has_turn:
                stream.has_turn = True
                stream.credit += PIECE_SIZE_MAX
            while stream.messages:
                if budget <= 0:
                    return  # its turn goes on with the next call
                if not self._may_send(party, stream):
                    break
                piece = self._next_piece(stream)
                stream.credit -= len(piece.piece)
                budget -= len(piece.piece)
                yield piece
            stream.has_turn = False
            if self._streams.get(party) is stream:  # else it was dropped meanwhile
                del self._streams[party]
                if stream.messages:
                    self._streams[party] = stream  # behind the others

    def _may_send(self, party: bytes, stream: _Stream) -> bool:
        """True if the credit of a party is enough, and the other end has room for what is begun."""
        size = len(stream.messages[0])
        if stream.credit < min(PIECE_SIZE_MAX, size - stream.sent):
            return False
        if stream.has_begun or size <= PIECE_SIZE_MAX:
            return True
        if self._waiting not in (None, party) or self._begun_size + size > ASSEMBLED_SIZE_MAX:
            self._waiting = self._waiting or party
            stream.credit = 0
            return False
        self._waiting = None
        self._begun_size += size
        return True

    def _next_piece(self, stream: _Stream) -> Data:
        message = stream.messages[0]
        begin, end = stream.sent, min(stream.sent + PIECE_SIZE_MAX, len(message))
        last = end == len(message)
        stream.sent, stream.size = end, stream.size - (end - begin)
        self.size -= end - begin
        if last:
            stream.messages.popleft()
            stream.sent = 0
            if begin:
                self._begun_size -= len(message)
        return Data(stream.tag, begin == 0, last, message[begin:end])
