"""Held views: a phone holds one board of a large party, and only the headers of everything else."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import antiphon
from antiphon import Handle, Object, Party, Store, sync
from antiphon.api.locator import Locator
from antiphon.core import KeyPair
from antiphon.core.errors import BadEncoding, InvalidInput, MissingBlob, MissingBlocks, UnknownItem


@pytest.fixture
def phone(tmp_path: Path) -> Iterator[Store]:
    with antiphon.open(tmp_path / "phone", name="Ada's phone", unprotected=True) as store:
        yield store


@pytest.fixture
def board(party: Party) -> Object:
    """A view with a card on it, in a party with much beside it."""
    made = party.create_view("org.example:board", name="Board")
    party.object({"title": "Milk"}, parent=made, name="card")
    for number in range(20):
        party.object({"number": number, "text": "beside the view " * 30})
    return made


def follow(ada: Store, phone: Store, board: Handle) -> Party:
    phone.hold_view(str(board.locator), str(board.party.invite(phone.me)))
    sync(ada, phone)
    return phone.party(board.party.key)


def titles(board: Handle) -> list[str]:
    return sorted(card.value["title"] for card in board.children)


def beside(party: Party) -> Handle:
    return next(item for item in party.query() if "number" in item.value)


@pytest.mark.parametrize("epoch", [False, True])
def test_a_view_is_followed_alone(ada: Store, phone: Store, party: Party, board: Object, epoch: bool) -> None:
    if epoch:
        party.epochs.declare()
        party.epochs.prune()
    other = beside(party)
    there = follow(ada, phone, board)
    mine = phone.resolve(board.locator)
    assert (mine.name, titles(mine)) == ("Board", ["Milk"])
    assert mine.snapshot() == board.snapshot()
    assert there.epochs.number == int(epoch)
    assert [item.id for item in there.query()] == [item.id for item in board.closure()]
    assert other.id not in there.processor.items()
    beside(party).edit("set", "number", 7)
    sync(ada, phone)
    with pytest.raises(MissingBlocks, match="is not part of the view that is held here"):
        _ = there.item(other.id).value


def test_it_takes_less_than_the_whole_party(ada: Store, bob: Store, phone: Store, board: Object) -> None:
    party = board.party
    with party.batch():
        for number in range(100):
            party.object({"number": number})
    party.epochs.declare()
    party.epochs.prune()
    for number in range(200):
        beside(party).edit("set", "text", f"{number} " * 200)
    bob.join(party.invite(bob.me))
    sync(ada, bob)
    follow(ada, phone, board)
    sizes = [
        sum(
            len(span.bodies)
            for record in store.manager.feeds.feeds(party.key)
            for span in store.manager.feeds.spans(record.feed, record.start)
        )
        for store in (bob, phone)
    ]
    assert sizes[1] < sizes[0] / 10
    assert phone.manager.blobs.count < bob.manager.blobs.count  # type: ignore[attr-defined]


def test_what_joins_the_view_comes_and_what_is_written_there_goes_to_all(
    ada: Store, bob: Store, phone: Store, party: Party, theirs: Party, board: Object
) -> None:
    party.epochs.declare()
    there = follow(ada, phone, board)
    sync(ada, bob)
    late = theirs.object({"title": "Salt"}, parent=theirs.view(board.locator.key))
    beside(party).move_under(board)
    sync(bob, ada)
    sync(ada, phone)
    mine = phone.resolve(board.locator)
    assert len(mine.children) == 3
    assert there.item(late.id).value == {"title": "Salt"}
    note = there.object({"title": "Bread"}, parent=mine)
    assert note in list(mine.children)
    note["title"] = "Rye bread"
    sync(phone, ada)
    sync(ada, bob)
    assert theirs.item(note.id).value == {"title": "Rye bread"}
    theirs.item(note.id, Object)["title"] = "Wheat"
    sync(bob, ada)
    sync(ada, phone)
    assert there.item(note.id).value == {"title": "Wheat"}
    assert mine.snapshot() == theirs.view(board.locator.key).snapshot()


def test_the_next_epochs_are_stood_on(ada: Store, phone: Store, party: Party, board: Object) -> None:
    there = follow(ada, phone, board)
    for number in (1, 2):
        party.object({"title": f"card {number}"}, parent=board)
        party.epochs.declare()
        party.epochs.prune()
        sync(ada, phone)
        assert there.epochs.number == number
        assert titles(phone.resolve(board.locator)) == titles(board)
    assert there.epochs.prune() > 0
    assert titles(phone.resolve(board.locator)) == titles(board)


def test_it_is_followed_on_after_a_restart(tmp_path: Path, ada: Store, party: Party, board: Object) -> None:
    party.epochs.declare()
    with antiphon.open(tmp_path / "phone", unprotected=True) as phone:
        follow(ada, phone, board)
    with antiphon.open(tmp_path / "phone", unprotected=True) as phone:
        assert phone.held_views.locator(party.key) == board.locator
        assert titles(phone.resolve(board.locator)) == ["Milk"]
        assert len(phone.party(party.key).processor.items()) < 5
        party.object({"title": "Salt"}, parent=board)
        sync(ada, phone)
        assert titles(phone.resolve(board.locator)) == ["Milk", "Salt"]


def test_a_view_that_nobody_has_yet_is_waited_for(ada: Store, phone: Store, party: Party) -> None:
    board = party.create_view("org.example:board", name="Board")
    nobodys = Locator(party.key, KeyPair.generate(party.processor.randomness).key)
    phone.hold_view(nobodys, party.invite(phone.me))
    sync(ada, phone)
    with pytest.raises(UnknownItem, match="or not yet"):
        phone.resolve(nobodys)
    phone.hold_view(board.locator)
    sync(ada, phone)
    assert phone.resolve(board.locator).name == "Board"


def test_who_held_the_whole_party_holds_the_view_from_then_on(
    ada: Store, bob: Store, theirs: Party, board: Object
) -> None:
    sync(ada, bob)
    other = beside(theirs).id
    bob.hold_view(board.locator)
    sync(ada, bob)
    there = bob.party(board.party.key)
    assert titles(bob.resolve(board.locator)) == ["Milk"]
    assert other not in there.processor.items()


def test_what_follows_a_view_passes_on_only_what_it_has_whole(
    ada: Store, bob: Store, phone: Store, party: Party, theirs: Party, board: Object
) -> None:
    there = follow(ada, phone, board)
    there.object({"title": "Salt"}, parent=phone.resolve(board.locator))
    sync(phone, bob)  # the phone lacks bodies of Ada's feed, and Bob gets that from Ada
    assert theirs.status().items < 20
    sync(ada, bob)
    sync(phone, bob)
    sync(ada, phone)
    assert titles(theirs.view(board.locator.key)) == ["Milk", "Salt"]


def test_what_is_no_view_of_the_party_is_refused(phone: Store, ada: Store, party: Party, board: Object) -> None:
    with pytest.raises(InvalidInput, match="the invitation is to party"):
        phone.hold_view(board.locator, ada.create_party("Other").invite(phone.me))
    with pytest.raises(InvalidInput, match="is no locator"):
        phone.hold_view("echo://nowhere")
    with pytest.raises(InvalidInput, match="named by its locator"):
        phone.hold_view(7)  # type: ignore[arg-type]
    with party.batch(), pytest.raises(InvalidInput, match="leave it first"):
        ada.hold_view(board.locator)


def test_a_spoilt_list_of_views_is_told(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "home", unprotected=True):
        pass
    (tmp_path / "home" / "views.json").write_text('[{"view": 7}]')
    with pytest.raises(BadEncoding, match=r"views\.json is none"):
        antiphon.open(tmp_path / "home", unprotected=True)


def test_what_needs_the_whole_party_says_so_and_garbage_spares_the_view(
    tmp_path: Path, ada: Store, phone: Store, party: Party, board: Object
) -> None:
    with party.batch():
        for number in range(100):
            party.object({"number": number})
    party.epochs.declare()
    party.epochs.prune()
    beside(party).edit("set", "number", 7)
    there = follow(ada, phone, board)
    assert phone.collect_garbage().stopped == ""
    assert titles(phone.resolve(board.locator)) == ["Milk"]
    found = there.epochs.verify()
    assert not found.whole
    assert found.unchecked
    with pytest.raises(MissingBlob, match="fetch them first"):
        there.export(tmp_path / "part.car")


def test_it_goes_with_threads_that_follow_take_part_and_prune(tmp_path: Path, ada: Store, board: Object) -> None:
    party = board.party
    with antiphon.open(tmp_path / "phone", live=True, prune=True, unprotected=True) as phone:
        there = follow(ada, phone, board)
        for number in (1, 2, 3):
            party.object({"title": f"card {number}"}, parent=board)
            party.epochs.declare()
            there.object({"title": f"mine {number}"}, parent=phone.resolve(board.locator))
            sync(ada, phone)
            assert there.epochs.number == number
            assert titles(phone.resolve(board.locator)) == titles(board)
        assert len(titles(board)) == 7


def test_what_was_derived_can_be_lost(tmp_path: Path, ada: Store, party: Party, board: Object) -> None:
    party.epochs.declare()
    party.object({"title": "Salt"}, parent=board)
    with antiphon.open(tmp_path / "phone", unprotected=True) as phone:
        follow(ada, phone, board)
    shutil.rmtree(tmp_path / "phone" / "items")
    with antiphon.open(tmp_path / "phone", unprotected=True) as phone:
        sync(ada, phone)
        assert titles(phone.resolve(board.locator)) == ["Milk", "Salt"]
        assert phone.resolve(board.locator).snapshot() == board.snapshot()


@pytest.mark.parametrize("epoch", [False, True])
def test_the_whole_party_comes_back(tmp_path: Path, ada: Store, party: Party, board: Object, epoch: bool) -> None:
    if epoch:
        with party.batch():
            for number in range(100):
                party.object({"number": number})
        party.epochs.declare()
        party.epochs.prune()
    for number in range(5):
        beside(party).edit("set", "number", number)
    spoilt = beside(party)
    erased = spoilt.edit("set", "number", "a secret")
    party.erase(erased)
    ada.manager.feeds.erase(erased.feed, erased.seq)  # it never comes, and nothing waits for it
    with antiphon.open(tmp_path / "phone", unprotected=True) as phone:
        follow(ada, phone, board)
        phone.party(party.key).object({"title": "Salt"}, parent=phone.resolve(board.locator))
        phone.hold_whole(party.key)
        assert titles(phone.resolve(board.locator)) == ["Milk", "Salt"], "until all is here"
    with antiphon.open(tmp_path / "phone", unprotected=True) as phone:
        sync(ada, phone)
        assert party.key not in phone.held_views
        there = phone.party(party.key)
        assert there.query().ids == party.query().ids
        others = set(there.query().ids) - {spoilt.id}  # models remember where void messages stood
        assert all(there.item(item).snapshot() == party.item(item).snapshot() for item in others)
        assert there.item(spoilt.id).value == spoilt.value
        party.object({"number": 9})
        there.object({"number": 10})
        sync(ada, phone)
        assert there.query().ids == party.query().ids
        with pytest.raises(InvalidInput, match="no view alone is held"):
            phone.hold_whole(party.key)


def test_opening_shows_what_a_power_loss_took_from_the_items(
    ada: Store, phone: Store, party: Party, board: Object, tmp_path: Path
) -> None:
    """The log of an item store is not synced at each save: its end may be lost, while the blocks are there."""
    there = follow(ada, phone, board)
    party.object({"title": "Bread"}, parent=board, name="another card")
    sync(ada, phone)
    names = sorted(item.name for item in there.query())
    shutil.copytree(tmp_path / "phone", tmp_path / "running")
    (log,) = (tmp_path / "running" / "items").glob("*.db-wal")
    size = log.stat().st_size
    found = []
    for share in range(1, 8):
        home = tmp_path / f"cut {share}"
        shutil.copytree(tmp_path / "running", home)
        with (home / log.relative_to(tmp_path / "running")).open("r+b") as cut:
            cut.truncate(size * share // 8)
        with antiphon.open(home, epochs=False) as again:
            found.append(sorted(item.name for item in again.party(party.key).query()))
    assert found == [names] * 7
