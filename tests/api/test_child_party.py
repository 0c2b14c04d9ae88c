"""Child parties: a chess game in a child, a hundred items in its parent, each with its own history."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from examples.chess_model import ChessModel

import antiphon
from antiphon import InvalidInput, NotAuthorised, Object, Party, Role, Store, UnknownParty, sync
from antiphon.core.errors import MissingBlocks
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.credentials.claims import Narrowing
from antiphon.model.value import Reference
from antiphon.testing.copy_feeds import copy_feeds

pytestmark = pytest.mark.slow


@pytest.fixture
def ada(tmp_path: Path) -> Iterator[Store]:
    with antiphon.open(tmp_path / "ada", name="Ada", unprotected=True) as store:
        store.models.register(ChessModel)
        yield store


@pytest.fixture
def bob(tmp_path: Path) -> Iterator[Store]:
    with antiphon.open(tmp_path / "bob", name="Bob", unprotected=True) as store:
        store.models.register(ChessModel)
        yield store


@pytest.fixture
def game(party: Party) -> Party:
    return party.create_child("Ada against Bob")


@pytest.fixture
def his(ada: Store, bob: Store, party: Party, theirs: Party, game: Party) -> Party:
    """The game on Bob's device, which he found in the club; nobody invited him to it."""
    sync(ada, bob)
    (found,) = theirs.child_parties()
    with pytest.raises(MissingBlocks):
        theirs.open_child(found)
    sync(ada, bob)
    return theirs.open_child(found)


def test_a_child_is_made_found_and_written_by_members_of_the_parent(
    ada: Store, bob: Store, party: Party, game: Party, his: Party
) -> None:
    note = game.object({"title": "First"})
    sync(ada, bob)
    theirs = his.item(note.id, Object)
    theirs["title"] = "Bob's"
    sync(ada, bob)
    assert note["title"] == "Bob's"
    assert game.refused() == his.refused() == []
    assert his.members == game.members
    assert {bytes(member.subject) for member in game.members.members} == {bytes(ada.me), bytes(bob.me)}
    assert (his.name, his.parent, game.parent, party.parent) == ("Ada against Bob", bob.party(party.key), party, None)
    assert [child.key for child in party.child_parties()] == [game.key]


def test_it_is_a_child_after_a_restart(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        game = store.create_party("Club").create_child("Game")
        note = game.object({"n": 1})
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        again = store.party("Game")
        assert again.parent is store.party("Club")
        again.item(note.id, Object)["n"] = 2
        assert again.item(note.id, Object)["n"] == 2


def test_store_makes_children_too_and_none_of_a_child(ada: Store, party: Party) -> None:
    child = ada.create_party("Child", parent=party)
    assert child.parent is party
    with pytest.raises(InvalidInput, match="is a child itself"):
        child.create_child("Grandchild")


# -- the seed's case: one chess game, and a hundred coordinated items


def test_a_game_in_a_child_beside_a_hundred_items_in_the_parent(
    ada: Store, bob: Store, party: Party, theirs: Party, game: Party, his: Party
) -> None:
    """Epochs and undo of the game touch nothing of the items, and the reverse."""
    with party.batch():
        items = [party.object({"number": number}) for number in range(100)]
    board = game.create(ChessModel.name)
    sync(ada, bob)
    his.item(board.id).item.edit("sit", "black")
    board.item.edit("sit", "white")
    sync(ada, bob)
    board.item.edit("move", "e2e4")
    sync(ada, bob)
    his.item(board.id).item.edit("move", "e7e5")
    sync(ada, bob)
    undo, undo_items = game.undo_stack(), party.undo_stack()
    before = {item.id: party.processor.snapshot(item.id) for item in items}
    length = len(ada.manager.feeds.feeds(party.key))
    digest = party.members.digest

    assert game.epochs.declare().final
    sync(ada, bob)
    assert (game.epochs.number, his.epochs.number, party.epochs.number, theirs.epochs.number) == (1, 1, 0, 0)
    assert game.epochs.prune() > 0
    assert {item.id: party.processor.snapshot(item.id) for item in items} == before
    assert (len(ada.manager.feeds.feeds(party.key)), party.members.digest) == (length, digest)

    played = game.processor.snapshot(board.id)
    assert party.epochs.declare().final
    sync(ada, bob)
    assert (game.epochs.number, his.epochs.number, party.epochs.number, theirs.epochs.number) == (1, 1, 1, 1)
    assert game.processor.snapshot(board.id) == played == his.processor.snapshot(board.id)

    board.name = "The final"
    items[0]["number"] = 1000
    undo.undo()
    assert (board.name, items[0]["number"]) == ("", 1000)
    assert not undo.undo()  # there is nothing else of the game's
    undo_items.undo()
    assert items[0]["number"] == 0
    his.item(board.id).item.edit("resign")
    sync(ada, bob)
    assert game.processor.snapshot(board.id) == his.processor.snapshot(board.id)


def test_an_epoch_of_a_child_covers_what_it_rests_on_in_the_parent(
    ada: Store, bob: Store, party: Party, game: Party, his: Party
) -> None:
    his.object({"by": "Bob"})
    sync(ada, bob)
    game.epochs.declare()
    chain = game.member.machine.epochs()
    control = chain.final[-1].control
    assert all(control.covers(above.machine.timeframe()) for above in (party.member,))
    assert game.epochs.verify().right


def test_a_new_device_begins_at_the_childs_epoch(
    ada: Store, party: Party, game: Party, his: Party, bob: Store, tmp_path: Path
) -> None:
    note = his.object({"by": "Bob"})
    sync(ada, bob)
    game.epochs.declare()
    game.epochs.prune()
    with antiphon.open(tmp_path / "eve", name="Eve", unprotected=True) as eve:
        eve.join(party.invite(eve.me, Role.READER))
        sync(ada, eve)
        (child,) = eve.party(party.key).child_parties()
        eve.manager.subscribe(child.key)
        sync(ada, eve)
        hers = eve.party(party.key).open_child(child)
        sync(ada, eve)
        assert hers.item(note.id, Object)["by"] == "Bob"
        assert hers.epochs.number == 1
        with pytest.raises(NotAuthorised):
            hers.object({})


@contextmanager
def _watching(read: list[bytes]) -> Iterator[None]:
    """Record the feeds that are read inside the block."""
    runs, blocks = FeedStore.runs, FeedStore.read

    def spy_runs(self: FeedStore, feed: bytes, *rest: Any) -> Any:
        read.append(bytes(feed))
        return runs(self, feed, *rest)

    def spy_read(self: FeedStore, feed: bytes, *rest: Any) -> Any:
        read.append(bytes(feed))
        return blocks(self, feed, *rest)

    with patch.object(FeedStore, "runs", spy_runs), patch.object(FeedStore, "read", spy_read):
        yield


def test_opening_one_does_not_read_the_others_messages(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        club = store.create_party("Club")
        game = club.create_child("Game")
        club.object({"n": 1})
        game.object({"n": 1})
        data = {
            name: {state.feed for state in party.members.feeds if state.kind.name == "DATA"}
            for name, party in (("Club", club), ("Game", game))
        }
    for name, other in (("Club", "Game"), ("Game", "Club")):
        read: list[bytes] = []
        with _watching(read), antiphon.open(tmp_path / "home", unprotected=True) as store:
            opened = store.party(name)
            opened.item(opened.query().ids[0])
            assert not data[other] & set(read), name
            if name == "Club":
                control = {record.feed for record in store.manager.feeds.feeds(game.key)}
                assert not control & set(read)


# -- what is taken away


def overhear(source: Store, target: Store, *parties: Party) -> None:
    """Copy feeds to a device that no member would give them to, or takes from one that nobody asks any more."""
    for party in parties:
        copy_feeds(source.manager.feeds, target.manager.feeds, party.key)
    for party in parties:
        target.party(party.key).refresh()
        target.party(party.key).epochs.step()


def test_a_revocation_in_the_parent_takes_effect_in_the_child(
    ada: Store, bob: Store, party: Party, game: Party, his: Party
) -> None:
    kept = his.object({"by": "Bob"})
    sync(ada, bob)
    late = his.object({"by": "Bob, who was not there yet"})
    party.revoke(bob.me)
    assert sync(ada, bob) == 0, "what he wrote stays with him, and he gets no more"
    overhear(bob, ada, party, game)
    overhear(ada, bob, party, game)
    assert game.item(kept.id, Object)["by"] == "Bob"
    assert not game.has(late.id)
    assert len(game.refused()) > 0
    assert game.members == his.members
    assert {bytes(member.subject) for member in game.members.members} == {bytes(ada.me)}
    with pytest.raises(NotAuthorised):
        his.object({})


def test_a_revoked_member_who_does_not_look_writes_for_nobody(
    ada: Store, bob: Store, party: Party, game: Party, his: Party
) -> None:
    """Bob gets nothing of the club any more, and writes on in the game. Ada's device has ended his feeds there."""
    kept = his.object({"by": "Bob"})
    sync(ada, bob)
    party.revoke(bob.me)
    assert [act.claim.roles for act in game.member.machine.acts() if isinstance(act.claim, Narrowing)] == [frozenset()]
    bob.manager.pause(party.key)
    for number in range(3):
        his.object({"by": "Bob", "number": number})
    copy_feeds(bob.manager.feeds, ada.manager.feeds, game.key)
    game.refresh()
    assert [item.id for item in game.query()] == [kept.id]
    assert game.epochs.declare().final


def test_without_an_owner_at_hand_what_a_revoked_member_wrote_is_void_until_one_comes(
    ada: Store, bob: Store, party: Party, theirs: Party, game: Party, his: Party, tmp_path: Path
) -> None:
    """Eve, an editor, gets the revocation first: Bob's messages are void. Ada opens the game: they are valid."""
    with antiphon.open(tmp_path / "eve", name="Eve", unprotected=True) as eve:
        eve.join(party.invite(eve.me))
        sync(ada, eve)
        eve.manager.subscribe(game.key)
        note = his.object({"by": "Bob"})
        sync(ada, bob)
        sync(ada, eve)
        hers = eve.party(party.key).open_child(game.key)
        assert hers.has(note.id)
        ada.manager.close_party(game.key)
        party.revoke(bob.me)
        copy_feeds(ada.manager.feeds, eve.manager.feeds, party.key)
        hers.refresh()
        assert not hers.has(note.id)
        sync(ada, eve)
        assert hers.has(note.id)
        assert hers.members == ada.party(game.key).members


def test_what_an_epoch_of_the_child_holds_no_revocation_in_the_parent_takes(
    ada: Store, bob: Store, party: Party, game: Party, his: Party
) -> None:
    note = his.object({"by": "Bob"})
    sync(ada, bob)
    game.epochs.declare()
    sync(ada, bob)
    with party.processor.locked():
        party.member.write_claim(Narrowing(bytes(bob.me), frozenset(), {}))
    overhear(ada, bob, party, game)
    assert game.item(note.id, Object)["by"] == his.item(note.id, Object)["by"] == "Bob"
    assert game.epochs.declare().number == 2
    overhear(ada, bob, party, game)
    assert his.epochs.number == 2


def test_an_attester_refuses_an_epoch_of_the_child_that_lacks_a_revocation_in_the_parent(
    ada: Store, bob: Store, party: Party, game: Party, his: Party
) -> None:
    """Bob, who generates the game's epochs, is revoked in the club, and declares one before he sees the revocation."""
    game.epochs.set_policy(generator=bob.device, attesters=[ada.device, bob.device])
    sync(ada, bob)
    his.object({"by": "Bob"})
    party.revoke(bob.me)
    assert not his.epochs.declare().final
    copy_feeds(bob.manager.feeds, ada.manager.feeds, game.key)
    game.refresh()
    game.epochs.step()
    (epoch,) = game.epochs.list()
    assert not epoch.final
    assert "lacks the narrowing" in epoch.refused[0].reason


def test_a_guest_of_a_child_sees_the_child_alone(ada: Store, party: Party, game: Party, tmp_path: Path) -> None:
    secret = party.object({"title": "for members"})
    with antiphon.open(tmp_path / "guest", name="Guest", unprotected=True) as guest:
        guest.join(game.invite(guest.me))
        sync(ada, guest)
        theirs = guest.party(game.key)
        note = theirs.object({"by": "a guest"})
        sync(ada, guest)
        assert game.item(note.id, Object)["by"] == "a guest"
        with pytest.raises(UnknownParty):
            _ = theirs.parent
        held = {record.feed for record in guest.manager.feeds.feeds(party.key)}
        data = {state.feed for state in party.members.feeds if state.kind.name == "DATA"}
        assert held
        assert not held & data
        assert secret.id not in {item.id for item in theirs.query()}


def test_a_child_goes_through_a_file_after_its_parent(party: Party, game: Party, bob: Store, tmp_path: Path) -> None:
    note = game.object({"n": 1})
    game.epochs.declare()
    party.export(tmp_path / "club.car")
    game.export(tmp_path / "game.car")
    with pytest.raises(MissingBlocks, match="is a child of party"):
        bob.import_party(tmp_path / "game.car")
    bob.import_party(tmp_path / "club.car")
    imported = bob.import_party(tmp_path / "game.car")
    assert imported.item(note.id, Object)["n"] == 1
    assert imported.members == game.members


# -- hostile ones


def test_a_strangers_party_that_names_this_one_is_no_child(ada: Store, party: Party, tmp_path: Path) -> None:
    """Mallory, who holds the club's control feeds and is no member, founds a party in its name."""
    with antiphon.open(tmp_path / "mallory", name="Mallory", unprotected=True) as mallory:
        mallory.manager.subscribe(party.key, party.member.genesis_feed)
        sync(ada, mallory)
        theirs = mallory.party(party.key)
        with pytest.raises(NotAuthorised, match="no owner or editor"):
            theirs.create_child("Trap")
        with (
            patch("antiphon.halo.member.child_party.WRITERS", frozenset(Role)),
            patch("antiphon.halo.rights.authority.Authority.roles", lambda *_: frozenset(Role)),
        ):
            key = mallory.manager.create(mallory.identity, "Trap", parent=party.key).key
        ada.manager.subscribe(key)
        copy_feeds(mallory.manager.feeds, ada.manager.feeds, key)
        with pytest.raises(NotAuthorised, match="is no child of party"):
            party.open_child(key)
        assert ada.party(key).member.control is None  # nobody joins it unasked


def test_an_item_that_names_another_party_as_a_child_is_not_believed(ada: Store, party: Party) -> None:
    private = ada.create_party("Diary")
    party.object(
        {"root": Reference(bytes(SYSTEM_ITEM), bytes(private.key))}, type="antiphon/child-party", name="Look here"
    )
    (child,) = party.child_parties()
    with pytest.raises(NotAuthorised, match="is no child of party"):
        party.open_child(child)
    assert ada.party(private.key) is private
