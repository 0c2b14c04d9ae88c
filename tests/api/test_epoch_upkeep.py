"""Upkeep of epochs: erasing messages, automatic pruning, reading earlier epochs."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest

import antiphon
from antiphon import InvalidInput, NotAuthorised, Party, Store, UnknownItem, sync
from antiphon.core.errors import MissingBlob
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.snapshot.car_file import CarFile

pytestmark = pytest.mark.slow

SECRET = "her bank account is 12345"


def bodies(store: Store, party: Party) -> bytes:
    feeds = store.manager.feeds
    return b"".join(
        block.message or b"" for record in feeds.feeds(party.key) for block in feeds.read(record.feed, record.start)
    )


def test_a_message_is_erased_everywhere_and_its_bytes_go_once_an_epoch_covers_them(
    ada: Store, bob: Store, party: Party, theirs: Party
) -> None:
    party.epochs.set_policy(keep_epochs=5)  # the messages stay, for history
    note = theirs.object({"title": "harmless"})
    note["title"] = SECRET
    event = note.history()[-1]
    sync(ada, bob)

    party.erase(event.stamp)
    sync(ada, bob)
    for store, held in ((ada, party), (bob, theirs)):
        assert held.item(note.id).value == {"title": "harmless"}
        assert held.item(note.id).history()[-1].refused
        assert held.epochs.prune() == 0
        assert SECRET.encode() in bodies(store, held), "others may have to recompute what lies before the cut"

    party.epochs.declare()
    sync(ada, bob)
    for store, held in ((ada, party), (bob, theirs)):
        assert held.epochs.prune() == 0
        assert SECRET.encode() not in bodies(store, held)
        assert held.item(note.id).value == {"title": "harmless"}
        store.manager.feeds.verify(event.stamp.feed)
        assert held.epochs.prune() == 0, "again is nothing"


def test_what_may_not_be_erased_says_why(party: Party, theirs: Party, ada: Store, bob: Store) -> None:
    note = party.object({"title": "Milk"})
    sync(ada, bob)
    stamp = note.history()[-1].stamp
    with pytest.raises(NotAuthorised, match="only an owner"):
        theirs.erase(stamp)
    with pytest.raises(InvalidInput, match="named by their stamps"):
        party.erase(b"nothing")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="named by their stamps"):
        party.erase()
    party.epochs.declare()
    with pytest.raises(InvalidInput, match="what it holds is final"):
        party.erase(stamp)


def test_a_store_lets_go_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with antiphon.open(tmp_path / "home", prune=True, unprotected=True) as store:
        party = store.create_party("Household")
        pruned, prune = threading.Event(), store.manager.feeds.prune

        def watched(feed: bytes, before: int) -> object:
            done = prune(feed, before)
            pruned.set()
            return done

        monkeypatch.setattr(store.manager.feeds, "prune", watched)
        party.epochs.set_policy(epoch_messages=5)
        items = [party.object({"number": number}) for number in range(10)]
        assert pruned.wait(20), party.epochs.waits_for
        assert [item.value["number"] for item in items] == list(range(10))


def test_letting_go_by_itself_is_a_part_of_taking_part(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="epochs=False"):
        antiphon.open(tmp_path / "home", epochs=False, prune=True, unprotected=True)


def test_the_party_at_an_epoch_has_values(party: Party) -> None:
    milk = party.object({"title": "Milk"})
    party.epochs.declare()
    milk["title"] = "Oat milk"
    salt = party.object({"title": "Salt"})
    party.epochs.declare()
    milk.delete()
    first, second = party.epochs.at(1), party.epochs.at(2)
    party.epochs.prune()
    assert first.item(milk.id).value == {"title": "Milk"}
    assert second.item(milk.id).value == {"title": "Oat milk"}
    assert (second.item(milk.id).deleted, milk.deleted) == (False, True)
    assert salt.id in second.items()
    assert salt.id not in first.items()
    with pytest.raises(UnknownItem):
        first.item(salt.id)
    with pytest.raises(InvalidInput, match="no final epoch 3"):
        party.epochs.at(3)


def test_a_newcomer_fetches_the_snapshot_of_a_particular_epoch(ada: Store, bob: Store, party: Party) -> None:
    milk = party.object({"title": "Milk"})
    party.epochs.declare()
    milk["title"] = "Oat milk"
    party.epochs.declare()
    party.epochs.prune()
    bob.join(party.invite(bob.me))
    sync(ada, bob)
    there = bob.party(party.key)
    assert there.epochs.number == 2
    with pytest.raises(MissingBlob, match=r"the snapshot of epoch 1 is not here: .*`epochs\.fetch` takes it"):
        there.epochs.at(1)
    assert there.epochs.fetch(ada.manager.blobs, 1) > 1
    assert there.epochs.at(1).item(milk.id).value == {"title": "Milk"}
    assert there.epochs.fetch(ada.manager.blobs, 1) == 0
    with pytest.raises(InvalidInput, match="no final epoch 3; it has 2"):
        there.epochs.fetch(ada.manager.blobs, 3)


def test_the_snapshot_of_a_view_is_a_part_of_the_epochs(party: Party) -> None:
    board = party.create_view("org.example:board", name="Board")
    card = party.object({"title": "Milk"}, parent=board)
    with party.batch():
        for number in range(200):
            party.object({"number": number})
    with pytest.raises(InvalidInput, match="has no epoch yet"):
        party.epochs.snapshot_of(board)
    epoch = party.epochs.declare()
    found = party.epochs.snapshot_of(board)
    assert found.cid == epoch.snapshot
    assert {board.id, card.id} <= set(found.items)
    assert len(found.items) < 5
    stream = io.BytesIO()
    count = found.write(stream)
    assert 2 < count < 30
    late = party.object({"title": "Salt"})
    with pytest.raises(UnknownItem, match="it may be newer"):
        party.epochs.snapshot_of(late.id)
    with pytest.raises(InvalidInput, match="no final epoch 2"):
        party.epochs.snapshot_of(board, 2)


def test_a_snapshot_of_a_view_can_be_walked_from_its_file(party: Party, tmp_path: Path) -> None:
    board = party.create_view("org.example:board", name="Board")
    party.epochs.declare()
    found = party.epochs.snapshot_of(board)
    with (tmp_path / "board.car").open("wb") as stream:
        found.write(stream)
    with CarFile.open(tmp_path / "board.car") as file:
        there = EpochBase.load(found.cid, file, party=party.key)
        assert there.item(board.id) == board.snapshot()


def test_the_content_of_a_file_is_fetched_from_another_store(
    ada: Store, bob: Store, party: Party, theirs: Party
) -> None:
    data = bytes(range(256)) * 4_000
    file = party.file(data, name="scan.png")
    sync(ada, bob)
    mine = theirs.item(file.id, antiphon.File)
    with pytest.raises(MissingBlob):
        mine.read_bytes()
    assert mine.fetch(ada.manager.blobs) > 1
    assert mine.read_bytes() == data
    assert mine.fetch(ada.manager.blobs) == 0
