"""A party at rest: an opening after which nothing has come reads no feed, and answers as a fresh fold would."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.attacks.work import calls

import antiphon
from antiphon.core.keys import KeyPair
from antiphon.halo.credentials.claims import Role
from antiphon.party.engine.rest import Rest, digest_of
from antiphon.party.live.processor import PartyProcessor
from antiphon.testing.crowd import Crowd
from antiphon.testing.peers import Peer, Peers


def answers(party: PartyProcessor) -> object:
    """Everything that the blocks of a party decide."""
    status = party.status()
    items = {item: party.snapshot(item) for item in party.items()}
    return items, party.timeframe, party.refused(), status.blocked, party.wanted_blocks()


def reopen(peer: Peer) -> PartyProcessor:
    peer.restart()
    return peer.party


def test_a_closed_party_rests_and_answers_as_a_fresh_fold_would(alice: Peer, bob: Peer, peers: Peers) -> None:
    note = alice.party.create("antiphon/object")
    note.edit("set", "title", "Milk")
    peers.sync()
    bob.party.item(note.id).edit("set", "title", "Bread")
    peers.sync()

    assert reopen(alice).rest() is not None
    assert alice.party.item(note.id).value == {"title": "Bread"}
    assert alice.party.process() == 0
    resting = answers(alice.party)
    assert alice.party.rest() is not None, "reading does not end it"
    alice.rebuild()
    assert answers(alice.party) == resting


def test_a_write_ends_the_rest_and_has_seen_everything(alice: Peer, bob: Peer, peers: Peers) -> None:
    note = alice.party.create("antiphon/object")
    peers.sync()
    bob.party.item(note.id).edit("set", "a", 1)
    peers.sync()
    stamp = reopen(alice).item(note.id).edit("set", "a", 2)
    assert alice.party.rest() is None
    entries = {entry.feed for entry in alice.store.block(stamp.feed, stamp.seq).advance}
    assert bob.party.authority.writer().feed in entries
    peers.sync()
    assert alice.snapshots() == bob.snapshots()
    assert bob.party.item(note.id).value == {"a": 2}


def test_what_came_while_a_party_was_closed_is_processed_when_it_is_opened(
    alice: Peer, bob: Peer, peers: Peers
) -> None:
    note = alice.party.create("antiphon/object")
    peers.sync()
    assert reopen(alice).rest() is not None
    alice.party.close()
    bob.party.item(note.id).edit("set", "a", 1)
    for span in bob.ranges(alice.lengths()):
        alice.store.ingest_bytes(span.encode())
    assert reopen(alice).rest() is None
    assert alice.party.item(note.id).value == {"a": 1}


@pytest.mark.parametrize("opened", [False, True])
def test_a_revocation_that_comes_to_a_resting_party_is_heeded(alice: Peer, peers: Peers, opened: bool) -> None:
    carol, bob = peers.add("carol", Role.OWNER), peers.add("bob")
    note = alice.party.create("antiphon/object")
    peers.sync()
    bob.party.item(note.id).edit("set", "a", 1)  # not seen by Carol, who revokes Bob
    assert carol.member is not None
    carol.member.revoke(bob.key)
    alice.take(bob.ranges(alice.lengths()))
    assert reopen(alice).rest() is not None
    assert alice.party.item(note.id).value == {"a": 1}
    if not opened:
        alice.party.close()
    for span in carol.ranges(alice.lengths()):
        alice.store.ingest_bytes(span.encode())
    if opened:
        alice.party.process()
    else:
        reopen(alice)
    assert alice.party.item(note.id).value == {}
    assert len(alice.party.refused()) == 1


def test_an_older_copy_of_the_items_does_not_rest(alice: Peer, tmp_path: Path) -> None:
    note = alice.party.create("antiphon/object")
    note.edit("set", "a", 1)
    path = alice.party.path
    assert path is not None
    alice.party.close()
    for file in path.parent.glob(f"{path.name}*"):
        shutil.copy(file, tmp_path / file.name)
    reopen(alice).item(note.id).edit("set", "a", 2)
    assert reopen(alice).rest() is not None
    alice.party.close()
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    for file in tmp_path.glob(f"{path.name}*"):
        shutil.copy(file, path.parent / file.name)
    assert reopen(alice).rest() is None
    assert alice.party.item(note.id).value == {"a": 2}


def test_a_party_does_not_rest_while_something_waits(alice: Peer, bob: Peer, peers: Peers) -> None:
    note = alice.party.create("antiphon/object")
    carol = peers.add("carol")
    bob.party.item(note.id).edit("set", "a", 0)
    peers.sync()
    carol.party.item(note.id).edit("set", "a", 1)
    bob.take(carol.ranges(bob.lengths()))
    bob.party.item(note.id).edit("set", "a", 2)
    feed = bob.party.authority.writer().feed
    alice.take(span for span in bob.ranges(alice.lengths()) if span.feed == feed)
    assert alice.party.status().blocked
    assert reopen(alice).rest() is None
    assert alice.party.status().blocked


def test_a_party_does_not_rest_with_other_models_or_another_device(alice: Peer, bob: Peer) -> None:
    alice.party.create("antiphon/object")
    assert reopen(alice).rest() is not None
    rest = alice.party.rest()
    assert rest is not None
    assert digest_of([("antiphon/object", 1)]) != digest_of([("antiphon/object", 2)]) != rest.models
    assert alice.party.authority.is_device(rest.device)
    assert not bob.party.authority.is_device(rest.device)
    assert not alice.party.authority.is_device(rest.device + KeyPair.from_seed(bytes(32)).key)
    assert Rest.decode(rest.encode()) == rest


def test_after_a_crash_everything_is_read(alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    alice.party.save()
    assert reopen(alice).rest() is not None
    alice.party.item(note.id).edit("set", "a", 1)
    alice.restart(crash=True)
    assert alice.party.rest() is None
    assert alice.party.item(note.id).value == {"a": 1}


# -- a home


def test_a_home_reads_no_control_feed_before_it_is_asked_for_it(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "ada", name="Ada", unprotected=True) as ada:
        party = ada.create_party("Club")
        party.object({"title": "Plan"}, name="plan")
        party.invite(KeyPair.from_seed(b"b" * 32).key)
        party.refresh()
    with antiphon.open(tmp_path / "ada") as ada:
        party = ada.party("Club")
        assert [item.name for item in party.query()] == ["plan"]
        assert party.refresh() == 0
        assert not party.member.is_open
        assert len(party.members.members) == 2
        party.object({"title": "Report"})
        assert party.processor.rest() is None


def opening_calls(folder: Path, count: int) -> int:
    """Make a home with a party of so many writers. Count the calls of opening it again, and of reading an item."""
    with antiphon.open(folder / "home", unprotected=True, epochs=False) as store:
        party = store.create_party("Club")
        with Crowd(party, folder / "crowd", count) as crowd:
            store.manager.feeds.ingest_all(crowd.new_spans())
            item = crowd.items[0]
        party.refresh()
        assert party.item(item).value == {}
    with antiphon.open(folder / "home", epochs=False) as store:
        return calls(lambda: store.party("Club").item(item).value)


def test_opening_costs_the_same_however_many_writers_there_are(tmp_path: Path) -> None:
    few, many = (opening_calls(tmp_path / str(count), count) for count in (8, 64))
    assert many < 1.1 * few
