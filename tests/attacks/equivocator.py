"""A member who signs two histories of its feeds, and shows each to whom it likes."""

from __future__ import annotations

from collections.abc import Sequence

from tests.mesh.replication.wire import Links, Wire
from tests.party.epochs.epoch_acts import member, note

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Entry, Kind
from antiphon.feed.span import Span
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import Claim, MemberAdmission, Policy, Role
from antiphon.party.live.item import Item
from antiphon.testing.parties import pair_of
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import SpanWriter


class Equivocator:
    """Mallory: a member with a control feed and two data feeds, whose blocks a test hands out by itself."""

    def __init__(self, peers: Peers) -> None:
        self.peers = peers
        self.peer = peers.add("mallory")
        note(self.peer, "hello")
        self.second = pair_of("mallory's second data feed")
        self.peer.admit_feed(self.second)
        peers.sync()
        peers.all.remove(self.peer)
        self.party = bytes(self.peer.party.key)

    def pen(self, pair: KeyPair | None = None, seed: int = 0) -> SpanWriter:
        """A writer that continues a feed of Mallory's without storing anything; by default the data feed."""
        feed = member(self.peer).open_data_feed().feed if pair is None else pair.key
        writer = SpanWriter(self.peer.keys.pair(PublicKey(feed)) if pair is None else pair, self.party, seed)
        known = [record for record in self.peer.store.feeds(self.party) if record.feed == feed]
        writer.record = known[0] if known else writer.record
        return writer

    def control(self, seed: int = 0) -> SpanWriter:
        """The same for the control feed."""
        writer = member(self.peer).control
        assert writer is not None
        return self.pen(self.peer.keys.pair(writer.feed), seed)

    def say(
        self, writer: SpanWriter, claim: Claim, *, pairs: Sequence[KeyPair] = (), seen: Sequence[Entry] = ()
    ) -> Span:
        """A credential of Mallory's device and these keys, in force or not."""
        signed = credential.sign(self.party, claim, [self.peer.device.pair, *pairs])
        draft = Draft(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(signed))
        others = [entry for entry in seen if entry.feed != writer.pair.key]
        (span,) = writer.extend([draft], seen=others)
        return span

    def admits(self, writer: SpanWriter, name: str) -> Span:
        return self.say(writer, MemberAdmission(bytes(pair_of(name).key), frozenset({Role.READER})))


def meet(peers: Peers, links: Links | None = None) -> Wire:
    """Let all peers talk through sessions, and work on epochs, until nothing moves for minutes."""
    wire = Wire(peers, links)
    before = None
    while before != (before := [peer.store.transaction for peer in peers.all]):
        wire.run(wire.now_ms + 300_000)
        for peer in peers.all:
            peer.party.process()
            peer.epochs.step()
            wire.nodes[peer.name].replica.refresh()
    return wire


def works(peers: Peers) -> None:
    """Honest members write, invite, revoke, set a policy, declare, restart, and agree; nothing of theirs waits."""
    alice = peers.all[0]
    made = {note(peer, f"by {peer.name}").id: peer.name for peer in peers.all}
    member(alice).admit(pair_of("guest").key, [Role.READER])
    member(alice).set_policy(Policy(editors_admit=True))
    meet(peers)
    member(alice).revoke(pair_of("guest").key)
    number = alice.epochs.number
    alice.epochs.declare()
    meet(peers)
    assert {peer.epochs.number for peer in peers.all} == {number + 1}, [
        (peer.epochs.number, peer.epochs.waits_for) for peer in peers.all
    ]
    for peer in peers.all:
        assert {peer.party.item(item).value["title"] for item in made} == {f"by {name}" for name in made.values()}
        peer.restart()
        peer.party.process()
    meet(peers)
    assert len({member(peer).state.digest for peer in peers.all}) == 1
    assert len({str(sorted(peer.snapshots().items())) for peer in peers.all}) == 1


def check_all(peers: Peers, item: Item, words: str) -> None:
    """All peers show the same item with these words; so does one that restarts, and one that is built anew."""
    peers.sync()
    wanted = peers.all[0].snapshots()
    for peer in peers.all:
        assert peer.party.item(item.id).value == words, peer.name
        assert peer.snapshots() == wanted, peer.name
        assert peer.party.refused() == peers.all[0].party.refused(), peer.name
    second = peers.all[1]
    second.restart(crash=True)
    assert (second.party.item(item.id).value, second.snapshots()) == (words, wanted)
    second.rebuild()
    assert (second.party.item(item.id).value, second.snapshots()) == (words, wanted)


def waits(peer: Peer, *liars: bytes) -> list[bytes]:
    """The feeds whose next block waits, or that have a fault, without those of liars."""
    found = [blocked.feed for blocked in peer.party.status().blocked]
    found += [waiting.stamp.feed for waiting in member(peer).machine.waiting()]
    return [feed for feed in found if feed not in liars]
