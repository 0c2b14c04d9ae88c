"""`antiphon sim`: one run, and a search for one that breaks a law. Most runs here are played by a fake."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.cli.conftest import call, told

from antiphon.cli.sim import _places, _ranges
from antiphon.core.errors import InvalidInput
from antiphon.sim.run import BrokenLaw, Outcome
from antiphon.sim.scenario import ActKind, Scenario, make
from antiphon.sim.trace import Event, Kind, Trace

SEARCH = ("sim", "search", "--jobs", 1)  # in this process
SMALL = ("--peers", 3, "--messages", 12, "--epochs", 1)


def trace_of(scenario: Scenario) -> Trace:
    trace = Trace()
    trace.add(Event(0, Kind.FOUND, scenario.cast.founder))
    for act in scenario.acts:
        if act.what is ActKind.WRITE:
            trace.add(Event(act.at_ms, Kind.WRITE, act.peer, count=act.count))
        if act.what is ActKind.PART:
            trace.add(Event(act.at_ms, Kind.PART, text=" | ".join(" ".join(group) for group in act.groups)))
    trace.add(Event(9_000, Kind.CHECK, other="nothing lost"))
    return trace


class FakeRun:
    """Plays nothing; breaks a law for one seed if the network parts, and may be interrupted."""

    def __init__(self, *, breaks: int | None = None, interrupt_at: int | None = None, error: str = "") -> None:
        self.breaks = breaks
        self.interrupt_at = interrupt_at
        self.error = error
        self.played: list[Scenario] = []

    def __call__(self, scenario: Scenario, **_: Any) -> Outcome:
        self.played.append(scenario)
        if len(self.played) == self.interrupt_at:
            raise KeyboardInterrupt
        if self.error:
            raise RuntimeError(self.error)
        parts = any(act.what is ActKind.PART for act in scenario.acts)
        broken = [BrokenLaw("nothing lost", "bob lacks it")] if scenario.seed == self.breaks and parts else []
        return Outcome(scenario, trace_of(scenario), broken, messages=12, epochs=1, virtual_ms=9_000, seconds=0.5)


def play_with(monkeypatch: pytest.MonkeyPatch, fake: FakeRun) -> FakeRun:
    monkeypatch.setattr("antiphon.sim.search.run", fake)
    monkeypatch.setattr("antiphon.sim.run.run", fake)
    return fake


@pytest.fixture
def parting() -> int:
    """A seed whose network parts."""
    return next(seed for seed in range(2, 100) if any(act.what is ActKind.PART for act in make(seed).acts))


# -- run


def test_a_run_is_played_checked_and_drawn(tmp_path: Path) -> None:
    svg, trace = tmp_path / "run.svg", tmp_path / "run.txt"
    answer = told("sim", "run", *SMALL, "--seed", 7, "--faults", "none", "--svg", svg, "--trace", trace)
    assert (answer["seed"], answer["peers"], answer["messages"], answer["broken"]) == (7, 3, 12, [])
    assert "nothing lost" in answer["laws"]
    assert answer["replay"] == "antiphon sim run --peers 3 --epochs 1 --messages 12 --seed 7 --faults none"
    ElementTree.parse(svg)
    assert answer["replay"] in svg.read_text()
    again = told("sim", "run", *SMALL, "--seed", 7, "--faults", "none")
    assert again["trace"] == answer["trace"]
    assert trace.read_text().count("\n") > 20


def test_people_are_told_what_a_run_was(monkeypatch: pytest.MonkeyPatch) -> None:
    play_with(monkeypatch, FakeRun())
    done = call("sim", "run", "--seed", 3)
    assert done.exit_code == 0
    for words in ("12 acknowledged", "all hold", "9.0 s", "24.0 messages/s"):
        assert words in done.stdout


def test_a_run_that_breaks_a_law_ends_with_1_and_says_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, parting: int
) -> None:
    play_with(monkeypatch, FakeRun(breaks=parting))
    done = call("sim", "run", "--seed", parting)
    assert done.exit_code == 1
    assert "nothing lost: bob lacks it" in done.stderr
    assert f"again: antiphon sim run --peers 4 --epochs 2 --messages 60 --seed {parting} --faults all" in done.stdout


def test_an_error_that_nobody_foresaw_breaks_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    play_with(monkeypatch, FakeRun(error="out of luck"))
    done = call("sim", "run", "--json")
    assert done.exit_code == 1
    assert "RuntimeError" in json.loads(done.stdout)["broken"][0]["text"]


def test_an_interrupted_run_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    play_with(monkeypatch, FakeRun(interrupt_at=1))
    assert call("sim", "run").exit_code == 130


def test_faults_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = play_with(monkeypatch, FakeRun())
    for seed in range(1, 20):
        told("sim", "run", "--faults", "parts, loss", "--seed", seed)
    happened = {act.what for scenario in fake.played for act in scenario.acts}
    assert happened == {ActKind.WRITE, ActKind.PART, ActKind.HEAL}
    assert any(scenario.weather.loss for scenario in fake.played)
    with pytest.raises(InvalidInput, match="'fire' is none of loss"):
        raise call("sim", "run", "--faults", "loss,fire").exception or AssertionError


# -- search


def test_a_search_in_which_all_laws_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = play_with(monkeypatch, FakeRun())
    answer = told(*SEARCH, "--seeds", 3, "--from", 10)
    assert (answer["runs"], answer["seeds"], answer["messages"], answer["found"]) == (3, [10, 13], 36, None)
    assert [scenario.seed for scenario in fake.played] == [10, 11, 12]
    assert "3, seeds 10 to 12" in call(*SEARCH, "--seeds", 3, "--from", 10).stdout


def test_a_search_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    play_with(monkeypatch, FakeRun())
    assert told(*SEARCH, "--minutes", 0)["runs"] == 1


def test_a_search_shrinks_what_it_finds_and_the_rest_can_be_played(
    monkeypatch: pytest.MonkeyPatch, parting: int, tmp_path: Path
) -> None:
    fake = play_with(monkeypatch, FakeRun(breaks=parting))
    done = call(*SEARCH, "--svg", tmp_path / "a.svg", "--json")
    assert done.exit_code == 1
    answer = json.loads(done.stdout)
    found = answer["found"]
    assert (found["seed"], answer["runs"]) == (parting, parting)
    (act,) = found["acts"]
    assert "part" in act
    assert found["replay"].endswith(f"--seed {parting} --faults all")
    assert found["replay_shrunk"] in (tmp_path / "a.svg").read_text()

    shrunk = fake.played[-1]
    command = found["replay_shrunk"].removeprefix("antiphon ").split()
    assert call(*command).exit_code == 1
    assert fake.played[-1] == shrunk  # of several attempts the last that broke it


def test_people_are_shown_the_shrunk_trace(monkeypatch: pytest.MonkeyPatch, parting: int) -> None:
    play_with(monkeypatch, FakeRun(breaks=parting))
    done = call(*SEARCH)
    assert done.exit_code == 1
    assert "✗ nothing lost: bob lacks it" in done.stderr
    assert f"BROKEN by seed {parting}" in done.stdout
    assert " part " in done.stdout
    assert "again: antiphon sim run" in done.stdout
    assert "--acts" in done.stdout


def test_an_interrupted_search_tells_what_it_has_seen(monkeypatch: pytest.MonkeyPatch, parting: int) -> None:
    play_with(monkeypatch, FakeRun(interrupt_at=3))
    done = call(*SEARCH, "--json")
    assert done.exit_code == 130
    answer = json.loads(done.stdout)
    assert (answer["runs"], answer["interrupted"], answer["found"]) == (2, True, None)


def test_what_was_found_is_told_though_shrinking_was_interrupted(monkeypatch: pytest.MonkeyPatch, parting: int) -> None:
    play_with(monkeypatch, FakeRun(breaks=parting, interrupt_at=parting + 2))
    done = call(*SEARCH, "--json")
    assert done.exit_code == 1
    answer = json.loads(done.stdout)
    assert answer["interrupted"]
    assert answer["found"]["seed"] == parting
    assert len(answer["found"]["acts"]) == answer["found"]["acts_before"]


# -- acts as text


def test_places_are_written_as_ranges_and_read_again() -> None:
    chance = random.Random(5)
    for count in (0, 1, 5, 40):
        for _ in range(20):
            places = sorted(chance.sample(range(count), chance.randint(0, count)))
            assert sorted(_places(_ranges(places), count)) == places
    assert _ranges([0, 4, 5, 6, 9]) == "0,4-6,9"


@pytest.mark.parametrize("text", ["x", "3-1", "1,,2", "40", "-1", "1-40"])
def test_acts_that_are_not_there_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="write numbers below 40"):
        _places(text, 40)


def test_the_search_plays_what_the_run_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what stands behind `again:` would be another run."""
    fake = play_with(monkeypatch, FakeRun())
    call(*SEARCH, "--seeds", 1, "--from", 5, "--faults", "parts, loss")
    call("sim", "run", "--seed", 5, "--faults", "parts,loss")
    assert fake.played[0] == fake.played[1]
