"""Batches: all or none of it, for the writer as for those who receive it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from antiphon.core.errors import (
    InvalidInput,
    InvalidMutation,
    MissingBlocks,
    MovedOn,
    StoreError,
    UnknownItem,
)
from antiphon.core.stamp import Stamp
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Flag, Kind
from antiphon.halo.credentials.claims import Role
from antiphon.model.factory import ModelFactory
from antiphon.model.model import Feeding, Model
from antiphon.testing.peers import Peer, Peers


def test_one_batch_is_one_append_with_one_lamport(alice: Peer) -> None:
    alice.party.create("antiphon/object")
    before = alice.store.commits
    with alice.party.batch() as batch:
        note, text = alice.party.create("antiphon/object"), alice.party.create("antiphon/text")
        note.edit("set", "a", 1)
        text.edit("insert", 0, "hello")
        assert len(batch) == 4
    assert alice.store.commits == before + 1
    assert alice.member is not None
    blocks = list(alice.store.read(alice.member.open_data_feed().feed))[1:]
    assert len({block.lamport for block in blocks}) == 1
    assert [block.flags & Flag.MORE for block in blocks] == [Flag.MORE, Flag.MORE, Flag.MORE, 0]


def test_others_see_all_of_it_or_nothing(peers: Peers, alice: Peer, bob: Peer) -> None:
    source = alice.party.create("antiphon/object")
    source.edit("set", "coins", 10)
    target = alice.party.create("antiphon/object")
    peers.sync()
    seen: list[tuple[object, ...]] = []
    bob.party.listen(
        lambda _: seen.append(
            (bob.party.item(source.id).value.get("coins"), bob.party.item(target.id).value.get("coins"))
        )
    )
    with alice.party.batch():
        source.edit("set", "coins", 4)
        target.edit("set", "coins", 6)
    peers.sync()
    assert seen == [(4, 6)]


def test_inside_a_batch_its_own_changes_are_seen(alice: Peer) -> None:
    old = alice.party.create("antiphon/object")
    with alice.party.batch():
        note = alice.party.create("antiphon/object", parent=old.id)
        note.edit("set", "a", 1)
        assert (note.value, note.parent) == ({"a": 1}, old.id)
        note.edit("set", "a", 2)
        assert alice.party.item(note.id).value == {"a": 2}
        assert alice.party.items() == sorted([old.id, note.id])
        assert alice.party.items("antiphon/text") == []
    assert note.value == {"a": 2}


def test_an_exception_takes_back_everything_with_the_new_items(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    note.edit("set", "a", 1)
    text = alice.party.create("antiphon/text")
    before = alice.snapshots()
    with pytest.raises(ZeroDivisionError), alice.party.batch():  # noqa: PT012
        made = alice.party.create("antiphon/object")
        note.edit("set", "a", 2)
        note.set_metadata("name", "N")
        text.edit("insert", 0, "x")
        text.delete()
        raise ZeroDivisionError
    assert alice.snapshots() == before
    assert (note.metadata, text.deleted) == ({}, False)
    with pytest.raises(UnknownItem, match="holds no item"):
        alice.party.item(made.id)
    note.edit("set", "b", 3)
    peers.sync()
    assert bob.party.item(note.id).value == note.value == {"a": 1, "b": 3}
    assert bob.snapshots() == alice.snapshots()


@pytest.mark.parametrize("saved", [False, True])
def test_what_is_not_written_is_never_saved(alice: Peer, saved: bool) -> None:
    """Looking at the party inside a batch must not put half of it into the item store (trap 3)."""
    note = alice.party.create("antiphon/object")
    note.edit("set", "a", 1)
    if saved:
        alice.party.save()
    with pytest.raises(ZeroDivisionError), alice.party.batch():  # noqa: PT012
        note.edit("set", "a", 2)
        assert alice.party.status().items_open == 1
        alice.party.save()
        assert (alice.party.refused(), alice.party.items()) == ([], [note.id])
        raise ZeroDivisionError
    assert note.value == {"a": 1}
    alice.restart()
    assert alice.party.item(note.id).value == {"a": 1}


def test_where_a_batch_cannot_be_taken_back_the_party_stops_and_goes_on_from_its_store(
    alice: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: object) -> None:
        raise StoreError("the disk is gone")

    note = alice.party.create("antiphon/object")
    note.edit("counter", "n", 1)
    with pytest.raises(StoreError, match="the disk is gone"), alice.party.batch():  # noqa: PT012
        note.edit("increment", "n", 5)
        monkeypatch.setattr(alice.party.engine.items, "load", gone)
        raise ZeroDivisionError
    assert not alice.party.running
    alice.party.resume()
    assert note.value == {"n": 1}


def test_batches_inside_a_batch_are_part_of_it(alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    with pytest.raises(ZeroDivisionError), alice.party.batch() as outer:  # noqa: PT012
        with alice.party.batch() as inner:
            note.edit("set", "a", 1)
        assert inner is outer
        assert len(outer) == 1
        raise ZeroDivisionError
    assert note.value == {}


def test_a_refused_message_spoils_its_batch_also_where_the_error_is_caught(alice: Peer) -> None:
    note, text = alice.party.create("antiphon/object"), alice.party.create("antiphon/text")
    length = alice.party.timeframe
    acts: tuple[Callable[[], object], ...] = (
        lambda: text.mutate(b"\xff"),
        lambda: note.mutate(b"\xff\xff"),
        lambda: note.move(note.id),
        lambda: note.mutate(b""),
    )
    for refused in acts:
        with pytest.raises(InvalidInput, match="was refused, so nothing of it was written"), alice.party.batch():  # noqa: PT012
            note.edit("set", "a", 1)
            with pytest.raises(InvalidMutation, match=r"^item [0-9a-f]{32}: "):
                refused()
            note.edit("set", "b", 1)
        assert note.value == {}
        assert alice.party.timeframe == length
    note.edit("set", "c", 1)
    assert note.value == {"c": 1}


def test_a_command_that_is_refused_leaves_the_batch_alone(alice: Peer) -> None:
    text = alice.party.create("antiphon/text")
    with alice.party.batch():
        text.edit("insert", 0, "ab")
        with pytest.raises(InvalidInput):
            text.edit("delete", 5)
        with pytest.raises(InvalidInput, match=r"the model antiphon/text has no command 'fly'; it has delete, embed"):
            text.edit("fly")
        text.edit("insert", 2, "c")
    assert text.value == "abc"


def test_many_edits_of_one_text_in_one_batch(peers: Peers, alice: Peer, bob: Peer) -> None:
    text = alice.party.create("antiphon/text")
    with alice.party.batch():
        text.edit("insert", 0, "hello world")
        text.edit("delete", 0, 5)
        text.edit("insert", 0, "goodbye")
        text.edit("mark", 0, 7, "bold", True)
        text.edit("replace", 8, 5, "moon")
        text.edit("insert", 12, "!")
    with alice.party.batch():
        text.edit("insert", 0, "> ")
        text.edit("insert", 2, "> ")
    assert text.value == "> > goodbye moon!"
    peers.sync()
    assert bob.party.item(text.id).value == text.value
    assert bob.snapshots() == alice.snapshots()
    assert bob.party.refused() == []


def test_an_empty_batch_writes_nothing(alice: Peer) -> None:
    alice.party.create("antiphon/object")
    before = alice.party.timeframe
    with alice.party.batch() as batch:
        assert batch.items == []
    assert alice.party.timeframe == before


def test_what_arrives_meanwhile_is_taken_after_it(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    peers.sync()
    bob.party.item(note.id).edit("set", "b", 1)
    with alice.party.batch():
        note.edit("set", "a", 1)
        peers.pass_on(bob, alice)
        assert alice.party.process() == 0
        note.edit("set", "c", 1)
        assert note.value == {"a": 1, "c": 1}
    assert alice.party.process() == 1
    assert note.value == {"a": 1, "b": 1, "c": 1}
    peers.sync()
    assert alice.snapshots() == bob.snapshots()


def test_credentials_written_since_the_last_message_do_not_disturb(peers: Peers, alice: Peer, bob: Peer) -> None:
    """The control feed has moved on its own, with lamports above those of all messages."""
    note = alice.party.create("antiphon/object")
    assert alice.member is not None
    for at in range(9):
        alice.member.admit(bytes([at]) * 32, [Role.READER])
    note.edit("set", "a", 1)
    assert note.value == {"a": 1}
    assert alice.party.timeframe[alice.member.open_data_feed().feed] == 1
    peers.sync()
    assert bob.party.item(note.id).value == {"a": 1}


def test_a_disk_that_fails_leaves_nothing_behind(alice: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    note = alice.party.create("antiphon/object")
    told: list[frozenset[bytes]] = []
    alice.party.listen(told.append)

    def full(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(alice.store, "append", full)
        with pytest.raises(StoreError, match="the disk is full"):
            note.edit("set", "a", 1)
        with pytest.raises(StoreError, match="the disk is full"), alice.party.batch():
            alice.party.create("antiphon/text")
    assert (note.value, alice.party.items(), told) == ({}, [note.id], [])
    note.edit("set", "a", 2)
    assert note.value == {"a": 2}
    alice.restart()
    assert alice.party.item(note.id).value == {"a": 2}


def test_an_item_store_that_fails_after_the_append_loses_nothing(alice: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    note = alice.party.create("antiphon/object")
    note.edit("set", "a", 1)

    def full(*_: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("antiphon.party.engine.engine.UNSAVED_MESSAGES_MAX", 0)
        patch.setattr(alice.party.engine.items, "_put", full)
        note.edit("set", "a", 2)  # it is on the disk, so nobody may think that it failed, and write it again
    assert not alice.party.running
    assert alice.party.status().error == "the disk is full"
    assert alice.party.item(note.id).value == {"a": 2}
    assert len(alice.party.item(note.id).history()) == 3


def test_a_feed_that_somebody_else_writes_is_noticed(lone: Peer) -> None:
    note = lone.party.create("antiphon/object")
    with pytest.raises(MovedOn, match="nothing was written"), lone.party.batch():  # noqa: PT012
        note.edit("set", "a", 1)
        lone.forge(Draft(Kind.METADATA, note.id, b""))
    assert lone.party.item(note.id).value == {}
    note.edit("set", "a", 2)
    assert lone.party.item(note.id).value == {"a": 2}


def test_a_device_whose_own_block_waits_says_for_which(peers: Peers, alice: Peer, bob: Peer) -> None:
    """To try again would not help: what the block has seen must come first."""
    note = alice.party.create("antiphon/object")
    seen = bob.party.create("antiphon/object").edit("set", "a", 0)  # Alice does not have it
    alice.forge(Draft(Kind.METADATA, note.id, b""), seen=[bob.store.block(seen.feed, seen.seq).entry])
    wanted = f"block 1 of this device's own feed waits: block 1 of feed {seen.feed.hex()[:8]} .waits.block."
    with pytest.raises(MissingBlocks, match=wanted):
        note.edit("set", "a", 1)
    assert note.value == {}
    peers.sync()
    note.edit("set", "a", 2)
    assert note.value == {"a": 2}


def test_very_many_new_items_in_one_batch(tmp_path: Path) -> None:
    with Peers(tmp_path, authority=False) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        alice.party.engine.cache._limit = 10
        with alice.party.batch():
            notes = [alice.party.create("antiphon/object") for _ in range(300)]
            for note in notes:
                note.edit("set", "a", 1)
        peers.sync()
        assert all(bob.party.item(note.id).value == {"a": 1} for note in notes)
        assert alice.snapshots() == bob.snapshots()


class Signatures(Model[list[str]]):
    """Names in their order. It remembers the keys that its commands and messages were given."""

    name = "test/signatures"
    feeding = Feeding.ORDERED
    commands = frozenset({"sign"})
    keys: ClassVar[list[bytes]] = []

    def initial(self) -> list[str]:
        return []

    def apply(self, state: list[str], mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        self.keys.append(stamp.feed)
        state.append(mutation.decode())

    def value(self, state: list[str]) -> list[str]:
        return list(state)

    def sign(self, state: list[str], name: str, *, feed: bytes = b"") -> bytes:
        self.keys.append(feed)
        return name.encode()


def test_a_model_is_given_feeds_of_one_type_by_writer_and_receiver(tmp_path: Path) -> None:
    """The writer's own stamps had a `PublicKey`, whose text is not that of the bytes that others had."""
    Signatures.keys.clear()
    with Peers(tmp_path, models=ModelFactory(Signatures)) as peers:
        alice = peers.add("alice")
        bob = peers.add("bob", Role.EDITOR)
        made = alice.party.create("test/signatures")
        stamps = [made.edit("sign", "Ada")]
        with alice.party.batch():
            stamps.append(made.edit("sign", "Ada again"))
        peers.sync()
        stamps.append(bob.party.item(made.id).edit("sign", "Bob"))
        peers.sync()
        alice.restart()
        assert alice.party.item(made.id).value == ["Ada", "Ada again", "Bob"]
        assert {type(key) for key in Signatures.keys} == {bytes}
        assert {type(stamp.feed) for stamp in stamps} == {bytes}
