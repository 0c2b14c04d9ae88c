"""Handles on items: what they show is what is there now; who observes hears of it, and is let go with the handle."""

from __future__ import annotations

import gc
import weakref

import pytest

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.model.model import Model
from antiphon.testing.peers import Peer, Peers

# -- listeners


def test_listeners_hear_of_local_and_of_received_changes_once_each(peers: Peers, alice: Peer, bob: Peer) -> None:
    heard: dict[str, list[frozenset[bytes]]] = {"alice": [], "bob": []}
    stop = alice.party.listen(heard["alice"].append)
    bob.party.listen(heard["bob"].append)
    with alice.party.batch():
        one, other = alice.party.create("antiphon/object"), alice.party.create("antiphon/text")
        one.edit("set", "a", 1)
    peers.sync()
    assert heard == {"alice": [frozenset({one.id, other.id})], "bob": [frozenset({one.id, other.id})]}
    stop()
    one.edit("set", "a", 2)
    assert len(heard["alice"]) == 1


def test_a_listener_that_fails_harms_nobody(alice: Peer) -> None:
    told: list[frozenset[bytes]] = []

    def fail(_: object) -> None:
        raise ZeroDivisionError

    alice.party.listen(fail)
    alice.party.listen(told.append)
    note = alice.party.create("antiphon/object")
    assert told == [frozenset({note.id})]
    assert "an observer failed: ZeroDivisionError" in alice.party.status().error


def test_a_listener_may_write(alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    count = alice.party.create("antiphon/object")

    def react(items: frozenset[bytes]) -> None:
        if note.id in items:
            count.edit("set", "seen", note.value)

    alice.party.listen(react)
    note.edit("set", "a", 1)
    assert count.value == {"seen": {"a": 1}}


def test_news_is_told_also_where_a_write_fails_after_it(peers: Peers, alice: Peer, bob: Peer) -> None:
    """What a write takes in before it fails is there, so whoever listens must hear of it."""
    note = alice.party.create("antiphon/object")
    peers.sync()
    heard: list[frozenset[bytes]] = []
    bob.party.listen(heard.append)
    note.edit("set", "a", 1)
    for span in alice.ranges(bob.lengths()):
        bob.store.ingest(span)
    with pytest.raises(ZeroDivisionError), bob.party.locked():  # noqa: PT012
        bob.party.process()
        raise ZeroDivisionError
    assert heard == [frozenset({note.id})]


def test_the_status_tells_how_a_party_stands(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    note.edit("set", "a", 1)
    reply = peers.add("carol")
    peers.sync()
    reply.party.item(note.id).edit("set", "c", 1)
    late = note.edit("set", "a", 2)
    bob.take(reply.ranges(bob.lengths()))
    status = bob.party.status()
    assert (status.running, status.items, status.refused, status.error) == (True, 1, 0, "")
    assert status.blocked == ()
    peers.pass_on(alice, reply)
    reply.party.item(note.id).edit("set", "c", 2)
    bob.take(span for span in reply.ranges(bob.lengths()) if span.feed != late.feed)
    (blocked,) = bob.party.status().blocked
    assert blocked.waits_for is not None
    assert (blocked.waits_for.feed, blocked.waits_for.seq) == (late.feed, late.seq)
    peers.sync()
    assert bob.party.status().blocked == ()
    assert bob.party.item(note.id).value == {"a": 2, "c": 2}


def test_an_item_is_moved_deleted_and_restored(peers: Peers, alice: Peer, bob: Peer) -> None:
    board, card = alice.party.create("antiphon/object"), alice.party.create("antiphon/object")
    card.move(board.id)
    card.set_metadata("name", "Card")
    card.delete()
    peers.sync()
    seen = bob.party.item(card.id)
    assert (seen.parent, seen.deleted, seen.metadata) == (board.id, True, {"name": "Card"})
    seen.restore()
    seen.move(None)
    peers.sync()
    assert (card.parent, card.deleted) == (b"", False)
    assert alice.snapshots() == bob.snapshots()


def test_observers_are_released_with_their_handle(lone: Peer) -> None:
    handle = lone.party.create("antiphon/object")
    told: list[object] = []
    handle.observe(lambda item: told.append(item.value))
    handle.edit("set", "a", 1)
    assert told == [{"a": 1}]
    item, gone = handle.id, weakref.ref(handle)
    del handle
    gc.collect()
    assert (gone(), len(lone.party.listeners)) == (None, 0)
    lone.party.item(item).edit("set", "a", 2)
    assert told == [{"a": 1}]


class Counter(Model[list[int]]):
    """Counts bytes."""

    name = "test/counter"

    def initial(self) -> list[int]:
        return [0]

    def apply(self, state: list[int], mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        if not void:
            state[0] += mutation[0]

    def snapshot(self, state: list[int]) -> bytes:
        return bytes(state)

    def restore(self, data: bytes) -> list[int]:
        return list(data)

    def value(self, state: list[int]) -> int:
        return state[0]


class Counter2(Counter):
    """Counts double."""

    version = 2

    def migrate(self, version: int, snapshot: bytes, feed: bytes) -> list[bytes]:
        return [bytes([2 * snapshot[0]])]


def test_a_new_version_of_a_model_means_a_tombstone_and_a_fork(peers: Peers, alice: Peer, bob: Peer) -> None:
    for model in (Counter, Counter2):
        alice.models.register(model)
    peers.sync()
    board = alice.party.create("antiphon/object")
    old = alice.party.create("test/counter", version=1, parent=board.id)
    old.mutate(b"\x05")
    old.set_metadata("display_name", "Count")
    old.embed(board.id)
    new = old.fork()
    peers.sync()
    bob.party.process()
    seen = bob.party.item(new.id)
    assert (seen.value, seen.model, seen.parent) == (10, ("test/counter", 2), board.id)
    assert (seen.display_name, seen.embedded) == ("Count", (board.id,))
    assert bob.party.item(old.id).forked_to == new.id
    assert alice.snapshots() == bob.snapshots()
    with pytest.raises(InvalidInput, match=r"does not say how to take over version 1"):
        board.fork(version=1)
    assert board.forked_to == b""


def test_handles_are_equal_by_item_and_party(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    peers.sync()
    assert note == alice.party.item(note.id)
    assert len({note, alice.party.item(note.id)}) == 1
    assert note != bob.party.item(note.id)
    assert repr(note) == f"Item({note.id.hex()})"


def test_an_item_knows_what_is_in_it(alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    stamp = note.edit("set", "a", 1)
    alice.party.create("antiphon/object")
    assert dict(note.timeframe) == {stamp.feed: stamp.seq}
    assert note.created_ms > 0
