"""Two stores and a connection: everything that either writes comes to the other, without a call of `sync`."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest
from tests.api.network.meeting import until

import antiphon
from antiphon import InvalidInput, Object, Party, Store, StoreClosed
from antiphon.mesh.node.peer import PeerState


def test_an_invited_device_joins_and_reads(ada: Store, bob: Store, party: Party) -> None:
    note = party.text("Hello")
    assert bob.connect(str(ada.listen()))
    assert party.synced(timeout=30)
    until(lambda: str(bob.party(party.key).item(note.id)) == "Hello")


def test_what_either_writes_comes_to_the_other(party: Party, theirs: Party) -> None:
    mine = party.object({"title": "Milk"})
    other = theirs.object({"title": "Salt"})
    until(lambda: theirs.item(mine.id).value == {"title": "Milk"} and party.item(other.id).value == {"title": "Salt"})
    assert party.synced(timeout=30)
    assert theirs.synced(timeout=30)
    assert party.query().ids == theirs.query().ids


def test_a_subscription_fires_for_what_another_device_writes(party: Party, theirs: Party) -> None:
    came = threading.Event()
    watched = theirs.subscribe(callback=lambda delta: came.set() if delta.added else None, type="task")
    party.object({"title": "Plan"}, type="task")
    assert came.wait(30)
    watched.close()


def test_writes_during_a_partition_meet_after_it(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    address = bob.peers[0].address
    assert bob.disconnect(ada.device)
    until(lambda: not ada.peers)
    for number in range(20):
        party.object({"by": "Ada", "number": number})
        theirs.object({"by": "Bob", "number": number})
    assert not party.synced(timeout=0.1)
    assert bob.connect(address)
    assert party.synced(timeout=30)
    until(lambda: len(party.query()) == len(theirs.query()) == 40)


def test_an_epoch_is_declared_and_taken_over_the_network(party: Party, theirs: Party) -> None:
    party.object({"title": "Milk"})
    assert party.synced(timeout=30)
    epoch = party.epochs.declare()
    until(lambda: theirs.epochs.number == 1)
    assert epoch.final
    assert theirs.epochs.snapshot(1).cid == party.epochs.snapshot(1).cid


def test_a_late_joiner_gets_it_from_the_second_device(
    tmp_path: Path, ada: Store, bob: Store, party: Party, theirs: Party
) -> None:
    note = party.object({"title": "Milk"})
    with antiphon.open(tmp_path / "eve", name="Eve", unprotected=True) as eve:
        eve.join(party.invite(eve.me))
        assert party.synced(timeout=30)
        assert eve.connect(bob.listen())
        until(lambda: eve.party(party.key).item(note.id).value == {"title": "Milk"})
        hers = eve.party(party.key).object({"title": "Salt"})
        until(lambda: party.has(hers.id))


def test_twenty_parties_share_one_connection(ada: Store, bob: Store) -> None:
    parties = [ada.create_party(f"Party {number}") for number in range(20)]
    notes = {}
    for party in parties:
        bob.join(party.invite(bob.me))
        notes[party.key] = party.object({"name": party.name})
    assert bob.connect(ada.listen())
    for party in parties:
        until(partial(_reads, bob, party, notes[party.key]))
    assert len(ada.peers) == len(bob.peers) == 1
    until(lambda: sum(len(peer.parties) for peer in ada.peers) == 20)


def _reads(store: Store, party: Party, note: Object) -> bool:
    return bool(store.party(party.key).item(note.id).value == {"name": party.name})


def test_peers_say_who_is_connected(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    (seen,) = ada.peers
    assert (seen.device, seen.state, seen.dialled, seen.parties) == (
        bob.device,
        PeerState.CONNECTED,
        False,
        (party.key,),
    )
    until(lambda: ada.peers[0].identity == bob.me)
    assert bob.peers[0].identity == ada.me
    assert bob.peers[0].dialled
    assert min(seen.bytes_in, seen.bytes_out) > 0


def test_a_revoked_member_hears_nothing_more(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    party.revoke(bob.me)
    until(lambda: not ada.peers[0].parties)
    party.object({"title": "Milk"})
    assert not party.synced(timeout=0.2)
    assert len(theirs.query()) == 0


def test_an_invitation_alone_gives_nothing(tmp_path: Path, ada: Store, party: Party) -> None:
    party.object({"title": "Milk"})
    with antiphon.open(tmp_path / "eve", name="Eve", unprotected=True) as eve:
        eve.manager.subscribe(party.key, party.member.genesis_feed)
        assert eve.connect(ada.listen())
        assert not party.synced(eve.device, timeout=2)
        assert list(eve.manager.feeds.feeds(party.key)) == []
        party.invite(eve.me)
        until(lambda: len(eve.party(party.key).query()) == 1, 60)


@pytest.mark.parametrize(
    "text", ["", "127.0.0.1:4242", "antiphon://127.0.0.1:4242", "antiphon://" + "00" * 32 + "@127.0.0.1:4242"]
)
def test_an_address_without_the_key_of_a_device_is_refused(ada: Store, text: str) -> None:
    with pytest.raises(InvalidInput):
        ada.connect(text)
    assert ada.peers == ()


def test_the_own_address_is_refused(ada: Store) -> None:
    with pytest.raises(InvalidInput, match="this device itself"):
        ada.connect(ada.listen())


def test_an_address_where_nobody_answers_is_dialled_again(ada: Store, bob: Store) -> None:
    address = bob.listen()
    bob.close()
    assert not ada.connect(address, timeout=0.5)
    until(lambda: ada.peers[0].state is PeerState.WAITING)
    assert ada.peers[0].error
    assert ada.disconnect(address)
    assert ada.peers == ()


def test_a_closed_store_neither_listens_nor_connects(ada: Store, bob: Store) -> None:
    address = bob.listen()
    ada.close()
    with pytest.raises(StoreClosed):
        ada.listen()
    with pytest.raises(StoreClosed):
        ada.connect(address)
    assert ada.peers == ()


def test_closing_a_store_ends_its_threads(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    ada.close()
    bob.close()
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith(("antiphon mesh", "antiphon network"))]


def test_two_stores_that_dial_each_other_keep_one_connection(ada: Store, bob: Store, party: Party) -> None:
    addresses = ada.listen(), bob.listen()
    both = [
        threading.Thread(target=store.connect, args=(address,))
        for store, address in zip((bob, ada), addresses, strict=True)
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(30)
    assert party.synced(timeout=30)
    until(lambda: ada.peers[0].dialled != bob.peers[0].dialled)
