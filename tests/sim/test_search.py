"""The search: no run goes on for ever, and several processes find what one does."""

from __future__ import annotations

import os
from itertools import count, islice

import pytest

from antiphon.sim import search as simsearch
from antiphon.sim.run import Outcome, Stage, run
from antiphon.sim.scenario import Scenario, make
from antiphon.sim.search import play_safely, search
from antiphon.sim.world import Limits


def small(seed: int) -> Scenario:
    return make(seed, peers=3, messages=12, epochs=1)


def test_a_run_with_too_many_events_breaks_a_law() -> None:
    outcome = run(small(1), limits=Limits(events=300))
    (broken,) = outcome.broken
    assert (broken.law, broken.text[:38]) == ("quiet", "the run does not end: 300 events until")
    assert len(outcome.trace) > 3


def test_a_run_that_takes_too_long_breaks_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scenario, "limits", property(lambda _: Limits(10**9, seconds=0.05)))
    (broken,) = play_safely(small(1)).broken
    assert broken.law == "quiet"
    assert "0 s, for" in broken.text


def test_a_run_that_hangs_in_one_event_breaks_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*_: object) -> None:
        while True:
            pass

    monkeypatch.setattr(Stage, "_write", hang)
    monkeypatch.setattr(Scenario, "limits", property(lambda _: Limits(10**9, seconds=0.5)))
    monkeypatch.setattr(simsearch, "_GRACE_S", 0)
    (broken,) = play_safely(small(1)).broken
    assert broken.law == "quiet"
    assert "in one event" in broken.text


def test_a_run_on_a_busy_machine_breaks_no_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real time passes while other processes run."""
    monkeypatch.setattr("antiphon.sim.world.time.monotonic", count(step=1_000).__next__)
    assert play_safely(small(1)).ok


def test_the_limits_of_a_run_are_far_from_what_it_takes() -> None:
    scenario = small(1)
    needed = scenario.limits.events // 10
    assert run(scenario, limits=Limits(needed)).ok


@pytest.mark.slow
def test_two_processes_find_what_one_does() -> None:
    one = list(search(map(small, range(5))))
    two = list(search(map(small, range(5)), jobs=2))
    assert [(it.scenario.seed, it.broken, it.trace.text()) for it in two] == [
        (it.scenario.seed, it.broken, it.trace.text()) for it in one
    ]


def end_at_once(scenario: Scenario) -> Outcome:
    os._exit(scenario.seed)


@pytest.mark.slow
def test_a_process_that_ends_is_told_of() -> None:
    endless = search(map(small, count(3)), jobs=2, play=end_at_once)
    (outcome,) = islice(endless, 1)
    endless.close()
    assert outcome.scenario.seed == 3
    assert "the process that played it ended" in outcome.broken[0].text
