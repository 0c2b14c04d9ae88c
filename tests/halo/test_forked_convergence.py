"""Law: forked control feeds whose both branches reach everybody, in any order, give equal states (rule 23)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget
from tests.halo.test_convergence import STEPS, Crowd, Script, Step, small_budgets

from antiphon.feed.block import Block
from antiphon.feed.span import Span
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.control.state import PartyState
from antiphon.halo.credentials.claims import Role
from antiphon.testing.parties import pair_of


class Forked(Script):
    """The same, until Bob signs two histories: half of the others hear one of him, half the other."""

    def __init__(self) -> None:
        super().__init__()
        self.one = self.actors[1]
        self.two = self.one
        self.fork = 0

    def part(self) -> None:
        for actor in self.actors:
            if actor.written:
                actor.hear(*self.actors)
        self.fork = len(self.one.written)
        self.two = self.one.fork()
        self.one.admit(pair_of("one").key, Role.READER)
        self.two.admit(pair_of("two").key, Role.READER)

    def apart(self, step: Step) -> None:
        """One step of somebody, who hears only those of the same half."""
        bob, side = (self.one, 0) if step.number % 2 else (self.two, 1)
        half = [bob, *(actor for at, actor in enumerate(self.actors) if actor is not self.one and at % 2 == side)]
        actor, other = half[step.actor % len(half)], half[step.other % len(half)]
        for mate in half:
            known = actor.machine.length(mate.control.key)
            if mate.control.key != actor.control.key:
                actor.machine.add(mate.written[known:])
        if not actor.written:
            actor.join()
        elif step.action % 4 == 0:
            actor.admit(other, Role.EDITOR)
        elif step.action % 4 == 1:
            self._narrow(actor, other, step, [])
        elif step.action % 4 == 2:
            self._policy(actor, step)
        elif step.other % 2:
            actor.open_data(pair_of(f"data {step.number % 5} of {actor.device.key.hex()}"))
        else:
            actor.admit(pair_of(f"guest {step.number % 5}").key, Role.READER)

    def machine(self, chance: random.Random) -> PartyMachine:
        """A fresh machine that gets everything in some order; either branch may be the one it holds."""
        main, other = (self.one, self.two) if chance.random() < 0.5 else (self.two, self.one)
        machine = PartyMachine(self.rehearsal.party.key, self.rehearsal.genesis_feed)
        feeds: dict[bytes, list[Block]] = {
            actor.control.key: list(actor.written) for actor in self.actors if actor is not self.one
        }
        feeds[main.control.key] = list(main.written)
        shown: list[Span] = [span for span in other.raw if span.first >= self.fork]
        chance.shuffle(shown)
        order = [feed for feed, blocks in feeds.items() for _ in blocks] + [b""] * len(shown)
        chance.shuffle(order)
        for feed in order:
            if feed:
                machine.add([feeds[feed].pop(0)])
            else:
                machine.show(shown.pop())
            if chance.random() < 0.2:
                assert machine.present.policy() == machine.state().policy
        assert machine.waiting() == ()
        return machine


class ForkedCrowd(Forked, Crowd):
    """A forked feed, among more control feeds, devices and admissions than count."""


def one_state(script: Forked, before: list[Step], after: list[Step], seed: int) -> PartyState:
    """Play steps before and after the fork, and return the one state in which five orders of arrival end."""
    for step in before[:10]:
        script.play(step)
    script.part()
    for step in after[:12]:
        script.apart(step)
    chance = random.Random(seed)
    wanted = script.machine(chance)
    for _ in range(4):
        found = script.machine(chance)
        assert found.state().encode() == wanted.state().encode()
        assert found.state() == wanted.state()
        assert found.voids() == wanted.voids()
    return wanted.state()


@pytest.mark.slow
@settings(max_examples=budget(15, 800), deadline=None)
@given(STEPS, STEPS, st.integers(0, 2**32))
def test_two_branches_of_a_control_feed_converge(before: list[Step], after: list[Step], seed: int) -> None:
    assert one_state(Forked(), before, after, seed).members


@pytest.mark.slow
@settings(max_examples=budget(15, 800), deadline=None)
@given(STEPS, STEPS, st.integers(0, 2**32))
def test_two_branches_that_exceed_budgets_converge(before: list[Step], after: list[Step], seed: int) -> None:
    with small_budgets():
        assert one_state(ForkedCrowd(), before, after, seed).members
