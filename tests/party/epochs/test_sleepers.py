"""Who slept through epochs loses nothing; and what comes late to something that is gone has one outcome everywhere."""

from __future__ import annotations

import pytest
from tests.party.epochs.epoch_acts import agree_on, epoch, join, member, note, same, settle, told
from tests.party.helpers import Story

from antiphon.core.errors import UnknownItem
from antiphon.feed.encoder import Draft
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.live.item import Item
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.snapshot.root import encode_death
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow


def away(peers: Peers, sleeper: Peer) -> None:
    peers.sync()
    peers.all.remove(sleeper)


def three_epochs(peers: Peers, writer: Peer) -> None:
    for number in range(3):
        note(writer, f"meanwhile {number}")
        epoch(peers)


@pytest.mark.parametrize("pruned", [False, True])
@pytest.mark.parametrize("restart", ["no", "clean", "crash", "rebuilt"])
def test_who_slept_through_three_epochs_and_wrote_meanwhile_loses_nothing(
    peers: Peers, alice: Peer, bob: Peer, pruned: bool, restart: str
) -> None:
    carol = peers.add("carol")
    board = note(alice, "ours")
    text = alice.party.create("antiphon/text")
    text.edit("insert", 0, "ac")
    count = alice.party.create("antiphon/object")
    count.edit("increment", "n", 1)
    away(peers, bob)
    bob.party.item(board.id).edit("set", "by Bob", True)
    bob.party.item(text.id).edit("insert", 1, "b")
    bob.party.item(count.id).edit("increment", "n", 10)
    mine = note(bob, "Bob's own")
    three_epochs(peers, alice)
    board.edit("set", "by Alice", True)
    count.edit("increment", "n", 100)
    if pruned:
        assert all(peer.epochs.prune() > 0 for peer in (alice, carol))
    if restart == "rebuilt":
        bob.rebuild()
    elif restart != "no":
        bob.restart(crash=restart == "crash")
    note(bob, "and once more")
    peers.all.append(bob)
    settle(peers)
    dora = join(peers, "dora", of=alice)
    settle(peers)
    same(alice, bob, carol, dora)
    assert bob.epochs.number == 3
    for peer in (alice, bob, carol, dora):
        assert peer.party.item(board.id).value == {"title": "ours", "by Bob": True, "by Alice": True}
        assert peer.party.item(text.id).value == "abc"
        assert peer.party.item(count.id).value == {"n": 111}
        assert peer.party.item(mine.id).value == {"title": "Bob's own"}
    assert told(alice) == told(bob) == told(carol) == told(dora) == []
    epoch(peers)
    same(alice, bob, carol, dora)


def test_who_slept_writes_on_in_the_same_feed(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Its own blocks are still here, so it needs no new feed, and others link what comes to what they hold."""
    note(bob, "before")
    away(peers, bob)
    stamp = note(bob, "asleep").history()[0].stamp
    three_epochs(peers, alice)
    alice.epochs.prune()
    peers.all.append(bob)
    settle(peers)
    after = note(bob, "awake").history()[0].stamp
    assert after.feed == stamp.feed
    assert after.seq == stamp.seq + 2
    peers.sync()
    same(alice, bob)


def test_late_messages_of_an_ordered_item_come_after_the_base(peers: Peers, alice: Peer, bob: Peer) -> None:
    """An ORDERED model takes them in the total order, and the epoch is the first thing in it."""
    for peer in peers.all:
        peer.models.register(Story)
    story = alice.party.create("test/story")
    story.edit("tell", "one")
    away(peers, bob)
    bob.party.item(story.id).edit("tell", "late")  # its lamport is low
    for word in ("two", "three"):
        story.edit("tell", word)
    epoch(peers)
    story.edit("tell", "four")
    peers.all.append(bob)
    settle(peers)
    for peer in (alice, bob):
        assert peer.party.item(story.id).value == [b"one", b"two", b"three", b"late", b"four"]
    same(alice, bob)


# -- what is gone


@pytest.fixture
def talk(peers: Peers, alice: Peer, bob: Peer) -> Item:
    """A messenger, in a party that keeps two posts."""
    agree_on(peers, alice, message_count=2)
    made = alice.party.create("antiphon/messenger")
    for number in range(4):
        made.edit("post", f"post {number}")
    return made


def test_late_edits_of_a_discarded_post_do_nothing_anywhere(peers: Peers, alice: Peer, bob: Peer, talk: Item) -> None:
    """Bob edits, answers and withdraws posts that the epoch has let go; and one that it has kept."""
    posts = [event.stamp for event in talk.history()[1:]]
    away(peers, bob)
    here = bob.party.item(talk.id)
    here.edit("edit", posts[0], "changed")
    here.edit("redact", posts[1])
    here.edit("edit", posts[3], "post 3, changed")
    here.edit("post", "an answer", reply_to=posts[0])
    epoch(peers)
    assert len(talk.value) == 2
    peers.all.append(bob)
    settle(peers)
    carol = join(peers, "carol")
    bodies = [post["body"] for post in carol.party.item(talk.id).value]
    assert bodies == ["post 2", "post 3, changed", "an answer"]
    same(alice, bob, carol)
    epoch(peers)
    same(alice, bob, carol)
    assert [post["body"] for post in bob.party.item(talk.id).value] == bodies[1:]


@pytest.mark.parametrize("limit", [1, 2])
def test_an_item_goes_so_many_epochs_after_it_was_deleted(peers: Peers, alice: Peer, bob: Peer, limit: int) -> None:
    agree_on(peers, alice, deleted_epochs=limit)
    mine = note(alice, "to be deleted")
    kept = note(alice, "deleted, and restored in time")
    for item in (mine, kept):
        item.delete()
    for number in range(limit):
        epoch(peers)
        assert alice.party.item(mine.id).deleted, number
        if not number:
            bob.party.item(kept.id).restore()
    epoch(peers)
    carol = join(peers, "carol")
    for peer in (alice, bob, carol):
        with pytest.raises(UnknownItem):
            peer.party.item(mine.id)
        assert not peer.party.item(kept.id).deleted
    same(alice, bob, carol)
    base = carol.epochs.base
    assert base is not None
    assert list(base.deaths()) == []


@pytest.mark.parametrize("limit", [0, 3])
def test_the_list_of_the_deleted_says_since_when_and_costs_what_changed(
    peers: Peers, alice: Peer, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is ever let go, an epoch does not read all of it; its tree is the one that all entries make."""
    agree_on(peers, alice, deleted_epochs=limit)
    items = [note(alice, f"note {number}") for number in range(6)]
    for item in items[:4]:
        item.delete()
    epoch(peers)
    items[0].restore()
    items[1].edit("set", "title", "edited, and still deleted")
    items[4].delete()
    if not limit:
        monkeypatch.setattr(EpochBase, "deaths", lambda _: pytest.fail("all of it is read"))
    epoch(peers)
    monkeypatch.undo()
    base = alice.epochs.base
    assert base is not None
    wanted = {bytes(item.id): 1 for item in items[1:4]} | {bytes(items[4].id): 2}
    assert dict(base.deaths()) == wanted
    entries = [(item, encode_death(number)) for item, number in sorted(wanted.items())]
    assert base.root.deaths == tree.build(entries, MemoryBlobs())


def test_messages_to_an_item_that_is_gone_are_refused_everywhere(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Bob restores and edits it while he is away; for everybody, joiners too, there is no such item any more."""
    agree_on(peers, alice, deleted_epochs=1)
    mine = note(alice, "to be deleted")
    away(peers, bob)
    here = bob.party.item(mine.id)
    here.edit("set", "late", True)
    here.restore()
    mine.delete()
    for _ in range(2):
        epoch(peers)
    peers.all.append(bob)
    settle(peers)
    carol = join(peers, "carol", of=alice)
    settle(peers)
    for peer in (alice, bob, carol):
        assert mine.id not in peer.party.items()
        assert len(told(peer)) == 2
        assert "there is no such item" in told(peer)[0]
    assert told(alice) == told(bob) == told(carol)
    same(alice, bob, carol)
    epoch(peers)
    same(alice, bob, carol)


def test_an_id_that_is_gone_cannot_be_taken_again(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Its genesis, which somebody keeps, comes again: it lies inside the cut, and nothing there counts twice."""
    agree_on(peers, alice, deleted_epochs=1)
    mine = note(alice, "to be deleted")
    genesis = alice.store.block(mine.history()[0].stamp.feed, mine.history()[0].stamp.seq)
    mine.delete()
    for _ in range(2):
        epoch(peers)
    assert genesis.message is not None
    bob.forge(Draft(genesis.kind, mine.id, genesis.message))
    settle(peers)
    carol = join(peers, "carol")
    for peer in (alice, bob, carol):
        assert mine.id not in peer.party.items()
        assert len(told(peer)) == 1
    assert told(alice) == told(bob) == told(carol)
    same(alice, bob, carol)
    assert member(carol).state.digest == member(alice).state.digest
