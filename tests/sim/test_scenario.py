"""A seed makes a scenario, which is a value; acts can be left out of it."""

from __future__ import annotations

import random

import pytest

from antiphon.core.errors import InvalidInput
from antiphon.sim.scenario import PATIENCE, SILENT_MS, SKEW_MS, ActKind, Fault, make, name_of


def test_a_seed_makes_one_scenario() -> None:
    assert make(5) == make(5)
    assert make(5) != make(6)


def test_only_the_faults_that_are_asked_for_come() -> None:
    for seed in range(30):
        scenario = make(seed, peers=6, faults=[Fault.PARTS])
        assert {act.what for act in scenario.acts} <= {ActKind.WRITE, ActKind.PART, ActKind.HEAL}
        assert not scenario.cast.liars
        assert not scenario.cast.late
        assert scenario.weather.loss == scenario.weather.repeat == 0


def test_each_fault_comes_in_some_seeds_and_not_in_others() -> None:
    seen = [{act.what for act in make(seed, peers=6).acts} for seed in range(40)]
    for what in (ActKind.PART, ActKind.SLEEP, ActKind.CRASH, ActKind.FULL, ActKind.ADMIT, ActKind.REVOKE, ActKind.LIE):
        assert 0 < sum(what in acts for acts in seen) < len(seen), what


def test_with_fewer_faults_a_seed_is_the_same_with_less_in_it() -> None:
    for seed in range(40):
        whole, chosen = make(seed, peers=6), random.Random(seed).sample(sorted(Fault), 4)
        part = make(seed, peers=6, faults=chosen)
        assert part.faults == whole.faults & set(chosen)
        assert set(part.acts) <= set(whole.acts)
        assert {act for act in whole.acts if act.what is ActKind.WRITE} <= set(part.acts)
        assert part.cast.attesters == whole.cast.attesters
        assert part.cast.liars in (whole.cast.liars, frozenset())
        assert part.cast.late in (whole.cast.late, frozenset())


def test_there_are_always_attesters_enough_who_can_be_relied_on() -> None:
    for seed in range(300):
        scenario = make(seed, peers=3 + seed % 7)
        cast, rules = scenario.cast, scenario.rules
        policies = [(cast.attesters, rules), *((act.groups[0], act.rules) for act in scenario.acts if act.rules)]
        off = {name for name, skew_ms in cast.skews_ms if abs(skew_ms) > SKEW_MS}
        revoked = {act.peer for act in scenario.acts if act.what is ActKind.REVOKE}
        for attesters, chosen in policies:
            assert chosen is not None
            assert set(attesters).isdisjoint(cast.late)
            assert not rules.trust or set(attesters).isdisjoint(cast.liars)
            assert len(set(attesters) - cast.liars - off - revoked) >= rules.quorum(len(attesters))


def test_attesters_lie_and_clocks_are_off_by_hours_in_some_seeds() -> None:
    scenarios = [make(seed, peers=5) for seed in range(40)]
    assert any(scenario.cast.liars & set(scenario.cast.attesters) for scenario in scenarios)
    assert any(abs(skew_ms) > SKEW_MS for scenario in scenarios for _, skew_ms in scenario.cast.skews_ms)


def test_all_messages_are_written() -> None:
    acts = make(3, messages=77).acts
    assert sum(act.count for act in acts if act.what is ActKind.WRITE) == 77


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


def test_nobody_comes_forward_before_a_busy_party_can_have_answered() -> None:
    quick, busy = make(7, faults=()), make(7, messages=10_000, faults=())
    assert quick.rules.silent_ms == SILENT_MS
    assert busy.rules.silent_ms == PATIENCE * busy.pace_ms > SILENT_MS


def test_an_epoch_is_due_sooner_where_peers_look_around_seldom() -> None:
    """More messages come until whoever is to declare it looks; and others wait longer before they come forward."""
    busy, slow = (make(7, peers=5, messages=1_050, epochs=2, faults=(), pace_ms=pace) for pace in (0, 800))
    assert busy.pace_ms < slow.pace_ms == 800
    assert busy.rules.epoch_messages > slow.rules.epoch_messages
    assert busy.rules.silent_ms < slow.rules.silent_ms
    assert busy.acts == slow.acts
