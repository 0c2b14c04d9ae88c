"""A device that dials a store over a real socket, says what a test chooses, and notes all bytes that come."""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from types import TracebackType

from antiphon.core.keys import KeyPair
from antiphon.core.ports import SystemRandomness
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.link.frames import Frame, Ping, Pong, Show, Shown, Tags, decode, encode
from antiphon.mesh.link.limits import TAG_GROUP
from antiphon.mesh.link.party_tags import DIALLER, PartyTags
from antiphon.mesh.transport.address import Address

PATIENCE = 20.0  # seconds


class Prober:
    """One connection. `heard` is all that came, frame by frame; `size` counts the bytes, those of the handshake too."""

    def __init__(self, own: KeyPair, address: Address, *, source: str = "127.0.0.1") -> None:
        self.heard: list[Frame] = []
        self.size = 0
        self.counts: Counter[type[Frame]] = Counter()
        self._shows = 0
        place = address.host, address.port
        self.socket = socket.create_connection(place, PATIENCE, source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        now_ms = int(time.time() * 1000)
        self.channel = Channel.dial(own, address.device, now_ms=now_ms, randomness=SystemRandomness())
        self.socket.sendall(self.channel.outgoing())
        while not self.channel.is_open:
            self._take()
        self.socket.sendall(self.channel.outgoing())
        self.tags = PartyTags(self.channel.id, DIALLER)

    def say(self, *frames: Frame) -> None:
        self.socket.sendall(b"".join(self.channel.seal(encode(frame)) for frame in frames))

    def tag(self, party: bytes) -> None:
        """Name a party, among random tags."""
        self.say(Tags((self.tags.tag(party), *(os.urandom(16) for _ in range(TAG_GROUP - 1)))))

    def show(self, party: bytes, message: bytes) -> None:
        number, self._shows = self._shows, self._shows + 1
        self.say(Show(self.tags.tag(party), self.tags.close(party, number, message)))

    def hear(self, kind: type[Frame], count: int = 1) -> None:
        """Wait until so many frames of a kind have come since the connection began."""
        while self.counts[kind] < count:
            self._take()

    def answered(self) -> None:
        """Wait until all messages that were shown are answered."""
        self.hear(Shown, self._shows)

    def ping(self) -> None:
        pongs = self.counts[Pong]
        self.say(Ping(os.urandom(8)))
        self.hear(Pong, pongs + 1)

    def listen(self, seconds: float) -> None:
        """Take all that comes within a time."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                self._take()
            except TimeoutError:
                break
        self.socket.settimeout(PATIENCE)

    def _take(self) -> None:
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionResetError("the store has hung up")
        self.size += len(data)
        frames = [decode(frame) for frame in self.channel.receive(data)]
        self.counts.update(map(type, frames))
        self.heard += frames

    def shape(self) -> tuple[int, list[tuple[str, int]]]:
        """Return all that can be compared: the number of bytes, and the kind and size of each frame."""
        return self.size, [(type(frame).__name__, len(encode(frame))) for frame in self.heard]

    def __enter__(self) -> Prober:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()
