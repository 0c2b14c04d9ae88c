"""The parties of one machine: found, followed, opened, paused, deleted; and joined from another machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from antiphon.core.errors import InvalidInput, MissingBlocks, NotAuthorised, PartyPaused, StoreError
from antiphon.core.keys import PublicKey
from antiphon.core.timeframe import Timeframe
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.credentials.claims import Role
from antiphon.halo.keys.identity import Device, Identity
from antiphon.halo.keys.key_file import KeyKind, Protection
from antiphon.halo.keys.key_store import KeyStore
from antiphon.halo.member.membership import Membership
from antiphon.party.engine.authority import PartyAuthority
from antiphon.party.live.manager import PartyManager, find_genesis
from antiphon.party.store.item_store import ItemStore
from antiphon.party.store.meta_store import MetaStore, SubscriptionState
from antiphon.testing.spans import key_pair

PATIENCE_S = 30.0


class Machine:
    """A home on disk, with everything that a manager is handed."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder / name
        self.identity = Identity(key_pair(name))
        self.device = Device(key_pair(f"{name}'s laptop"), self.identity.key)
        self.keys = KeyStore.create(self.folder / "keys", protection=Protection.UNPROTECTED)
        self.keys.add(self.device.pair, KeyKind.DEVICE, "laptop", owner=self.identity.key)
        self.open()

    def open(self, *, live: bool = False) -> None:
        self._open = ExitStack()
        self.feeds = self._open.enter_context(FeedStore.open(self.folder / "feeds", durable=False))
        self.meta = self._open.enter_context(MetaStore.open(self.folder / "meta.db"))
        self.parties = self._open.enter_context(
            PartyManager(self.feeds, self.meta, self.keys, self.device, folder=self.folder / "items", live=live)
        )

    def close(self) -> None:
        self._open.close()

    def restart(self, *, live: bool = False) -> None:
        self.close()
        self.open(live=live)

    def give(self, other: Machine, party: bytes) -> None:
        """Everything of a party, as ranges."""
        for record in self.feeds.feeds(party):
            for span in self.feeds.spans(record.feed):
                other.feeds.ingest_bytes(span.encode())


@pytest.fixture
def alice(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path, "alice")
    yield machine
    machine.close()


@pytest.fixture
def bob(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path, "bob")
    yield machine
    machine.close()


def test_a_party_is_founded_and_found_again_after_a_restart(alice: Machine) -> None:
    party = alice.parties.create(alice.identity, "Book club")
    note = party.create("antiphon/object")
    note.edit("set", "a", 1)
    key = party.key
    alice.restart()
    (known,) = alice.parties.list()
    assert (known.party, known.label, known.state, known.open) == (key, "Book club", SubscriptionState.ACTIVE, False)
    assert alice.parties.open(key).item(note.id).value == {"a": 1}
    assert alice.parties.open(key) is alice.parties.open(key)
    assert alice.parties.list()[0].open


def test_a_closed_party_costs_nothing_and_comes_back(alice: Machine) -> None:
    party = alice.parties.create(alice.identity)
    note = party.create("antiphon/object")
    alice.parties.close_party(party.key)
    alice.parties.close_party(party.key)
    assert not party.running
    with pytest.raises(PartyPaused):
        party.items()
    assert alice.parties.open(party.key).items() == [note.id]


def test_a_pause_survives_a_restart(alice: Machine) -> None:
    party = alice.parties.create(alice.identity).key
    alice.parties.pause(party)
    with pytest.raises(InvalidInput, match=rf"party {party.short} is paused; resume it first"):
        alice.parties.open(party)
    alice.restart()
    assert alice.parties.list()[0].state is SubscriptionState.PAUSED
    with pytest.raises(InvalidInput, match="is paused"):
        alice.parties.open(party)
    assert alice.parties.resume(party).running
    alice.restart()
    assert alice.parties.open(party).running


@pytest.mark.parametrize("closed", [False, True])
def test_a_deleted_party_does_not_come_back_unasked_and_its_feeds_stay(alice: Machine, closed: bool) -> None:
    party = alice.parties.create(alice.identity)
    note = party.create("antiphon/object")
    path = alice.folder / "items" / f"{party.key.hex()}.db"
    if closed:
        alice.parties.close_party(party.key)
    assert path.exists()
    alice.parties.delete(party.key)
    assert not path.exists()
    assert alice.parties.list() == ()
    with pytest.raises(InvalidInput, match="is not followed here; subscribe to it first"):
        alice.parties.open(party.key)
    with pytest.raises(StoreError, match="was forgotten here"):
        alice.parties.subscribe(party.key)
    alice.parties.subscribe(party.key, again=True)
    assert alice.parties.open(party.key).items() == [note.id]


def test_what_is_not_followed_is_not_opened(alice: Machine) -> None:
    stranger = key_pair("nobody's party").key
    with pytest.raises(InvalidInput, match=rf"party {stranger.short} is not followed here"):
        alice.parties.open(stranger)
    alice.parties.subscribe(stranger, label="to come")
    with pytest.raises(MissingBlocks, match=r"its genesis is not here yet; fetch its control feeds from a peer"):
        alice.parties.open(stranger)


def test_one_machine_joins_the_party_of_another(alice: Machine, bob: Machine) -> None:
    """Bob is told the party's key and nothing else; the genesis is found among the feeds that come."""
    party = alice.parties.create(alice.identity, "Book club")
    note = party.create("antiphon/text")
    note.edit("insert", 0, "hello")
    alice.parties.member(party.key).admit(bob.identity.key, [Role.EDITOR])
    bob.parties.subscribe(party.key, label="Alice's club")
    alice.give(bob, party.key)
    assert find_genesis(bob.feeds, party.key) == alice.parties.member(party.key).genesis_feed
    theirs = bob.parties.open(party.key)
    assert theirs.item(note.id).value == "hello"
    with pytest.raises(NotAuthorised, match="no feed in it; `join` it"):
        theirs.item(note.id).edit("insert", 5, "!")
    member = bob.parties.member(party.key)
    member.join(member.vouch(bob.identity))
    theirs.item(note.id).edit("insert", 5, " Alice")
    bob.give(alice, party.key)
    party.process()
    assert note.value == "hello Alice"
    assert theirs.snapshot(note.id) == party.snapshot(note.id)
    bob.restart()
    assert bob.meta.find(party.key).genesis_feed is not None  # type: ignore[union-attr]
    assert bob.parties.open(party.key).item(note.id).value == "hello Alice"
    assert bob.parties.list()[0].label == "Alice's club"


def test_parties_that_follow_take_what_comes_by_themselves(alice: Machine, bob: Machine) -> None:
    party = alice.parties.create(alice.identity)
    bob.restart(live=True)
    bob.parties.subscribe(party.key)
    alice.give(bob, party.key)
    theirs = bob.parties.open(party.key)
    stamp = party.create("antiphon/object").edit("set", "a", 1)
    alice.give(bob, party.key)
    assert theirs.wait_for(Timeframe({stamp.feed: stamp.seq}), PATIENCE_S)


def test_several_parties_on_one_machine(alice: Machine) -> None:
    parties = [alice.parties.create(alice.identity, f"party {at}") for at in range(3)]
    notes = [party.create("antiphon/object").id for party in parties]
    assert [party.items() for party in parties] == [[note] for note in notes]
    alice.parties.pause(parties[1].key)
    assert [party.running for party in parties] == [True, False, True]
    assert {known.label: known.open for known in alice.parties.list()} == {
        "party 0": True,
        "party 1": False,
        "party 2": True,
    }


def test_without_a_folder_states_are_kept_in_memory(alice: Machine) -> None:
    manager = PartyManager(alice.feeds, alice.meta, alice.keys, alice.device)
    with manager:
        party = manager.create(alice.identity)
        note = party.create("antiphon/object")
        manager.close_party(party.key)
        assert manager.open(party.key).items() == [note.id]
        manager.delete(party.key)
    assert not (alice.folder / "items").exists()


def test_both_parts_of_a_party_can_be_replaced(tmp_path: Path) -> None:
    """The authority and the database of parties are handed in."""
    machine = Machine(tmp_path, "alice")
    kept: list[ItemStore] = []
    asked: list[bytes] = []

    def items(party: PublicKey) -> ItemStore:
        kept.append(ItemStore(None, party))
        return kept[-1]

    def authority(store: FeedStore, member: Membership) -> PartyAuthority:
        asked.append(member.party)
        return PartyAuthority.of(store, member)

    with PartyManager(
        machine.feeds, machine.meta, machine.keys, machine.device, authority=authority, items=items
    ) as parties:
        party = parties.create(machine.identity, "Book club")
        note = party.create("antiphon/object")
        party.save()
        assert list(kept[0].ids()) == [bytes(note.id)]
        assert asked == [party.key]
    machine.close()
