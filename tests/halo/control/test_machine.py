"""The party state machine by example: who is in, with what, and what becomes of those who go."""

from __future__ import annotations

import pytest

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import BrokenChain, MissingBlocks
from antiphon.core.timeframe import Timeframe
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import (
    EpochAttestation,
    EpochGenesis,
    FeedEnd,
    FeedKind,
    Policy,
    Role,
)
from antiphon.testing.parties import Actor, Rehearsal, pair_of

NOBODY = "nobody who signed it is an attester of epoch 1"


def party_of(*names: str, role: Role = Role.OWNER) -> tuple[Rehearsal, list[Actor]]:
    """A founder and members admitted in turn, all of whom know everything."""
    rehearsal = Rehearsal()
    actors = [rehearsal.founder("alice")]
    for name in names:
        actor = rehearsal.actor(name)
        actors[0].admit(actor, role)
        actor.hear(actors[0])
        actor.join()
        actors.append(actor)
        for other in actors:
            other.hear(*actors)
    return rehearsal, actors


def roles(of: Actor, who: Actor) -> set[Role]:
    member = of.state.member(who.identity.key)
    return set(member.roles) if member else set()


def reasons(actor: Actor) -> list[str]:
    return [void.reason for void in actor.voids]


def test_the_founder_owns_the_party() -> None:
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    assert roles(alice, alice) == {Role.OWNER}
    assert [feed.kind for feed in alice.state.feeds] == [FeedKind.CONTROL]
    assert not alice.voids


def test_an_admitted_member_opens_a_feed_and_is_seen() -> None:
    _, (alice, bob) = party_of("bob", role=Role.EDITOR)
    assert roles(alice, bob) == {Role.EDITOR}
    assert alice.state.feed(bob.control.key) is not None
    assert alice.state.digest == bob.state.digest


def test_a_stranger_opens_no_feed() -> None:
    rehearsal, (alice,) = party_of()
    mallory = rehearsal.actor("mallory")
    mallory.hear(alice)
    mallory.join()
    mallory.admit(mallory, Role.OWNER)
    alice.hear(mallory)
    assert alice.state.member(mallory.identity.key) is None
    assert alice.state.feed(mallory.control.key) is None
    assert not alice.machine.knows(mallory.control.key)
    assert alice.machine.act_count == 1  # not even void ones are kept
    alice.admit(mallory, Role.READER)  # now it is known, and what it wrote before is void
    assert alice.machine.knows(mallory.control.key)
    assert alice.state.feed(mallory.control.key) is None
    assert len(alice.voids) == 2


def test_an_editor_admits_only_where_the_policy_says_so() -> None:
    _, (alice, bob) = party_of("bob", role=Role.EDITOR)
    bob.admit(pair_of("carol").key, Role.READER)
    alice.write(Policy(editors_admit=True))
    bob.hear(alice)
    bob.admit(pair_of("dave").key, Role.READER)
    bob.admit(pair_of("eve").key, Role.OWNER)
    alice.hear(bob)
    assert alice.state.member(pair_of("carol").key) is None
    assert alice.state.member(pair_of("dave").key) is not None
    assert alice.state.member(pair_of("eve").key) is None
    assert reasons(alice) == ["its issuer may not admit this [rights.admits]"] * 2


def test_roles_add_up_and_a_demotion_takes_them_back() -> None:
    _, (alice, bob) = party_of("bob", role=Role.EDITOR)
    alice.admit(bob, Role.EPOCH_GENERATOR)
    assert roles(alice, bob) == {Role.EDITOR, Role.EPOCH_GENERATOR}
    alice.narrow(bob, Role.EDITOR)
    assert roles(alice, bob) == {Role.EDITOR}


def test_a_revoked_member_is_out_and_its_feed_ends_at_the_cut() -> None:
    _, (alice, bob) = party_of("bob")
    bob.admit(pair_of("carol").key, Role.READER)
    alice.hear(bob)
    alice.narrow(bob)
    bob.admit(pair_of("dave").key, Role.READER)  # has not heard
    alice.hear(bob)
    state = alice.state
    assert roles(alice, bob) == set()
    assert state.member(pair_of("carol").key) is not None
    assert state.member(pair_of("dave").key) is None
    feed = state.feed(bob.control.key)
    assert feed is not None
    assert feed.end == 2
    assert reasons(alice) == ["it stands past the cut of its feed [rights.past-cut]"]


def test_a_feed_that_ended_never_comes_back_but_its_member_may() -> None:
    rehearsal, (alice, bob) = party_of("bob")
    alice.narrow(bob)
    alice.admit(bob, Role.OWNER)
    bob.hear(alice)
    bob.admit(pair_of("carol").key, Role.READER)
    again = rehearsal.actor("bob", "phone")
    again.hear(bob)
    again.join()
    again.admit(pair_of("dave").key, Role.READER)
    alice.hear(again)
    assert roles(alice, bob) == {Role.OWNER}
    assert alice.state.member(pair_of("carol").key) is None, "written to the old feed"
    assert alice.state.member(pair_of("dave").key) is not None, "written to a new one"


def test_a_member_leaves_by_its_own_identitys_word() -> None:
    _, (alice, bob) = party_of("bob", role=Role.READER)
    bob.narrow(bob, signers=[bob.identity], cuts={bob.control.key: 2})
    alice.hear(bob)
    assert roles(alice, bob) == set()
    assert not alice.voids


def test_a_device_alone_cannot_make_its_identity_leave() -> None:
    _, (alice, bob) = party_of("bob", role=Role.READER)
    bob.narrow(bob)
    alice.hear(bob)
    assert roles(alice, bob) == {Role.READER}


def test_a_lost_device_is_ended_by_its_identity_from_another() -> None:
    rehearsal, (alice, bob) = party_of("bob")
    phone = rehearsal.actor("bob", "phone")
    phone.hear(alice)
    phone.join()
    bob.admit(pair_of("carol").key, Role.READER)  # the thief
    phone.write(FeedEnd(bob.identity.key, bob.device.key, {bob.control.key: 1}), [bob.identity])
    alice.hear(bob, phone)
    assert alice.state.member(pair_of("carol").key) is None
    assert roles(alice, bob) == {Role.OWNER}, "the person stays"
    assert alice.state.feed(phone.control.key) is not None


def test_a_thief_cannot_end_the_other_device() -> None:
    rehearsal, (alice, bob) = party_of("bob")
    phone = rehearsal.actor("bob", "phone")
    phone.hear(alice)
    phone.join()
    bob.hear(phone)
    bob.write(FeedEnd(bob.identity.key, phone.device.key, {}))
    alice.hear(bob, phone)
    feed = alice.state.feed(phone.control.key)
    assert feed is not None
    assert feed.end is None
    assert reasons(alice) == ["only an identity, or a device for itself, may end its feeds [rights.ends-device]"]


def test_groups_make_members_transitively() -> None:
    rehearsal, (alice,) = party_of()
    team, crew = pair_of("team"), pair_of("crew")
    bob = rehearsal.actor("bob")
    alice.admit(team.key, Role.EDITOR)
    alice.group(team.key, crew.key)
    alice.group(crew.key, bob.identity.key, [crew])
    bob.hear(alice)
    bob.join()
    alice.hear(bob)
    assert roles(alice, bob) == {Role.EDITOR}
    assert alice.state.feed(bob.control.key) is not None
    alice.narrow(team.key, cuts={bob.control.key: 1})
    assert roles(alice, bob) == set()


def test_leaving_a_group_leaves_what_comes_by_another_way() -> None:
    _, (alice, bob) = party_of("bob", role=Role.READER)
    team = pair_of("team")
    alice.admit(team.key, Role.EDITOR)
    alice.group(team.key, bob.identity.key)
    assert roles(alice, bob) == {Role.EDITOR}
    bob.hear(alice)
    alice.narrow(bob, cuts={bob.control.key: 1}, group=team.key)
    assert roles(alice, bob) == {Role.READER}
    feed = alice.state.feed(bob.control.key)
    assert feed is not None
    assert feed.end is None, "a reader still writes its control feed"


def test_circular_groups_end() -> None:
    _, (alice,) = party_of()
    one, two = pair_of("one"), pair_of("two")
    alice.group(one.key, two.key)
    alice.group(two.key, one.key)
    alice.admit(one.key, Role.READER)
    assert {member.subject for member in alice.state.members} >= {one.key, two.key}


def test_epochs_are_recorded_if_their_issuer_may_declare_them() -> None:
    _, (alice, bob, carol) = party_of("bob", "carol", role=Role.READER)
    snapshot = bytes(Cid.of(b"state", DAG_CBOR))
    epoch = EpochGenesis(0, 1, b"", {}, Timeframe({alice.control.key: 1}), snapshot, 5)
    bob.write(epoch)
    alice.hear(bob)
    alice.write(epoch)
    assert [found.declared.feed for found in alice.state.epochs] == [alice.control.key]
    assert alice.machine.epochs().votes == ((alice.device.key,),)
    assert len(reasons(alice)) == 1
    assert reasons(alice)[0].startswith(NOBODY)
    carol.hear(alice)
    carol.write(EpochAttestation(0, 1, snapshot, alice.machine.acts()[-1].digest))
    assert "no attester" in reasons(carol)[-1]


def test_a_policy_names_the_generator_and_the_attesters() -> None:
    _, (alice, bob) = party_of("bob", role=Role.READER)
    snapshot = bytes(Cid.of(b"state", DAG_CBOR))
    alice.write(Policy(generator=bob.device.key, attesters=(bob.device.key,)))
    epoch = EpochGenesis(0, 1, b"", {}, Timeframe(), snapshot, 5)
    alice.write(epoch)
    alice.write(EpochAttestation(0, 1, snapshot, alice.machine.acts()[-1].digest))
    assert not alice.state.epochs
    bob.hear(alice)
    bob.write(epoch)
    alice.hear(bob)
    assert [found.declared.feed for found in alice.state.epochs] == [bob.control.key]
    assert alice.machine.epochs().votes == ((bob.device.key,),)
    assert [reason.startswith(NOBODY) for reason in reasons(alice)] == [True, False]


def test_an_act_waits_for_what_it_has_seen() -> None:
    rehearsal, (alice, bob) = party_of("bob")
    alice.write(Policy())
    bob.hear(alice)
    bob.admit(pair_of("carol").key, Role.READER)
    alice.hear(bob)
    late = rehearsal.machine([bob.control.key, bob.control.key])
    assert late.state().members == ()
    assert late.waiting() == ()  # it has heard of nobody who knows Bob
    late.add(alice.written[:2])
    assert [waiting.entry.feed for waiting in late.waiting()] == [alice.control.key]
    late.add(rehearsal.blocks()[alice.control.key])
    assert late.waiting() == ()
    assert late.state().digest == alice.state.digest


def test_blocks_come_in_order_and_a_repeat_changes_nothing() -> None:
    rehearsal, (alice, _) = party_of("bob")
    blocks = rehearsal.blocks()[alice.control.key]
    machine = rehearsal.machine([alice.control.key])
    alice.admit(pair_of("carol").key, Role.READER)
    with pytest.raises(MissingBlocks):
        machine.add(alice.written[2:])
    machine.add(blocks)
    before = machine.state().digest
    assert machine.add(blocks) == 0
    assert machine.state().digest == before


def test_another_block_at_a_place_that_is_held_is_refused() -> None:
    one, two = Rehearsal(), Rehearsal()
    first, second = one.founder("alice"), two.founder("alice")
    first.admit(pair_of("bob").key, Role.READER)
    second.admit(pair_of("carol").key, Role.READER)
    with pytest.raises(BrokenChain):
        first.machine.add(second.written)


def test_what_is_no_credential_is_void_and_hurts_no_other() -> None:
    _, (alice,) = party_of()
    alice.write_signed(b"")
    alice.admit(pair_of("bob").key, Role.READER)
    assert alice.state.member(pair_of("bob").key) is not None
    assert len(alice.voids) == 1


def test_a_block_that_waits_and_turns_out_to_be_beyond_a_fork_waits_with_its_branch() -> None:
    """The feed waited on, with the next block of a history that had none: who asked what waits met an `IndexError`."""
    rehearsal, (alice, bob, carol) = party_of("bob", "carol")
    carol.write(Policy(keep_epochs=3))
    bob.hear(carol)
    bob.write(Policy(keep_epochs=4))
    machine = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
    last = bob.written[-1]
    for actor in (alice, bob, carol):
        machine.add(block for block in actor.written if block is not carol.written[-1])
    assert [waiting.stamp for waiting in machine.waiting()] == [last.stamp]
    machine.end_fork(bob.control.key, last.seq)
    assert machine.waiting() == ()
    machine.add(carol.written[-1:])
    assert [act.claim for act in machine.strays_at(bob.control.key, last.seq)] == [Policy(keep_epochs=4)]
