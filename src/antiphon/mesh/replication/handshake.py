"""`Handshake`: how the two ends of a session learn of each other, and of a restart of the other end."""

from __future__ import annotations

import enum
from collections.abc import Callable


class HandshakeStep(enum.Enum):
    """The meaning of the two names in a message."""

    SAME = "same"  # the message is from the known other end
    FRESH = "fresh"  # there is a new other end: begin a new session
    ANSWER = "answer"  # the sender may be a new end: reply with a name
    STALE = "stale"  # the message is of a session that has ended


class Handshake:
    """The names of both ends. An end takes a new name whenever the other may have restarted, and never reuses one.

    An end that addresses a name has received it, so it was running after the name was made. A message from before a
    restart, however late it arrives, addresses an older name.
    """

    def __init__(self, name: Callable[[], bytes]) -> None:
        self._name = name
        self._next: bytes | None = None  # the name sent to a possible new end, while the session continues
        self.mine = name()
        self.theirs = b""

    def receive(self, sender: bytes, receiver: bytes) -> HandshakeStep:
        """Judge the names in a message. After ANSWER, send a message with the names that `reply` returns."""
        if (sender, receiver) == (self.theirs, self.mine):
            return HandshakeStep.SAME
        if receiver and receiver == self._next:
            self.mine, self.theirs, self._next = receiver, sender, None
            return HandshakeStep.FRESH
        if receiver == self.mine and not self.theirs:
            self.theirs = sender
            return HandshakeStep.FRESH
        return HandshakeStep.ANSWER if receiver in (b"", self.mine) else HandshakeStep.STALE

    def reply(self, sender: bytes) -> tuple[bytes, bytes]:
        """Return the own name and the other's, for the answer to a greeting."""
        if not self.theirs or sender == self.theirs:
            return self.mine, sender
        if self._next is None:
            self._next = self._name()
        return self._next, sender
