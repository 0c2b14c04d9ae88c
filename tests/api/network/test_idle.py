"""Parties that nobody uses: they stay closed, and a commit elsewhere does not wake them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.api.network.meeting import until

import antiphon
from antiphon import Party, Store
from antiphon.api.network.store_end import FETCHING
from antiphon.mesh.node import party_work

COUNT = 12


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The parties that a node has opened, in order. They are closed after a tenth of a second."""
    found: list[bytes] = []
    known: Callable[..., bool] = party_work.PartyWork._open

    def opening(work: party_work.PartyWork, wanted: bool) -> bool:
        if wanted:
            found.append(work.party)
        return known(work, wanted)

    monkeypatch.setattr(party_work, "IDLE_MS", 100)
    monkeypatch.setattr(party_work.PartyWork, "_open", opening)
    return found


@pytest.fixture
def parties(ada: Store, bob: Store, opened: list[bytes]) -> list[bytes]:
    """Parties that both hold, over a connection, and that no application holds open."""
    made = [ada.create_party(f"Party {number}") for number in range(COUNT)]
    for party in made:
        bob.join(party.invite(bob.me))
        party.object({"title": party.name})
    assert bob.connect(ada.listen())
    for party in made:
        until(lambda party=party: party.synced(timeout=1) and bob.manager.feeds.feeds(party.key))  # type: ignore[misc]
    keys = [bytes(party.key) for party in made]
    ada.close()
    return keys


def test_what_is_the_same_at_both_ends_is_not_opened(
    ada: Store, bob: Store, parties: list[bytes], opened: list[bytes]
) -> None:
    until(lambda: not bob.peers or not bob.open_parties())
    bob.disconnect(ada.device)
    with antiphon.open(ada.path) as again:
        until(lambda: not bob.open_parties())
        opened.clear()
        assert bob.connect(again.listen())
        until(lambda: sum(len(peer.parties) for peer in again.peers) == COUNT)
        assert (again.open_parties(), bob.open_parties(), opened) == ([], [], [])

        written = again.party(parties[0])
        note = written.object({"title": "Milk"})
        assert written.synced(timeout=30)
        assert set(opened) == {parties[0]}
        until(lambda: not bob.open_parties())
        assert again.open_parties() == [written], "the application holds it"
        assert bob.party(parties[0]).item(note.id).value == {"title": "Milk"}


def test_a_party_of_the_application_stays_open(party: Party, theirs: Party, opened: list[bytes]) -> None:
    party.object({"title": "Milk"})
    assert party.synced(timeout=30)
    other = party.store.create_party("Another")
    other.object({})
    until(lambda: len(theirs.query()) == 1)
    assert party.processor.running
    assert theirs.processor.running


def test_blobs_that_are_still_to_be_fetched_open_a_party(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    """After a crash both may hold the same blocks while blobs of the last epoch are missing."""
    party.object({"title": "Milk"})
    assert party.synced(timeout=30)
    address = bob.peers[0].address
    bob.disconnect(ada.device)
    until(lambda: not ada.peers)
    bob.manager.meta.set(FETCHING, True, party=party.key)
    assert bob.connect(address)
    until(lambda: not bob.manager.meta.get(FETCHING, True, party=party.key))
