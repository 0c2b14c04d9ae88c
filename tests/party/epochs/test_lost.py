"""The snapshot that a party stands on is lost on its own disk: it opens all the same, and what was lost is fetched."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.party.epochs.epoch_acts import epoch, fetch_all, note, same
from tests.snapshot.helpers import damage

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import MissingBlocks
from antiphon.party.engine.ports import BaseMark, Save
from antiphon.snapshot.blob_store import BlobStore
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow

Loss = Callable[[Peer, Cid], None]


def on_disk(peer: Peer) -> BlobStore:
    assert isinstance(peer.blobs, BlobStore)
    return peer.blobs


def missing(peer: Peer, root: Cid) -> None:
    on_disk(peer).delete([root])


def damaged(peer: Peer, root: Cid) -> None:
    """Change the blob where it lies in the file."""
    blobs = on_disk(peer)
    data = blobs.get(root)
    blobs.close()
    damage(blobs.path, data)
    peer.blobs = BlobStore.open(blobs.path)


@pytest.fixture
def bob(peers: Peers, alice: Peer, tmp_path: Path) -> Iterator[Peer]:
    """His blobs are on a disk, and he stands on an epoch; more came since."""
    peer = peers.add("bob")
    peer.party.close()
    peer.blobs = BlobStore.open(tmp_path / "blobs")
    peer.party = peer._run()
    note(alice, "in the epoch")
    note(peer, "Bob's own")
    epoch(peers)
    note(alice, "after it")
    peers.sync()
    peer.party.save()
    yield peer
    peer.party.close()
    on_disk(peer).close()


def lose(bob: Peer, how: Loss, cid: Cid | None = None) -> Cid:
    """A blob, else the root of the snapshot that he stands on."""
    base = bob.epochs.base
    assert base is not None
    lost = base.cid if cid is None else cid
    bob.party.close()
    how(bob, lost)
    bob.party = bob._run()
    return lost


@pytest.mark.parametrize("how", [missing, damaged])
def test_it_is_folded_from_the_feeds_where_those_are_whole(peers: Peers, alice: Peer, bob: Peer, how: Loss) -> None:
    before = bob.snapshots()
    root = lose(bob, how)
    assert str(root) in bob.party.why_rebuilt
    assert bob.snapshots() == before
    assert bob.epochs.base is None
    bob.epochs.step()
    assert bob.epochs.number == 1, "it is computed again, and put"
    assert on_disk(bob).get(root)
    same(alice, bob)


@pytest.mark.parametrize("how", [missing, damaged])
def test_it_stands_on_nothing_until_the_blobs_come(peers: Peers, alice: Peer, bob: Peer, how: Loss) -> None:
    bob.epochs.prune()
    before = bob.snapshots()
    root = lose(bob, how)
    assert str(root) in bob.party.why_rebuilt
    assert bob.party.items() == []
    bob.epochs.step()
    assert str(root) in bob.epochs.waits_for
    assert bob.epochs.wanted() == [root]
    with pytest.raises(MissingBlocks, match="the snapshot that holds them is not here"):
        note(bob, "after what he does not know")
    bob.restart()
    assert bob.party.items() == []
    fetch_all(peers, bob)
    assert bob.snapshots() == before
    note(bob, "he goes on")
    peers.settle()
    same(alice, bob)


@pytest.mark.parametrize("how", [missing, damaged])
def test_blocks_and_blobs_come_though_it_is_not_known_where_feeds_were_cut(
    peers: Peers, alice: Peer, bob: Peer, how: Loss
) -> None:
    """The tree of feeds is lost. What Bob stands on is in his item store, and new messages link up with his feeds."""
    bob.epochs.prune()
    base = bob.epochs.base
    assert base is not None
    assert base.root.feeds is not None
    lose(bob, how, base.root.feeds)
    later = note(alice, "later")
    peers.sync()
    assert bob.party.item(later.id).value == {"title": "later"}
    fetch_all(peers, bob)
    assert on_disk(bob).get(base.root.feeds)
    epoch(peers)
    same(alice, bob)


def test_what_is_no_snapshot_is_put_aside_like_one_that_is_lost(alice: Peer, bob: Peer) -> None:
    """The mark of the item store names something else; it is derived, and made anew."""
    wrong = bob.blobs.put(b"\xa0", DAG_CBOR)
    before = bob.snapshots()
    with bob.party.locked() as engine, engine.items.saving() as put:
        put(Save(base=BaseMark(1, wrong, True)))
    bob.restart()
    assert "cannot be read" in bob.party.why_rebuilt
    assert bob.epochs.number == 1, "the snapshot of the epoch itself is here"
    assert bob.snapshots() == before


def test_an_item_store_from_before_a_feed_that_was_pruned_is_made_anew(
    peers: Peers, alice: Peer, bob: Peer, tmp_path: Path
) -> None:
    """A crash takes the item store back to an epoch without Carol; her feed is pruned since, and Bob has seen it."""
    epoch(peers)
    bob.party.close()
    older = [shutil.copy(bob.folder / name, tmp_path) for name in ("items.db", "items.db-sums")]
    bob.party = bob._run()
    note(peers.add("carol"), "in the next epoch")
    epoch(peers)
    later = note(bob, "after it")
    bob.epochs.prune()
    before = bob.snapshots()
    bob.party.close()
    for file in older:
        shutil.copy(file, bob.folder)
    bob.party = bob._run()
    assert bob.party.why_rebuilt == "the feeds are not those that it was made from"
    assert bob.epochs.number == 3
    assert bob.snapshots() == before
    bob.party.item(later.id).edit("set", "title", "he goes on")
    peers.settle()
    same(*peers.all)


def test_an_earlier_epoch_is_stood_on_while_blobs_of_the_last_are_missing(
    peers: Peers, alice: Peer, bob: Peer, tmp_path: Path
) -> None:
    """Bob's feed is pruned up to epoch 2, a crash takes his item store back to 1, and of epoch 3 he has only heard."""
    bob.party.close()
    older = shutil.copy(bob.folder / "items.db", tmp_path)
    bob.party = bob._run()
    note(bob, "in the next epoch")
    epoch(peers)
    bob.epochs.prune()
    note(alice, "in the last epoch")
    epoch(peers)
    last = bob.epochs.base
    assert last is not None
    missing(bob, last.cid)
    bob.party.close()
    shutil.copy(older, bob.folder)
    bob.party = bob._run()
    assert bob.epochs.base is not None
    assert bob.epochs.base.number == 2
    note(bob, "he goes on")
    fetch_all(peers, bob)
    peers.settle()
    same(alice, bob)
