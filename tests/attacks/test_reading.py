"""Nobody reads a party who is not admitted to it: whoever else asks, or knows an invitation, meets one silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.mesh.replication.wire import Wire, admits_of
from tests.party.epochs.epoch_acts import epoch, held, honest, member, note

import antiphon
from antiphon.core.cid import Cid
from antiphon.core.keys import KeyPair
from antiphon.feed.header import Kind
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import MemberAdmission, Role
from antiphon.halo.keys.identity import Device, Identity
from antiphon.halo.member.device_proof import make_proof, vouch
from antiphon.mesh.replication import limits
from antiphon.mesh.replication.admits import Access
from antiphon.mesh.replication.codec import decode, encode
from antiphon.mesh.replication.message import Announcement, Blobs, Body, Holding, Message, Ranges, Show, Want, WantBlobs
from antiphon.mesh.replication.replica import Replica
from antiphon.mesh.replication.session import Session
from antiphon.testing.peers import Peer, Peers, pair_of

STRANGER = pair_of("a stranger's device")


@dataclass
class Person:
    """Somebody with keys, who speaks the protocol by hand."""

    identity: Identity
    device: Device

    @classmethod
    def named(cls, name: str) -> Person:
        identity = Identity(pair_of(name))
        return cls(identity, Device(pair_of(f"{name}'s device"), identity.key))

    def word(self, party: bytes) -> bytes:
        return vouch(party, self.identity, self.device)


class Probe:
    """Everything that a device can say to one honest peer about one party, and what it hears."""

    def __init__(self, peer: Peer, device: KeyPair, party: bytes | None = None) -> None:
        self.peer = peer
        self.replica = Replica(peer.party, peer.epochs, admits_of(peer))
        self.session = Session(self.replica, device.key)
        self.party = bytes(party or peer.party.key)
        self.now_ms = 0

    def say(self, body: Body | None, receiver: bytes = b"") -> list[Message]:
        self.session.receive(encode(Message(self.party, b"prober..", receiver, 0, body)), self.now_ms)
        return self.hear()

    def hear(self) -> list[Message]:
        self.now_ms += 2_000
        self.replica.refresh()
        self.session.tick(self.now_ms)
        return [decode(data) for data in self.session.outgoing()]

    def everything(self, shown: Sequence[bytes] = ()) -> list[Message]:
        """Say all that there is to say; return all that comes back."""
        feed = next(iter(self.peer.lengths()))
        heard = self.hear()
        bodies: list[Body | None] = [
            None,
            Show(tuple(shown)),
            Announcement(0, 1, (Holding(feed, 0, 99, bytes(32), True), Holding(bytes(32), 0, 1, bytes(32)))),
            Want(1, limits.ANSWER_SIZE, ((feed, 0),), (feed,)),
            WantBlobs(2, (Cid.of(b"blob"),)),
            Ranges(1, ()),
            Blobs(2, ()),
        ]
        for receiver in (b"", b"whoever.", bytes(self.session._handshake.mine)):
            for body in bodies:
                heard += self.say(body, receiver)
        for rubbish in (b"", b"rubbish", bytes(limits.MESSAGE_SIZE_MAX + 1)):
            self.session.receive(rubbish, self.now_ms)
        return heard + self.hear()


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path) as made:
        note(made.add("alice"), "secret")
        yield made


def stranger(peers: Peers) -> tuple[KeyPair, Sequence[bytes]]:
    return STRANGER, ()


def not_admitted(peers: Peers) -> tuple[KeyPair, Sequence[bytes]]:
    eve = Person.named("eve")
    return eve.device.pair, [eve.word(peers.all[0].party.key)]


def thief_of_a_word(peers: Peers) -> tuple[KeyPair, Sequence[bytes]]:
    """Somebody else's word does not help a device that it does not name."""
    bob = Person.named("bob")
    member(peers.all[0]).admit(bob.identity.key, [Role.EDITOR])
    return STRANGER, [bob.word(peers.all[0].party.key)]


def word_of_another_party(peers: Peers) -> tuple[KeyPair, Sequence[bytes]]:
    bob = Person.named("bob")
    member(peers.all[0]).admit(bob.identity.key, [Role.EDITOR])
    return bob.device.pair, [bob.word(pair_of("another party").key)]


def admitted_by_itself(peers: Peers) -> tuple[KeyPair, Sequence[bytes]]:
    eve, party = Person.named("eve"), peers.all[0].party.key
    claim = MemberAdmission(eve.identity.key, frozenset({Role.OWNER}))
    return eve.device.pair, [eve.word(party), credential.sign(party, claim, [eve.device.pair])]


def admitted_by_a_reader(peers: Peers) -> tuple[KeyPair, Sequence[bytes]]:
    eve, party, reader = Person.named("eve"), peers.all[0].party.key, peers.add("reader", Role.READER)
    claim = MemberAdmission(eve.identity.key, frozenset({Role.READER}))
    proof = [
        eve.word(party),
        credential.sign(party, claim, [reader.device.pair]),
        member(reader).vouch(reader.identity),
    ]
    return eve.device.pair, proof


def revoked(peers: Peers) -> tuple[KeyPair, Sequence[bytes]]:
    bob = peers.add("bob")
    proof = make_proof(member(bob).machine, member(bob).vouch(bob.identity))
    member(peers.all[0]).revoke(bob.key)
    return bob.device.pair, proof


def ended(peers: Peers) -> tuple[KeyPair, Sequence[bytes]]:
    """Bob's laptop was stolen, and he has ended it."""
    bob = peers.add("bob")
    proof = make_proof(member(bob).machine, member(bob).vouch(bob.identity))
    member(bob).end_device(bob.device.key, bob.identity)
    peers.sync()
    return bob.device.pair, proof


@pytest.mark.parametrize(
    "who",
    [
        stranger,
        not_admitted,
        thief_of_a_word,
        word_of_another_party,
        admitted_by_itself,
        admitted_by_a_reader,
        revoked,
        ended,
    ],
)
def test_who_is_not_admitted_meets_the_silence_of_a_peer_that_has_no_such_party(
    peers: Peers, who: Callable[[Peers], tuple[KeyPair, Sequence[bytes]]]
) -> None:
    """A peer without the party has no session about it: nothing comes back, and no connection is dropped."""
    device, shown = who(peers)
    probe = Probe(peers.all[0], device)
    before = peers.all[0].lengths()
    assert probe.everything(shown) == []
    assert probe.session.tick(probe.now_ms) is None
    assert probe.session.access is Access.NOTHING
    assert peers.all[0].lengths() == before


def test_who_was_invited_shows_its_word_and_gets_the_party(peers: Peers) -> None:
    bob = Person.named("bob")
    probe = Probe(peers.all[0], bob.device.pair)
    word = bob.word(peers.all[0].party.key)
    assert probe.everything([word]) == []
    member(peers.all[0]).admit(bob.identity.key, [Role.READER])  # what was shown before counts now
    greeting = probe.hear()[0]
    (announced,) = [message.body for message in probe.say(None, greeting.sender) if message.body is not None]
    assert isinstance(announced, Announcement)
    assert {held.feed for held in announced.holdings} == set(peers.all[0].lengths())


def test_from_the_revocation_on_nothing_more_is_given_in_an_open_session(peers: Peers) -> None:
    alice, bob = peers.all[0], peers.add("bob")
    wire = Wire(peers)
    wire.run()
    feed = next(iter(bob.lengths()))
    session = wire.nodes["alice"].sessions["bob"]
    assert session.access is Access.WHOLE
    asks = Message(
        bytes(alice.party.key), session._handshake.theirs, session._handshake.mine, 0, Want(99, 1 << 20, ((feed, 0),))
    )
    session.receive(encode(asks), wire.now_ms)  # the answer waits to be sent
    member(alice).revoke(bob.key)
    note(alice, "after")
    wire.nodes["alice"].replica.refresh()
    session.tick(wire.now_ms)
    assert session.outgoing() == []
    before = bob.lengths()
    wire.run(wire.now_ms + 600_000)
    assert bob.lengths() == before
    member(alice).admit(bob.key, [Role.EDITOR])
    wire.nodes["alice"].replica.refresh()
    wire.run(wire.now_ms + 600_000)
    assert bob.lengths() == alice.lengths()


def test_members_who_have_not_heard_of_each_other_meet_by_who_admitted_them(peers: Peers) -> None:
    """Carol was admitted after Bob heard from Alice for the last time, and meets him alone."""
    alice, bob = peers.all[0], peers.add("bob")
    carol = peers.add("carol", None)
    member(alice).admit(carol.key, [Role.EDITOR])
    peers.pass_on(alice, carol)
    carol.join()
    note(carol, "hello")
    note(bob, "hi")
    Wire(peers, [("bob", "carol")]).run()
    assert bob.lengths() == carol.lengths()
    assert len(bob.party.items()) == len(carol.party.items()) == 3


def test_blobs_of_other_parties_are_not_given(peers: Peers, tmp_path: Path) -> None:
    alice, bob = peers.all[0], peers.add("bob")
    epoch(peers)
    base = alice.epochs.base
    assert base is not None
    file = alice.blobs.put(b"a file of another party")
    with Peers(tmp_path / "others") as others:
        note(others.add("dora"), "another secret")
        epoch(others)
        root = others.all[0].epochs.base
        assert root is not None
        alice.blobs.put_all((cid, others.all[0].blobs.get(cid)) for cid in held(others.all[0]))
        probe = Probe(alice, bob.device.pair)
        greeting = probe.hear()[0]
        probe.say(None, greeting.sender)
        wanted = [base.cid, base.root.items, base.root.feeds, root.cid, root.root.items, file, Cid.of(b"nowhere")]
        answers = probe.say(WantBlobs(1, tuple(cid for cid in wanted if cid is not None)), greeting.sender)
    (blobs,) = [message.body for message in answers if isinstance(message.body, Blobs)]
    assert [cid for cid, _ in blobs.blobs] == wanted[:3]
    assert list(blobs.lacks) == wanted[3:]


def test_the_snapshot_of_another_party_is_not_given_if_an_epoch_names_it(tmp_path: Path) -> None:
    """Mallory founds a party, is its only attester, and declares the snapshot of a party that Alice is in, too."""
    with Peers(tmp_path / "others") as others, Peers(tmp_path / "party") as peers:
        note(others.add("dora"), "another secret")
        epoch(others)
        foreign = others.all[0].epochs.base
        assert foreign is not None
        mallory, alice = peers.add("mallory"), peers.add("alice")
        alice.blobs.put_all((cid, others.all[0].blobs.get(cid)) for cid in held(others.all[0]))
        note(mallory, "bait")
        peers.sync()
        member(mallory).declare(replace(honest(mallory), snapshot=bytes(foreign.cid)))
        peers.sync()
        alice.epochs.step()
        assert len(alice.epochs.chain().final) == 1
        probe = Probe(alice, mallory.device.pair)
        greeting = probe.hear()[0]
        probe.say(None, greeting.sender)
        wanted = [cid for cid in (foreign.cid, foreign.root.items, foreign.root.feeds) if cid is not None]
        answers = probe.say(WantBlobs(1, tuple(wanted)), greeting.sender)
    (blobs,) = [message.body for message in answers if isinstance(message.body, Blobs)]
    assert not blobs.blobs
    assert list(blobs.lacks) == wanted


@pytest.mark.parametrize("order", [1, -1])
def test_a_guest_of_a_child_gets_the_parents_control_feeds_and_no_more(tmp_path: Path, order: int) -> None:
    """Also if it has the invitation to the parent, that somebody else got."""
    with (
        antiphon.open(tmp_path / "ada", name="Ada", unprotected=True) as ada,
        antiphon.open(tmp_path / "guest", name="Guest", unprotected=True) as guest,
    ):
        club = ada.create_party("Club")
        club.object({"title": "for members"})
        game = club.create_child("Game")
        move = game.object({"move": "e4"})
        leaked = club.invite(pair_of("bob").key)
        guest.join(str(leaked))
        assert antiphon.sync(ada, guest) == 0
        guest.join(str(game.invite(guest.me)))
        for _ in range(2):
            antiphon.sync(*(ada, guest)[::order])
        assert guest.party(game.key).item(move.id).value == {"move": "e4"}
        assert len(guest.party(club.key).query()) == 0
        kinds = [guest.manager.feeds.first_kind(record.feed) for record in guest.manager.feeds.feeds(club.key)]
        assert set(kinds) == {Kind.CREDENTIAL}
        reply = guest.party(game.key).object({"move": "e5"})
        antiphon.sync(ada, guest)
        assert game.item(reply.id).value == {"move": "e5"}
        game.revoke(guest.me)
        club.invite(pair_of("dora").key)
        assert antiphon.sync(ada, guest) == 0
