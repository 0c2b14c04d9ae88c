"""A scenario is a value that its seed makes, and from which acts can be left out."""

from __future__ import annotations

import pytest

from antiphon.core.errors import InvalidInput
from antiphon.sim.scenario import Fault, What, make, name_of


def test_a_seed_makes_one_scenario() -> None:
    assert make(5) == make(5)
    assert make(5) != make(6)


def test_only_the_faults_that_are_asked_for_come() -> None:
    for seed in range(30):
        scenario = make(seed, peers=6, faults=[Fault.PARTS])
        assert {act.what for act in scenario.acts} <= {What.WRITE, What.PART, What.HEAL}
        assert not scenario.cast.liars
        assert not scenario.cast.late
        assert scenario.weather.loss == scenario.weather.repeat == 0


def test_each_fault_comes_in_some_seeds_and_not_in_others() -> None:
    seen = [{act.what for act in make(seed, peers=6).acts} for seed in range(40)]
    for what in (What.PART, What.SLEEP, What.CRASH, What.FULL, What.ADMIT, What.REVOKE, What.LIE):
        assert 0 < sum(what in acts for acts in seen) < len(seen), what


def test_all_messages_are_written() -> None:
    acts = make(3, messages=77).acts
    assert sum(act.count for act in acts if act.what is What.WRITE) == 77


def test_acts_can_be_left_out() -> None:
    scenario = make(4)
    less = scenario.without([0, 2])
    assert less.acts == (scenario.acts[1], *scenario.acts[3:])
    assert less.cast == scenario.cast


def test_a_busy_party_has_messages_enough_for_all_of_its_epochs() -> None:
    # Each epoch has its threshold, and what comes while whoever declares it has not looked yet.
    scenario = make(7, peers=20, messages=10_000, epochs=5, faults=())
    while_nobody_looks = 10_000 * scenario.pace_ms // scenario.acts[-1].at_ms
    assert 5 * (scenario.rules.epoch_messages + while_nobody_looks) <= 10_000
    assert 6 * (scenario.rules.epoch_messages + 2 * while_nobody_looks) > 10_000


def test_names_do_not_run_out() -> None:
    assert len({name_of(number) for number in range(200)}) == 200


@pytest.mark.parametrize("peers", [0, -1, 10_000])
def test_absurd_numbers_are_refused(peers: int) -> None:
    with pytest.raises(InvalidInput, match="peers"):
        make(1, peers=peers)
