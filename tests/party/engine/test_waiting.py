"""A party that began at a snapshot folds what came after it when somebody asks: for an item, or for all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.party.epochs.epoch_acts import epoch, held, join, member, note

from antiphon.core.cid import Cid
from antiphon.core.errors import MissingBlob
from antiphon.core.stamp import Stamp
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.halo.credentials.claims import Position, Role
from antiphon.party.engine import demux
from antiphon.party.engine.judge import ERASED
from antiphon.snapshot import tree
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow


@pytest.fixture
def carol(peers: Peers, alice: Peer) -> Peer:
    """A joiner with all blobs, who stands on an epoch with ten notes and opens nothing; four have changed since."""
    notes = [note(alice, f"note {number}") for number in range(10)]
    epoch(peers)
    carol = join(peers, "carol", Role.EDITOR)
    for item in notes[:3]:
        item.edit("set", "title", "changed")
    note(alice, "new")
    peers.sync()
    return carol


def waiting(peer: Peer) -> int:
    with peer.party.locked() as engine:
        return engine._demux.count


def titled(peer: Peer, title: str) -> list[bytes]:
    return [item for item in peer.party.items() if peer.party.item(item).value["title"] == title]


def test_an_item_is_folded_when_it_is_opened_and_the_others_wait(alice: Peer, carol: Peer) -> None:
    changed, untouched = titled(alice, "changed")[0], titled(alice, "note 9")[0]
    fresh = titled(alice, "new")[0]
    before = waiting(carol)
    assert before >= 5
    assert carol.party.item(changed).value == {"title": "changed"}
    assert carol.party.item(untouched).value == {"title": "note 9"}
    assert carol.party.item(fresh).value == {"title": "new"}
    assert waiting(carol) == before  # they are folded, not forgotten: nothing is saved without the others
    assert carol.snapshots() == alice.snapshots()
    assert not waiting(carol)


def test_what_comes_to_an_open_item_is_folded_at_once_and_told(peers: Peers, alice: Peer, carol: Peer) -> None:
    item = carol.party.item(titled(alice, "changed")[0])
    told: list[object] = []
    item.observe(lambda seen: told.append(seen.value["title"]))
    alice.party.item(item.id).edit("set", "title", "again")
    peers.sync()
    assert told == ["again"]
    assert waiting(carol)
    carol.party.save()
    assert told == ["again"]  # once
    assert carol.snapshots() == alice.snapshots()


def test_an_item_that_left_the_cache_waits_anew(peers: Peers, alice: Peer, carol: Peer) -> None:
    item = titled(alice, "note 9")[0]
    assert carol.party.item(item).value["title"] == "note 9"
    with carol.party.locked() as engine:
        engine.cache.drop(item)
    alice.party.item(item).edit("set", "title", "later")
    peers.sync()
    assert carol.snapshots() == alice.snapshots()


@pytest.mark.parametrize(
    "ask",
    [
        lambda party: party.status().items,
        lambda party: len(party.items()),
        lambda party: len(party.refused()) + party.status().items - 1,
    ],
)
def test_whoever_asks_about_all_of_them_is_told_about_all(
    peers: Peers, alice: Peer, carol: Peer, ask: Callable[[object], int]
) -> None:
    alice.forge(Draft(Kind.MUTATION, titled(alice, "changed")[0], b"rubbish"))
    alice.party.process()
    peers.sync()
    assert waiting(carol)
    assert ask(carol.party) == 11
    assert not waiting(carol)
    assert carol.party.refused() == alice.party.refused() != []


def test_a_crash_or_a_rest_loses_nothing_that_waited(peers: Peers, alice: Peer, carol: Peer) -> None:
    item = carol.party.item(titled(alice, "changed")[0])
    item.edit("set", "by", "carol")
    assert waiting(carol)
    carol.restart(crash=True)
    peers.sync()
    assert carol.party.item(item.id).value == {"title": "changed", "by": "carol"}
    carol.restart()
    assert carol.snapshots() == alice.snapshots()


def test_inside_a_batch_nothing_of_it_is_saved_with_what_waits(alice: Peer, carol: Peer) -> None:
    item = carol.party.item(titled(alice, "changed")[0])

    def act() -> None:
        with carol.party.batch():
            item.edit("set", "title", "never written")
            assert item.history()  # this looks at the item store, and so at all that waits
            assert not waiting(carol)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        act()
    assert item.value == {"title": "changed"}
    carol.restart()
    assert carol.snapshots() == alice.snapshots()


def test_a_revocation_voids_what_waits(peers: Peers, alice: Peer, bob: Peer, carol: Peer) -> None:
    item = titled(alice, "changed")[0]
    bob.party.item(item).edit("set", "title", "by bob")
    member(alice).revoke(bob.key)  # who has not heard of it
    peers.pass_on(bob, carol)
    assert waiting(carol)
    peers.sync()
    assert carol.party.refused() == alice.party.refused() != []
    assert carol.snapshots() == alice.snapshots()


def test_no_more_waits_than_memory_allows(
    peers: Peers, alice: Peer, carol: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demux, "NOTES_MAX", 20)
    item = alice.party.item(titled(alice, "note 9")[0])
    for number in range(60):
        item.edit("set", "title", str(number))
    peers.sync()
    assert waiting(carol) < 20
    assert carol.snapshots() == alice.snapshots()


def lose_items(peer: Peer) -> dict[Cid, bytes]:
    """Lose the blobs of all items in the snapshot, as if they were not fetched yet. Return them."""
    base = peer.epochs.base
    assert base is not None
    assert base.root.items is not None
    lost = {cid: peer.blobs.get(cid) for cid in tree.walk(base.root.items, peer.blobs)}
    held(peer).delete(lost)
    return lost


def erase(peer: Peer, stamp: Stamp) -> None:
    member(peer).erase(Position(stamp.feed, stamp.seq))


def test_an_item_that_began_after_the_snapshot_is_folded_again_without_its_blobs(
    peers: Peers, alice: Peer, carol: Peer
) -> None:
    """Its state once stayed, with the erased message in it; the next epoch found another snapshot (seed 100000592)."""
    lost = lose_items(carol)
    item = note(carol, "harmless")
    erase(carol, item.edit("set", "title", "secret"))
    carol.party.process()
    assert item.value == {"title": "harmless"}
    item.edit("set", "also", "mine")
    peers.sync()
    carol.blobs.put_all(lost.items())
    assert carol.party.item(item.id).value == {"title": "harmless", "also": "mine"}
    assert [row.reason for row in carol.party.refused()] == [ERASED]
    assert carol.party.refused() == alice.party.refused()
    assert carol.snapshots() == alice.snapshots()


@pytest.mark.parametrize("restarts", [False, True])
def test_an_item_whose_blobs_are_lost_does_not_show_what_became_void(
    peers: Peers, alice: Peer, carol: Peer, restarts: bool
) -> None:
    item = alice.party.item(titled(alice, "note 9")[0])
    stamp = item.edit("set", "title", "secret")
    peers.sync()
    assert carol.party.item(item.id).value == {"title": "secret"}
    lost = lose_items(carol)
    erase(alice, stamp)
    peers.sync()
    if restarts:
        carol.restart()
    with pytest.raises(MissingBlob):
        carol.party.item(item.id).value  # noqa: B018
    carol.blobs.put_all(lost.items())
    assert carol.party.item(item.id).value == {"title": "note 9"}
    assert carol.party.refused() == alice.party.refused() != []
    assert carol.snapshots() == alice.snapshots()


def test_a_late_message_does_not_stop_a_party_without_blobs(peers: Peers, alice: Peer, bob: Peer, carol: Peer) -> None:
    """A shorter list of writers makes a message void that came before it: the item is to be folded again."""
    item = titled(alice, "note 9")[0]
    alice.party.item(item).restrict_writers(alice.key)
    after = note(alice, "after it")
    for title in ("by bob", "by bob, with a greater lamport", "by bob at last"):
        bob.party.item(item).edit("set", "title", title)
    peers.pass_on(bob, carol)
    assert carol.party.item(item).value == {"title": "by bob at last"}
    lost = lose_items(carol)
    peers.sync()
    assert carol.party.item(after.id).value == {"title": "after it"}
    with pytest.raises(MissingBlob):
        carol.party.item(item).value  # noqa: B018
    carol.blobs.put_all(lost.items())
    assert carol.party.item(item).value == alice.party.item(item).value == {"title": "note 9"}
    assert carol.party.refused() == alice.party.refused() != []
    assert carol.snapshots() == alice.snapshots()
