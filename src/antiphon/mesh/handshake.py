"""How the two ends of a session find out that the other one is there, and when it has forgotten everything."""

from __future__ import annotations

import enum
from collections.abc import Callable


class Greeted(enum.Enum):
    """What the names in a message mean."""

    SAME = "same"  # it is from the end that is known
    FRESH = "fresh"  # from now on there is another end: begin from nothing
    ANSWER = "answer"  # somebody who may be there is to be told a name
    STALE = "stale"  # it is of a session that is over


class Greeting:
    """Names of both ends. An end takes a new name whenever the other may have forgotten, and never one again.

    Who answers to a name has heard it, so it was there after the name was made: a message from before a restart,
    however late it comes, answers to an older one.
    """

    def __init__(self, name: Callable[[], bytes]) -> None:
        self._name = name
        self._next: bytes | None = None  # told to somebody who may be there, beside the session that goes on
        self.mine = name()
        self.theirs = b""

    def hear(self, sender: bytes, receiver: bytes) -> Greeted:
        """Judge the names in a message. After ANSWER, `reply` has what to answer with."""
        if (sender, receiver) == (self.theirs, self.mine):
            return Greeted.SAME
        if receiver and receiver == self._next:
            self.mine, self.theirs, self._next = receiver, sender, None
            return Greeted.FRESH
        if receiver == self.mine and not self.theirs:
            self.theirs = sender
            return Greeted.FRESH
        return Greeted.ANSWER if receiver in (b"", self.mine) else Greeted.STALE

    def reply(self, sender: bytes) -> tuple[bytes, bytes]:
        """Own name and the other's, for an answer to a greeting."""
        if not self.theirs or sender == self.theirs:
            return self.mine, sender
        if self._next is None:
            self._next = self._name()
        return self._next, sender
