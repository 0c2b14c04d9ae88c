"""Where items hang, and what is embedded in what: derived from all claims, the same on all peers in any order."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.party.helpers import all_of, reasons

from antiphon.core.errors import InvalidInput, InvalidMutation, UnknownItem
from antiphon.core.ids import SYSTEM_ITEM, ItemId
from antiphon.core.stamp import Stamp
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.halo.credentials.claims import Position
from antiphon.model.item_state import EMBEDDED, META
from antiphon.model.message import Change, wrap, write_change
from antiphon.model.value import Reference
from antiphon.party.live.item import Item
from antiphon.query.index.index import ItemIndex
from antiphon.testing.peers import Peer, Peers


def same(peers: Peers) -> dict[bytes, bytes]:
    peers.sync()
    first = peers.all[0]
    for peer in peers.all[1:]:
        assert peer.party.parents() == first.party.parents()
        assert peer.snapshots() == first.snapshots()
        assert peer.party.refused() == first.party.refused()
    return first.party.parents()


def embedded(item: Item) -> list[bytes]:
    return [one.item for one in item.metadata.get(EMBEDDED, [])]


# -- parents


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))], ids=str)
def test_rule_16_circles_of_parents_are_broken_alike(tmp_path: Path, order: Iterable[int]) -> None:
    """a under b at 5, b under a at 6, b under c at 7, c under a at 3: once two results, by the order of arrival."""
    with Peers(tmp_path, authority=False) as peers:
        maker = peers.add("maker")
        with maker.party.batch():
            a, b, c = (maker.party.create("antiphon/object").id for _ in range(3))
        peers.sync()
        movers = [peers.add(name) for name in ("one", "two", "three")]
        peers.sync()
        start = max(entry.lamport for entry in all_of(maker))
        moves: list[tuple[Peer, list[tuple[int, bytes, bytes]]]] = [
            (movers[0], [(3, c, a)]),
            (movers[1], [(5, a, b)]),
            (movers[2], [(6, b, a), (7, b, c)]),
        ]
        for peer, claims in moves:
            wait(peer, start + claims[0][0])
            for _, child, parent in claims:
                peer.forge(Draft(Kind.CHANGE, child, write_change(Change(parent=parent))))
        reader = peers.add("reader")
        peers.pass_on(maker, reader)
        for nth in order:
            peers.pass_on(movers[nth], reader)
            reader.party.parents()
        claims = sorted(
            (note.lamport - start, note_item, note.feed)
            for note_item in (a, b, c)
            for note in reader.party.engine.history(note_item)
            if note.kind == Kind.CHANGE
        )
        assert [lamport for lamport, _, _ in claims] == [3, 5, 6, 7]
        assert same(peers) == {c: a, a: b}
        reader.rebuild()
        assert same(peers) == {c: a, a: b}


def wait(peer: Peer, lamport: int) -> None:
    """Let this device's next block have a lamport, by writing some to nobody."""
    seen = all_of(peer)
    now = max(entry.lamport for entry in seen) + 1
    if now < lamport:
        peer.forge(*(Draft(Kind.METADATA, bytes(16), b"") for _ in range(lamport - now)), seen=seen)
    else:
        peer.forge(seen=seen)


def test_an_item_moved_under_its_own_child(peers: Peers, alice: Peer, bob: Peer) -> None:
    above = alice.party.create("antiphon/object")
    below = alice.party.create("antiphon/object", parent=above.id)
    peers.sync()
    bob.party.item(above.id).move(below.id)  # skipped: it would close a circle
    assert same(peers) == {below.id: above.id}
    below.move(None)  # and counts no more for being free now: its place in the order was before
    assert same(peers) == {}


def test_two_moved_under_each_other_at_the_same_time(peers: Peers, alice: Peer, bob: Peer) -> None:
    one, other = (alice.party.create("antiphon/object") for _ in range(2))
    peers.sync()
    first = one.move(other.id)
    second = bob.party.item(other.id).move(one.id)
    assert same(peers) == ({one.id: other.id} if first < second else {other.id: one.id})
    bob.restart(crash=True)
    same(peers)


def test_an_item_is_not_its_own_parent(lone: Peer) -> None:
    note = lone.party.create("antiphon/object")
    with pytest.raises(InvalidMutation, match="its own parent"):
        note.move(note.id)
    lone.forge(Draft(Kind.CHANGE, note.id, write_change(Change(parent=note.id))), seen=all_of(lone))
    lone.party.process()
    assert lone.party.parents() == {}


def test_orphans_are_kept_and_found_again(peers: Peers, alice: Peer, bob: Peer) -> None:
    """A parent that is not here, deleted, or never was: the child keeps its claim, and hangs there once it comes."""
    gone = alice.party.create("antiphon/object")
    child = alice.party.create("antiphon/object", parent=gone.id)
    gone.delete()
    nowhere = ItemId.derive(9, party=alice.party.key, feed=b"f" * 32, genesis=bytes(16))
    stray = alice.party.create("antiphon/object")
    alice.forge(Draft(Kind.CHANGE, stray.id, write_change(Change(parent=nowhere))))
    alice.party.process()
    assert same(peers) == {child.id: gone.id, stray.id: nowhere}
    with pytest.raises(UnknownItem):
        bob.party.create("antiphon/object", parent=nowhere)


def test_a_link_whose_ends_are_not_here_is_kept(peers: Peers, alice: Peer, bob: Peer) -> None:
    ends = [alice.party.create("antiphon/object") for _ in range(2)]
    link = alice.party.create("antiphon/object", link=(ends[0].id, ends[1].id))
    ends[0].delete()
    nowhere = b"n" * 16
    with pytest.raises(UnknownItem):
        alice.party.create("antiphon/object", link=(ends[0].id, nowhere))
    same(peers)
    state = bob.party.engine.entry(link.id).item
    assert state is not None
    assert state.link == (ends[0].id, ends[1].id)


def test_an_item_may_hang_under_the_system_item_which_hangs_nowhere(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object", parent=bytes(SYSTEM_ITEM))
    alice.forge(Draft(Kind.CHANGE, SYSTEM_ITEM, write_change(Change(parent=note.id))), seen=all_of(alice))
    assert same(peers) == {note.id: bytes(SYSTEM_ITEM)}
    assert "does not move" in bob.party.refused()[-1].reason


# -- embedding


def test_embedded_items_are_a_set_in_which_adding_wins(peers: Peers, alice: Peer, bob: Peer) -> None:
    album, one, other = (alice.party.create("antiphon/object") for _ in range(3))
    album.embed(one.id)
    album.embed(other.id)
    peers.sync()
    album.release(one.id)
    bob.party.item(album.id).embed(one.id)  # at the same time
    bob.party.item(album.id).release(other.id)
    same(peers)
    assert embedded(album) == embedded(bob.party.item(album.id)) == [one.id]


def test_an_item_is_embedded_after_it_was_made(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Its id tells when that was; and who does not know an id cannot embed it."""
    album = alice.party.create("antiphon/object")
    peers.sync()
    early = all_of(bob)
    later = [alice.party.create("antiphon/object") for _ in range(5)][-1]
    peers.sync()
    with pytest.raises(UnknownItem):
        album.embed(b"n" * 16)
    mutation = META.add(META.initial(), EMBEDDED, Reference(later.id))
    (void,) = bob.forge(Draft(Kind.METADATA, album.id, wrap(Kind.METADATA, mutation)), seen=early)
    same(peers)
    (reason,) = reasons(alice, Stamp(void.lamport, void.feed, void.seq))
    assert "embedded before it was made" in reason
    with alice.party.batch():
        album.embed(alice.party.create("antiphon/object").id)  # in one batch, with one lamport
    same(peers)
    assert len(embedded(album)) == 1


def test_an_item_does_not_embed_itself(lone: Peer) -> None:
    note = lone.party.create("antiphon/object")
    with pytest.raises(InvalidMutation, match="in itself"):
        note.embed(note.id)
    assert embedded(note) == []


@pytest.mark.parametrize("element", ["text", 1, Reference(b"n" * 16, b"p" * 32)], ids=str)
def test_only_items_of_the_party_are_embedded(lone: Peer, element: Any) -> None:
    note = lone.party.create("antiphon/object")
    mutation = META.add(META.initial(), EMBEDDED, element)
    lone.forge(Draft(Kind.METADATA, note.id, wrap(Kind.METADATA, mutation)), seen=all_of(lone))
    lone.party.process()
    assert "is a reference to an item of its party" in lone.party.refused()[-1].reason
    assert embedded(note) == []


def test_a_list_where_the_set_of_embedded_items_stands_embeds_nothing(lone: Peer) -> None:
    """Else whoever writes a list gets round what is asked of the members of the set."""
    note, other = (lone.party.create("antiphon/object") for _ in range(2))
    note.embed(other.id)
    ahead = Reference((1 << 39).to_bytes(5, "big") + b"n" * 11)
    mutation = META.set(META.initial(), EMBEDDED, [Reference(note.id), ahead])
    lone.forge(Draft(Kind.METADATA, note.id, wrap(Kind.METADATA, mutation)), seen=all_of(lone))
    lone.party.process()
    assert list(note.embedded) == []
    note.embed(other.id)
    assert list(note.embedded) == [other.id]


def test_embedded_items_are_not_described(lone: Peer) -> None:
    note = lone.party.create("antiphon/object")
    with pytest.raises(InvalidInput, match="is not set as metadata"):
        note.set_metadata(EMBEDDED, 1)


# -- the index


def parent_in_index(peer: Peer, item: Item) -> bytes:
    with peer.party.locked() as engine:
        engine.save()
        index = engine.items.index
        assert isinstance(index, ItemIndex)
        return index.parent(item.id)


def test_a_long_item_moves_and_the_claim_of_its_only_child_is_erased(peers: Peers, alice: Peer, bob: Peer) -> None:
    """One save of Bob's has both. It writes the long item in a part of its own, while the child still claims it."""
    for peer in (alice, bob):
        peer.party.attach(ItemIndex)
    above, long, child = (alice.party.create("antiphon/object") for _ in range(3))
    for n in range(12):
        long.edit("set", f"k{n}", "v" * 100_000)
    claim = child.move(long.id)
    peers.sync()
    assert parent_in_index(bob, child) == parent_in_index(alice, child) == long.id
    long.move(above.id)
    peers.pass_on(alice, bob)
    bob.party.process()
    assert alice.member is not None
    alice.member.erase(Position(claim.feed, claim.seq))
    alice.party.process()
    peers.pass_on(alice, bob)
    bob.party.process()
    assert bob.party.parents() == {long.id: above.id}
    for peer in (alice, bob):
        assert (parent_in_index(peer, long), parent_in_index(peer, child)) == (above.id, b"")
