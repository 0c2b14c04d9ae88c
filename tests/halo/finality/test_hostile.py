"""What is tried against epochs: forks of control feeds, copies of geneses, back-dated words, restored devices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.timeframe import Timeframe
from antiphon.halo.control.control_paths import Strays
from antiphon.halo.control.epoch_rights import AUTHORITIES_MAX, EpochRights
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import EpochGenesis, Policy, Role
from antiphon.halo.finality.voting import forgetful
from antiphon.halo.rights.authority import Authority
from antiphon.halo.rights.floors import Floors
from antiphon.testing.parties import Actor, Rehearsal, pair_of

CID = bytes(Cid.of(b"state", DAG_CBOR))


def two() -> tuple[Rehearsal, Actor, Actor]:
    """Alice founds and decides alone; Bob is a member."""
    rehearsal = Rehearsal()
    alice, bob = rehearsal.founder("alice"), rehearsal.actor("bob")
    alice.admit(bob, Role.OWNER)
    bob.hear(alice)
    bob.join()
    return rehearsal, alice, bob


def genesis(actor: Actor, term: int = 0) -> EpochGenesis:
    control = actor.machine.timeframe()
    return EpochGenesis(term, 1, b"", {}, control, CID, 5, control_hash=actor.machine.control_hash(control))


def final(machine: PartyMachine) -> list[bytes]:
    return [epoch.snapshot for epoch in machine.epochs().final]


def test_who_lacks_a_branch_that_an_epoch_rests_on_says_so_until_it_comes() -> None:
    rehearsal, alice, bob = two()
    bob.admit(pair_of("carol").key, Role.READER)
    alice.hear(bob)
    alice.write(genesis(alice))
    late = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
    late.add(alice.written[:2])
    late.add(bob.written[:1])
    late.end_fork(bob.control.key, 1)  # another peer has shown two blocks 1 of Bob's feed
    late.add(alice.written[2:])
    assert final(late) == []
    assert [found.entry for found in late.waiting()] == [bob.written[1].entry]
    late.add(bob.written[1:])
    assert final(late) == [CID]
    assert late.epochs() == alice.machine.epochs()


def test_who_holds_the_other_branch_goes_on_once_the_first_is_shown() -> None:
    rehearsal, alice, bob = two()
    other = Rehearsal()
    other.genesis_feed = rehearsal.genesis_feed
    twin = other.actor("bob")
    twin.machine = rehearsal.machine([alice.control.key] * len(alice.written))
    twin.join()
    bob.admit(pair_of("carol").key, Role.READER)
    twin.admit(pair_of("dora").key, Role.READER)
    alice.hear(bob)
    alice.write(genesis(alice))
    misled = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
    misled.add(alice.written[:2])
    misled.add(twin.written)
    misled.end_fork(bob.control.key, 1)
    misled.add(alice.written[2:])
    assert final(misled) == []
    (missing,) = misled.wanted()
    assert missing == bob.written[-1].entry
    misled.show(bob.raw[-1])
    assert final(misled) == final(alice.machine) == [CID]


def test_what_an_epoch_holds_of_a_control_feed_outlives_a_fork_of_it() -> None:
    _, alice, bob = two()
    bob.admit(pair_of("carol").key, Role.READER)
    alice.hear(bob)
    alice.write(genesis(alice))
    alice.machine.end_fork(bob.control.key, 1)
    assert alice.state.member(pair_of("carol").key) is not None
    bob.admit(pair_of("dora").key, Role.READER)
    alice.machine.add(bob.written[2:])
    assert alice.state.member(pair_of("dora").key) is None


def test_a_genesis_may_be_told_again_and_a_back_dated_copy_harms_nobody() -> None:
    rehearsal, alice, bob = two()
    alice.hear(bob)
    signed = credential.sign(rehearsal.party.key, genesis(alice), [alice.device], nonce=b"once")
    alice.write_signed(signed)
    assert final(alice.machine) == [CID]
    bob.write_signed(signed, seen=[])  # it claims to have seen nothing, so its stamp is lower
    before = alice.machine.epochs().final
    alice.hear(bob)
    assert alice.machine.epochs().final == before


def test_a_restored_device_does_not_vote_before_it_has_heard_what_it_said() -> None:
    rehearsal, alice, bob = two()
    alice.hear(bob)
    alice.write(Policy(attesters=(bytes(bob.device.key),), generator=bytes(bob.device.key)))
    again = Actor(rehearsal, bob.identity, bob.device, pair_of("bob's new control feed"))
    rehearsal.actors.append(again)
    again.hear(alice)
    again.join()
    chain = again.machine.epochs()
    assert "may have forgotten" in forgetful(chain, bytes(bob.device.key), bytes(again.control.key))
    again.write(genesis(again))  # its operator says that it has heard
    assert final(again.machine) == [CID]
    chain = again.machine.epochs()
    assert forgetful(chain, bytes(bob.device.key), bytes(again.control.key)) == ""


def restored(rehearsal: Rehearsal, actor: Actor) -> Actor:
    """The same device, whose store came back from a backup: it goes on in a new control feed."""
    again = Actor(rehearsal, actor.identity, actor.device, pair_of("a new control feed"))
    rehearsal.actors.append(again)
    again.hear(actor)
    again.join()
    return again


def test_a_founder_whose_store_was_restored_decides_in_its_new_feed() -> None:
    """Without a policy nobody else could, and the party would have no epochs for ever."""
    rehearsal, alice, bob = two()
    again = restored(rehearsal, alice)
    device, feed = bytes(alice.device.key), bytes(again.control.key)
    assert "may have forgotten" in forgetful(again.machine.epochs(), device, feed)
    assert forgetful(again.machine.epochs(), device, feed, recovered=True) == ""
    again.write(genesis(again))
    assert final(again.machine) == [CID]
    bob.hear(again)
    assert bob.machine.epochs() == again.machine.epochs()
    assert forgetful(again.machine.epochs(), device, feed, recovered=True) == ""


def test_what_stands_in_the_first_feed_goes_before_what_the_founder_says_in_another() -> None:
    """So nobody who comes to hold the founder's keys later moves an epoch that was decided there."""
    rehearsal, alice, _ = two()
    again = restored(rehearsal, alice)
    for value in range(8):  # of two digests either may be the lesser
        twin = replace(genesis(again), snapshot=bytes(Cid.of(bytes([value]), DAG_CBOR)))
        alice.hear(again)
        if not value:
            alice.write(genesis(alice))
            assert final(alice.machine) == [CID]
        other = Actor(rehearsal, alice.identity, alice.device, pair_of(f"control feed {value}"))
        rehearsal.actors.append(other)
        other.hear(again)
        other.join()
        other.write(twin)
        alice.hear(other)
        assert final(alice.machine) == [CID]
    assert "two geneses of epoch 1 have a quorum" in alice.machine.epochs().conflict


def test_a_policy_in_the_first_feed_is_known_before_the_founder_speaks_in_another() -> None:
    rehearsal, alice, bob = two()
    alice.hear(bob)
    alice.write(Policy(attesters=(bytes(bob.device.key),)))
    again = restored(rehearsal, alice)
    again.write(genesis(again))
    assert final(again.machine) == []


def test_a_new_act_does_not_cost_a_look_back_at_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    _, alice, _ = two()
    for number in range(1, AUTHORITIES_MAX + 5):
        last, control = alice.machine.epochs().last, alice.machine.timeframe()
        heads = alice.machine.control_hash(control)
        before = last.snapshot if last else b""
        snapshot = bytes(Cid.of(bytes([number]), DAG_CBOR))
        alice.write(EpochGenesis(0, number, before, {}, control, snapshot, 5, control_hash=heads))
    assert len(alice.machine.epochs().final) == AUTHORITIES_MAX + 4

    def within(rights: EpochRights, control: Timeframe, floors: Floors, strays: Strays) -> Authority:
        raise AssertionError(f"it looked back at {control} and {floors}")

    monkeypatch.setattr(EpochRights, "within", within)
    alice.admit(pair_of("carol").key, Role.READER)
    assert len(alice.machine.epochs().final) == AUTHORITIES_MAX + 4
