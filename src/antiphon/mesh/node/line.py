"""`Line`: a connection as the workers see it. Messages pass through it between a worker and the network thread."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence

from antiphon.core.errors import AntiphonError


class Line:
    """One proven device and the queues to it. Thread-safe.

    `call` runs a function in the network thread. A party sends at most as much as there is room for in the queue of its
    link. `waits` gets the number of bytes that have come and were not worked on.
    """

    def __init__(
        self,
        number: int,
        device: bytes,
        call: Callable[[Callable[[], None]], None],
        deliver: Callable[[bytes, Sequence[bytes]], None],
        waits: Callable[[int], None],
        fault: Callable[[AntiphonError], None],
        hush: Callable[[bytes], None],
        tell: Callable[[bytes], None],
    ) -> None:
        self.number = number
        self.device = bytes(device)
        self._call = call
        self._deliver = deliver
        self._waits = waits
        self._fault = fault
        self._hush = hush
        self._tell = tell
        self._lock = threading.Lock()
        self._rooms: dict[bytes, int] = {}
        self._under_way: dict[bytes, int] = defaultdict(int)  # bytes that the network thread has not queued yet
        self._outbox: list[tuple[bytes, int, Sequence[bytes]]] = []
        self._terms: dict[bytes, int] = {}  # how often each party was forgotten
        self._starved: set[bytes] = set()  # parties that have more to send than there is room for
        self._waiting = 0  # bytes that have come, and were not worked on
        self._is_reporting = False
        self.is_closed = False
        self.heard_ms = 0  # when bytes came last
        self.came_ms = 0  # when bytes came last, of any party: the network thread sets it

    def __repr__(self) -> str:
        return f"<line {self.number} to {self.device.hex()[:8]}>"

    # -- in workers

    def room(self, party: bytes) -> int:
        """Return how many bytes a party may send now. With none, `set_room` tells when there are some."""
        with self._lock:
            room = self._rooms.get(party, 0) - self._under_way.get(party, 0)
            if room <= 0:
                self._starved.add(party)
            return room

    def term(self, party: bytes) -> int:
        """Return a number for a new session of a party, which its messages have. It changes when that is forgotten."""
        with self._lock:
            return self._terms.get(party, 0)

    def send(self, party: bytes, messages: Sequence[bytes], term: int) -> None:
        """Send messages of a session. They are dropped if the party is forgotten before they leave."""
        with self._lock:
            self._under_way[party] += sum(map(len, messages))
            self._outbox.append((party, term, messages))
            begun = len(self._outbox) > 1
        if not begun:
            self._call(self._flush)

    def worked(self, size: int) -> None:
        """Note that messages of so many bytes, which have come here, have been worked on."""
        with self._lock:
            self._waiting -= size
            reports, self._is_reporting = not self._is_reporting, True
        if reports:
            self._call(self._report)

    def came_again(self, size: int) -> None:
        """Count bytes of a message that waits for workers once more."""
        self.worked(-size)

    def blame(self, error: AntiphonError) -> None:
        """End the connection: the other end has broken the protocol."""
        self._call(lambda: self._fault(error))

    def hush(self, party: bytes) -> None:
        """Speak about a party no more: the other device may not have it."""
        self._call(lambda: self._hush(party))

    def tell(self, party: bytes) -> None:
        """Tell the other end the digest of what is held of a party."""
        self._call(lambda: self._tell(party))

    # -- in the network thread

    def came(self, size: int) -> None:
        """Count bytes of a message that has come."""
        with self._lock:
            self._waiting += size
        self._report()

    def _report(self) -> None:
        with self._lock:
            self._is_reporting = False
            waiting = self._waiting
        self._waits(waiting)

    def set_room(self, party: bytes, room: int) -> bool:
        """Take note of the room in the queue of a party. True if the party waits for it."""
        with self._lock:
            self._rooms[party] = room
            if room <= self._under_way.get(party, 0) or party not in self._starved:
                return False
            self._starved.discard(party)
            return True

    def forget(self, party: bytes) -> None:
        """Forget a party that is not spoken about any more."""
        with self._lock:
            self._rooms.pop(party, None)
            self._starved.discard(party)
            self._terms[party] = self._terms.get(party, 0) + 1

    def _flush(self) -> None:
        with self._lock:
            outbox, self._outbox = self._outbox, []
        for party, term, messages in outbox:
            if not self.is_closed and term == self.term(party):
                self._deliver(party, messages)
            with self._lock:
                self._under_way[party] -= sum(map(len, messages))
                if self._under_way[party] <= 0:
                    del self._under_way[party]
