"""Rule 13: an erased message is void everywhere, its bytes go once a final cut covers it, and the chain stays whole."""

from __future__ import annotations

import pytest
from tests.party.epochs.epoch_acts import (
    agree_on,
    device,
    epoch,
    join,
    member,
    note,
    refusals,
    same,
    settle,
    told,
)

from antiphon.core.errors import InvalidInput, MissingBlocks, NotAuthorised
from antiphon.core.stamp import Stamp
from antiphon.feed.block import BodyState
from antiphon.halo.credentials.claims import Position, Role
from antiphon.party.engine.judge import ERASED
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow

SECRET = "her bank account is 12345"


def erase(peer: Peer, stamp: Stamp) -> None:
    member(peer).erase(Position(stamp.feed, stamp.seq))


def bytes_of(peer: Peer) -> bytes:
    """All that this peer could hand out: its blocks and its blobs."""
    found = [block.message or b"" for feed in sorted(peer.lengths()) for block in peer.store.read(feed)]
    return b"".join(found) + b"".join(peer.blobs.get(cid) for cid in peer.blobs)  # type: ignore[attr-defined]


def test_rule_13_an_erased_message_is_void_everywhere(peers: Peers, alice: Peer, bob: Peer) -> None:
    item = note(bob, "harmless")
    stamp = item.edit("set", "title", SECRET)
    peers.sync()
    assert alice.party.item(item.id).value == {"title": SECRET}
    erase(alice, stamp)  # an owner may
    peers.sync()
    for peer in (alice, bob):
        assert peer.party.item(item.id).value == {"title": "harmless"}
        assert [line.endswith(ERASED) for line in told(peer)] == [True]
    with pytest.raises(NotAuthorised):  # he is no owner, and it is not his
        erase(bob, note(alice).history()[0].stamp)
    epoch(peers)
    carol = join(peers, "carol")
    assert carol.party.item(item.id).value == {"title": "harmless"}
    same(alice, bob, carol)


def test_rule_13_the_bytes_go_once_a_final_cut_covers_them(peers: Peers, alice: Peer, bob: Peer) -> None:
    item = note(bob, "harmless")
    stamp = item.edit("set", "title", SECRET)
    peers.sync()
    erase(bob, stamp)  # its writer may
    peers.sync()
    assert SECRET.encode() in bytes_of(alice), "others may still have to recompute what lies before it"
    epoch(peers)
    length = alice.lengths()[stamp.feed]
    for peer in (alice, bob):
        peer.epochs.prune()
        assert SECRET.encode() not in bytes_of(peer)
        assert peer.party.item(item.id).value == {"title": "harmless"}
    note(bob, "after it")
    peers.sync()
    carol = join(peers, "carol")
    assert SECRET.encode() not in bytes_of(carol)
    assert carol.lengths()[stamp.feed] == length + 2, "the chain goes on where it was cut"
    same(alice, bob, carol)


def test_rule_13_a_body_alone_is_erased_and_the_chain_stays(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Who keeps the feeds for history takes the bytes of that one message away, and nothing else."""
    item = note(bob, "harmless")
    stamp = item.edit("set", "title", SECRET)
    item.edit("set", "more", 1)
    peers.sync()
    erase(bob, stamp)
    epoch(peers)
    alice.store.erase(stamp.feed, stamp.seq)
    assert SECRET.encode() not in bytes_of(alice)
    assert alice.store.block(stamp.feed, stamp.seq).hash == bob.store.block(stamp.feed, stamp.seq).hash
    others, peers.all = peers.all, [alice]
    dora = peers.add("dora", Role.READER)  # she has all blocks, and cannot recompute the epoch: she begins at it
    peers.settle()
    peers.pass_blobs(alice, dora, whole=True)
    peers.all = [*others, dora]
    settle(peers)
    same(alice, bob, dora)
    assert dora.party.item(item.id).value == {"title": "harmless", "more": 1}


def test_rule_13_pruning_takes_erased_bodies_of_messages_that_policy_keeps(
    peers: Peers, alice: Peer, bob: Peer
) -> None:
    agree_on(peers, alice, keep_epochs=5)
    item = note(bob, "harmless")
    stamp = item.edit("set", "title", SECRET)
    later = item.edit("set", "title", "harmless")
    peers.sync()
    erase(bob, stamp)
    assert alice.epochs.prune() == 0
    assert SECRET.encode() in bytes_of(alice), "no epoch covers it"
    epoch(peers)
    assert alice.epochs.prune() == 0, "policy keeps the messages"
    assert SECRET.encode() not in bytes_of(alice)
    assert alice.store.block(later.feed, later.seq).state is BodyState.PRESENT
    assert SECRET.encode() in bytes_of(bob), "each device prunes its own disk"
    bob.epochs.prune()
    same(alice, bob)


@pytest.mark.parametrize("generator", ["alice", "bob"])
@pytest.mark.parametrize("erased", [False, True])
def test_rule_13_a_peer_that_lacks_bodies_does_not_attest(
    peers: Peers, alice: Peer, bob: Peer, generator: str, erased: bool
) -> None:
    """Also where it was erased: models remember where void messages stood."""
    chosen = alice if generator == "alice" else bob
    agree_on(peers, alice, bob, generator=device(chosen))
    item = note(alice, "seen by both")
    peers.sync()
    stamp = item.edit("set", "title", "Bob has only the header")
    if erased:
        erase(alice, stamp)
    spans = alice.ranges(bob.lengths())
    for span in spans:
        bob.take([span.without_bodies() if span.feed == stamp.feed else span])
    if chosen is alice:
        alice.epochs.declare()
        peers.sync()
        assert not bob.epochs.step()
        assert "the body of block 2" in bob.epochs.waits_for
        assert alice.epochs.chain().refusals == (), "that is no refusal"
    else:
        with pytest.raises(MissingBlocks, match="the body of block 2"):
            bob.epochs.declare()
    assert {peer.epochs.number for peer in peers.all} == {0}
    bob.take(spans)
    bob.epochs.step()
    if chosen is bob:
        bob.epochs.declare()
    settle(peers)
    same(alice, bob)
    assert bob.epochs.number == 1


def test_rule_13_what_an_epoch_holds_is_not_erased_any_more(peers: Peers, alice: Peer, bob: Peer) -> None:
    """The base is final; to change the item is what is left. Whoever says otherwise is not heeded, in any order."""
    item = note(bob, "harmless")
    stamp = item.edit("set", "title", SECRET)
    epoch(peers)
    with pytest.raises(InvalidInput, match="what it holds is final; change the item instead"):
        erase(alice, stamp)
    tail = item.edit("set", "title", "never mind")
    peers.sync()
    member(alice).erase(Position(stamp.feed, stamp.seq), Position(tail.feed, tail.seq))
    peers.sync()
    carol = join(peers, "carol")
    for peer in (alice, bob, carol):
        assert peer.party.item(item.id).value == {"title": SECRET}
    same(alice, bob, carol)
    item.edit("set", "title", "never mind")
    epoch(peers)
    same(alice, bob, carol)
    alice.epochs.prune()
    assert SECRET.encode() not in alice.party.snapshot(item.id)


def test_rule_13_the_first_body_beyond_a_cut_stays(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Alice has heard of the erasure, and not of the message: the epoch knows the erasure, and its cut ends before."""
    agree_on(peers, alice, keep_epochs=5)
    item = note(bob, "harmless")
    peers.sync()
    stamp = item.edit("set", "title", SECRET)
    erase(bob, stamp)
    alice.take(span for span in bob.ranges(alice.lengths()) if span.feed != stamp.feed)
    alice.epochs.declare()
    peers.settle()
    assert bob.epochs.base is not None
    assert bob.epochs.base.length(stamp.feed) == stamp.seq, "the message is the first beyond the cut"
    bob.epochs.prune()
    assert bob.store.block(stamp.feed, stamp.seq).state is BodyState.PRESENT
    epoch(peers)
    bob.epochs.prune()
    assert bob.store.block(stamp.feed, stamp.seq).state is BodyState.ERASED
    same(alice, bob)


def test_rule_9_an_attester_refuses_an_epoch_that_does_not_know_of_an_erasure(peers: Peers, alice: Peer) -> None:
    """Bob declares before he hears that Alice has erased a message that his cut holds."""
    bob, carol = peers.add("bob", Role.OWNER), peers.add("carol")
    agree_on(peers, alice, bob, generator=device(bob))
    item = note(carol, "harmless")
    stamp = item.edit("set", "title", SECRET)
    peers.sync()
    erase(alice, stamp)
    bob.epochs.declare()
    peers.settle()
    assert {peer.epochs.number for peer in peers.all} == {0}
    ((who, refusal),) = refusals(carol)
    assert who == device(alice)
    assert "lacks the erasure" in refusal.reason


@pytest.mark.parametrize("kept", range(4))
def test_pruning_leaves_what_the_epochs_that_policy_keeps_cover(
    peers: Peers, alice: Peer, bob: Peer, kept: int
) -> None:
    """A law: a feed begins at its cut in the epoch `keep_epochs` before the last one, and nowhere else."""
    agree_on(peers, alice, keep_epochs=kept)
    item = note(bob)
    cuts: list[dict[bytes, int]] = []
    for number in range(5):
        item.edit("set", "number", number)
        note(alice)
        epoch(peers)
        base = alice.epochs.base
        assert base is not None
        cuts.append({feed: base.length(feed) for feed in alice.lengths()})
        for peer in (alice, bob):
            peer.epochs.prune()
            wanted = cuts[-1 - kept] if len(cuts) > kept else {}
            starts = {feed: peer.store.bounds(feed).start for feed in peer.lengths()}
            assert starts == {feed: wanted.get(feed, 0) for feed in starts}
    same(alice, bob)
