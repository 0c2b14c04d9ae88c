"""`Lane`: one peer in a trace, with its absences and the epochs that it reached; `Partition`: one of the network."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from antiphon.sim.trace import Event, Kind, Trace

#: The kind of event that begins an absence, and the one that ends it.
_ABSENCES = {Kind.SLEEP: Kind.WAKE, Kind.CRASH: Kind.RESTART, Kind.FULL: Kind.ROOM}
_ENDS = {end: begin for begin, end in _ABSENCES.items()}
_DIGITS = re.compile(r"\d+|\D+")
_DIGITS_MAX = 18
_GROUP = re.compile(r"[|/;]")
_MEMBER = re.compile(r"[\s,]+")


class Absence(NamedTuple):
    """A period in which a peer was asleep, down, or had a full disk. `kind` is the event that began it."""

    kind: Kind
    begin_ms: int
    end_ms: int


class Stand(NamedTuple):
    """The time at which a peer reached an epoch, and the CID of its snapshot there."""

    at_ms: int
    number: int
    cid: str


@dataclass
class Lane:
    """One peer, from its first event to the end or its revocation."""

    name: str
    row: int  # see `arrange`
    begin_ms: int
    end_ms: int
    revoked_ms: int | None = None
    lies: bool = False
    absences: list[Absence] = field(default_factory=list)
    stands: list[Stand] = field(default_factory=list)

    def bands(self, until_ms: int) -> list[tuple[int, int, int]]:
        """The periods in which each epoch is the peer's base: number, begin, end."""
        ends = [*(stand.at_ms for stand in self.stands[1:]), until_ms]
        times = ((stand.number, stand.at_ms, min(end, until_ms)) for stand, end in zip(self.stands, ends, strict=False))
        return [(number, begin, end) for number, begin, end in times if end > begin]

    def present(self) -> list[tuple[int, int]]:
        """The periods in which the peer is up."""
        found, begin = [], self.begin_ms
        for absence in self.absences:
            if absence.kind is Kind.CRASH and absence.end_ms > begin:
                found.append((begin, max(begin, absence.begin_ms)))
                begin = absence.end_ms
        return [*found, (begin, self.end_ms)]


class Partition(NamedTuple):
    """A period in which the network is partitioned into groups."""

    begin_ms: int
    end_ms: int
    groups: tuple[tuple[str, ...], ...]


def lanes_of(trace: Trace, end_ms: int) -> dict[str, Lane]:
    """The lanes of a trace: the founder first, then by name."""
    lanes: dict[str, Lane] = {}
    open_since: dict[tuple[str, Kind], int] = {}
    for event in trace:
        name = subject(event)
        if not name or event.kind is Kind.CHECK:
            continue
        lane = lanes.get(name)
        if lane is None:
            lane = lanes[name] = Lane(name, 0, event.at_ms, end_ms)
        if event.kind in _ABSENCES:
            open_since.setdefault((name, event.kind), event.at_ms)
        elif event.kind in _ENDS:
            begin = open_since.pop((name, _ENDS[event.kind]), None)
            if begin is not None:
                lane.absences.append(Absence(_ENDS[event.kind], begin, event.at_ms))
        elif event.kind is Kind.STAND:
            lane.stands.append(Stand(event.at_ms, event.number, event.text))
        elif event.kind is Kind.REVOKE and lane.revoked_ms is None:
            lane.revoked_ms = event.at_ms
        elif event.kind is Kind.LIE:
            lane.lies = True
    for (name, kind), begin in open_since.items():
        lanes[name].absences.append(Absence(kind, begin, end_ms))
    for lane in lanes.values():
        lane.absences.sort()
        lane.absences.sort(key=lambda absence: absence.begin_ms)
    founder = next((event.peer for event in trace.of(Kind.FOUND)), "")
    ordered = sorted(lanes, key=lambda name: (name != founder, _natural(name)))
    return {name: lanes[name] for name in ordered}


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts p2 before p10."""
    parts = _DIGITS.findall(name)
    return [(0, int(part), part) if part.isdecimal() and len(part) < _DIGITS_MAX else (1, 0, part) for part in parts]


def subject(event: Event) -> str:
    """The peer whose lane shows an event: of a revocation, the revoked peer."""
    return event.other or event.peer if event.kind is Kind.REVOKE else event.peer


def partitions_of(trace: Trace, end_ms: int) -> list[Partition]:
    """The partitions of a trace, each until the network healed or was partitioned otherwise."""
    found: list[Partition] = []
    since: Event | None = None
    for event in trace.of(Kind.PART, Kind.HEAL):
        if since is not None and event.at_ms > since.at_ms:
            found.append(Partition(since.at_ms, event.at_ms, groups_in(since.text)))
        since = event if event.kind is Kind.PART else None
    if since is not None and end_ms > since.at_ms:
        found.append(Partition(since.at_ms, end_ms, groups_in(since.text)))
    return found


def groups_in(text: str) -> tuple[tuple[str, ...], ...]:
    """Parse the groups of a partition.

    >>> groups_in("ada bob | cy")
    (('ada', 'bob'), ('cy',))
    """
    groups = (tuple(name for name in _MEMBER.split(part) if name) for part in _GROUP.split(text))
    return tuple(group for group in groups if group)


def arrange(lanes: dict[str, Lane], partitions: list[Partition]) -> None:
    """Assign rows to lanes: in order, but with each group of the longest partition side by side."""
    longest = max(partitions, key=lambda partition: partition.end_ms - partition.begin_ms, default=None)
    groups = () if longest is None else longest.groups
    group_of = {name: n for n, group in enumerate(groups) for name in group}
    first: dict[int, int] = {}  # a group is placed where its first peer would be
    for name in lanes:
        first.setdefault(group_of.get(name, -1), len(first))
    ordered = sorted(lanes.values(), key=lambda lane: first[group_of.get(lane.name, -1)])
    for row, lane in enumerate(ordered):
        lane.row = row
