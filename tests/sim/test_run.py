"""Whole parties under every known fault, from seeds: the laws hold, and a seed replays exactly."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count, islice

import pytest
from tests.budget import FIRST_SEED, budget, only_in_soak

from antiphon.sim.byzantine import attacks
from antiphon.sim.network import CALM, Network
from antiphon.sim.run import Outcome, run
from antiphon.sim.scenario import ActKind, Fault, Scenario, make
from antiphon.sim.search import play_safely, shrink
from antiphon.sim.trace import Kind

SEEDS = range(FIRST_SEED, FIRST_SEED + budget(200, 4_000))
PARTS = 10  # so that all cores have something to do
USUAL_PARTS = 3  # the others run in `make soak`
pytestmark = pytest.mark.slow

#: What shows that a fault has happened, and was not only allowed to.
SIGNS: dict[Fault, Callable[[Outcome], object]] = {
    Fault.LOSS: lambda outcome: outcome.lost,
    Fault.REPEAT: lambda outcome: outcome.repeated,
    Fault.DELAY: lambda outcome: outcome.held_back,
    Fault.PARTS: lambda outcome: outcome.trace.of(Kind.PART),
    Fault.SLEEP: lambda outcome: outcome.trace.of(Kind.SLEEP),
    Fault.CRASHES: lambda outcome: outcome.trace.of(Kind.CRASH),
    Fault.FULL: lambda outcome: outcome.trace.of(Kind.FULL),
    Fault.SKEW: lambda outcome: outcome.trace.of(Kind.CLOCK),
    Fault.JOINS: lambda outcome: {e.peer for e in outcome.trace.of(Kind.JOIN)} & outcome.scenario.cast.late,
    Fault.REVOKES: lambda outcome: outcome.trace.of(Kind.REVOKE),
    Fault.LIARS: lambda outcome: outcome.trace.of(Kind.LIE),
    Fault.SLOW: lambda outcome: outcome.trace.of(Kind.SLOW),
    Fault.POLICY: lambda outcome: outcome.trace.of(Kind.POLICY),
    Fault.ERASES: lambda outcome: outcome.trace.of(Kind.ERASE),
}
#: Kept only where a run keeps everything.
UNKEPT = {Kind.SEND, Kind.LOSE}


def scenario(seed: int) -> Scenario:
    return make(seed, peers=3 + seed % 3, messages=30 + seed % 20, epochs=1 + seed % 2)


def hold(outcome: Outcome) -> None:
    """All laws do; else it is told which does not, and by which part of the scenario."""
    if not outcome.ok:
        shrunk = shrink(outcome).shrunk
        pytest.fail(f"seed {outcome.scenario.seed}: {outcome.broken[0]}\nshrunk: {shrunk.broken[0]}\n{told(shrunk)}")


def told(outcome: Outcome) -> str:
    return "".join(f"{event}\n" for event in outcome.trace if event.kind not in (Kind.TAKE, Kind.CHECK))


@pytest.mark.parametrize(
    "part", [*range(USUAL_PARTS), *(pytest.param(part, marks=only_in_soak) for part in range(USUAL_PARTS, PARTS))]
)
def test_the_laws_hold_under_all_faults(part: int) -> None:
    met: Counter[Kind] = Counter()
    for seed in SEEDS[part::PARTS]:
        outcome = play_safely(scenario(seed))
        hold(outcome)
        met += outcome.trace.counts()
        if seed == SEEDS[part]:
            assert run(scenario(seed)).trace.text() == outcome.trace.text(), f"seed {seed} is two runs"
    for kind in set(Kind) - UNKEPT:
        assert met[kind], f"no run of this part has a {kind.value}"


def test_every_lie_is_told_in_these_runs() -> None:
    """In the runs of all parts together, those of `make soak` included."""
    drawn = Counter(
        name
        for seed in SEEDS
        for act in scenario(seed).acts
        if act.what is ActKind.LIE
        for name, _ in attacks.choose(act.seed, attacks.ATTACKS)
    )
    assert all(drawn[name] >= 2 for name in attacks.ATTACKS), sorted(
        set(attacks.ATTACKS) - {n for n in drawn if drawn[n] > 1}
    )


@pytest.mark.parametrize("fault", Fault)
def test_the_laws_hold_under_each_fault_alone(fault: Fault) -> None:
    """In runs that have it: two of them, and each shows that it happened."""
    scenarios = (make(seed, faults=[fault], messages=30) for seed in count())
    for one in islice((one for one in scenarios if fault in one.faults), budget(2, 40)):
        outcome = play_safely(one)
        hold(outcome)
        assert SIGNS[fault](outcome), f"seed {one.seed} has no {fault.value}"
        assert one.faults == {fault}


def test_a_run_that_ends_in_an_error_keeps_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the moon fell down")

    monkeypatch.setattr(Network, "part", fail)
    outcome = play_safely(next(one for one in map(scenario, count()) if Fault.PARTS in one.faults))
    assert [broken.law for broken in outcome.broken] == ["no errors"]
    assert "the moon fell down" in str(outcome.broken[0])
    assert outcome.trace.of(Kind.FOUND)
    assert not outcome.trace.of(Kind.PART, Kind.QUIET)
    shrunk = shrink(outcome).shrunk
    assert [act.what for act in shrunk.scenario.acts] == [ActKind.PART]
    assert "found" in told(shrunk)


@pytest.mark.parametrize("seed", range(FIRST_SEED + 1_000, FIRST_SEED + 1_000 + budget(3, 300)))
def test_larger_parties_keep_them_too(seed: int) -> None:
    outcome = play_safely(make(seed, peers=8 + seed % 2, messages=120, epochs=3))
    hold(outcome)
    assert outcome.epochs >= 1


@only_in_soak
@pytest.mark.parametrize("seed", range(FIRST_SEED + 2_000, FIRST_SEED + 2_050))
def test_parties_of_twenty_keep_them_too(seed: int) -> None:
    outcome = play_safely(make(seed, peers=20, messages=200, epochs=3))
    hold(outcome)
    assert outcome.messages


#: Seeds that broke a law once, with the number of peers. docs/design/simulation.md says what they found.
FOUND = [
    (900249, 4),
    (900371, 4),
    (900539, 4),
    (975107, 4),
    (930147, 7),
    (975125, 4),
    (900213, 4),
    (970100, 4),
    (900556, 4),
    (4000030, 4),
    (6001886, 4),
    (7000323, 4),
    (7000597, 4),
    (6000414, 4),
    (6001438, 4),
    (6001443, 4),
    (10000145, 4),
    (13000134, 8),
    (30004925, 4),
    (31000255, 8),
    (88000060, 4),
    (100000592, 4),
    (100002935, 4),
    (100004345, 4),
    (100005312, 4),
    (100003640, 4),
    (110000870, 8),
    (210000143, 4),
    (21000523, 8),
    (511000395, 4),
    (616000823, 4),
    (511000930, 4),
    (765000361, 4),
    (765000442, 4),
]


@pytest.mark.parametrize(("seed", "peers"), FOUND)
def test_what_broke_a_law_once_does_not_again(seed: int, peers: int) -> None:
    outcome = play_safely(make(seed, peers=peers))
    hold(outcome)
    assert outcome.epochs


def test_members_are_linked_if_only_a_liar_connects_them_that_lacks_what_it_claims() -> None:
    """It claimed a feed that it made, so nobody announces that feed to it, and all that refers to it waits there."""
    whole = make(7000706, peers=4)
    few = whole.without(set(range(len(whole.acts))) - {23, 27})  # a lie, and a write by a member beyond the liar
    outcome = play_safely(replace(few, weather=CALM))
    hold(outcome)
    assert [(event.peer, event.other) for event in outcome.trace.of(Kind.HEAL)] == [("alice", "carol")]


def test_a_seed_gives_the_same_trace_in_any_process() -> None:
    """Byte for byte, with every message of the protocol, whatever the order of sets."""
    program = (
        "import sys\n"
        "from antiphon.sim.run import run\n"
        "from antiphon.sim.scenario import make\n"
        "for seed in (3, 11):\n"
        "    print(run(make(seed, messages=40), keep_all=True).trace.digest())\n"
    )
    answers = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hashing},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hashing in ("1", "2")
    ]
    here = [run(make(seed, messages=40), keep_all=True).trace.digest() for seed in (3, 11)]
    assert answers[0].split() == answers[1].split() == here
    assert here[0] != here[1]
