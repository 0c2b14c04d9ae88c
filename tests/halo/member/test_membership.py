"""A device's hand in a party, on real stores: founding, joining, revoking, recovering, restoring."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import Equivocation, FeedRetired, InvalidInput, NotAuthorised, UnknownKey
from antiphon.core.keys import KeyPair
from antiphon.core.ports import SystemRandomness
from antiphon.core.timeframe import Timeframe
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.credentials.claims import EpochGenesis, Equivocated, FeedKind, Policy, Position, Role
from antiphon.halo.keys.identity import Device, Identity, new_device, new_identity, recover_identity
from antiphon.halo.keys.key_file import Protection
from antiphon.halo.keys.key_store import KeyStore
from antiphon.halo.member.membership import Membership
from antiphon.testing.parties import pair_of


class Peer:
    """A machine with its stores."""

    def __init__(self, home: Path, identity: Identity | None = None) -> None:
        self.home = home
        self.keys = KeyStore.create(home / "keys", protection=Protection.UNPROTECTED)
        self.store = FeedStore.open(home / "feeds")
        if identity is None:
            identity, self.recovery_phrase = new_identity(self.keys, "me", SystemRandomness())
        self.identity = identity
        self.device: Device = new_device(self.keys, "this machine", identity.key)
        self.party: Membership

    def found(self) -> Membership:
        self.party = Membership.found(self.store, self.keys, self.identity, self.device)
        return self.party

    def visit(self, other: Membership) -> Membership:
        self.party = Membership.open(self.store, self.keys, self.device, other.party, other.genesis_feed)
        return self.party

    def reopen(self) -> Membership:
        return Membership.open(self.store, self.keys, self.device, self.party.party, self.party.genesis_feed)

    def take(self, *others: Peer) -> None:
        for other in others:
            for record in other.store.feeds():
                held = next((mine.length for mine in self.store.feeds() if mine.feed == record.feed), 0)
                if held < record.length:
                    for span in other.store.spans(record.feed, held):
                        self.store.ingest_bytes(span.encode())


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Callable[..., Peer]]:
    made: list[Peer] = []
    numbers = itertools.count()

    def make(identity: Identity | None = None) -> Peer:
        made.append(Peer(tmp_path / str(next(numbers)), identity))
        return made[-1]

    yield make
    for one in made:
        one.store.close()


def joined(owner: Peer, guest: Peer, role: Role) -> None:
    owner.party.admit(guest.identity.key, [role])
    guest.take(owner)
    guest.visit(owner.party)
    guest.take(owner)
    guest.party.join(guest.party.vouch(guest.identity))
    owner.take(guest)


def test_founding_joining_and_writing(peer: Callable[..., Peer]) -> None:
    alice, bob = peer(), peer()
    alice.found()
    joined(alice, bob, Role.EDITOR)
    writer = bob.party.open_data_feed()
    writer.append(Kind.MUTATION, bytes(16), b"hello")
    alice.take(bob)
    assert alice.party.state.digest == bob.party.state.digest
    feed = alice.party.state.feed(writer.feed)
    assert feed is not None
    assert feed.kind is FeedKind.DATA
    block = alice.store.block(writer.feed, 0)
    seen = {entry.feed: entry.seq for entry in block.advance}
    assert alice.party.machine.judge_data(writer.feed, 0, seen) == ""


def test_the_genesis_key_is_not_kept(peer: Callable[..., Peer]) -> None:
    alice = peer()
    party = alice.found()
    held = {record.key for record in alice.keys.keys()}  # noqa: SIM118 - not a dict
    assert party.party not in held
    with pytest.raises(UnknownKey):
        alice.keys.pair(party.party)


def test_what_is_not_permitted_is_not_written(peer: Callable[..., Peer]) -> None:
    alice, bob = peer(), peer()
    alice.found()
    joined(alice, bob, Role.READER)
    before = bob.store.head(bob.party.control.feed)  # type: ignore[union-attr]
    with pytest.raises(NotAuthorised, match="may not admit"):
        bob.party.admit(pair_of("friend").key, [Role.READER])
    with pytest.raises(NotAuthorised, match="may not take"):
        bob.party.revoke(alice.identity.key)
    with pytest.raises(NotAuthorised, match="only owners"):
        bob.party.set_policy(Policy(editors_admit=True))
    assert bob.store.head(bob.party.control.feed) == before  # type: ignore[union-attr]


def test_a_stranger_cannot_join(peer: Callable[..., Peer]) -> None:
    alice, mallory = peer(), peer()
    alice.found()
    mallory.take(alice)
    mallory.visit(alice.party)
    with pytest.raises(NotAuthorised, match="no member"):
        mallory.party.join(mallory.party.vouch(mallory.identity))
    with pytest.raises(UnknownKey, match="vouched"):
        mallory.party.join()
    with pytest.raises(NotAuthorised, match="is no member as far as is known"):
        mallory.party.admit(mallory.identity.key, [Role.OWNER])


def test_admitting_twice_is_the_same_as_once(peer: Callable[..., Peer]) -> None:
    alice = peer()
    party = alice.found()
    first = party.admit(pair_of("bob").key, [Role.EDITOR])
    assert party.admit(pair_of("bob").key, [Role.EDITOR]) == first
    assert party.admit(pair_of("bob").key, [Role.READER]) == first


def test_a_restart_goes_on_with_the_same_feeds(peer: Callable[..., Peer]) -> None:
    alice = peer()
    party = alice.found()
    data = party.open_data_feed()
    again = alice.reopen()
    assert again.control is not None
    assert again.data is not None
    assert (again.control.feed, again.data.feed) == (party.control.feed, data.feed)  # type: ignore[union-attr]
    again.admit(pair_of("bob").key, [Role.READER])
    assert again.state.digest == alice.reopen().state.digest


def test_a_revoked_member_and_its_data_feed_end(peer: Callable[..., Peer]) -> None:
    alice, bob = peer(), peer()
    alice.found()
    joined(alice, bob, Role.EDITOR)
    data = bob.party.open_data_feed()
    data.extend([Draft(Kind.MUTATION, bytes(16), b"x")] * 3)
    alice.take(bob)
    alice.party.revoke(bob.identity.key)
    data.append(Kind.MUTATION, bytes(16), b"too late")
    feed = alice.party.state.feed(data.feed)
    assert feed is not None
    assert feed.end == 3
    assert alice.party.state.member(bob.identity.key) is None
    bob.take(alice)
    bob.party.refresh()
    assert bob.reopen().control is None, "a feed that ended is not written any more"
    with pytest.raises(NotAuthorised):
        bob.party.admit(pair_of("x").key, [Role.READER])


def test_leaving_and_demoting(peer: Callable[..., Peer]) -> None:
    alice, bob = peer(), peer()
    alice.found()
    joined(alice, bob, Role.OWNER)
    alice.party.demote(bob.identity.key, [Role.READER])
    bob.take(alice)
    assert bob.party.state.member(bob.identity.key).roles == {Role.READER}  # type: ignore[union-attr]
    bob.party.revoke(bob.identity.key, identity=bob.identity)
    alice.take(bob)
    assert alice.party.state.member(bob.identity.key) is None
    with pytest.raises(InvalidInput, match="is not admitted"):
        alice.party.revoke(pair_of("nobody").key)


def test_an_identity_recovered_from_its_phrase_ends_the_lost_device(peer: Callable[..., Peer]) -> None:
    alice, lost = peer(), peer()
    alice.found()
    joined(alice, lost, Role.EDITOR)
    keys = KeyStore.create(alice.home / "k2", protection=Protection.UNPROTECTED)
    recovered = peer(recover_identity(keys, lost.recovery_phrase, "me"))
    assert recovered.identity.key == lost.identity.key
    recovered.take(alice)
    recovered.visit(alice.party)
    recovered.party.join(recovered.party.vouch(recovered.identity))
    recovered.party.end_device(lost.device.key, recovered.identity)
    alice.take(recovered)
    state = alice.party.state
    ended = [feed for feed in state.feeds if feed.device == lost.device.key]
    assert [feed.end for feed in ended] == [1]
    assert state.member(lost.identity.key) is not None


def test_a_device_ends_itself(peer: Callable[..., Peer]) -> None:
    alice, bob = peer(), peer()
    alice.found()
    joined(alice, bob, Role.EDITOR)
    bob.party.end_device(bob.device.key)
    alice.take(bob)
    feed = alice.party.state.feed(bob.party.control.feed)  # type: ignore[union-attr]
    assert feed is not None
    assert feed.end == 2
    assert not alice.party.voids


def test_groups(peer: Callable[..., Peer]) -> None:
    alice, bob = peer(), peer()
    alice.found()
    team = KeyPair.generate(SystemRandomness())
    alice.party.admit(team.key, [Role.EDITOR])
    alice.party.admit_to_group(team.key, bob.identity.key, team)
    bob.take(alice)
    bob.visit(alice.party)
    bob.party.join(bob.party.vouch(bob.identity))
    alice.take(bob)
    assert alice.party.state.member(bob.identity.key).roles == {Role.EDITOR}  # type: ignore[union-attr]
    alice.party.remove_from_group(team.key, bob.identity.key, team)
    state = alice.party.state
    assert state.member(bob.identity.key) is None
    assert state.feed(bob.party.control.feed).end == 1  # type: ignore[union-attr]
    assert state.member(team.key) is not None


def test_a_tightened_policy_replaces_what_is_known(peer: Callable[..., Peer]) -> None:
    alice = peer()
    party = alice.found()
    party.set_policy(Policy(editors_admit=True))
    tight = party.tightened(Policy())
    party.set_policy(tight)
    assert tight.tightens
    assert party.state.policy.editors_admit is False


def test_epochs_are_declared_and_attested(peer: Callable[..., Peer]) -> None:
    alice = peer()
    party = alice.found()
    snapshot = bytes(Cid.of(b"state", DAG_CBOR))
    party.declare(EpochGenesis(0, 1, b"", {}, Timeframe(), snapshot, 1))
    assert [epoch.snapshot for epoch in party.state.epochs] == [snapshot]
    assert party.machine.epochs().votes == ((alice.device.key,),)


def genesis_of(party: Membership, value: bytes, *, term: int = 0) -> EpochGenesis:
    chain = party.machine.epochs()
    previous = chain.last.snapshot if chain.last else b""
    control = party.machine.timeframe()
    return EpochGenesis(term, chain.open.number, previous, {}, control, bytes(Cid.of(value, DAG_CBOR)), 1)


def test_a_device_never_votes_against_its_own_votes_also_after_a_restart(peer: Callable[..., Peer]) -> None:
    alice, bob = peer(), peer()
    alice.found()
    joined(alice, bob, Role.EDITOR)
    devices = tuple(sorted((*alice.party.devices(alice.identity.key), *alice.party.devices(bob.identity.key))))
    assert set(devices) == {alice.device.key, bob.device.key}
    alice.party.set_policy(Policy(attesters=devices, generator=bytes(alice.device.key)))
    alice.party.declare(genesis_of(alice.party, b"one"))
    with pytest.raises(NotAuthorised, match="has declared epoch 1"):
        alice.reopen().declare(genesis_of(alice.party, b"two"))
    bob.take(alice)
    with pytest.raises(NotAuthorised, match="is that of device"):
        bob.party.declare(genesis_of(bob.party, b"two"))
    act = bob.party.machine.epochs().open.proposals[0].act
    bob.party.refuse(act, "another CID")
    bob.party.endorse(1, bob.device.key)
    with pytest.raises(NotAuthorised, match="endorsed term 1"):
        bob.reopen().attest(act)
    with pytest.raises(NotAuthorised, match="1 of 2 endorsements"):
        bob.party.declare(genesis_of(bob.party, b"two", term=1))
    alice.take(bob)
    alice.party.refresh()
    alice.party.endorse(1, bob.device.key)
    bob.take(alice)
    bob.party.refresh()
    bob.party.declare(genesis_of(bob.party, b"two", term=1))  # Alice's word alone cannot have made the other one final
    alice.take(bob)
    alice.party.refresh()
    alice.party.attest(alice.party.machine.acts()[-1])
    assert [epoch.snapshot for epoch in alice.party.state.epochs] == [bytes(Cid.of(b"two", DAG_CBOR))]
    with pytest.raises(NotAuthorised, match="epoch 1 is final with another snapshot"):
        alice.party.attest(act)


def test_a_policy_names_devices_that_have_joined(peer: Callable[..., Peer]) -> None:
    alice = peer()
    party = alice.found()
    with pytest.raises(InvalidInput, match="no device with a control feed"):
        party.set_policy(Policy(attesters=(bytes(alice.identity.key),)))
    with pytest.raises(InvalidInput, match="no device with a control feed"):
        party.set_policy(Policy(generator=bytes(alice.identity.key)))


def test_an_erasure_comes_too_late_for_what_an_epoch_holds(peer: Callable[..., Peer]) -> None:
    alice = peer()
    party = alice.found()
    feed = bytes(party.open_data_feed().feed)
    party.write([Draft(Kind.MUTATION, bytes(16), b"hello")] * 3)
    party.erase(Position(feed, 1))
    assert party.machine.erased(feed) == {1}
    party.declare(replace(genesis_of(party, b"one"), cut={feed: 3}))
    with pytest.raises(InvalidInput, match="is final"):
        party.erase(Position(feed, 2))
    with pytest.raises(NotAuthorised, match="only an owner"):
        party.erase(Position(bytes(party.genesis_feed), 9))


def test_a_fork_is_published_as_a_credential_and_cuts_the_feed_for_all(
    peer: Callable[..., Peer], tmp_path: Path
) -> None:
    alice, bob, mallory = peer(), peer(), peer()
    alice.found()
    joined(alice, bob, Role.EDITOR)
    joined(alice, mallory, Role.EDITOR)
    pair = mallory.keys.pair(mallory.party.open_data_feed().feed)
    alice.take(mallory)
    bob.take(alice)
    with FeedStore.open(tmp_path / "other") as other:
        other.create(pair.key, mallory.party.party)
        for store, text in ((mallory.store, b"one"), (other, b"two")):
            store.append(pair, mallory.party.party, [Draft(Kind.MUTATION, bytes(16), b"same salt")])
            store.append(pair, mallory.party.party, [Draft(Kind.MUTATION, bytes(16), text)])
        for span in mallory.store.spans(pair.key):
            alice.store.ingest(span)
        with pytest.raises(Equivocation):
            alice.store.ingest_all(list(other.spans(pair.key)))
    assert len(alice.party.publish_forks()) == 1
    assert alice.party.publish_forks() == [], "told once"
    bob.take(alice)
    bob.party.refresh()
    told = [act.claim for act in bob.party.machine.acts() if isinstance(act.claim, Equivocated)]
    assert [claim.feed for claim in told] == [pair.key]
    assert bob.party.machine.judge_data(pair.key, 0, dict(bob.party.machine.timeframe())) != ""
    assert alice.party.state.digest == bob.party.state.digest


def test_a_restored_backup_opens_new_feeds(peer: Callable[..., Peer], tmp_path: Path) -> None:
    """Rule 6: what it wrote since the backup is known to others; going on would look like equivocation."""
    alice, bob = peer(), peer()
    alice.found()
    joined(alice, bob, Role.EDITOR)
    bob.store.close()
    shutil.copytree(bob.home / "feeds", tmp_path / "backup")
    bob.store = FeedStore.open(bob.home / "feeds")
    old = bob.reopen().open_data_feed().feed
    alice.take(bob)
    bob.store.close()
    bob.store = FeedStore.open(tmp_path / "backup")
    party = bob.reopen()
    assert party.control is None
    retired = next(record.feed for record in bob.store.feeds() if record.retired)
    with pytest.raises(FeedRetired):
        bob.store.append(bob.keys.pair(retired), party.party, [Draft(Kind.CREDENTIAL, bytes(16), b"")])
    party.join()
    new = party.open_data_feed().feed
    assert new != old
    alice.take(bob)
    bob.take(alice)
    assert alice.party.state.digest == party.state.digest
    assert not alice.store.forks()
