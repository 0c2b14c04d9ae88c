"""A stolen device hides what the identity's other devices wrote (rule 27)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.party.epochs.epoch_acts import agree_on, epoch, member, same, say
from tests.party.forked import confront

from antiphon.core.errors import NotAuthorised
from antiphon.core.ids import ItemId
from antiphon.core.keys import PublicKey
from antiphon.core.stamp import Stamp
from antiphon.feed.block import BodyState
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.halo.credentials.claims import Erasure, Position
from antiphon.model.message import Genesis, write_genesis
from antiphon.testing.peers import Peers
from antiphon.testing.spans import SpanWriter


def place(stamp: Stamp) -> Position:
    return Position(bytes(stamp.feed), stamp.seq)


def test_a_stolen_device_cannot_hide_what_the_other_devices_wrote(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        phones = [peers.add("alice's phone", owner=alice), peers.add("bob's phone", owner=bob)]
        notes = []
        for peer, phone in zip((alice, bob), phones, strict=True):
            note = peer.party.create("antiphon/object")
            note.edit("set", "title", "Milk")
            peers.sync()
            phone.party.item(note.id).edit("set", "by", "phone")
            notes.append(note.id)
        peers.sync()
        for phone, known in zip(phones, notes, strict=True):
            history = phone.party.item(known).history()
            say(phone, Erasure(tuple(sorted(place(record.stamp) for record in history))))
        peers.sync()
        for peer in peers.all:
            assert [peer.party.item(known).value for known in notes] == [{"title": "Milk"}] * 2, "it erases its own"
        assert [len(member(alice).machine.erased(bytes(member(peer).open_data_feed().feed))) for peer in peers.all] == [
            0,
            0,
            1,
            1,
        ]


def test_the_identity_and_owners_erase_with_their_keys_and_others_are_told_what_is_needed(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        owners_phone, phone = peers.add("alice's phone", owner=alice), peers.add("bob's phone", owner=bob)
        note = bob.party.create("antiphon/object")
        stamps = [note.edit("set", key, "Milk") for key in ("first", "second", "third")]
        peers.sync()
        own = phone.party.item(note.id).edit("set", "fourth", "Milk")
        peers.sync()
        with pytest.raises(NotAuthorised, match="with the identity's own key"):
            member(owners_phone).erase(place(stamps[0]))
        with pytest.raises(NotAuthorised, match="a device alone erases messages of its own feeds"):
            member(phone).erase(place(own), place(stamps[0]))
        member(phone).erase(place(own))
        member(phone).erase(place(stamps[0]), identity=bob.identity)
        member(bob).erase(place(stamps[1]))
        member(alice).erase(place(stamps[2]))
        peers.sync()
        for peer in peers.all:
            assert peer.party.item(note.id).value == {}


def test_an_erasure_reaches_the_geneses_that_are_kept_of_a_branch(tmp_path: Path) -> None:
    """Mallory shows another history after an epoch. What is erased inside the cut goes there as well, for ever."""
    with Peers(tmp_path) as peers:
        alice, _, mallory = (peers.add(name) for name in ("alice", "bob", "mallory"))
        first = mallory.party.create("antiphon/object")
        first.edit("set", "title", "Milk")
        agree_on(peers, alice)
        peers.sync()
        feed = bytes(member(mallory).open_data_feed().feed)
        member(alice).erase(Position(feed, 0))
        epoch(peers)
        writer = SpanWriter(mallory.keys.pair(PublicKey(feed)), mallory.party.key, seed=5)
        secret = write_genesis(Genesis(b"n" * 16, "antiphon/object", 1))
        item = ItemId.derive(1, party=mallory.party.key, feed=feed, genesis=secret)
        (twin,) = writer.extend([Draft(Kind.GENESIS, item, secret)])
        peers.all.remove(mallory)
        for peer in peers.all:
            peer.take([twin])
        confront(peers)
        assert [span.block(0).message for span in alice.store.branches(feed)] == [secret]
        for peer in peers.all:
            peer.epochs.prune()
            for _ in range(2):
                assert [span.block(0).state for span in peer.store.branches(feed)] == [BodyState.ERASED]
                peer.store.ingest_branch([twin])
        same(*peers.all)
