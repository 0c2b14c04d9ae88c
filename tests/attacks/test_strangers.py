"""Rule 22: strangers cost nothing. Feeds that no act names are not taken, folded or advanced over.

An outsider with 6 blocks of 3.4 KB stopped a party; 19,900 control feeds of outsiders made epochs impossible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.mesh.replication.wire import Wire
from tests.party.bundle.test_export import export, rewrite, take
from tests.party.epochs.epoch_acts import member, note

from antiphon.core.cid import DAG_CBOR
from antiphon.core.errors import BadEncoding
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.keys import KeyPair
from antiphon.core.reasons import Reason
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.span import Span
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import (
    Claim,
    DeviceAdmission,
    FeedAdmission,
    FeedKind,
    MemberAdmission,
    Role,
)
from antiphon.mesh.replication import announcements, requests
from antiphon.party.bundle.nodes import BundleFeed, BundleRoot, encode_list
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.testing.parties import pair_of
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import Forged, SpanWriter, hostile_span


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path / "peers") as made:
        made.add("alice")
        made.add("bob")
        yield made


class Stranger:
    """An identity with a device that nobody has admitted, and that writes control feeds all the same."""

    def __init__(self, party: bytes, name: str = "mallory") -> None:
        self.party = party
        self.identity, self.device = pair_of(name), pair_of(f"{name}'s phone")
        self.word = self.sign(DeviceAdmission(self.identity.key, self.device.key), self.identity, self.device)

    def sign(self, claim: Claim, *pairs: KeyPair) -> bytes:
        return credential.sign(self.party, claim, pairs)

    def control(self, number: int, *claims: Claim) -> tuple[SpanWriter, list[Span]]:
        """A control feed that admits itself, and more acts in it."""
        feed = pair_of(f"control {number}")
        writer = SpanWriter(feed, self.party)
        opening = FeedAdmission(feed.key, FeedKind.CONTROL, self.identity.key, self.device.key, self.word)
        words = [self.sign(opening, self.device, feed), *(self.sign(claim, self.device) for claim in claims)]
        drafts = [Draft(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(word)) for word in words]
        return writer, list(writer.extend(drafts))


def feeds_of(stranger: Stranger, count: int) -> list[Span]:
    invited = MemberAdmission(stranger.identity.key, frozenset({Role.OWNER}))
    return [span for number in range(count) for span in stranger.control(number, invited)[1]]


def works(peers: Peers, *honest: Peer) -> None:
    """Honest members write, invite, revoke, and agree; nothing of theirs waits."""
    alice = honest[0]
    for peer in honest:
        note(peer, peer.name)
    member(alice).admit(pair_of("guest").key, [Role.READER])
    member(alice).revoke(pair_of("guest").key)
    alice.epochs.declare()
    peers.settle()
    assert len({peer.epochs.number for peer in honest}) == 1
    assert len({str(sorted(peer.snapshots().items())) for peer in honest}) == 1
    for peer in honest:
        assert not peer.party.status().blocked
        assert not member(peer).machine.waiting()


def entries_of(peer: Peer, feeds: set[bytes]) -> set[bytes]:
    """The feeds among these that blocks in a peer's store have seen."""
    blocks = (block for record in peer.store.feeds(peer.party.key) for block in peer.store.read(record.feed))
    return {entry.feed for block in blocks if block.feed not in feeds for entry in block.advance} & feeds


def test_control_feeds_of_strangers_are_not_folded_nor_advanced_over(peers: Peers) -> None:
    """Ingested or left over from somewhere, they change nothing, also after a restart."""
    alice, bob = peers.all
    spans = feeds_of(Stranger(alice.party.key), 40)
    strangers = {bytes(span.feed) for span in spans}
    before = member(alice).machine.act_count, member(alice).state.digest
    for peer in peers.all:
        peer.take(spans)
        peer.party.process()
    assert (member(alice).machine.act_count, member(alice).state.digest) == before
    works(peers, alice, bob)
    for peer in peers.all:
        assert not entries_of(peer, strangers)
        peer.restart()
        assert strangers.isdisjoint(member(peer).machine.timeframe())
    works(peers, alice, bob)


def test_blocks_of_strangers_are_not_taken_over_the_wire_until_an_act_names_them(peers: Peers) -> None:
    alice, bob = peers.all
    mallory = peers.add("mallory", Role.READER)
    stranger = Stranger(alice.party.key, "eve")
    spans = feeds_of(stranger, 40)
    strangers = {bytes(span.feed) for span in spans}
    for span in spans:
        mallory.store.ingest(span)
    wire = Wire(peers)
    wire.run()
    assert strangers.isdisjoint({*alice.lengths(), *bob.lengths()})
    assert mallory.lengths().keys() >= alice.lengths().keys()

    asked = wire.blocks
    member(alice).admit(pair_of("somebody else").key, [Role.READER])  # a control change that names nobody of them
    wire.nodes["alice"].replica.refresh()
    wire.run()
    assert strangers.isdisjoint({*alice.lengths(), *bob.lengths()})
    assert wire.blocks < asked + 10

    member(alice).admit(stranger.identity.key, [Role.READER])
    wire.nodes["alice"].replica.refresh()
    wire.run()
    for peer in (alice, bob):
        assert strangers <= peer.lengths().keys()  # known feeds are taken whole, void as they are
        assert all(member(peer).machine.knows(feed) for feed in strangers)
        assert not any(member(peer).state.feed(feed) for feed in strangers)
    assert member(alice).state.digest == member(bob).state.digest


def test_a_chain_of_control_feeds_comes_in_one_visit(peers: Peers) -> None:
    """A newcomer that knows the genesis alone gets all feeds, each named by the one before."""
    alice, bob = peers.all
    member(alice).admit(bob.key, [Role.OWNER])
    peers.sync()
    carol = peers.add("carol", None)
    member(bob).admit(carol.key, [Role.EDITOR])
    peers.sync()
    carol.join()
    note(carol)
    peers.sync()
    dave = peers.add("dave", None)
    member(alice).admit(dave.key, [Role.READER])
    wire = Wire(peers)
    wire.run()
    assert dave.lengths() == alice.lengths()
    assert dave.snapshots() == alice.snapshots()


def test_a_data_feed_that_no_act_names_is_not_asked_for(peers: Peers) -> None:
    alice = peers.all[0]
    mallory = peers.add("mallory", Role.READER)
    feed = pair_of("a data feed")
    mallory.store.ingest(SpanWriter(feed, alice.party.key).write(3))
    wire = Wire(peers)
    wire.run()
    assert bytes(feed.key) not in alice.lengths()
    alice.admit_feed(feed)
    wire.nodes["alice"].replica.refresh()
    wire.run()
    assert alice.lengths()[bytes(feed.key)] == 3


def test_a_file_with_a_feed_of_a_stranger_is_refused(peers: Peers, tmp_path: Path) -> None:
    alice = peers.all[0]
    note(alice)
    export(alice, tmp_path / "good.car")
    span = feeds_of(Stranger(alice.party.key), 1)

    def add(root: BundleRoot, blobs: MemoryBlobs) -> BundleRoot:
        lists = blobs.put(encode_list([blobs.put(one.encode()) for one in span]), DAG_CBOR)
        more = BundleFeed(bytes(span[0].feed), True, 0, span[-1].end, (lists,))
        return replace(root, feeds=tuple(sorted([*root.feeds, more], key=lambda feed: feed.order)))

    rewrite(tmp_path / "good.car", tmp_path / "strange.car", add)
    zoe = peers.add("zoe", None)
    with pytest.raises(BadEncoding, match=Reason.FEED_UNKNOWN.value):
        take(tmp_path / "strange.car", zoe)
    assert bytes(span[0].feed) not in zoe.lengths()
    take(tmp_path / "good.car", zoe)


@pytest.mark.parametrize("forged", [Forged(flags=4, kind=Kind.CREDENTIAL), Forged(kind=99)], ids=["flags", "kind"])
def test_a_feed_that_begins_with_no_block_stops_nobody(peers: Peers, forged: Forged) -> None:
    """Its header is signed, and breaks the rules: reading it as a control block once raised an `IndexError`."""
    alice = peers.all[0]
    span = hostile_span(pair_of("nobody"), alice.party.key, [forged])
    alice.store.ingest_bytes(span.encode())
    alice.party.process()
    alice.restart()
    alice.party.process()
    assert bytes(span.feed) not in {bytes(entry.feed) for entry in member(alice).machine.entries()}
    works(peers, *peers.all)


@pytest.mark.parametrize("newcomer", [False, True])
def test_any_number_of_control_feeds_passes_through_a_session(
    peers: Peers, monkeypatch: pytest.MonkeyPatch, newcomer: bool
) -> None:
    """65,537 control feeds of one identity that a member named made every session about the party fail, for ever."""
    monkeypatch.setattr(requests, "FEEDS_MAX", 12)
    monkeypatch.setattr(announcements, "HOLDINGS_MAX", 5)
    alice, bob = peers.all
    mallory = Stranger(bytes(alice.party.key))
    member(alice).admit(mallory.identity.key, [Role.READER])
    alice.take(feeds_of(mallory, 60))
    alice.party.process()
    if newcomer:
        bob = peers.add("carol", None)
        member(alice).admit(bob.key, [Role.READER])
    for _ in range(3):  # what was forgotten comes with the next session
        wire = Wire(peers, [(alice.name, bob.name)])
        wire.run(600_000)
    assert set(alice.lengths()) <= set(bob.lengths())
