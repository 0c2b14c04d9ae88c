"""A member types into a text, then signs two histories: what others typed beside that stays (rules 15, 26)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from tests.attacks.equivocator import check_all
from tests.party.epochs.epoch_acts import agree_on, epoch, join, member, same
from tests.party.forked import confront

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.keys import PublicKey
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.party.live.item import Item
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import SpanWriter


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path) as party:
        for name in ("alice", "bob", "mallory"):
            party.add(name)
        yield party


def forks_at(peers: Peers, mallory: Peer, seq: int) -> None:
    """Mallory signs another block of its data feed, and all find out."""
    feed = bytes(member(mallory).open_data_feed().feed)
    writer = SpanWriter(mallory.keys.pair(PublicKey(feed)), mallory.party.key, seed=5)
    if seq:
        last = mallory.store.block(feed, seq - 1)
        writer.record = replace(writer.record, length=seq, hash=last.hash, lamport=last.lamport)
    (twin,) = writer.extend([Draft(Kind.MUTATION, SYSTEM_ITEM, b"another history")])
    peers.all.remove(mallory)
    for peer in peers.all:
        peer.take([twin])
    confront(peers)


def typed_together(peers: Peers) -> tuple[Item, int]:
    """Alice begins a text, Mallory types into it twice, and Bob and Alice beside that. Return also where to fork."""
    alice, bob, mallory = peers.all
    item = alice.party.create("antiphon/text")
    item.edit("insert", 0, "<>")
    peers.sync()
    there = mallory.party.item(item.id)
    there.edit("insert", 1, "one ")
    beyond = mallory.lengths()[bytes(member(mallory).open_data_feed().feed)]
    there.edit("insert", 5, "two")
    there.edit("insert", 8, "three")
    peers.sync()
    bob.party.item(item.id).edit("insert", 6, "(Bob)")
    peers.sync()
    text = alice.party.item(item.id).value
    alice.party.item(item.id).edit("insert", text.index("(Bob)") + 2, "Alice, ")
    bob.party.item(item.id).edit("insert", text.index("hree"), "[too]")
    peers.sync()
    assert {peer.party.item(item.id).value for peer in peers.all} == {"<one t(BAlice, ob)wot[too]hree>"}
    return item, beyond


@pytest.mark.parametrize("whole", [False, True])
def test_what_others_typed_beside_lost_characters_is_shown(peers: Peers, whole: bool) -> None:
    alice, bob, mallory = peers.all
    item, beyond = typed_together(peers)
    forks_at(peers, mallory, 0 if whole else beyond)
    words = alice.party.item(item.id).value
    assert words.replace("(BAlice, ob)[too]", "*") in (("*<>", "<>*") if whole else ("<one *>",))
    check_all(peers, item, words)

    at = words.index("Alice")
    alice.party.item(item.id).edit("insert", at, "dear ")
    bob.party.item(item.id).edit("delete", words.index("[too]"), 5)
    words = (words[:at] + "dear " + words[at:]).replace("[too]", "")
    check_all(peers, item, words)
    agree_on(peers, alice)
    epoch(peers)
    check_all(peers, item, words)
    carol = join(peers, "carol")
    same(*peers.all, carol)
    assert carol.party.item(item.id).value == words
    bob.party.item(item.id).edit("insert", words.index("B") + 1, "ill or B")
    check_all(peers, item, words.replace("(B", "(Bill or B"))


def test_every_order_of_arrival_shows_the_same(peers: Peers) -> None:
    """Newcomers get the feeds in all orders."""
    alice, bob, mallory = peers.all
    item, beyond = typed_together(peers)
    forks_at(peers, mallory, beyond)
    words = alice.party.item(item.id).value
    feeds = [bytes(member(peer).open_data_feed().feed) for peer in (alice, bob, mallory)]
    for number, order in enumerate(permutations(feeds)):
        late = peers.add(f"late {number}")
        peers.all.remove(late)
        late.take([span for span in alice.ranges({}) if span.feed not in feeds])
        for feed in order:
            late.take(alice.store.spans(feed))
            if branches := alice.store.branches(feed):
                late.store.ingest_branch(branches)
            late.party.process()
        assert late.party.item(item.id).value == words, order
        assert not late.party.status().blocked
        assert late.snapshots() == alice.snapshots()
