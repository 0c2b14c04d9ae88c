"""What broke in earlier systems of this kind, tried against epochs.

Trap 5 (everything, and nothing unstable) is `test_laws.py`, too; trap 7 is `test_refusals.py`; that a
computation is cancelled is `test_adoption.py`; that blobs are hashed on their way in is `tests/snapshot`.
"""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
from tests.party.epochs.epoch_acts import agree_on, epoch, held, honest, join, member, note, same, settle

from antiphon.core.cid import Cid
from antiphon.core.errors import AntiphonError, MissingBlob
from antiphon.model import item_codec
from antiphon.party.epochs.snapshot_fold import EpochFold, EpochSnapshot
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow


def in_snapshot(peer: Peer, item: bytes) -> object:
    """The value of an item in the snapshot that this peer stands on."""
    base = peer.epochs.base
    assert base is not None
    data = base.item(item)
    return None if data is None else item_codec.restore(data, peer.models).value


def test_trap_2_a_cut_claims_no_message_that_is_not_applied(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Bob's message waits for one of Carol's that Alice does not have: it is outside the cut, though it is here."""
    carol = peers.add("carol")
    board = note(alice, "ours")
    peers.sync()
    carol.party.item(board.id).edit("set", "carol", 1)
    peers.pass_on(carol, bob)
    bob.party.item(board.id).edit("set", "bob", 2)
    feeds = {peer.name: bytes(member(peer).open_data_feed().feed) for peer in (bob, carol)}
    alice.take(span for span in bob.ranges(alice.lengths()) if span.feed != feeds["carol"])
    assert alice.lengths()[feeds["bob"]] == 1
    genesis = alice.epochs.declare()
    assert (genesis.cut.get(feeds["bob"], 0), genesis.cut.get(feeds["carol"], 0)) == (0, 0)
    assert in_snapshot(alice, board.id) == {"title": "ours"}
    settle(peers)
    same(alice, bob, carol)
    assert alice.party.item(board.id).value == {"title": "ours", "carol": 1, "bob": 2}


def test_trap_3_a_snapshot_holds_confirmed_state_only(peers: Peers, alice: Peer, bob: Peer) -> None:
    """What a batch has tried, and nobody has written, is not in it."""
    board = note(alice, "written")
    with suppress(ZeroDivisionError), alice.party.batch():
        board.edit("set", "title", "only tried")
        raise ZeroDivisionError
    assert board.value == {"title": "written"}
    with alice.party.batch():
        board.edit("set", "title", "in an open batch")
        with pytest.raises(AntiphonError, match="batch"):
            alice.epochs.declare()
        assert alice.epochs.number == 0
    board.edit("set", "title", "written")
    epoch(peers)
    same(alice, bob)
    assert in_snapshot(bob, board.id) == {"title": "written"}


def test_trap_4_a_late_concurrent_write_does_not_win_by_being_late(peers: Peers, alice: Peer, bob: Peer) -> None:
    """The snapshot keeps the stamps, so Bob's older write loses against Alice's newer one for whoever has only that."""
    board = note(alice, "old")
    peers.sync()
    bob.party.item(board.id).edit("set", "title", "Bob's, early")
    peers.all.remove(bob)
    for _ in range(3):
        note(alice)  # her lamport rises
    board.edit("set", "title", "Alice's, later")
    epoch(peers)
    carol = join(peers, "carol")
    peers.all.append(bob)
    settle(peers)
    for peer in (alice, bob, carol):
        assert peer.party.item(board.id).value == {"title": "Alice's, later"}
    same(alice, bob, carol)


def test_trap_5_a_snapshot_holds_everything(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Deleted or not, parent, link, metadata, who may write, embedded items: all that a joiner could ask for."""
    folder = note(alice, "folder")
    child = alice.party.create("antiphon/text", parent=folder.id)
    child.edit("insert", 0, "inside")
    child.set_metadata("colour", "red")
    other = note(alice, "deleted")
    other.delete()
    link = alice.party.create("antiphon/object", link=(folder.id, child.id))
    private = note(alice, "private")
    private.restrict_writers(alice.key)
    folder.embed(child.id)
    moved = note(alice, "moved")
    moved.move(folder.id)
    wanted = {item: _all_of(alice, item) for item in alice.party.items()}
    epoch(peers)
    carol = join(peers, "carol")
    for peer in (alice, bob, carol):
        assert {item: _all_of(peer, item) for item in peer.party.items()} == wanted
        assert peer.party.parents() == alice.party.parents()
    assert carol.party.item(link.id).link == (folder.id, child.id)


def _all_of(peer: Peer, item: bytes) -> tuple[object, ...]:
    one = peer.party.item(item)
    return (
        one.value,
        one.model,
        one.metadata,
        one.parent,
        one.link,
        one.deleted,
        one.embedded,
        one.writers,
        one.forked_to,
        one.created_ms,
    )


def test_trap_5_a_snapshot_holds_nothing_unstable(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Made twice, from two orders of arrival, by machines whose clocks differ: one CID."""
    for number in range(5):
        note(alice, f"{number}")
        note(bob, f"{number}")
    peers.sync()
    genesis = honest(alice)
    plan = alice.epochs._planned(1, dict(genesis.cut), genesis.control, genesis.created_ms, genesis.models)
    cids = set()
    for peer in (alice, bob):
        for _ in range(2):
            peer.epochs._made = None
            cids.add(peer.epochs._compute(plan).cid)
        peer.rebuild()
        cids.add(peer.epochs._compute(plan).cid)
    assert cids == {genesis.snapshot}


def test_trap_6_a_blob_that_is_not_what_its_name_says_is_not_taken(peers: Peers, alice: Peer, bob: Peer) -> None:
    for number in range(60):
        note(alice, f"{number}")
    epoch(peers)
    base = alice.epochs.base
    assert base is not None
    for cid in tree.walk(base.cid, alice.blobs):
        data = alice.blobs.get(cid)
        with pytest.raises(AntiphonError):
            MemoryBlobs().put_all([(cid, data[:-1] + bytes([data[-1] ^ 1]))])
        with pytest.raises(AntiphonError):
            MemoryBlobs().put_all([(cid, data[: len(data) // 2])])


@pytest.mark.parametrize("what", ["write", "status", "snapshots", "stop"])
def test_trap_16_epoch_work_runs_beside_the_pipeline(
    peers: Peers, alice: Peer, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """While a snapshot is computed, others write, read and even stop the work: nothing waits for it."""
    board = note(alice, "before")
    begun, go_on = threading.Event(), threading.Event()
    run = EpochFold.run

    def slowly(fold: EpochFold) -> EpochSnapshot:
        begun.set()
        assert go_on.wait(20)
        return run(fold)

    monkeypatch.setattr(EpochFold, "run", slowly)
    failed: list[AntiphonError] = []

    def declare() -> None:
        try:
            alice.epochs.declare()
        except AntiphonError as error:
            failed.append(error)

    worker = threading.Thread(target=declare)
    worker.start()
    assert begun.wait(20)
    if what == "write":
        board.edit("set", "title", "meanwhile")
    elif what == "status":
        assert alice.party.status().items == 1
    elif what == "snapshots":
        assert alice.party.item(board.id).value == {"title": "before"}
    else:
        alice.epochs.cancel(for_good=True)
    go_on.set()
    worker.join(20)
    assert not worker.is_alive()
    if what == "stop":
        assert ["cancelled" in str(error) for error in failed] == [True]
        assert alice.epochs.chain().final == ()
    else:
        assert failed == []
        assert in_snapshot(alice, board.id) == {"title": "before"}
    assert board.value == {"title": "meanwhile" if what == "write" else "before"}


def test_trap_17_nothing_is_pruned_before_the_snapshot_is_whole_on_this_disk(
    peers: Peers, alice: Peer, bob: Peer
) -> None:
    for number in range(60):
        note(alice, f"{number}")
    epoch(peers)
    base = bob.epochs.base
    assert base is not None
    leaf = next(cid for cid in tree.walk(base.cid, bob.blobs) if cid not in (base.cid, *base.root.trees))
    lost = bob.blobs.get(leaf)
    held(bob).delete([leaf])
    feed = bytes(member(alice).open_data_feed().feed)
    with pytest.raises(MissingBlob, match="so no message may be dropped; fetch them first"):
        bob.epochs.prune()
    assert bob.store.bounds(feed).start == 0
    bob.blobs.put_all([(leaf, lost)])
    assert bob.epochs.prune() == 120
    same(alice, bob)


def test_trap_17_what_policy_keeps_is_kept(peers: Peers, alice: Peer) -> None:
    agree_on(peers, alice, keep_epochs=1)
    feed = b""
    for number in range(3):
        feed = note(alice, f"{number}").history()[0].stamp.feed
        epoch(peers)
        alice.epochs.prune()
        assert alice.store.bounds(feed).start == 2 * number
    assert Cid(alice.epochs.chain().final[0].snapshot) in list(held(alice))


def test_trap_23_a_small_tail_on_a_large_base_is_cheap(
    peers: Peers, alice: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three changes in 600 items: few blobs are read to start, and few are written for the next epoch."""
    items = [note(alice, f"note {number}") for number in range(600)]
    epoch(peers)
    whole = len(list(tree.walk(alice.epochs.base.cid, alice.blobs)))  # type: ignore[union-attr]
    alice.epochs.prune()
    for item in items[:3]:
        item.edit("set", "title", "changed")
    before = set(held(alice))
    epoch(peers)
    written = set(held(alice)) - before
    assert len(written) <= 8 < whole
    alice.rebuild()
    read: set[Cid] = set()
    get = held(alice).get

    def reading(cid: Cid) -> bytes:
        read.add(cid)
        return get(cid)

    monkeypatch.setattr(held(alice), "get", reading)
    assert alice.party.item(items[300].id).value == {"title": "note 300"}
    assert 0 < len(read) <= 4
