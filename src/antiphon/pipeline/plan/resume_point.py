"""Resume points: the plan of a party and the state of its planner, kept by the tables so that the next run resumes.

A resume point is JSON in the table `progress`, which is committed together with the other tables. It is not verified
when it is read back: anybody who can write to the folder of the tables can change the tables themselves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from antiphon.core.errors import BadEncoding
from antiphon.core.sightings import Sightings
from antiphon.core.timeframe import Timeframe
from antiphon.model.access import Author
from antiphon.party.engine.ports import LaneState, Void
from antiphon.pipeline.plan.party_plan import LanePlan, PartyPlan
from antiphon.pipeline.source.ranges import Fault

FORMAT = 1  # a resume point in another format is ignored, and the party is read in full

#: The number of verified blocks of a feed, and the hash of the last of them.
Head = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """The state of a party at the end of a run."""

    plan: PartyPlan
    lanes: tuple[LaneState, ...] = ()  # of delivery
    heads: Mapping[bytes, Head] = field(default_factory=dict)
    erased: int = 0  # number of erased bodies, which the tables must not keep either
    models: str = ""  # version of Antiphon and names of the installed models

    @property
    def party(self) -> bytes:
        return self.plan.party

    @property
    def anchor(self) -> Timeframe:
        """The last planned block of each feed."""
        return self.plan.anchor

    def encode(self) -> str:
        """The resume point as JSON."""
        return json.dumps(
            {
                "format": FORMAT,
                "plan": _write_plan(self.plan),
                "lanes": [_write_state(state) for state in self.lanes],
                "heads": [[feed.hex(), length, last.hex()] for feed, (length, last) in self.heads.items()],
                "erased": self.erased,
                "models": self.models,
            },
            separators=(",", ":"),
        )

    @classmethod
    def decode(cls, text: str) -> ResumePoint | None:
        """Read a resume point; None if it has another format, as another version of Antiphon writes it."""
        try:
            found = json.loads(text)
            if found["format"] != FORMAT:
                return None
            return cls(
                _read_plan(found["plan"]),
                tuple(_read_state(state) for state in found["lanes"]),
                {bytes.fromhex(feed): (length, bytes.fromhex(last)) for feed, length, last in found["heads"]},
                found["erased"],
                found["models"],
            )
        except (ValueError, KeyError, TypeError, IndexError):
            raise BadEncoding("what the tables remember of a party cannot be read; run with --full") from None


def _write_plan(plan: PartyPlan) -> dict[str, Any]:
    return {
        "home": plan.home,
        "party": plan.party.hex(),
        "lanes": [_write_lane(lane) for lane in plan.lanes],
        "control": {feed.hex(): length for feed, length in plan.control.items()},
        "other": {feed.hex(): length for feed, length in plan.other.items()},
        "base": plan.base.hex(),
        "number": plan.number,
        "faults": [[fault.party.hex(), fault.feed.hex(), fault.seq, fault.reason] for fault in plan.faults],
        "error": plan.error,
    }


def _read_plan(found: dict[str, Any]) -> PartyPlan:
    return PartyPlan(
        found["home"],
        bytes.fromhex(found["party"]),
        tuple(_read_lane(lane) for lane in found["lanes"]),
        {bytes.fromhex(feed): length for feed, length in found["control"].items()},
        {bytes.fromhex(feed): length for feed, length in found["other"].items()},
        bytes.fromhex(found["base"]),
        found["number"],
        tuple(
            Fault(bytes.fromhex(party), bytes.fromhex(feed), seq, reason)
            for party, feed, seq, reason in found["faults"]
        ),
        found["error"],
    )


def _write_lane(lane: LanePlan) -> list[Any]:
    places = [lane.feed.hex(), lane.start, lane.base, lane.position, lane.end, lane.length]
    authors = [
        [seq, author.identity.hex(), [group.hex() for group in author.groups], author.owner]
        for seq, author in lane.authors
    ]
    return [*places, [list(void) for void in lane.voids], authors, lane.waits, lane.ended]


def _read_lane(found: list[Any]) -> LanePlan:
    feed, start, base, position, end, length, voids, authors, waits, ended = found
    return LanePlan(
        bytes.fromhex(feed),
        start,
        base,
        position,
        end,
        length,
        tuple(Void(*void) for void in voids),
        tuple(
            (seq, Author(bytes.fromhex(identity), tuple(map(bytes.fromhex, groups)), owner))
            for seq, identity, groups, owner in authors
        ),
        waits,
        ended,
    )


def _write_state(state: LaneState) -> list[Any]:
    segments = [[seq, {feed.hex(): at for feed, at in seen.items()}] for seq, seen in state.segments.steps()]
    places = [state.feed.hex(), state.number, state.position, state.lamport, state.hash.hex()]
    return [*places, segments, state.base, state.base_lamport]


def _read_state(found: list[Any]) -> LaneState:
    """Read the state of a lane. Faults are not stored, because they are checked again; void ranges follow from the
    segments.
    """
    feed, number, position, lamport, last, segments, base, base_lamport = found
    return LaneState(
        bytes.fromhex(feed),
        number,
        position,
        lamport,
        bytes.fromhex(last),
        segments=Sightings((seq, {bytes.fromhex(other): at for other, at in seen.items()}) for seq, seen in segments),
        base=base,
        base_lamport=base_lamport,
    )
