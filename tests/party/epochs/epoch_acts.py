"""What the tests of epochs do again and again: policies, epochs that are forged, joiners, and that all agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.stamp import Stamp
from antiphon.feed.encoder import Draft
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import Entry, Kind
from antiphon.feed.span import Span
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import Claim, EpochGenesis, EpochRefusal, Policy, Role
from antiphon.halo.member.membership import Membership
from antiphon.model.message import wrap
from antiphon.party.live.item import Item
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import SpanWriter


def member(peer: Peer) -> Membership:
    assert peer.member is not None
    return peer.member


def device(peer: Peer) -> bytes:
    return bytes(peer.device.key)


def held(peer: Peer) -> MemoryBlobs:
    assert isinstance(peer.blobs, MemoryBlobs)
    return peer.blobs


def note(peer: Peer, title: str = "note") -> Item:
    """A new object with a title."""
    item = peer.party.create("antiphon/object")
    item.edit("set", "title", title)
    return item


def change(peer: Peer, item: bytes, key: str, value: object) -> Draft:
    """A message that sets something in an object."""
    model = peer.models.get("antiphon/object")
    return Draft(Kind.MUTATION, item, wrap(Kind.MUTATION, model.set(model.initial(), key, value)))  # type: ignore[attr-defined]


def agree_on(peers: Peers, *attesters: Peer, **more: Any) -> None:
    """The party's policy: these attest, and what else is said."""
    member(peers.all[0]).set_policy(Policy(attesters=tuple(sorted(map(device, attesters))), **more))
    peers.sync()


def epoch(peers: Peers, declarer: Peer | None = None) -> EpochGenesis:
    """Everybody hears everything; one declares an epoch, and all who are here come to stand on it."""
    peers.sync()
    declarer = declarer or first(peers)
    genesis = declarer.epochs.declare()
    peers.settle()
    assert {peer.epochs.number for peer in peers.all} == {genesis.number}, numbers(peers)
    return genesis


def first(peers: Peers) -> Peer:
    """Whose the next epoch is."""
    generator = peers.all[0].epochs.chain().open.config.generator
    return next(peer for peer in peers.all if device(peer) == generator)


def numbers(peers: Peers) -> dict[str, tuple[int, str]]:
    return {peer.name: (peer.epochs.number, peer.epochs.waits_for) for peer in peers.all}


def fetch_all(peers: Peers, taker: Peer) -> None:
    """All of the snapshot that the party stands on."""
    for giver in peers.all:
        if giver is not taker:
            peers.pass_blobs(giver, taker, whole=True)


def settle(peers: Peers) -> None:
    """Until everybody has everything, the whole snapshot too."""
    peers.settle()
    for peer in peers.all:
        fetch_all(peers, peer)
    peers.settle()


def takes_over(peers: Peers, winner: Peer, *endorsers: Peer, term: int = 1) -> EpochGenesis:
    """A new term: these endorse one of them, who declares the epoch."""
    for peer in endorsers:
        member(peer).endorse(term, device(winner))
        peers.sync()
    genesis = winner.epochs.declare()
    settle(peers)
    return genesis


def join(peers: Peers, name: str, role: Role = Role.READER, *, of: Peer | None = None) -> Peer:
    """A new peer, which gets the snapshot and the tail from one who has pruned, and no message that the epoch holds."""
    giver = of or peers.all[0]
    giver.epochs.prune()
    others, peers.all = peers.all, [giver]
    joiner = peers.add(name, role)
    peers.settle()
    fetch_all(peers, joiner)
    peers.all = [*others, joiner]
    base = joiner.epochs.base
    assert base is not None
    for feed, cut in base.feeds.items():
        assert not cut.length or feed not in joiner.lengths() or joiner.store.bounds(feed).start == cut.length
    peers.settle()
    return joiner


def same(*peers: Peer) -> None:
    """All of them stand on the same epochs, and have the same items, byte for byte."""
    one = peers[0]
    for peer in peers:
        assert peer.epochs.disagreement is None
        assert peer.epochs.chain().final == one.epochs.chain().final
        assert peer.epochs.base is not None
        assert one.epochs.base is not None
        assert peer.epochs.base.cid == one.epochs.base.cid, (peer.name, peer.epochs.waits_for)
        assert peer.party.timeframe == one.party.timeframe, peer.name
        assert peer.snapshots() == one.snapshots(), peer.name


def told(peer: Peer) -> list[str]:
    """Why messages do not count here, by stamp."""
    found = sorted(peer.party.refused(), key=lambda row: (row.feed, row.seq))
    return [f"{row.feed.hex()[:8]} {row.seq} {row.reason}" for row in found]


# -- what no honest program writes


def say(peer: Peer, claim: Claim) -> Stamp:
    """Write a credential that is signed by this device, permitted or not."""
    one = member(peer)
    one.refresh()
    signed = credential.sign(one.party, claim, [one.device.pair], nonce=peer.dice.bytes(16))
    return one._append(signed)


def honest(peer: Peer, term: int = 0) -> EpochGenesis:
    """What this device would declare now."""
    peer.epochs.step()
    genesis = peer.epochs._afresh(peer.epochs.chain(), term, False)
    return replace(genesis, control_hash=member(peer).machine.control_hash(genesis.control))


def spoilt(peer: Peer, **wrong: Any) -> EpochGenesis:
    """An epoch that is declared by this device, with something wrong in it."""
    genesis = replace(honest(peer), **wrong)
    say(peer, genesis)
    return genesis


def refusals(peer: Peer) -> list[tuple[bytes, EpochRefusal]]:
    """What is refused aloud of the next epoch: by which device, and why. All who hear it see the same."""
    chain = peer.epochs.chain()
    return [(found.device, found.claim) for found in chain.refusals if found.claim.number == chain.open.number]


def pen(peer: Peer) -> SpanWriter:
    """A hand that writes this peer's data feed as it is now, on paper: nothing of it is in any store."""
    feed = member(peer).open_data_feed().feed
    writer = SpanWriter(peer.keys.pair(feed), peer.party.key, seed=7)
    writer.record = record(peer, feed)
    return writer


def control_pen(peer: Peer) -> SpanWriter:
    """A hand that writes this peer's control feed as it is now; nothing of it is in any store."""
    control = member(peer).control
    assert control is not None
    writer = SpanWriter(peer.keys.pair(control.feed), peer.party.key, seed=9)
    writer.record = record(peer, control.feed)
    return writer


def twin(peer: Peer, *claims: Claim) -> Span:
    """Other next blocks of this device's control feed, with these claims in them; no store has them."""
    one = member(peer)
    nonces = (b"the other branch %d" % number for number in range(len(claims)))
    pairs = zip(claims, nonces, strict=True)
    signed = [credential.sign(one.party, claim, [one.device.pair], nonce=nonce) for claim, nonce in pairs]
    writer = control_pen(peer)
    seen = [entry for entry in one.machine.entries() if entry.feed != writer.record.feed]
    (span,) = writer.extend(
        [Draft(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(word)) for word in signed], seen=seen
    )
    return span


def record(peer: Peer, feed: bytes) -> FeedRecord:
    return peer.store.record(feed)


def entry(peer: Peer, feed: bytes, seq: int) -> Entry:
    """What a message that has seen a block says of it."""
    return peer.store.block(feed, seq).entry
