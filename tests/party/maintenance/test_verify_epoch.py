"""Verifying epochs: what the messages make is compared with what was declared, item by item."""

from __future__ import annotations

import json
import random

import pytest
from tests.party.epochs.epoch_acts import held

from antiphon.core.cid import DAG_CBOR, RAW, Cid
from antiphon.core.errors import InvalidInput
from antiphon.halo.credentials.claims import EpochGenesis, Policy
from antiphon.party.maintenance.verify_epoch import verify_epoch
from antiphon.party.maintenance.verify_report import BYTES, EXTRA, MISSING, Verification
from antiphon.snapshot import tree
from antiphon.snapshot.root import FeedCut, SnapshotRoot, encode_death
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow


def write(peer: Peer, count: int = 20) -> list[bytes]:
    """Some items, small and large."""
    made = []
    for number in range(count):
        item = peer.party.create("antiphon/object")
        item.edit("set", "title", f"note {number}")
        if number % 5 == 0:
            item.edit("set", "body", random.Random(number).randbytes(3000).hex())
        made.append(bytes(item.id))
    return made


def verify(peer: Peer, number: int, *, full: bool = False) -> Verification:
    assert peer.member is not None
    return verify_epoch(peer.party, peer.member.machine, number, full=full)


def test_an_epoch_that_the_party_stands_on_is_verified(peers: Peers) -> None:
    alice, bob = peers.add("alice"), peers.add("bob")
    items = write(alice) + write(bob)
    peers.settle()
    alice.epochs.declare()
    alice.party.item(items[0]).edit("set", "title", "another")
    alice.party.item(items[1]).delete()
    alice.epochs.declare()
    peers.settle()
    before = list(held(bob))
    for peer in (alice, bob):
        for number in (1, 2):
            for full in (False, True):
                found = verify(peer, number, full=full)
                assert (found.right, found.whole, found.wrong) == (True, True, False), found.lines()
                assert found.since == (0 if full else number - 1)
                assert found.blobs == len(list(tree.walk(found.snapshot, peer.blobs)))
    assert list(held(bob)) == before, "nothing is written"


def test_a_number_that_is_not_final_is_refused(peers: Peers) -> None:
    alice = peers.add("alice")
    with pytest.raises(InvalidInput, match="no final epoch 1; 0 are final"):
        verify(alice, 1)


def forge(alice: Peer, change: dict[bytes, bytes | None], **root: object) -> Cid:
    """Declare an epoch that is not what the messages make, with all its blobs."""
    genesis = alice.epochs._afresh(alice.epochs.chain(), 0, False)
    honest = SnapshotRoot.decode(alice.blobs.get(Cid(genesis.snapshot)))
    items = tree.update(honest.items, sorted(change.items()), alice.blobs)
    fields = {name: getattr(honest, name) for name in SnapshotRoot.__slots__}
    fields |= {"items": items, "item_count": tree.count(items, alice.blobs)} | root
    cid = alice.blobs.put(SnapshotRoot(**fields).encode(), DAG_CBOR)
    alice.epochs._made = None
    assert alice.member is not None
    alice.member.declare(
        EpochGenesis(
            0, genesis.number, genesis.previous, genesis.cut, genesis.control, cid, genesis.created_ms, genesis.models
        )
    )
    return cid


def test_what_differs_is_told_item_by_item(peers: Peers) -> None:
    alice = peers.add("alice")
    items = write(alice)
    stranger = bytes(15) + b"\x01"
    wrong = alice.party.snapshot(items[1])
    cid = forge(alice, {items[0]: None, items[2]: wrong, items[5]: wrong, stranger: wrong})
    found = verify(alice, 1)
    assert (found.right, found.whole, found.wrong, found.snapshot) == (False, True, True, cid)
    told = {(one.tree, one.key): one.how for one in found.differences}
    assert told == {
        ("items", items[0].hex()): MISSING,
        ("items", items[2].hex()): BYTES,
        ("items", items[5].hex()): BYTES,
        ("items", stranger.hex()): EXTRA,
    }
    assert json.loads(json.dumps(found.as_json()))["right"] is False
    assert "NOT right" in found.lines()[0]


def test_what_differs_in_feeds_deaths_and_the_root_is_told(peers: Peers) -> None:
    alice = peers.add("alice")
    items = write(alice, 3)
    feed = next(iter(alice.party.timeframe))
    cut = FeedCut(1, b"h" * 32, 1, 1, alice.party.timeframe)
    feeds = tree.build([(feed, cut.encode())], alice.blobs)
    deaths = tree.build([(items[0], encode_death(1))], alice.blobs)
    forge(alice, {}, feeds=feeds, feed_count=1, deaths=deaths, created_ms=77)
    found = verify(alice, 1)
    told = {(one.tree, one.key): one for one in found.differences}
    assert set(told) == {("root", "created_ms"), ("feeds", feed.hex()), ("deaths", items[0].hex())}
    assert told["feeds", feed.hex()].detail.startswith("length, hash, lamport")
    assert told["deaths", items[0].hex()].how == EXTRA


def test_what_is_pruned_cannot_be_checked_and_is_named(peers: Peers) -> None:
    alice = peers.add("alice")
    write(alice)
    alice.epochs.declare()
    write(alice, 3)
    alice.epochs.declare()
    assert alice.epochs.prune() > 0
    found = verify(alice, 2)
    assert (found.right, found.wrong, found.computed) == (False, False, None)
    assert found.whole
    assert "are wanted, and those here are" in found.unchecked[0]
    assert found.lines()[0].endswith("could not be recomputed")


def test_with_epochs_kept_the_last_is_still_verified(peers: Peers) -> None:
    alice = peers.add("alice")
    assert alice.member is not None
    alice.member.set_policy(Policy(attesters=(bytes(alice.device.key),), keep_epochs=1))
    write(alice)
    alice.epochs.declare()
    write(alice, 3)
    alice.epochs.declare()
    assert alice.epochs.prune() > 0
    assert verify(alice, 2).right
    assert verify(alice, 1).computed is None


def test_where_the_snapshot_before_is_not_here_it_is_computed_too(peers: Peers) -> None:
    alice = peers.add("alice")
    write(alice)
    alice.epochs.declare()
    write(alice, 3)
    alice.epochs.declare()
    first = Cid(alice.epochs.chain().final[0].snapshot)
    kept = set(tree.walk(Cid(alice.epochs.chain().final[1].snapshot), alice.blobs))
    held(alice).delete([cid for cid in tree.walk(first, alice.blobs) if cid not in kept])
    found = verify(alice, 2)
    assert (found.right, found.since) == (True, 0)
    assert verify(alice, 1).missing == (first,)
    assert verify(alice, 1).right, "it is right, and not here"


def test_blobs_that_lack_are_named(peers: Peers) -> None:
    alice = peers.add("alice")
    write(alice)
    alice.epochs.declare()
    blobs = list(tree.walk(Cid(alice.epochs.chain().final[0].snapshot), alice.blobs))
    held(alice).delete([blobs[-1]])
    found = verify(alice, 1)
    assert (found.right, found.whole, found.missing) == (True, False, (blobs[-1],))
    assert found.blobs == len(blobs) - 1


def test_a_body_that_was_erased_since_leaves_the_epoch_unchecked(peers: Peers) -> None:
    alice = peers.add("alice")
    write(alice, 3)
    feed = next(iter(alice.party.timeframe))
    alice.epochs.declare()
    alice.store.erase(feed, 1)
    found = verify(alice, 1)
    assert found.computed is None
    assert "the bodies of 1 blocks, 1 among them, are not here" in found.unchecked[0]


def test_whoever_looks_on_may_stop_it(peers: Peers) -> None:
    alice = peers.add("alice")
    write(alice)
    alice.epochs.declare()
    assert alice.member is not None

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify_epoch(alice.party, alice.member.machine, 1, tick=stop)


def test_the_system_item_has_the_bytes_that_a_fold_gives_it(peers: Peers) -> None:
    alice = peers.add("alice")
    for number in range(3):
        alice.party.root.edit("set", "round", number)
        alice.epochs.declare()
        assert verify(alice, number + 1).right
        assert verify(alice, number + 1, full=True).right


def test_who_lacks_a_part_of_a_large_item_waits_and_does_not_disagree(peers: Peers) -> None:
    """The leaf is here, and what it links to is not: the item must not be taken for one that is not in the epoch."""
    alice = peers.add("alice")
    note = alice.party.create("antiphon/object")
    note.edit("set", "body", random.Random(1).randbytes(3000).hex())
    alice.epochs.declare()
    alice.epochs.prune()
    zoe = peers.add("zoe")
    peers.settle()
    peers.pass_blobs(alice, zoe, whole=True)
    zoe.restart()
    held(zoe).delete([cid for cid in held(zoe) if cid.codec == RAW])
    note.edit("set", "more", 1)
    alice.epochs.declare()
    peers.sync()
    zoe.epochs.step()
    assert (zoe.epochs.disagreement, zoe.epochs.number) == (None, 1)
    peers.settle()
    assert zoe.epochs.number == 2
