"""The acts of a device about epochs are in the trace."""

from __future__ import annotations

import pytest

from antiphon.sim.run import run
from antiphon.sim.scenario import Act, ActKind, Cast, Rules, Scenario
from antiphon.sim.trace import Event, Kind

pytestmark = pytest.mark.slow

NAMES = ("alice", "bob", "carol", "dora")


def scenario(*acts: Act, trust: bool = True) -> Scenario:
    writes = (Act(1_000 + 200 * n, ActKind.WRITE, NAMES[n % 4], 2, n) for n in range(10))
    ordered = tuple(sorted((*writes, *acts), key=lambda act: act.at_ms))
    rules = Rules(epoch_messages=12, silent_ms=1_000, trust=trust)
    return Scenario(1, Cast(NAMES, attesters=NAMES[:3]), rules, acts=ordered)


def about(events: list[Event], number: int) -> list[Event]:
    return [event for event in events if event.number == number]


def test_an_epoch_is_declared_attested_and_stood_on_in_this_order() -> None:
    trace = run(scenario()).trace
    told = about(trace.of(Kind.DECLARE, Kind.ATTEST, Kind.STAND), 1)
    kinds = [event.kind for event in told]
    assert kinds[0] is Kind.DECLARE
    assert kinds.count(Kind.DECLARE) == 1
    assert kinds.count(Kind.ATTEST) >= 1
    assert kinds.count(Kind.STAND) == len(NAMES)
    assert {event.text for event in told} == {told[0].text}  # one snapshot


def test_a_takeover_shows_who_was_endorsed_for_which_term() -> None:
    first = about(run(scenario()).trace.of(Kind.DECLARE), 1)[0].peer
    trace = run(scenario(Act(500, ActKind.SLEEP, first), Act(9_000, ActKind.WAKE, first))).trace
    endorsed = about(trace.of(Kind.ENDORSE), 1)
    assert {event.text for event in endorsed} == {"term 1"}
    assert len({event.peer for event in endorsed}) >= 2
    declared = next(event for event in about(trace.of(Kind.DECLARE), 1) if event.peer != first)
    assert declared.text.endswith(", term 1")
    assert declared.at_ms > max(event.at_ms for event in endorsed[:2])
