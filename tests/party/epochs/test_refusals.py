"""Epochs that are wrong, forged, unauthorised, late or forked, on whole peers: refused or settled, for all to see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.party.epochs.epoch_acts import (
    agree_on,
    device,
    epoch,
    honest,
    member,
    note,
    refusals,
    same,
    say,
    settle,
    spoilt,
    takes_over,
)

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import InvalidInput, NotAuthorised
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.keys import KeyPair
from antiphon.core.timeframe import Timeframe
from antiphon.core.v1 import credential_pb2, message_pb2
from antiphon.feed.header import Kind
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import EpochGenesis, EpochRefusal, Role
from antiphon.model import item_codec
from antiphon.party.epochs.epochs import WRONG
from antiphon.snapshot import tree
from antiphon.snapshot.root import SnapshotRoot
from antiphon.testing.peers import Peer, Peers, Ticks

pytestmark = pytest.mark.slow

OTHER = bytes(Cid.of(b"something else", DAG_CBOR))


@pytest.fixture
def three(peers: Peers, alice: Peer, bob: Peer) -> list[Peer]:
    """Three attesters, of whom Bob is the generator; and an item of each."""
    carol = peers.add("carol")
    agree_on(peers, alice, bob, carol, generator=device(bob))
    for peer in peers.all:
        note(peer, peer.name)
    peers.sync()
    return [alice, bob, carol]


def reasons(peer: Peer) -> list[str]:
    """Why geneses and votes do not count."""
    return list(peer.epochs.chain().reasons.values())


# -- a wrong snapshot


def test_a_wrong_snapshot_is_refused_aloud_and_another_declares_the_right_one(peers: Peers, three: list[Peer]) -> None:
    alice, bob, carol = three
    genesis = honest(bob)
    right = genesis.snapshot
    say(bob, replace(genesis, snapshot=OTHER))
    settle(peers)
    for peer in three:
        assert peer.epochs.number == 0
        assert peer.party.status().epoch == 0
        spoken = {who: (claim.reason, claim.computed, claim.snapshot) for who, claim in refusals(peer)}
        assert spoken == {device(alice): (WRONG, right, OTHER), device(carol): (WRONG, right, OTHER)}
    assert not alice.epochs.step(), "it is said once"

    genesis = takes_over(peers, carol, alice, carol)
    same(*three)
    assert genesis.term == 1
    assert carol.epochs.number == 1
    assert "it declares another snapshot" not in " ".join(reasons(alice))


def test_who_comes_to_another_snapshot_than_the_final_one_says_so_and_goes_on(
    peers: Peers, alice: Peer, bob: Peer
) -> None:
    """Without a policy the founder decides alone, and lies. Bob does not stand on that until he gives in."""
    mine = note(alice, "truth")
    peers.sync()
    genesis = honest(alice)
    wrong = replace(genesis, snapshot=bytes(_lie(alice, genesis, mine.id)))
    say(alice, wrong)
    peers.settle()
    differs = bob.epochs.disagreement
    assert differs is not None
    assert (differs.number, differs.theirs, differs.ours) == (1, wrong.snapshot, genesis.snapshot)
    assert (bob.epochs.number, bob.epochs.prune()) == (0, 0)
    spoken = [act.claim for act in member(alice).machine.acts() if isinstance(act.claim, EpochRefusal)]
    assert EpochRefusal(0, 1, wrong.snapshot, genesis.snapshot, WRONG) in spoken, "Alice hears of it too"
    note(bob, "Bob goes on")
    bob.restart(crash=True)
    bob.epochs.step()
    assert bob.epochs.disagreement == differs, "a restart changes nothing"
    assert [act.claim for act in member(bob).machine.acts() if isinstance(act.claim, EpochRefusal)].count(
        EpochRefusal(0, 1, wrong.snapshot, genesis.snapshot, WRONG)
    ) >= 1

    peers.pass_blobs(alice, bob, whole=True)
    assert bob.epochs.adopt()
    peers.pass_blobs(alice, bob, whole=True)
    assert bob.epochs.number == 1
    assert bob.party.item(mine.id).value == {"title": "a lie"}
    with pytest.raises(InvalidInput, match="does not differ"):
        bob.epochs.adopt()


def _lie(alice: Peer, genesis: EpochGenesis, item: bytes) -> Cid:
    """The snapshot that says something else of an item."""
    root = SnapshotRoot.decode(alice.blobs.get(Cid(genesis.snapshot)))
    lie = alice.party.snapshot(item).replace(b"truth", b"a lie")
    assert item_codec.restore(lie, alice.models).value == {"title": "a lie"}
    items = tree.update(root.items, [(item, lie)], alice.blobs)
    return alice.blobs.put(replace(root, items=items).encode(), DAG_CBOR)


# -- forged ones


def signed_by(peer: Peer, claim: EpochGenesis, pair: KeyPair) -> bytes:
    return credential.sign(peer.party.key, claim, [pair], nonce=bytes(16))


def test_a_forged_epoch_counts_for_nobody(peers: Peers, three: list[Peer]) -> None:
    """Mallory has a feed, and no key but her own. She writes what the generator might have said."""
    _, bob, _ = three
    mallory = peers.add("mallory")
    genesis = honest(bob)
    stolen = bytearray(signed_by(bob, genesis, member(bob).device.pair))
    stolen[-1] ^= 1  # one bit of the generator's signature
    forgeries = [
        signed_by(mallory, genesis, KeyPair.from_seed(b"a key that nobody knows of......")),
        signed_by(mallory, genesis, member(mallory).device.pair),
    ]
    for signed in forgeries:
        member(mallory)._append(signed)
    broken = message_pb2.Message(credential=credential_pb2.SignedCredential.FromString(bytes(stolen)))
    writer = member(mallory).control
    assert writer is not None
    writer.append(Kind.CREDENTIAL, SYSTEM_ITEM, broken.SerializeToString(deterministic=True))
    settle(peers)
    for peer in peers.all:
        assert peer.epochs.number == 0
        assert [proposal.attested for proposal in peer.epochs.chain().open.proposals if not proposal.reason] == []
        assert any("nobody who signed it" in reason for reason in reasons(peer)), reasons(peer)
        voids = [void.reason for void in member(peer).voids]
        assert any("signature" in reason or "signed" in reason for reason in voids), voids
    epoch(peers, bob)  # the generator's own still counts
    same(*peers.all)


def test_an_epoch_of_another_party_counts_for_nobody(peers: Peers, alice: Peer, tmp_path: Any) -> None:
    note(alice)
    genesis = honest(alice)
    elsewhere = credential.sign(bytes(32), genesis, [member(alice).device.pair])
    member(alice)._append(elsewhere)
    alice.epochs.step()
    assert alice.epochs.number == 0
    assert alice.epochs.chain().open.proposals == ()


# -- who may not


def test_who_is_not_the_generator_declares_nothing(peers: Peers, three: list[Peer]) -> None:
    _, bob, carol = three
    with pytest.raises(NotAuthorised, match="term 0 of epoch 1 is that of device"):
        carol.epochs.declare()
    spoilt(carol)  # she does it all the same, and it is right in all else
    settle(peers)
    for peer in three:
        assert peer.epochs.number == 0
        assert any("term 0 of epoch 1 is that of device" in reason for reason in reasons(peer))
        assert refusals(peer) == [], "it needs no refusal: it is nobody's turn but the generator's"
    epoch(peers, bob)


def test_a_generator_without_the_role_is_refused_aloud_until_it_has_it(peers: Peers, alice: Peer, bob: Peer) -> None:
    robot = peers.add("robot", Role.EDITOR)
    agree_on(peers, alice, bob, generator=device(robot))
    note(alice)
    peers.sync()
    with pytest.raises(NotAuthorised, match="has not the role to declare epochs"):
        robot.epochs.declare()
    spoilt(robot)
    settle(peers)
    assert {who for who, claim in refusals(robot) if "has not the role" in claim.reason} == {device(alice), device(bob)}
    assert {peer.epochs.number for peer in peers.all} == {0}

    member(alice).admit(robot.key, [Role.EPOCH_GENERATOR])
    peers.sync()
    genesis = takes_over(peers, alice, alice, bob)
    assert genesis.number == 1
    epoch(peers, robot)
    same(*peers.all)


# -- what an attester finds wrong


def without(genesis: EpochGenesis, feed: bytes) -> dict[bytes, int]:
    return {other: length for other, length in genesis.cut.items() if other != feed}


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda genesis, _: {"created_ms": genesis.created_ms + 400_000}, "created in the future"),
        (lambda genesis, feed: {"cut": without(genesis, feed)}, "the cut is not closed"),
        (lambda genesis, feed: {"cut": {**genesis.cut, feed: 0}}, "the cut is not closed"),
        (lambda genesis, _: {"control": Timeframe(dict.fromkeys(genesis.control, 0))}, "has seen more than is in it"),
        (lambda genesis, _: {"models": ()}, WRONG),
        (lambda genesis, _: {"created_ms": genesis.created_ms + 1}, WRONG),
    ],
    ids=["future", "a feed less", "not closed", "control not closed", "other models", "another time"],
)
def test_an_attester_refuses_aloud(
    peers: Peers, three: list[Peer], wrong: Callable[[EpochGenesis, bytes], dict[str, Any]], reason: str
) -> None:
    alice, bob, carol = three
    shared = note(alice, "seen by all")
    peers.sync()
    for peer in (bob, carol):
        peer.party.item(shared.id).edit("set", "by", peer.name)
    peers.sync()
    genesis = honest(bob)
    say(bob, replace(genesis, **wrong(genesis, bytes(member(alice).open_data_feed().feed))))
    settle(peers)
    assert {peer.epochs.number for peer in three} == {0}
    for peer in three:
        spoken = {who: claim.reason for who, claim in refusals(peer)}
        assert set(spoken) == {device(alice), device(carol)}
        for text in spoken.values():
            assert reason in text
    takes_over(peers, carol, alice, carol)
    same(*three)


def test_an_epoch_created_before_the_last_one_is_void(peers: Peers, three: list[Peer]) -> None:
    _, bob, carol = three
    last = epoch(peers, bob)
    note(carol)
    peers.sync()
    spoilt(bob, created_ms=last.created_ms - 1)
    settle(peers)
    for peer in three:
        assert peer.epochs.number == 1
        assert "it was created before epoch 1 [epoch.genesis]" in reasons(peer)


def test_an_epoch_upon_another_than_the_last_or_behind_its_cut_is_void(peers: Peers, three: list[Peer]) -> None:
    alice, bob, carol = three
    one = epoch(peers, bob)
    note(carol)
    peers.sync()
    genesis = honest(bob)
    for wrong in (
        replace(genesis, previous=OTHER),
        replace(genesis, previous=b""),
        replace(genesis, cut={feed: max(0, length - 1) for feed, length in one.cut.items()}),
        replace(genesis, control=Timeframe(dict.fromkeys(genesis.control, 0))),
    ):
        say(bob, wrong)
    settle(peers)
    for peer in three:
        assert peer.epochs.number == 1
        found = " / ".join(reasons(peer))
        assert "it does not follow the final epoch 1" in found
        assert len(reasons(peer)) >= 4
    takes_over(peers, alice, alice, carol)
    same(*three)


def test_a_lying_clock_is_believed_as_far_as_policy_allows(peers: Peers, alice: Peer, bob: Peer) -> None:
    carol = peers.add("carol")
    agree_on(peers, alice, bob, carol, generator=device(bob), skew_ms=10_000_000)
    note(alice)
    peers.sync()
    assert isinstance(bob.clock, Ticks)
    bob.clock.ms += 9_000_000
    genesis = epoch(peers, bob)
    assert isinstance(alice.clock, Ticks)
    assert genesis.created_ms > alice.clock.ms + 8_000_000
    note(carol)
    following = epoch(peers, bob)
    assert following.created_ms >= genesis.created_ms


# -- a stale term


def test_a_stale_term_wins_nothing(peers: Peers, three: list[Peer]) -> None:
    """Bob declares in term 0, but nobody hears it before a quorum has endorsed Carol for term 1."""
    alice, bob, carol = three
    peers.all.remove(bob)
    for peer in (alice, carol):
        member(peer).endorse(1, device(carol))
        peers.sync()
    stale = bob.epochs.declare()
    peers.all.append(bob)
    peers.sync()
    for peer in three:
        peer.epochs.step()
    assert {peer.epochs.number for peer in three} == {0}, "his own word alone is no quorum"
    assert [p.attested for p in alice.epochs.chain().open.proposals] == [(device(bob),)]
    with pytest.raises(NotAuthorised, match="endorsed term 1"):
        member(alice).attest(alice.epochs.chain().open.proposals[0].act)
    note(alice, "so that it is another epoch")
    peers.sync()
    genesis = carol.epochs.declare()
    settle(peers)
    same(*three)
    assert carol.epochs.chain().final[0].snapshot == genesis.snapshot
    assert genesis.snapshot != stale.snapshot
    assert "epoch 1 is final with another snapshot [epoch.decided]" in reasons(bob)


# -- forks of epochs


def test_of_two_epochs_of_one_term_the_first_holds(peers: Peers, three: list[Peer]) -> None:
    _, bob, _ = three
    one = spoilt(bob)
    note(bob, "and once more")
    other = replace(honest(bob), created_ms=one.created_ms + 5)
    say(bob, other)
    settle(peers)
    same(*three)
    for peer in three:
        assert peer.epochs.chain().final[0].snapshot == one.snapshot
        assert "its device had declared another genesis in this term before [epoch.vote]" in reasons(peer)
