"""Each attack alone, performed many times: honest peers agree, lose nothing, and show no forged write."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest
from tests.budget import only_in_soak

from antiphon.sim.byzantine import attacks
from antiphon.sim.run import Outcome, run
from antiphon.sim.scenario import Act, ActKind, Fault, Scenario, make
from antiphon.sim.trace import Kind

pytestmark = pytest.mark.slow

#: Those that neighbours notice at once, and drop the session for.
_REFUSED = ("junk", "too large", "unasked", "other party", "false acknowledgement", "broken ranges", "cut short")

FORKS = ("forked data", "forked long ago", "forked thrice")


def with_liars(seed: int = 0) -> Scenario:
    """The first scenario from a seed on in which somebody lies, and does so often."""
    scenarios = (make(number, messages=30, faults=[Fault.LIARS]) for number in range(seed, seed + 50))
    scenario = next(islice((one for one in scenarios if one.cast.liars), 1))
    (liar,) = scenario.cast.liars
    end = max(act.at_ms for act in scenario.acts)
    lies = tuple(Act(end * n // 6, ActKind.LIE, liar, seed=n) for n in range(1, 6))
    acts = sorted((*scenario.acts, *lies), key=lambda act: act.at_ms)
    return replace(scenario, acts=tuple(acts))


def play(name: str, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setattr(attacks, "ATTACKS", {name: attacks.ATTACKS[name]})
    return run(with_liars())


@pytest.mark.parametrize("name", sorted(attacks.ATTACKS))
def test_a_lie_breaks_no_law(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = play(name, monkeypatch)
    told = outcome.trace.of(Kind.LIE)
    assert any(event.text == name for event in told), f"it was never told: {[event.text for event in told]}"
    assert not outcome.broken, str(outcome.broken[0])
    if name in _REFUSED:
        assert outcome.trace.of(Kind.REFUSE)


@pytest.mark.parametrize("name", FORKS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=only_in_soak) for seed in (1, 2, 3))])
def test_forks_of_data_feeds_break_no_law_where_there_are_no_epochs(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attacks, "ATTACKS", {name: attacks.ATTACKS[name]})
    scenario = with_liars(10 * seed)
    outcome = run(replace(scenario, rules=replace(scenario.rules, epoch_messages=0)))
    assert any(event.text == name for event in outcome.trace.of(Kind.LIE))
    assert not outcome.broken, str(outcome.broken[0])


@pytest.mark.parametrize(("name", "seed"), [("forked long ago", 4)])
def test_a_branch_that_only_one_attester_holds_stops_no_epoch(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They never came to rest: others could neither compute what was declared again in each term, nor refuse it."""
    monkeypatch.setattr(attacks, "ATTACKS", {name: attacks.ATTACKS[name]})
    outcome = run(make(seed))
    assert any(event.text == name for event in outcome.trace.of(Kind.LIE))
    assert not outcome.broken, str(outcome.broken[0])
    assert outcome.epochs


def test_what_was_erased_on_a_branch_that_is_not_held_stops_no_pruning(monkeypatch: pytest.MonkeyPatch) -> None:
    """The epoch holds more of a branch than can be read here: there is no body to take away."""
    monkeypatch.setattr(attacks, "ATTACKS", {"forked long ago": attacks.ATTACKS["forked long ago"]})
    outcome = run(make(123))
    assert not outcome.broken, str(outcome.broken[0])
    assert outcome.trace.of(Kind.PRUNE)
    assert outcome.trace.of(Kind.ERASE)


def test_a_run_with_liars_is_replayed_exactly() -> None:
    assert run(with_liars(3)).trace.digest() == run(with_liars(3)).trace.digest()


def test_each_lie_says_what_it_is() -> None:
    for name, lie in attacks.ATTACKS.items():
        assert lie.__doc__, name
