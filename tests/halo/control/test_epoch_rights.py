"""Law: rights at a control timeframe that are derived from those at an earlier one are those made anew."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget
from tests.halo.test_convergence import STEPS, Crowd, Step, machine_in, shuffled, small_budgets

from antiphon.core.timeframe import Timeframe
from antiphon.feed.header import Kind
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.control.epoch_rights import EpochRights
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import Role
from antiphon.halo.finality.epoch_values import FinalEpoch
from antiphon.halo.rights.authority import Authority
from antiphon.halo.rights.grant_checks import judge_grant
from antiphon.halo.rights.verdict import judge, judge_data
from antiphon.testing.parties import Rehearsal


def played(steps: list[Step], chance: random.Random) -> PartyMachine:
    script = Crowd()
    for step in steps:
        script.play(step)
    return machine_in(script.rehearsal, shuffled(script.rehearsal, chance), lambda: False)


def growing(machine: PartyMachine, chance: random.Random) -> Iterator[Timeframe]:
    """Control timeframes, each of which covers the one before; blocks are in them after all that they have seen."""
    acts = sorted(machine.acts(), key=lambda act: act.stamp)
    while acts:
        count = chance.randrange(1, 12)
        acts, fresh = acts[count:], acts[:count]
        left = {act.stamp.feed: act.stamp.seq for act in reversed(acts)}
        whole = machine.timeframe().items()
        yield Timeframe({feed: seq for feed, last in whole if (seq := left.get(feed, last + 1) - 1) >= 0})
        assert fresh


def torn(control: Timeframe, chance: random.Random) -> Timeframe:
    """A part of a control timeframe that may lack blocks which others in it have seen: a liar may declare it."""
    return Timeframe({feed: chance.randint(0, seq) for feed, seq in control.items() if chance.random() < 0.8})


def epoch(number: int, control: Timeframe, chance: random.Random) -> FinalEpoch:
    lengths = {feed: chance.randrange(4) for feed in control if chance.random() < 0.3}
    digest = number.to_bytes(32, "big")
    return FinalEpoch(number, b"", lengths, control, digest, 40 * number, (), genesis=digest)


def answers(machine: PartyMachine, authority: Authority, control: Timeframe) -> list[object]:
    """All that is asked of rights, about each act and each feed."""
    acts = [act for act in machine.acts() if control.includes(*act.position)]
    feeds = sorted({*machine.data_feeds(), *control})
    places = [Place(b"", 0, dict(control)), *(act.place for act in acts[::5])]
    subjects = {actor for act in acts for actor in act.signers}
    return [
        [judge(authority, act) for act in acts],
        authority.owners().keys(),
        [(authority.end(feed), authority.static_end(feed), authority.erased(feed)) for feed in feeds],
        [authority.policy(place) for place in places],
        [authority.roles(subject, place) for subject in sorted(subjects) for place in places],
        [
            judge_data(authority, Place(feed, seq, place.seen), Kind.MUTATION)
            for feed in feeds
            for place in places
            for seq in (2, 9)
        ],
    ]


@settings(max_examples=budget(40, 2000), deadline=None)
@given(STEPS, st.integers(0, 2**32))
def test_rights_that_go_on_from_known_ones_are_those_made_anew(steps: list[Step], seed: int) -> None:
    chance = random.Random(seed)
    with small_budgets():
        machine = played(steps, chance)
        known, final = EpochRights(machine, machine._paths), list[FinalEpoch]()
        earlier: list[tuple[Timeframe, Authority, list[object]]] = []
        for control in growing(machine, chance):
            for _ in range(2):
                anew = EpochRights(machine, machine._paths)
                if chance.random() < 0.3:
                    known.within(torn(control, chance), known.floors(final), ())
                found = known.within(control, known.floors(final), ())
                wanted = answers(machine, anew.within(control, anew.floors(final), ()), control)
                assert answers(machine, found, control) == wanted
                earlier.append((control, found, wanted))
                held = [other for other, _, _ in earlier if not final or other.covers(final[-1].control)]
                if chance.random() < 0.4:
                    final.append(epoch(len(final) + 1, chance.choice(held), chance))
        for control, authority, wanted in chance.sample(earlier, min(4, len(earlier))):
            assert answers(machine, authority, control) == wanted, "by what was derived from it"
            grown = authority.copy()
            other = grown.copy()
            machine.checkpoints.inside(grown, machine.timeframe(), after=control)
            grown.settle()
            assert answers(machine, other, control) == wanted, "by what was added to the rights that it is a copy of"


def test_an_epoch_that_holds_all_acts_has_no_grant_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rehearsal = Rehearsal()
    alice, bob = rehearsal.founder("alice"), rehearsal.actor("bob")
    alice.admit(bob, Role.EDITOR)
    alice.narrow(bob)
    machine, asked = alice.machine, list[Act]()

    def ask(authority: Authority, grant: Act) -> bool:
        asked.append(grant)
        return judge_grant(authority, grant)

    rights, control = machine.rights, machine.timeframe()
    rights.within(control, rights.floors([]), ())
    monkeypatch.setattr("antiphon.halo.rights.authority.judge_grant", ask)
    first = epoch(1, control, random.Random(0))
    rights.within(control, rights.floors([first]), ())
    assert not asked
    alice.admit(rehearsal.actor("carol"), Role.READER)
    rights.within(machine.timeframe(), rights.floors([first]), ())
    assert len(asked) == 1


def test_rights_at_an_open_control_timeframe_are_not_built_on() -> None:
    """A genesis may leave out a block that others in it have seen. Attesters look at its rights, and refuse it."""
    rehearsal = Rehearsal()
    alice, bob, carol = rehearsal.founder("alice"), rehearsal.actor("bob"), rehearsal.actor("carol")
    alice.admit(bob, Role.OWNER)
    bob.hear(alice)
    bob.join()
    bob.admit(carol, Role.EDITOR)
    alice.hear(bob)
    machine = alice.machine
    whole = machine.timeframe()
    known = EpochRights(machine, machine._paths)
    without = Timeframe(dict(whole.items()) | {alice.control.key: 0})  # without Bob's admission
    assert not known.within(without, known.floors([]), ()).roles(carol.identity.key, machine.everything())
    roles = known.within(whole, known.floors([]), ()).roles(carol.identity.key, machine.everything())
    assert Role.EDITOR in roles
