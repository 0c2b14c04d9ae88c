"""Epochs by the control feeds: who decides a number, what is final, and what a final epoch keeps."""

from __future__ import annotations

from dataclasses import replace

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.keys import KeyPair
from antiphon.core.timeframe import Timeframe
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.credentials.claims import (
    EpochAttestation,
    EpochEndorsement,
    EpochGenesis,
    EpochRefusal,
    Erasure,
    Policy,
    Position,
    Role,
)
from antiphon.halo.finality.epoch_values import ranked
from antiphon.halo.finality.voting import attestation, endorsement, may_attest, may_declare, may_endorse, proposal
from antiphon.halo.member.genesis_checks import scrutinise
from antiphon.halo.rights.verdict import LOST_RIGHT
from antiphon.testing.parties import Actor, Rehearsal, pair_of

NOW = 1_000_000


def cid(text: str) -> bytes:
    return bytes(Cid.of(text.encode(), DAG_CBOR))


def party(*names: str, policy: bool = True, liars: bool = False, role: Role = Role.EDITOR) -> list[Actor]:
    """A party whose actors know all of each other; the first is founder and generator, all are attesters."""
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    others = [rehearsal.actor(name) for name in names]
    for other in others:
        alice.admit(other, role)
    for other in others:
        other.hear(alice)
        other.join()
    alice.hear(*others)
    if policy:
        devices = tuple(sorted(bytes(actor.device.key) for actor in (alice, *others)))
        alice.write(Policy(attesters=devices, generator=bytes(alice.device.key), liars=liars))
    meet(alice, *others)
    return [alice, *others]


def meet(*actors: Actor) -> None:
    for _ in range(2):
        for actor in actors:
            actor.hear(*actors)


def declare(actor: Actor, value: str = "state", /, **changes: object) -> Act:
    """A genesis for the open number, of all that the actor knows, unless told otherwise."""
    chain = actor.machine.epochs()
    last = chain.last
    claim = {
        "term": 0,
        "number": chain.open.number,
        "previous": last.snapshot if last else b"",
        "cut": dict(last.cut) if last else {},
        "control": actor.machine.timeframe(),
        "snapshot": cid(value),
        "created_ms": NOW,
        **changes,
    }
    genesis = EpochGenesis(**claim)  # type: ignore[arg-type]
    if actor.machine.timeframe().covers(genesis.control):
        genesis = replace(genesis, control_hash=actor.machine.control_hash(genesis.control))
    actor.write(genesis)
    return actor.machine.acts()[-1]


def numbers(actor: Actor) -> list[int]:
    return [epoch.number for epoch in actor.state.epochs]


def why(actor: Actor, act: Act) -> str:
    return actor.machine.epochs().reason(act)


# -- who decides


def test_without_a_policy_the_founder_decides_alone_with_one_message() -> None:
    alice, bob = party("bob", policy=False)
    bob_said = declare(bob)
    alice.hear(bob)
    assert "nobody who signed it is an attester of epoch 1" in why(alice, bob_said)
    declare(alice)
    assert numbers(alice) == [1]
    assert alice.machine.epochs().open.number == 2


def test_the_first_policy_decides_only_if_it_stands_before_any_word_about_epochs() -> None:
    alice, bob = party("bob", policy=False)
    alice.write(EpochEndorsement(1, 1, bytes(bob.device.key)))
    alice.write(Policy(attesters=(bytes(bob.device.key),)))
    assert alice.machine.epochs().open.config.attesters == (alice.device.key,)
    assert alice.machine.epochs().open.config.feed == alice.control.key


def test_a_policy_counts_from_the_epoch_on_that_holds_it() -> None:
    alice, bob = party("bob", policy=False)
    alice.write(EpochEndorsement(1, 1, bytes(alice.device.key)))  # from here on the founder decides epoch 1
    before = alice.machine.timeframe()
    alice.write(Policy(attesters=(bytes(bob.device.key),)))
    meet(alice, bob)
    alice.write(EpochGenesis(1, 1, b"", {}, before, cid("one"), NOW))
    meet(alice, bob)
    assert numbers(alice) == [1]
    assert alice.machine.epochs().open.config.attesters == (alice.device.key,)
    declare(alice, "two")
    assert alice.machine.epochs().open.config.attesters == (bob.device.key,)


def test_more_than_half_must_attest_and_a_genesis_attests_itself() -> None:
    alice, bob, carol = party("bob", "carol")
    genesis = declare(alice)
    assert numbers(alice) == []
    assert alice.machine.epochs().open.proposals[0].attested == (alice.device.key,)
    meet(alice, bob, carol)
    bob.write(attestation(genesis))
    alice.hear(bob)
    assert numbers(alice) == [1]
    assert set(alice.machine.epochs().votes[0]) == {alice.device.key, bob.device.key}


def test_if_attesters_may_lie_each_says_twice_what_it_found() -> None:
    actors = alice, bob, carol = party("bob", "carol", liars=True)
    genesis = declare(alice)
    meet(*actors)
    bob.write(attestation(genesis))
    assert "2 of 3 attestations" in may_attest(bob.machine.epochs(), bytes(bob.device.key), genesis)
    carol.write(attestation(genesis))
    meet(*actors)
    for actor in actors:
        assert numbers(actor) == []
        assert may_attest(actor.machine.epochs(), bytes(actor.device.key), genesis) == ""
        actor.write(attestation(genesis))
    meet(*actors)
    assert numbers(alice) == [1]


def test_ranks_are_a_permutation_that_depends_on_the_number() -> None:
    devices = [bytes(pair_of(str(at)).key) for at in range(6)]
    orders = {tuple(ranked(number, b"p" * 32, devices)) for number in range(1, 9)}
    assert all(sorted(order) == sorted(devices) for order in orders)
    assert len(orders) > 4


# -- geneses that do not count


def test_a_genesis_that_does_not_follow_is_refused_with_a_reason() -> None:
    alice, bob = party("bob", policy=False)
    data = bytes(pair_of("data").key)
    declare(alice, "one", cut={data: 5})
    control = alice.machine.timeframe()
    cases: list[tuple[dict[str, object], str]] = [
        ({"previous": b""}, "does not follow the final epoch 1"),
        ({"cut": {data: 4}}, "its cut is behind"),
        ({"control": Timeframe({alice.control.key: 0})}, "its control timeframe is behind"),
        ({"control": control.merge(Timeframe({bob.control.key: 9}))}, "nor a genesis that it has seen has"),
        ({"created_ms": NOW - 1}, "created before epoch 1"),
        ({"number": 3}, "epoch 2 is not final yet"),
        ({"number": 1, "previous": b""}, "declared another genesis in this term"),
        ({"term": 1}, "no quorum of attesters"),
    ]
    for changes, reason in cases:
        # Each in a party of its own: of several geneses of a term only the first is looked at.
        other, _ = party("bob", policy=False)
        declare(other, "one", cut={data: 5})
        act = declare(other, "two", **changes)
        assert reason in why(other, act), changes
        assert numbers(other) == [1]


def test_of_two_geneses_of_one_term_the_first_in_the_feed_holds() -> None:
    alice, bob, _ = party("bob", "carol")
    first, second = declare(alice, "one"), declare(alice, "two")
    bob.hear(alice)
    bob.write(attestation(second))
    alice.hear(bob)
    assert numbers(alice) == []
    assert "declared another" in why(alice, second)
    assert may_attest(bob.machine.epochs(), bytes(bob.device.key), first) != ""


def test_a_second_attestation_in_a_term_is_void_and_visible() -> None:
    alice, bob, carol = party("bob", "carol")
    genesis = declare(alice, "one")
    bob.hear(alice)
    bob.write(EpochAttestation(0, 1, cid("two"), bytes(32)))
    bob.write(attestation(genesis))
    meet(alice, bob, carol)
    assert numbers(alice) == []
    assert any("has attested something else" in void.reason for void in alice.voids)


def test_an_attestation_is_for_one_genesis_and_not_for_another_with_the_same_snapshot() -> None:
    alice, bob, carol = party("bob", "carol")
    genesis = declare(alice, "one")
    bob.hear(alice)
    bob.write(EpochAttestation(0, 1, cid("one"), bytes(32)))
    alice.hear(bob)
    assert numbers(alice) == []
    carol.hear(alice)
    carol.write(attestation(genesis))
    assert numbers(carol) == [1]


def test_a_refusal_is_written_down_for_all_to_see() -> None:
    alice, bob = party("bob")
    declare(alice, "one")
    bob.hear(alice)
    bob.write(EpochRefusal(0, 1, cid("one"), cid("two"), "another CID"))
    alice.hear(bob)
    assert [(found.device, found.claim.reason) for found in alice.machine.epochs().refusals] == [
        (bob.device.key, "another CID")
    ]


# -- takeovers


def test_a_new_term_declares_again_what_its_endorsers_have_attested() -> None:
    alice, bob, carol = party("bob", "carol")
    genesis = declare(alice, "one")
    bob.hear(alice)
    bob.write(attestation(genesis))  # final, but Carol does not know
    device = bytes(carol.device.key)
    carol.write(endorsement(carol.machine.epochs(), device, 1, device))
    carol.hear(alice)
    alice.hear(carol)
    alice.write(endorsement(alice.machine.epochs(), bytes(alice.device.key), 1, device))
    carol.hear(alice)
    assert proposal(carol.machine.epochs(), device, 1).snapshot == cid("one")
    other = EpochGenesis(1, 1, b"", {}, carol.machine.timeframe(), cid("two"), NOW)
    assert "must be declared again" in may_declare(carol.machine.epochs(), device, other)
    again = declare(carol, "one", term=1, control=genesis.claim.control)  # type: ignore[union-attr]
    assert why(carol, again) == ""
    meet(alice, bob, carol)
    assert [epoch.snapshot for epoch in carol.state.epochs] == [cid("one")]
    assert alice.state.digest == carol.state.digest
    assert alice.machine.epochs() == carol.machine.epochs()


def test_a_generator_alone_cannot_force_a_genesis_that_the_others_refuse() -> None:
    actors = alice, _, carol = party("bob", "carol")
    declare(alice, "one")
    device = bytes(carol.device.key)
    for actor in actors:
        actor.write(endorsement(actor.machine.epochs(), bytes(actor.device.key), 1, device))
    meet(*actors)
    assert proposal(carol.machine.epochs(), device, 1) == (b"", "")  # one of three cannot have made it final


def test_who_endorsed_a_term_attests_nothing_earlier() -> None:
    alice, bob, carol = party("bob", "carol")
    genesis = declare(alice, "one")
    bob.write(endorsement(bob.machine.epochs(), bytes(bob.device.key), 1, bytes(bob.device.key)))
    bob.hear(alice)
    assert "endorsed term 1" in may_attest(bob.machine.epochs(), bytes(bob.device.key), genesis)
    bob.write(attestation(genesis))
    meet(alice, bob, carol)
    assert numbers(alice) == []
    chain = alice.machine.epochs()
    assert may_endorse(chain, bytes(bob.device.key), 1, bytes(carol.device.key)) != ""
    assert may_endorse(chain, bytes(bob.device.key), 2, bytes(carol.device.key)) == ""


def test_an_endorsement_that_hides_what_was_attested_does_not_count() -> None:
    alice, bob, carol = party("bob", "carol")
    genesis = declare(alice, "one")
    bob.hear(alice)
    bob.write(attestation(genesis))
    bob.write(EpochEndorsement(1, 1, bytes(carol.device.key)))
    assert any("does not name what" in void.reason for void in bob.voids)
    assert bob.machine.epochs().ballot.endorsements == []


# -- what is final stays


def test_an_attester_that_is_revoked_or_forks_its_feed_takes_no_vote_back() -> None:
    alice, bob, carol = party("bob", "carol")
    genesis = declare(alice)
    bob.hear(alice)
    bob.write(attestation(genesis))
    alice.hear(bob)
    before = alice.machine.epochs().final
    alice.narrow(bob, cuts={})
    assert alice.machine.epochs().final == before
    alice.machine.end_fork(bob.control.key, 1)
    alice.machine.end_fork(alice.control.key, 1)
    assert alice.machine.epochs().final == before
    carol.hear(alice)
    assert carol.machine.epochs().final == before


def data_party() -> tuple[Actor, Actor, KeyPair]:
    """Alice decides; Bob has a data feed that Alice knows."""
    alice, bob = party("bob", policy=False)
    data = pair_of("bob data")
    bob.open_data(data)
    meet(alice, bob)
    return alice, bob, data


def verdict(actor: Actor, data: KeyPair, seq: int) -> str:
    return actor.machine.judge_data(data.key, seq, dict(actor.machine.timeframe()))


def old_verdict(actor: Actor, data: KeyPair, seq: int, seen: Timeframe) -> str:
    return actor.machine.judge_data(data.key, seq, dict(seen))


def test_a_revocation_that_an_epoch_does_not_know_takes_nothing_from_it() -> None:
    alice, bob, data = data_party()
    seen = alice.machine.timeframe()
    declare(alice, cut={bytes(data.key): 5})
    alice.narrow(bob, cuts={})
    assert old_verdict(alice, data, 4, seen) == ""
    assert old_verdict(alice, data, 5, seen) != ""
    assert alice.state.feed(bytes(bob.control.key)) is not None  # Bob's word before the epoch stands, too
    assert alice.machine.authority.end(data.key) == 5


def test_a_revocation_that_an_epoch_knows_takes_what_it_says() -> None:
    alice, bob, data = data_party()
    seen = alice.machine.timeframe()
    alice.narrow(bob, cuts={bytes(bob.control.key): 2, bytes(data.key): 2})
    declare(alice, cut={bytes(data.key): 5})
    assert numbers(alice) == [1]
    assert old_verdict(alice, data, 1, seen) == ""
    assert old_verdict(alice, data, 2, seen) != ""


def test_a_fork_that_an_epoch_does_not_know_ends_the_feed_at_its_cut_at_the_earliest() -> None:
    alice, _, data = data_party()
    alice.machine.end_fork(data.key, 2)
    assert alice.machine.authority.fork_ends == {data.key: 2}
    declare(alice, cut={bytes(data.key): 5})
    assert alice.machine.authority.fork_ends == {data.key: 5}
    declare(alice, "two", cut={bytes(data.key): 7})
    assert alice.machine.authority.fork_ends == {data.key: 7}


def test_words_about_epochs_and_floors_under_nothing_move_no_right() -> None:
    alice, bob, data = data_party()
    seen = alice.machine.timeframe()
    version = alice.machine.authority.version
    declare(alice, cut={bytes(data.key): 5})
    assert numbers(alice) == [1]
    assert alice.machine.authority.version == version
    before = alice.machine.timeframe()
    alice.narrow(bob, cuts={})
    assert alice.machine.authority.version > version
    assert old_verdict(alice, data, 5, seen) != ""
    version = alice.machine.authority.version
    declare(alice, "two", cut={bytes(data.key): 7}, control=before)
    assert numbers(alice) == [1, 2]
    assert alice.machine.authority.version > version  # it does not know of the revocation
    assert old_verdict(alice, data, 5, seen) == ""


def test_an_epoch_that_knows_of_all_revocations_moves_no_right() -> None:
    alice, bob, data = data_party()
    seen = alice.machine.timeframe()
    alice.narrow(bob, cuts={})
    version = alice.machine.authority.version
    declare(alice, cut={bytes(data.key): 7})
    assert numbers(alice) == [1]
    assert alice.machine.authority.version == version
    assert old_verdict(alice, data, 5, seen) != ""


def test_a_grant_ends_at_the_first_epoch_that_reaches_its_expiry() -> None:
    alice, bob = party("bob", policy=False, role=Role.READER)
    alice.admit(bob, Role.EDITOR, expires_ms=NOW + 500)
    bob.hear(alice)
    data = pair_of("bob data")
    bob.open_data(data)
    alice.hear(bob)
    seen = alice.machine.timeframe()
    declare(alice, "one", cut={bytes(data.key): 3}, created_ms=NOW + 499)
    assert old_verdict(alice, data, 9, seen) == ""
    declare(alice, "two", cut={bytes(data.key): 5}, created_ms=NOW + 500)
    assert old_verdict(alice, data, 4, seen) == ""
    assert old_verdict(alice, data, 5, seen) == LOST_RIGHT
    declare(alice, "three", cut={bytes(data.key): 8}, created_ms=NOW + 900)
    assert old_verdict(alice, data, 5, seen) != ""
    alice.admit(bob, Role.EDITOR)
    assert verdict(alice, data, 9) == ""


def test_one_judge_knows_only_what_the_control_timeframe_holds() -> None:
    alice, bob, data = data_party()
    control = alice.machine.timeframe()
    alice.narrow(bob, cuts={})
    within = alice.machine.at(control)
    assert within is alice.machine.at(control)
    assert within.permits(Place(data.key, 0, dict(control)), frozenset({Role.EDITOR}))
    assert not alice.machine.authority.permits(Place(data.key, 0, dict(control)), frozenset({Role.EDITOR}))


# -- what an attester looks for


def test_an_attester_finds_what_a_genesis_leaves_out() -> None:
    alice, bob, carol = party("bob", "carol")
    data = pair_of("bob data")
    bob.open_data(data)
    meet(alice, bob, carol)
    whole = {bytes(data.key): 0}
    good = declare(alice, cut=whole)
    carol.hear(alice)
    assert scrutinise(carol.machine, good, NOW) == ""
    assert "in the future" in scrutinise(carol.machine, good, NOW - 300_001)
    carol.machine.end_fork(data.key, 3)
    claim = good.claim
    assert isinstance(claim, EpochGenesis)
    carol.write(Erasure((Position(bytes(data.key), 0),)))
    assert scrutinise(carol.machine, good, NOW) == ""  # Carol is no owner: that erasure is void
    alice.narrow(bob)
    carol.hear(alice)
    assert "lacks the narrowing" in scrutinise(carol.machine, good, NOW)

    cases: list[tuple[dict[str, object], str]] = [
        ({"cut": {bytes(data.key): 4}}, "beyond the fork"),
        ({"control": Timeframe({bob.control.key: 1})}, "has seen more than is in it"),
    ]
    for changes, reason in cases:
        alice, bob, carol = party("bob", "carol")
        bob.open_data(data)
        meet(alice, bob, carol)
        changed: dict[str, object] = {"cut": whole, **changes}
        bad = declare(alice, **changed)
        carol.hear(alice)
        carol.machine.end_fork(data.key, 3)
        assert reason in scrutinise(carol.machine, bad, NOW)
