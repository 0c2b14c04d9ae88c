"""Undo and redo of one's own changes, through the live engine: others' changes are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.core.errors import InvalidInput, UnknownItem
from antiphon.core.stamp import Stamp
from antiphon.model.message import Change
from antiphon.party.live.item import Item
from antiphon.party.live.undo import UndoStack, revert
from antiphon.testing.peers import Peer, Peers


def same(peers: Peers, item: bytes, value: object) -> None:
    """Both peers have this value, and the same bytes."""
    peers.sync()
    assert [peer.party.item(item).value for peer in peers.all] == [value] * len(peers.all)
    assert len({peer.party.snapshot(item) for peer in peers.all}) == 1
    assert all(peer.party.refused() == [] for peer in peers.all)


def shared(peers: Peers, model: str) -> tuple[Item, Item]:
    alice, bob = peers.all
    item = alice.party.create(model)
    peers.sync()
    return item, bob.party.item(item.id)


def test_an_object(peers: Peers, alice: Peer, bob: Peer) -> None:
    mine, theirs = shared(peers, "antiphon/object")
    undo = UndoStack(alice.party)
    mine.edit("set", "title", "Milk")
    mine.edit("set", "title", "Beer")
    theirs.edit("set", "colour", "red")  # concurrent
    same(peers, mine.id, {"title": "Beer", "colour": "red"})
    theirs.edit("set", "size", 3)  # later
    peers.sync()
    assert undo.undo()
    same(peers, mine.id, {"title": "Milk", "colour": "red", "size": 3})
    assert undo.undo()
    same(peers, mine.id, {"colour": "red", "size": 3})
    assert undo.redo()
    assert undo.redo()
    same(peers, mine.id, {"title": "Beer", "colour": "red", "size": 3})
    assert not undo.redo()


def test_what_somebody_else_has_overwritten_stays(peers: Peers, alice: Peer, bob: Peer) -> None:
    mine, theirs = shared(peers, "antiphon/object")
    undo = UndoStack(alice.party)
    mine.edit("set", "title", "Milk")
    peers.sync()
    theirs.edit("set", "title", "Bob's")
    peers.sync()
    assert not undo.undo(), "nothing of it still stands"
    same(peers, mine.id, {"title": "Bob's"})


def test_an_array(peers: Peers, alice: Peer, bob: Peer) -> None:
    mine, theirs = shared(peers, "antiphon/array")
    mine.edit("append", "a", "b", "c")
    peers.sync()
    undo = UndoStack(alice.party)
    mine.edit("delete", 1)
    theirs.edit("insert", 1, ["between"])
    peers.sync()
    theirs.edit("append", "end")
    peers.sync()
    assert undo.undo()
    peers.sync()
    assert sorted(mine.value) == ["a", "b", "between", "c", "end"]
    same(peers, mine.id, mine.value)
    assert undo.redo()
    same(peers, mine.id, ["a", "between", "c", "end"])


def test_a_text(peers: Peers, alice: Peer, bob: Peer) -> None:
    mine, theirs = shared(peers, "antiphon/text")
    mine.edit("insert", 0, "hello world")
    peers.sync()
    undo = UndoStack(alice.party)
    mine.edit("delete", 0, 6)
    theirs.edit("insert", 11, "!")
    peers.sync()
    mine.edit("insert", 5, " wide")
    peers.sync()
    assert mine.value == "world wide!"
    assert undo.undo()
    same(peers, mine.id, "world!")
    assert undo.undo()
    same(peers, mine.id, "hello world!")
    assert undo.redo()
    same(peers, mine.id, "world!")


def test_a_messenger(peers: Peers, alice: Peer, bob: Peer) -> None:
    mine, theirs = shared(peers, "antiphon/messenger")
    post = mine.edit("post", "hello")
    peers.sync()
    theirs.edit("post", "reply", reply_to=post)
    peers.sync()
    undo = UndoStack(alice.party)
    mine.edit("edit", post, "hullo")
    assert undo.undo()
    peers.sync()
    assert [row["body"] for row in mine.value] == ["hello", "reply"]
    same(peers, mine.id, mine.value)


def test_a_batch_is_undone_whole(peers: Peers, alice: Peer, bob: Peer) -> None:
    note, _ = shared(peers, "antiphon/object")
    text, _ = shared(peers, "antiphon/text")
    text.edit("insert", 0, "abcdef")
    undo = UndoStack(alice.party)
    with alice.party.batch():
        note.edit("set", "a", 1)
        text.edit("delete", 0, 2)
        text.edit("delete", 2, 2)
        text.edit("insert", 2, "XY")
        text.edit("insert", 0, "Z")
        note.edit("set", "a", 2)
    assert (note.value, text.value) == ({"a": 2}, "ZcdXY")
    assert undo.undo()
    same(peers, note.id, {})
    same(peers, text.id, "abcdef")
    assert undo.redo()
    same(peers, note.id, {"a": 2})
    same(peers, text.id, "ZcdXY")
    assert undo.undo()
    same(peers, text.id, "abcdef")
    assert not undo.undo()


def test_places_names_and_existence_are_undone_too(peers: Peers, alice: Peer, bob: Peer) -> None:
    board, _ = shared(peers, "antiphon/object")
    card, seen = shared(peers, "antiphon/object")
    undo = UndoStack(alice.party)
    card.move(board.id)
    card.set_metadata("name", "Card")
    card.delete()
    made = alice.party.create("antiphon/object")
    for _ in range(4):
        assert undo.undo()
    assert not undo.undo()
    peers.sync()
    assert (seen.parent, seen.metadata, seen.deleted) == (b"", {}, False)
    assert bob.party.item(made.id).deleted
    for _ in range(4):
        assert undo.redo()
    peers.sync()
    assert (seen.parent, seen.metadata, seen.deleted) == (board.id, {"name": "Card"}, True)
    assert not bob.party.item(made.id).deleted


def test_a_new_change_ends_what_can_be_redone(alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    undo = UndoStack(alice.party)
    note.edit("set", "a", 1)
    undo.undo()
    note.edit("set", "b", 2)
    assert not undo.redo()
    assert undo.undo()
    assert note.value == {}


def test_a_refused_message_is_nothing_to_undo(alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    undo = UndoStack(alice.party)
    with pytest.raises(InvalidInput):
        note.mutate(b"\xff\xff")
    with pytest.raises(ZeroDivisionError), alice.party.batch():  # noqa: PT012
        note.edit("set", "a", 1)
        raise ZeroDivisionError
    assert not undo.undo()
    assert note.value == {}


def test_the_stack_is_bounded_and_there_is_one_of_it(alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    undo = UndoStack(alice.party, depth_max=3)
    with pytest.raises(InvalidInput, match=r"has an undo stack already; close that first"):
        UndoStack(alice.party)
    for at in range(10):
        note.edit("set", "n", at)
    assert [undo.undo() for _ in range(4)] == [True, True, True, False]
    assert note.value == {"n": 6}
    undo.close()
    assert not undo.undo()
    note.edit("set", "n", 99)
    with_new = UndoStack(alice.party)
    assert not with_new.undo()


def test_any_message_of_ones_own_can_be_reverted_also_after_a_restart(peers: Peers, alice: Peer, bob: Peer) -> None:
    mine, theirs = shared(peers, "antiphon/text")
    first = mine.edit("insert", 0, "one ")
    mine.edit("insert", 4, "two ")
    peers.sync()
    theirs.edit("insert", 8, "three")
    peers.sync()
    alice.restart()
    assert revert(alice.party, first, mine.id)
    same(peers, mine.id, "two three")
    assert not revert(alice.party, first, mine.id)


def test_nobody_reverts_somebody_elses_message(peers: Peers, alice: Peer, bob: Peer) -> None:
    mine, theirs = shared(peers, "antiphon/object")
    stamp = theirs.edit("set", "a", 1)
    peers.sync()
    with pytest.raises(InvalidInput, match=r"is not this device's own; only its writer can take it back"):
        revert(alice.party, stamp, mine.id)
    own = mine.edit("set", "b", 1)
    with pytest.raises(UnknownItem, match=r"there is no message"):
        revert(alice.party, Stamp(own.lamport, own.feed, own.seq + 9), mine.id)
    same(peers, mine.id, {"a": 1, "b": 1})


def test_who_may_write(peers: Peers, alice: Peer, bob: Peer) -> None:
    mine, theirs = shared(peers, "antiphon/object")
    undo = UndoStack(alice.party)
    mine.edit("set", "title", "Milk")
    with alice.party.batch():
        mine.edit("set", "title", "Beer")
        mine.restrict_writers()
    mine.restrict_writers(bob.key)
    peers.sync()
    assert mine.writers == theirs.writers == tuple(sorted((alice.key, bob.key)))

    assert undo.undo()
    assert (mine.value, mine.writers) == ({"title": "Beer"}, (alice.key,))
    assert undo.undo()
    assert mine.writers is None
    same(peers, mine.id, {"title": "Milk"})
    theirs.edit("set", "by", "Bob")
    same(peers, mine.id, {"title": "Milk", "by": "Bob"})

    assert undo.redo()
    assert undo.redo()
    peers.sync()
    assert mine.writers == theirs.writers == tuple(sorted((alice.key, bob.key)))
    mine.allow_all_writers()
    assert undo.undo()
    same(peers, mine.id, {"title": "Beer", "by": "Bob"})
    assert mine.writers == tuple(sorted((alice.key, bob.key)))


def test_what_others_said_of_who_may_write_stays(peers: Peers, alice: Peer, bob: Peer) -> None:
    mine, theirs = shared(peers, "antiphon/object")
    undo = UndoStack(alice.party)
    mine.restrict_writers(bob.key)
    peers.sync()
    theirs.allow_all_writers()
    peers.sync()
    assert undo.undo()
    peers.sync()
    assert mine.writers is theirs.writers is None
    assert undo.redo()
    peers.sync()
    assert mine.writers is theirs.writers is None


def test_one_message_about_who_may_write_is_taken_back(alice: Peer) -> None:
    item = alice.party.create("antiphon/object")
    stamp = item.restrict_writers()
    assert revert(alice.party, stamp, item.id)
    assert item.writers is None
    assert not revert(alice.party, stamp, item.id)


def test_what_cannot_be_undone_is_not_forgotten(alice: Peer) -> None:
    item = alice.party.create("antiphon/object")
    undo = UndoStack(alice.party)
    item.edit("set", "title", "Milk")
    with alice.party.batch() as batch:
        batch.change(item.id, Change(forked_to=alice.party.create("antiphon/object").id))
    for _ in range(2):
        with pytest.raises(InvalidInput, match="forked"):
            undo.undo()
    assert item.value == {"title": "Milk"}


def test_what_an_epoch_holds_is_taken_back_as_long_as_its_messages_are_here(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice = peers.add("alice")
        note = alice.party.create("antiphon/object")
        first = note.edit("set", "title", "Milk")
        second = note.edit("set", "title", "Bread")
        alice.epochs.declare()
        assert revert(alice.party, second, note.id)
        assert note.value == {"title": "Milk"}
        alice.epochs.declare()
        alice.epochs.prune()
        with pytest.raises(UnknownItem, match="there is no message"):
            revert(alice.party, first, note.id)
