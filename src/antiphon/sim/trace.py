"""`Trace`: what happened in a run, a line an event. The same seed gives the same lines, byte for byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256


class Kind(StrEnum):
    """What an event is."""

    # of the party
    FOUND = "found"  # the party begins
    JOIN = "join"  # a device may write from now on
    ADMIT = "admit"  # `other` may join, or write again
    REVOKE = "revoke"
    POLICY = "policy"  # the party agrees on something else
    ERASE = "erase"  # a message is void from now on
    WRITE = "write"  # `count` messages, acknowledged
    TAKE = "take"  # `count` new blocks came from `other`
    REFUSE = "refuse"  # blocks, a message or an epoch; `text` says why
    # of epochs, each with its `number`
    DECLARE = "declare"
    ATTEST = "attest"
    ENDORSE = "endorse"
    STAND = "stand"  # the peer stands on the epoch; `text` is the snapshot's CID
    PRUNE = "prune"
    # faults
    PART = "part"  # `text` has the groups
    HEAL = "heal"
    SLEEP = "sleep"  # the peer hears nothing
    WAKE = "wake"
    CRASH = "crash"
    RESTART = "restart"
    FULL = "full"  # its disk takes no more
    ROOM = "room"  # it does again
    SLOW = "slow"  # it looks around `count` times as seldom
    QUICK = "quick"  # it does as before
    CLOCK = "clock"  # its clock is off: `text` says how far
    WEATHER = "weather"  # how the network treats messages, unless it is calm
    LIE = "lie"  # what a byzantine peer did
    # of the simulation
    SEND = "send"  # a message of the protocol to `other`; kept only where a run keeps everything
    LOSE = "lose"
    QUIET = "quiet"  # nothing is on its way any more
    CHECK = "check"  # a law that was looked at; `text` is empty where it holds


@dataclass(frozen=True, slots=True)
class Event:
    """One line. `peer` is empty where the world itself acts."""

    at_ms: int
    kind: Kind
    peer: str = ""
    other: str = ""
    count: int = 0
    number: int = 0
    text: str = ""

    def __str__(self) -> str:
        parts = [f"{self.at_ms:>9}", f"{self.kind.value:<8}", f"{self.peer or '-':<8}"]
        if self.other:
            parts.append(f"from {self.other}" if self.kind is Kind.TAKE else f"to {self.other}")
        if self.number:
            parts.append(f"epoch {self.number}")
        if self.count:
            parts.append(f"× {self.count}")
        if self.text:
            parts.append(self.text)
        return " ".join(parts)


class Trace:
    """The events of a run, in their order."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def add(self, event: Event) -> None:
        self._events.append(event)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def of(self, *kinds: Kind) -> list[Event]:
        return [event for event in self._events if event.kind in kinds]

    def counts(self) -> Counter[Kind]:
        return Counter(event.kind for event in self._events)

    def text(self) -> str:
        return "".join(f"{event}\n" for event in self._events)

    def digest(self) -> str:
        """What two runs of one seed have in common."""
        return sha256(self.text().encode()).hexdigest()
