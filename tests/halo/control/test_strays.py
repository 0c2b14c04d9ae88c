"""Acts that come on a branch first, and are history later: the outcome is that of the blocks, not of their way here."""

from __future__ import annotations

import pytest

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.timeframe import Timeframe
from antiphon.feed.fork import Fork
from antiphon.feed.header import NO_END
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import EpochGenesis, Equivocated, Role
from antiphon.halo.limits import GIVEN_MAX
from antiphon.testing.parties import Rehearsal, pair_of

SNAPSHOT = bytes(Cid.of(b"state", DAG_CBOR))


def genesis(machine: PartyMachine, control: Timeframe) -> EpochGenesis:
    return EpochGenesis(0, 1, b"", {}, control, SNAPSHOT, 5, control_hash=machine.control_hash(control))


def test_a_block_that_an_epoch_held_as_a_branch_is_history_later() -> None:
    rehearsal = Rehearsal()
    alice, bob, mallory = rehearsal.founder("alice"), rehearsal.actor("bob"), rehearsal.actor("mallory")
    alice.admit(bob, Role.OWNER)
    alice.admit(mallory, Role.READER)
    for actor in (bob, mallory):
        actor.hear(alice)
        actor.join()
    twin = mallory.fork()
    bob.admit(pair_of("carol").key, Role.READER)
    alice.hear(bob, mallory)
    before = len(alice.written)
    alice.write(genesis(alice.machine, alice.machine.timeframe()))
    bob.hear(alice)
    bob.admit(pair_of("dave").key, Role.EDITOR)
    mallory.admit(pair_of("one").key, Role.READER)
    twin.admit(pair_of("two").key, Role.READER)

    machines = []
    for shown in (False, True):
        machine = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
        machine.add(alice.written[:before])
        machine.add(bob.written[:1])
        machine.add(mallory.written)
        machine.show(twin.raw[-1])
        if shown:
            machine.show(bob.raw[1])
        machine.add(alice.written[before:])
        machine.state()
        machine.add(bob.written[1:])
        machines.append(machine)
    one, other = machines
    assert len(other.epochs().final) == 1
    assert other.timeframe() == one.timeframe()
    assert Role.EDITOR in other.roles_of(pair_of("dave").key)
    assert other.state().encode() == one.state().encode()


def test_an_epoch_that_comes_on_a_branch_renews_what_feeds_may_give() -> None:
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    late = pair_of("late").key
    for number in range(GIVEN_MAX + 10):
        alice.admit(late if number == GIVEN_MAX + 5 else pair_of(f"reader {number % 10}").key, Role.READER)
    control = Timeframe({alice.control.key: 600})
    twin = alice.fork()
    alice.write(genesis(alice.machine, control))
    twin.admit(pair_of("reader 0").key, Role.READER)
    for shown in (False, True):
        machine = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
        machine.add(alice.written[:-1])
        assert not machine.names(late)
        if shown:
            machine.add(twin.written[-1:])
            machine.show(alice.raw[-1])
        else:
            machine.add(alice.written[-1:])
        assert machine.names(late)


def test_whom_grants_beyond_a_fork_name_does_not_depend_on_when_it_was_found() -> None:
    """An epoch rests on one branch, and begins a new count there; who knew the fork before counted from before it."""
    rehearsal = Rehearsal()
    alice, bob, late = rehearsal.founder("alice"), rehearsal.actor("bob"), pair_of("late").key
    alice.admit(bob, Role.OWNER)
    bob.hear(alice)
    bob.join()
    twin = bob.fork()
    for number in range(GIVEN_MAX):
        bob.admit(pair_of(f"reader {number % 10}").key, Role.READER)
    alice.hear(bob)
    alice.write(genesis(alice.machine, alice.machine.timeframe()))
    bob.admit(late, Role.READER)
    twin.admit(pair_of("two").key, Role.READER)
    named = []
    for found_first in (False, True):
        machine = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
        machine.add(alice.written)
        if found_first:
            machine.add_fork(Fork.between(bob.raw[1], twin.raw[1]).encode())
        machine.add(bob.written)
        machine.show(twin.raw[1])
        named.append(set(machine.known_feeds.named))
    assert late in named[0]
    assert named[0] == named[1]


def test_a_branch_that_follows_the_history_is_history_to_come() -> None:
    """Who has seen its blocks waits for them: a grant in them would not count (seeds 7000323, 7000706)."""
    rehearsal = Rehearsal()
    alice, bob, carol = rehearsal.founder("alice"), rehearsal.actor("bob"), rehearsal.actor("carol")
    alice.admit(bob, Role.OWNER)
    bob.hear(alice)
    bob.join()
    twin = bob.fork()
    bob.admit(carol, Role.OWNER)
    carol.hear(alice, bob)
    carol.join()
    carol.admit(pair_of("dave").key, Role.READER)
    twin.admit(pair_of("erin").key, Role.READER)
    machine = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
    machine.add(alice.written)
    machine.add(bob.written[:1])
    machine.show(bob.raw[1])
    machine.add(carol.written)
    assert machine.delivered(carol.control.key) == 0
    machine.add(bob.written[1:])
    assert Role.READER in machine.roles_of(pair_of("dave").key)
    machine = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
    machine.add(alice.written)
    machine.add(bob.written[:1])
    machine.show(bob.raw[1])
    machine.show(carol.raw[0])
    machine.add(twin.written[1:])  # now there are two, and either may be history
    assert machine.strays_at(bob.control.key, 1)


def test_the_same_report_of_a_fork_counts_once_for_each_feed() -> None:
    rehearsal = Rehearsal()
    alice, mallory, eve = rehearsal.founder("alice"), rehearsal.actor("mallory"), rehearsal.actor("eve")
    for actor in (mallory, eve):
        alice.admit(actor, Role.READER)
        actor.hear(alice)
        actor.join()
    twin = eve.fork()
    eve.admit(pair_of("one").key, Role.READER)
    twin.admit(pair_of("two").key, Role.READER)
    evidence = Fork.between(eve.raw[-1], twin.raw[-1]).encode()
    mallory.hear(eve)
    for _ in range(20):
        mallory.write(Equivocated(eve.control.key, 1, evidence))
    alice.hear(mallory)
    assert len(alice.machine.authority.forks[eve.control.key]) == 1
    assert alice.machine.fork_ends[eve.control.key] == 1


def test_two_branches_are_a_fork_whatever_came_of_the_history() -> None:
    """Both blocks are signed: it is no matter which of them came as history, nor whether they wait for others."""
    rehearsal = Rehearsal()
    alice, bob = rehearsal.founder("alice"), rehearsal.actor("bob")
    alice.admit(bob, Role.OWNER)
    bob.hear(alice)
    bob.join()
    twin = bob.fork()
    bob.admit(pair_of("carol").key, Role.READER)
    twin.admit(pair_of("dave").key, Role.READER)
    states = []
    for held in range(3):
        for own_first in (False, True):
            for alice_first in (False, True):
                machine = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
                if alice_first:
                    machine.add(alice.written)
                spans = [bob.raw[1], twin.raw[1]]
                if held < 2:
                    machine.add(bob.written[:held])
                for span in spans if own_first else reversed(spans):
                    machine.show(span)
                machine.add(bob.written)
                assert machine.common(bob.control.key) == 1
                machine.add(alice.written)
                assert machine.waiting() == ()
                states.append(machine.state())
    assert all(state == states[0] for state in states)


def test_two_first_blocks_that_wait_are_a_fork() -> None:
    """Neither is shown, as it may be history to come; together they prove that the writer signed two histories."""
    rehearsal = Rehearsal()
    alice, bob = rehearsal.founder("alice"), rehearsal.actor("bob")
    alice.admit(bob, Role.OWNER)
    bob.hear(alice)
    twin = bob.fork()
    bob.join()
    rehearsal.now_ms += 1
    twin.join()
    machine = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
    machine.add(alice.written)
    machine.show(bob.raw[0])
    assert machine.common(bob.control.key) == NO_END
    machine.show(twin.raw[0])
    assert machine.common(bob.control.key) == 0
    assert len({act.hash for act in machine.acts() if act.stamp.feed == bob.control.key}) == 2


def test_blocks_before_a_fork_that_is_known_are_history_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shown first, each admission in them named a data feed, and counted in no budget; who held them as history knew
    fewer feeds, and waited for ever for whoever had seen the others.
    """
    monkeypatch.setattr("antiphon.halo.rights.budgets.GIVEN_MAX", 3)
    rehearsal = Rehearsal()
    alice, mallory = rehearsal.founder("alice"), rehearsal.actor("mallory")
    alice.admit(mallory, Role.EDITOR)
    mallory.hear(alice)
    mallory.join()
    for number in range(6):
        mallory.open_data(pair_of(f"data {number}"))
    twin = mallory.fork()
    mallory.admit(pair_of("one").key, Role.READER)
    twin.admit(pair_of("two").key, Role.READER)
    known = []
    for shown_first in (False, True):
        machine = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
        machine.add(alice.written)
        machine.add(mallory.written[:2])
        spans = [*mallory.raw[2:], twin.raw[-1]]
        if shown_first:
            machine.add_fork(Fork.between(mallory.raw[-1], twin.raw[-1]).encode())
            for span in spans:
                machine.show(span)
            assert not machine.strays_at(mallory.control.key, 2)
        machine.add(mallory.written[2:])
        machine.show(twin.raw[-1])
        assert machine.strays_at(mallory.control.key, len(mallory.written) - 1)
        known.append(sorted(machine.data_feeds()))
    assert known[0] == known[1]
    assert len(known[0]) == 3
