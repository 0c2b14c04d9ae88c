"""Time travel across epochs: the party as it was at any moment, as far as messages or snapshots are held."""

from __future__ import annotations

import random
import tempfile
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget

from antiphon.core.cid import Cid
from antiphon.core.errors import MissingBlob, MissingBlocks, NotAuthorised, UnknownItem
from antiphon.core.timeframe import Timeframe
from antiphon.halo.credentials.claims import Policy
from antiphon.party.epochs.snapshot_fold import EpochFold
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow

EXAMPLES = budget(8, 200)
Moment = tuple[Timeframe, dict[bytes, Any]]


def now(peer: Peer) -> Moment:
    return peer.party.timeframe, {item: peer.party.item(item).value for item in peer.party.items()}


def check(peer: Peer, moment: Moment) -> None:
    timeframe, values = moment
    past = peer.party.at(timeframe)
    assert {item: past.item(item).value for item in past.items()} == values


def test_every_moment_before_between_and_after_epochs(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/text")
    moments = []
    for number in range(6):
        (alice, bob)[number % 2].party.item(note.id).edit("insert", 0, f"{number} ")
        peers.settle()
        moments.append(now(alice))
        if number % 2:
            alice.epochs.declare()
            peers.settle()
            moments.append(now(alice))
    assert alice.epochs.number == 3
    for peer in (alice, bob):
        for moment in moments:
            check(peer, moment)


def test_a_moment_that_an_epoch_cuts_across(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Bob's moment has messages that the epoch left out, and lacks some that it holds."""
    note = alice.party.create("antiphon/object")
    peers.settle()
    note.edit("set", "alice", 1)
    bob.party.item(note.id).edit("set", "bob", 1)
    moment = now(bob)
    assert bob.party.item(note.id).value == {"bob": 1}
    alice.epochs.declare()
    peers.settle()
    alice.epochs.declare()
    peers.settle()
    for peer in (alice, bob):
        check(peer, moment)


def test_an_item_that_an_epoch_left_out_and_a_later_one_let_go(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Bob's moment has it. It is in neither the first epoch after that, nor in the party now."""
    assert alice.member is not None
    alice.member.set_policy(Policy(attesters=(bytes(alice.device.key),), deleted_epochs=1))
    shared = alice.party.create("antiphon/object")
    peers.settle()
    shared.edit("set", "alice", 1)
    late = bob.party.create("antiphon/object")
    moment = now(bob)
    alice.epochs.declare()
    peers.settle()
    alice.epochs.declare()
    peers.settle()
    bob.party.item(late.id).delete()
    for _ in range(2):
        peers.settle()
        alice.epochs.declare()
    peers.settle()
    for peer in (alice, bob):
        assert late.id not in peer.party.items()
        check(peer, moment)


def test_writers_go_on_while_epochs_are_gone_through(
    peers: Peers, alice: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = alice.party.create("antiphon/object")
    note.edit("set", "number", 0)
    moment = now(alice)
    note.edit("set", "number", 1)
    alice.epochs.declare()
    held, one = [], EpochFold.one

    def looked(fold: EpochFold, item: bytes) -> bytes | None:
        held.append(alice.party.is_held())
        return one(fold, item)

    monkeypatch.setattr(EpochFold, "one", looked)
    check(alice, moment)
    assert held == [False]


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=EXAMPLES)
@pytest.mark.slow
def test_every_moment_of_any_history(seed: int) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, Peers(folder) as peers:
        for name in ("alice", "bob", "carol"):
            peers.add(name)
        moments = [step(peers, chance) for _ in range(40)]
        peers.settle()
        for peer in peers.all:
            for moment in chance.sample(moments, 10):
                check(peer, moment)


def step(peers: Peers, chance: random.Random) -> Moment:
    peer, other = chance.sample(peers.all, 2)
    what = chance.random()
    if what < 0.3:
        peers.pass_on(other, peer)
        peer.epochs.step()
    elif what < 0.4:
        try:
            peer.epochs.declare()
        except NotAuthorised:
            peers.settle()
    elif what < 0.55 or not peer.party.items():
        peer.party.create(chance.choice(["antiphon/object", "antiphon/text", "antiphon/array"]))
    else:
        item = peer.party.item(chance.choice(peer.party.items()))
        value = chance.randrange(1000)
        edits = {
            "antiphon/object": ("set", chance.choice("abc"), value),
            "antiphon/text": ("insert", 0, f"{value} "),
            "antiphon/array": ("insert", 0, [value]),
        }
        item.edit(*edits[item.model[0]])
    return now(peer)


def test_what_is_pruned_is_told_and_what_is_in_snapshots_is_shown(peers: Peers, alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    moments = []
    for number in range(3):
        note.edit("set", "number", number)
        moments.append(now(alice))
        note.edit("set", "more", number)
        alice.epochs.declare()
        moments.append(now(alice))
    assert alice.epochs.prune()
    for at in (1, 3, 5):
        check(alice, moments[at])
    for at in (0, 2, 4):
        with pytest.raises(MissingBlocks, match="are wanted, and those here are"):
            alice.party.at(moments[at][0]).item(note.id)


def test_a_snapshot_that_is_not_here_is_told(peers: Peers, alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    moments = []
    for number in range(3):
        note.edit("set", "number", number)
        alice.epochs.declare()
        moments.append(now(alice))
    first = Cid(alice.epochs.chain().final[0].snapshot)
    assert isinstance(alice.blobs, MemoryBlobs)
    alice.blobs.delete([first])
    check(alice, moments[1])
    with pytest.raises(MissingBlob, match="the snapshot of epoch 1, which that moment needs, is not here"):
        alice.party.at(moments[0][0]).item(note.id)


def test_what_was_discarded_since_is_shown(peers: Peers, alice: Peer) -> None:
    assert alice.member is not None
    alice.member.set_policy(Policy(attesters=(bytes(alice.device.key),), message_count=2, deleted_epochs=1))
    chat, note = alice.party.create("antiphon/messenger"), alice.party.create("antiphon/object")
    note.edit("set", "title", "gone")
    for number in range(4):
        chat.edit("post", number)
    moments = [now(alice)]
    chat.edit("post", 4)
    alice.epochs.declare()
    moments.append(now(alice))  # at the cut itself the epoch counts
    note.delete()
    for number in range(5, 7):
        chat.edit("post", number)
    alice.epochs.declare()
    alice.epochs.declare()
    with pytest.raises(UnknownItem):
        alice.party.item(note.id)
    for moment in moments:
        check(alice, moment)
    assert [len(moment[1][bytes(chat.id)]) for moment in moments] == [4, 2]


def test_a_newcomer_travels_as_far_as_snapshots_are_held(peers: Peers, alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    moments = []
    for number in range(3):
        note.edit("set", "number", number)
        alice.epochs.declare()
        moments.append(now(alice))
    alice.epochs.prune()
    zoe = peers.add("zoe")
    peers.settle()
    peers.pass_blobs(alice, zoe, whole=True)
    peers.settle()
    assert zoe.epochs.number == 3
    check(zoe, moments[2])
    with pytest.raises(MissingBlob, match="epoch 2"):
        zoe.party.at(moments[1][0]).item(note.id)
    second = Cid(alice.epochs.chain().final[1].snapshot)
    zoe.blobs.put_all((cid, alice.blobs.get(cid)) for cid in tree.walk(second, alice.blobs))
    check(zoe, moments[1])
