"""RULES.md 1, 4, 7 and 8, each by the counterexample that forced it on the design."""

from __future__ import annotations

import itertools

import pytest

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import BadSignature
from antiphon.feed.chain import sign_head
from antiphon.feed.fork import Fork
from antiphon.feed.span import Span
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import EpochGenesis, FeedAdmission, FeedKind, MemberAdmission, Policy, Role
from antiphon.halo.rights.verdict import LOST_RIGHT
from antiphon.testing.parties import Actor, Rehearsal, pair_of


def two_owners(rehearsal: Rehearsal) -> tuple[Actor, Actor, Actor]:
    """Alice founds; Bob and then Carol are admitted as owners; all know it."""
    alice, bob, carol = rehearsal.founder("alice"), rehearsal.actor("bob"), rehearsal.actor("carol")
    for actor in (bob, carol):
        alice.admit(actor, Role.OWNER)
        actor.hear(alice)
        actor.join()
    for actor in (alice, bob, carol):
        actor.hear(alice, bob, carol)
    return alice, bob, carol


def all_roles(actor: Actor, who: Actor) -> set[Role]:
    member = actor.state.member(who.identity.key)
    return set(member.roles) if member else set()


# -- rule 1


def test_rule_1_an_equivocator_cannot_make_an_honest_peer_look_like_a_liar() -> None:
    """Mallory shows Bob a branch with a high lamport, and the rest another; Bob's honest entries name what he saw."""
    rehearsal = Rehearsal()
    alice, bob, mallory = rehearsal.founder("alice"), rehearsal.actor("bob"), rehearsal.actor("mallory")
    for actor in (bob, mallory):
        alice.admit(actor, Role.OWNER)
    bob.hear(alice)
    bob.join()
    mallory.hear(alice)
    mallory.join()
    # Branch a, for Bob: Mallory writes on, up to a high lamport. Branch b, for the rest: one low block.
    twin = Rehearsal()
    twin.genesis_feed = rehearsal.genesis_feed
    other = twin.actor("mallory")
    other.machine = rehearsal.machine([alice.control.key] * len(alice.written))
    other.join()
    for n in range(5):
        mallory.admit(pair_of(f"puppet {n}").key, Role.READER)
        other.admit(pair_of(f"somebody else {n}").key, Role.READER)
    assert mallory.written[0].hash == other.written[0].hash
    assert mallory.written[1].hash != other.written[1].hash
    bob.hear(mallory)
    high = bob.admit(pair_of("carol").key, Role.READER)

    # Alice holds branch b. Bob's block is not a fault of Bob's: it waits.
    alice.machine.add(other.written)
    alice.machine.add(bob.written)
    assert [waiting.stamp for waiting in alice.machine.waiting()] == [high]
    assert alice.machine.waiting()[0].forked
    assert not [void for void in alice.voids if void.stamp.feed == bob.control.key]

    # Evidence of the fork is not enough: nobody believes a lamport. The branch is shown, and Bob's block is in force.
    evidence = fork_of(mallory, other)
    alice.machine.add_fork(evidence)
    bob.machine.add_fork(evidence)
    assert [waiting.stamp for waiting in alice.machine.waiting()] == [high]
    for span in mallory.raw[1:]:
        alice.machine.show(span)
    assert alice.machine.waiting() == ()
    assert alice.state.member(pair_of("carol").key) is not None
    assert alice.state.member(pair_of("somebody else 0").key) is None
    assert bob.state.member(pair_of("puppet 0").key) is None
    assert alice.state.digest == bob.state.digest


def fork_of(one: Actor, other: Actor) -> bytes:
    """Evidence from two histories of one control feed, which differ from block 1 on."""

    def branch(actor: Actor) -> Span:
        blocks = actor.written[1:]
        raws = [actor.raw[block.seq] for block in blocks]
        span = raws[0]
        for raw in raws[1:]:
            span = span.joined(raw)
        signature = sign_head(actor.control, span.party, span.end, span.hashes[-32:])
        return Span(
            span.party, span.feed, span.first, span.previous, signature, span.headers, span.advance, b"", span.hashes
        )

    return Fork.between(branch(one), branch(other)).encode()


def test_rule_1_an_entry_that_lies_about_a_lamport_ends_its_feed() -> None:
    rehearsal = Rehearsal()
    alice, bob, carol = two_owners(rehearsal)
    alice.admit(pair_of("dave").key, Role.READER)
    truth = alice.written[-1].entry
    lie = truth._replace(lamport=truth.lamport + 90)
    bob.write(MemberAdmission(pair_of("eve").key, frozenset({Role.READER})), seen=[lie])
    carol.hear(alice, bob)
    assert carol.state.member(pair_of("eve").key) is None
    assert ["tells a wrong lamport" in void.reason for void in carol.voids] == [True]


# -- rule 4


def test_rule_4_a_credential_of_one_party_is_worthless_in_another() -> None:
    ours, theirs = Rehearsal("ours"), Rehearsal("theirs")
    alice, mallory = ours.founder("alice"), theirs.founder("mallory")
    signed = credential.sign(
        ours.party.key, MemberAdmission(mallory.identity.key, frozenset({Role.OWNER})), [alice.device]
    )
    with pytest.raises(BadSignature):
        credential.read(theirs.party.key, signed)


def test_rule_4_nobody_admits_a_feed_without_the_feeds_own_signature() -> None:
    """A member of two parties cannot be made to serve one party's blocks in the other."""
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    victim = pair_of("a feed of somebody else")
    claim = FeedAdmission(victim.key, FeedKind.DATA, alice.identity.key, alice.device.key, alice.word)
    signed = credential.sign(rehearsal.party.key, claim, [alice.device])
    with pytest.raises(BadSignature, match="lacks the signature"):
        credential.read(rehearsal.party.key, signed)
    alice.write_signed(signed)
    assert alice.state.feed(victim.key) is None
    assert len(alice.voids) == 1


# -- rule 7


def test_rule_7_a_revoked_owner_cannot_back_date_a_coup() -> None:
    """Revoked Carol writes "revoke Bob" as if she had seen nothing, with a low lamport."""
    rehearsal = Rehearsal()
    alice, bob, carol = two_owners(rehearsal)
    bob.hear(carol)
    alice.narrow(carol)
    carol.narrow(bob, seen=[])
    for actor in (alice, bob, carol):
        actor.hear(alice, bob, carol)
    assert all_roles(bob, carol) == set()
    assert all_roles(bob, bob) == {Role.OWNER}
    assert alice.state.digest == bob.state.digest == carol.state.digest


def test_rule_7_a_fresh_control_feed_does_not_help_the_revoked() -> None:
    rehearsal = Rehearsal()
    alice, bob, carol = two_owners(rehearsal)
    alice.narrow(carol)
    hidden = rehearsal.actor("carol", "hidden phone")
    hidden.hear(carol)  # not Alice's revocation
    hidden.join()
    hidden.narrow(bob)
    bare = rehearsal.actor("carol", "bare phone")
    bare.join(seen=[])  # its first block does not cover the admission of its identity
    bare.narrow(bob, seen=[])
    bob.hear(alice, hidden, bare)
    assert all_roles(bob, bob) == {Role.OWNER}
    assert bob.state.feed(hidden.control.key) is None
    assert bob.state.feed(bare.control.key) is None


def test_rule_7_of_two_who_revoke_each_other_the_senior_stays() -> None:
    rehearsal = Rehearsal()
    _, bob, carol = two_owners(rehearsal)
    bob.narrow(carol)
    carol.narrow(bob)
    for order in itertools.islice(rehearsal.orders(), 0, None, 7):
        state = rehearsal.machine(order).state()
        assert state.member(bob.identity.key) is not None
        assert state.member(carol.identity.key) is None


@pytest.mark.parametrize("younger", [False, True])
@pytest.mark.parametrize("older", [False, True])
def test_rule_7_a_feed_goes_on_by_a_grant_that_its_revoker_could_not_have_taken(older: bool, younger: bool) -> None:
    """Bob, an owner by Erin's word, revokes Carol, and has not seen that Alice admitted her. A grant that is younger
    than his right he could have taken, an older one he could not, whatever Alice repeated after it.
    """
    rehearsal = Rehearsal()
    alice, erin = rehearsal.founder("alice"), rehearsal.actor("erin")
    bob, carol = rehearsal.actor("bob"), rehearsal.actor("carol")
    alice.admit(erin, Role.OWNER)
    erin.hear(alice)
    erin.join()
    if older:
        alice.admit(carol, Role.EDITOR)
    for number in range(12):  # so that Bob's right is younger than the older grant, and older than the younger one
        alice.admit(pair_of(f"reader {number} of alice").key, Role.READER)
    if younger:
        alice.admit(carol, Role.EDITOR)
    for number in range(4):
        erin.admit(pair_of(f"reader {number} of erin").key, Role.READER)
    erin.admit(bob, Role.OWNER)
    erin.admit(carol, Role.EDITOR)
    for actor in (carol, bob):
        actor.hear(erin, carol)
        actor.join()
    bob.narrow(carol)
    carol.hear(alice)
    late = carol.open_data(pair_of("data of carol"))

    alice.hear(erin, bob, carol)

    assert [void.stamp for void in alice.voids] == ([] if older else [late])


def test_rule_7_founders_cannot_be_removed_by_those_they_admitted() -> None:
    rehearsal = Rehearsal()
    alice, bob, carol = two_owners(rehearsal)
    bob.narrow(alice)
    carol.hear(bob)
    carol.narrow(alice, Role.READER)
    alice.hear(bob, carol)
    assert all_roles(alice, alice) == {Role.OWNER}
    assert len(alice.voids) == 2


def test_rule_7_a_promotion_by_a_junior_gives_no_power_over_that_junior() -> None:
    """Bob, a reader of old, is made owner by Carol and revokes her from before that: then he would be none."""
    rehearsal = Rehearsal()
    alice, bob, carol = rehearsal.founder("alice"), rehearsal.actor("bob"), rehearsal.actor("carol")
    alice.admit(bob, Role.READER)
    alice.admit(carol, Role.OWNER)
    for actor in (bob, carol):
        actor.hear(alice)
        actor.join()
    carol.admit(bob, Role.OWNER)
    bob.hear(carol)
    bob.narrow(carol, cuts={carol.control.key: 1})
    alice.hear(bob, carol)
    assert all_roles(alice, carol) == {Role.OWNER}
    assert all_roles(alice, bob) == {Role.OWNER}


# -- rule 8


def test_rule_8_feeds_that_a_revocation_does_not_name_end_at_nothing() -> None:
    rehearsal = Rehearsal()
    alice, bob, carol = two_owners(rehearsal)
    phone = rehearsal.actor("carol", "phone")
    phone.hear(carol)
    phone.join()
    phone.admit(pair_of("dave").key, Role.READER)  # nobody has heard of this feed yet
    alice.narrow(carol)
    bob.hear(alice, phone)
    assert bob.state.feed(phone.control.key) is None
    assert bob.state.member(pair_of("dave").key) is None


def test_rule_8_a_demotion_counts_past_its_cut_and_not_before() -> None:
    rehearsal = Rehearsal()
    alice, bob, carol = two_owners(rehearsal)
    carol.admit(pair_of("before").key, Role.READER)
    alice.hear(carol)
    alice.narrow(carol, Role.EDITOR)
    carol.admit(pair_of("after").key, Role.READER)
    alice.hear(carol)
    bob.hear(alice, carol)
    for actor in (alice, bob):
        assert actor.state.member(pair_of("before").key) is not None
        assert actor.state.member(pair_of("after").key) is None
        assert all_roles(actor, carol) == {Role.EDITOR}


def test_rule_8_a_tighter_policy_counts_past_its_cuts() -> None:
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    bob = rehearsal.actor("bob")
    alice.write(Policy(editors_admit=True))
    alice.admit(bob, Role.EDITOR)
    bob.hear(alice)
    bob.join()
    bob.admit(pair_of("before").key, Role.READER)
    alice.hear(bob)
    tight = Policy(tightens=True, cuts={bob.control.key: 2})
    alice.write(tight)
    bob.admit(pair_of("after").key, Role.READER)  # has not heard of the policy
    alice.hear(bob)
    assert alice.state.member(pair_of("before").key) is not None
    assert alice.state.member(pair_of("after").key) is None


def test_rule_8_a_tighter_policy_undoes_grants_past_its_cuts_that_were_in_force() -> None:
    rehearsal = Rehearsal()
    alice, bob, carol = rehearsal.founder("alice"), rehearsal.actor("bob"), rehearsal.actor("carol")
    alice.write(Policy(editors_admit=True))
    alice.admit(bob, Role.EDITOR)
    carol.hear(alice)
    bob.hear(alice)
    bob.join()
    before, after, past = (pair_of(name).key for name in ("before", "after", "past"))
    bob.admit(before, Role.READER)
    bob.admit(after, Role.READER)
    alice.hear(bob)
    carol.hear(bob)
    assert carol.state.member(after) is not None
    alice.write(Policy(tightens=True, cuts={bob.control.key: 2}))
    bob.admit(past, Role.READER)  # has not heard of the policy
    carol.hear(bob)
    assert carol.state.member(past) is not None
    carol.hear(alice)
    members = [carol.state.member(subject) is not None for subject in (before, after, past)]
    assert members == [True, False, False]


def test_an_epoch_without_a_tighter_policy_brings_back_the_grants_that_it_holds() -> None:
    """Nothing else in the party takes rights away, so the answers of before the epoch stayed."""
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    bob, dave, late, early = (rehearsal.actor(name) for name in ("bob", "dave", "late", "early"))
    guest = pair_of("guest").key
    alice.admit(dave, Role.OWNER)
    alice.write(Policy(editors_admit=True))
    alice.admit(bob, Role.EDITOR)
    for actor in (bob, dave):
        actor.hear(alice)
        actor.join()
    dave.hear(bob)
    bob.admit(guest, Role.READER)
    dave.write(Policy(tightens=True, cuts={bob.control.key: 1, alice.control.key: len(alice.written)}))
    alice.hear(bob)
    control = alice.machine.timeframe()
    snapshot = bytes(Cid.of(b"snapshot", DAG_CBOR))
    hash_ = alice.machine.control_hash(control)
    alice.write(EpochGenesis(0, 1, b"", {}, control, snapshot, 5, control_hash=hash_))
    early.hear(bob)
    early.hear(dave)
    assert early.state.member(guest) is None
    for actor in (early, late):
        actor.hear(alice, bob, dave)
        assert len(actor.machine.epochs().final) == 1
        assert actor.state.member(guest) is not None


def test_rule_8_an_expiry_is_enforced_by_a_revocation_with_cuts() -> None:
    rehearsal = Rehearsal()
    alice, bob, _ = two_owners(rehearsal)
    guest = rehearsal.actor("guest")
    alice.admit(guest, Role.EDITOR, expires_ms=rehearsal.now_ms + 100)
    guest.hear(alice)
    guest.join()
    alice.hear(guest)
    alice.narrow(guest, expired=True)
    assert all_roles(alice, guest) == {Role.EDITOR}, "too early: the expiry has not been reached"
    rehearsal.now_ms += 200
    alice.narrow(guest, expired=True)
    bob.hear(alice)
    assert all_roles(bob, guest) == set()


def test_a_credential_that_had_expired_when_written_is_void() -> None:
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    alice.admit(pair_of("late").key, Role.READER, expires_ms=rehearsal.now_ms)
    assert alice.state.member(pair_of("late").key) is None
    assert len(alice.voids) == 1


# -- data feeds are judged in their own timeframe


def test_a_data_message_is_judged_by_what_its_writer_had_seen_and_by_all_cuts() -> None:
    rehearsal = Rehearsal()
    alice, bob, _ = two_owners(rehearsal)
    feed = pair_of("bob's data")
    bob.open_data(feed)
    alice.hear(bob)
    seen = dict(alice.machine.timeframe())
    judge = alice.machine.judge_data
    assert judge(feed.key, 0, seen) == ""
    assert judge(feed.key, 0, {}) == "it has not seen the admission of its feed [rights.no-admission]"
    assert "not admitted" in judge(pair_of("nobody's").key, 0, seen)
    alice.narrow(bob, Role.READER, cuts={bob.control.key: 2, feed.key: 7})
    assert judge(feed.key, 6, seen) == ""
    assert judge(feed.key, 7, seen) == LOST_RIGHT
    alice.narrow(bob, cuts={bob.control.key: 2, feed.key: 5})
    assert judge(feed.key, 4, seen) == ""
    assert judge(feed.key, 5, seen) == "it stands past the cut of its feed [rights.past-cut]"
