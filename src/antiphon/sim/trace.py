"""`Trace`: the events of a run, one line each. The same seed gives the same lines, byte for byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256


class Kind(StrEnum):
    """The kinds of events."""

    # of the party
    FOUND = "found"  # the party is founded
    JOIN = "join"  # a device has opened its control feed
    ADMIT = "admit"  # `other` is admitted, or admitted again
    REVOKE = "revoke"
    POLICY = "policy"  # the party's policy changes
    ERASE = "erase"  # a message is erased
    WRITE = "write"  # `count` messages, acknowledged
    TAKE = "take"  # `count` new blocks came from `other`
    REFUSE = "refuse"  # blocks, a message or an epoch; `text` says why
    # of epochs, each with its `number`
    DECLARE = "declare"
    ATTEST = "attest"
    ENDORSE = "endorse"
    STAND = "stand"  # the epoch becomes the peer's base; `text` is the snapshot's CID
    PRUNE = "prune"
    # faults
    PART = "part"  # `text` has the groups
    HEAL = "heal"  # the partition ends; or two members are linked whom no other member connects, the second as `other`
    SLEEP = "sleep"  # the peer is cut off
    WAKE = "wake"
    CRASH = "crash"
    RESTART = "restart"
    FULL = "full"  # its disk is full
    ROOM = "room"  # its disk has room again
    SLOW = "slow"  # it works `count` times as seldom
    QUICK = "quick"  # it works at its usual pace again
    CLOCK = "clock"  # its clock is wrong; `text` says by how much
    WEATHER = "weather"  # delay, loss and repetition of the network, unless it is calm
    LIE = "lie"  # an attack of a byzantine peer; `text` is its name
    # of the simulation
    SEND = "send"  # a protocol message to `other`; recorded only with `keep_all`
    LOSE = "lose"
    QUIET = "quiet"  # no message is under way any more
    CHECK = "check"  # a law was checked; `text` is empty if it holds


@dataclass(frozen=True, slots=True)
class Event:
    """One event, one line of the trace. `peer` is empty for events of the whole network."""

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
    """The events of a run, in order."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def add(self, event: Event) -> None:
        self._events.append(event)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def of(self, *kinds: Kind) -> list[Event]:
        """The events of some kinds."""
        return [event for event in self._events if event.kind in kinds]

    def counts(self) -> Counter[Kind]:
        return Counter(event.kind for event in self._events)

    def text(self) -> str:
        """The trace as text, one line for each event."""
        return "".join(f"{event}\n" for event in self._events)

    def digest(self) -> str:
        """SHA-256 of the text. Two runs of one seed have the same digest."""
        return sha256(self.text().encode()).hexdigest()
