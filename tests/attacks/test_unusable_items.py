"""Attack 10: an editor makes an item unusable, with writes that cost others far more than they weigh (rule 28)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.model.array.test_pieces import bulk, deep_path
from tests.party.epochs.epoch_acts import epoch

from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.model.array import codec as array_codec
from antiphon.model.message import wrap
from antiphon.model.object.mutation_codec import write_mutation
from antiphon.model.object.state import Op
from antiphon.model.text import edges
from antiphon.model.text.runs import Run
from antiphon.model.text.siblings import Child
from antiphon.testing.peers import Peer, Peers

SIBLINGS = 3000
SMALL = 400  # bytes of an honest mutation, with the names of a few feeds


def drafts(item: bytes, mutations: Iterable[bytes]) -> list[Draft]:
    return [Draft(Kind.MUTATION, item, wrap(Kind.MUTATION, mutation)) for mutation in mutations]


def size_of(peer: Peer, stamp: Stamp) -> int:
    """How many bytes a message has in its block."""
    (block,) = peer.store.read(stamp.feed, stamp.seq, stamp.seq + 1)
    assert block.message is not None
    return len(block.message)


def test_a_key_with_thousands_of_siblings_is_overwritten_and_deleted_by_one_small_mutation(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice, mallory = peers.add("alice"), peers.add("mallory")
        note = alice.party.create("antiphon/object")
        note.edit("set", "title", "Milk")
        note.edit("set", ("owner", "name"), "Alice")
        peers.sync()
        siblings = [write_mutation([Op(("title",), number)], b"") for number in range(SIBLINGS)]
        below = [write_mutation([Op(("owner", f"key {number}"), number)], b"") for number in range(SIBLINGS)]
        mallory.forge(*drafts(note.id, siblings + below))
        peers.sync()

        assert [value for _, value in note.read(lambda model, state: model.conflicts(state, "title"))] == [
            SIBLINGS - 1,
            "Milk",
        ], "one value of each feed is shown"
        written = [note.edit("set", "title", "Bread"), note.edit("delete", "owner"), note.edit("delete", "title")]
        written.append(note.edit("set", "title", "Eggs"))
        assert max(size_of(alice, stamp) for stamp in written) < SMALL
        peers.sync()
        for peer in peers.all:
            assert peer.party.item(note.id).value == {"title": "Eggs"}
        epoch(peers)
        alice.restart()
        assert alice.party.item(note.id).value == {"title": "Eggs"}


def spine(lamport: int, count: int) -> bytes:
    """Characters each of which hangs to the left of the one before."""
    proto = text_pb2.TextMutation()
    for offset in range(count):
        insert = proto.inserts.add(text="x", place=text_pb2.TEXT_PLACE_LEFT if offset else text_pb2.TEXT_PLACE_ROOT)
        if offset:
            insert.lamport, insert.offset = lamport, offset - 1
    return proto.SerializeToString()


def beside(feed: bytes, lamport: int, count: int) -> bytes:
    """Characters of another writer beside each of a spine: beyond all that hangs further down."""
    proto = text_pb2.TextMutation(feeds=[feed])
    for offset in range(count):
        insert = proto.inserts.add(text="y", place=text_pb2.TEXT_PLACE_LEFT, feed=1)
        insert.lamport, insert.offset = lamport, offset
    return proto.SerializeToString()


def test_a_text_with_a_spine_takes_steps_in_proportion_and_is_edited_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0

    def counted(run: Run, left: bool) -> Child | None:
        nonlocal steps
        steps += 1
        return outer(run, left)

    outer = edges._outer
    with Peers(tmp_path) as peers:
        alice, mallory, eve = peers.add("alice"), peers.add("mallory"), peers.add("eve")
        note = alice.party.create("antiphon/text")
        note.edit("insert", 0, "Milk")
        peers.sync()
        # Of two writers the one whose feed is the lesser goes left of the other.
        lesser, greater = sorted((mallory, eve), key=lambda peer: peer.party.item(note.id).edit("insert", 0, "-").feed)
        peers.sync()
        monkeypatch.setattr(edges, "_outer", counted)
        before = greater.party.item(note.id).edit("insert", 0, "-")
        written = greater.forge(*drafts(note.id, [spine(before.lamport + 1, SIBLINGS)]))[-1]
        assert written.lamport == before.lamport + 1
        peers.sync()
        lesser.party.item(note.id).edit("insert", 0, "-")  # its lamports are beyond the spine's now
        lesser.forge(*drafts(note.id, [beside(written.feed, written.lamport, SIBLINGS)] * 3))
        peers.sync()
        assert steps < 3 * 40 * SIBLINGS, "each of three peers walks along the spine once or twice"
        note.edit("delete", 0, 1)
        note.edit("insert", 0, "m")
        epoch(peers)
        values = [peer.party.item(note.id).value for peer in peers.all]
        assert values == values[:1] * 3
        assert len(values[0]) == 8 + 4 * SIBLINGS
        assert size_of(alice, note.edit("delete", 0, len(values[0]))) < SMALL
        peers.sync()
        assert {peer.party.item(note.id).value for peer in peers.all} == {""}


def test_an_array_of_long_position_keys_takes_memory_in_proportion_and_is_edited_on(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice, mallory = peers.add("alice"), peers.add("mallory")
        note = alice.party.create("antiphon/array")
        note.edit("append", "Milk")
        peers.sync()
        element = mallory.party.item(note.id).read(lambda model, state: model.ids(state)[0])
        siblings = []
        for number in range(SIBLINGS):
            draft = array_codec.Draft(b"")
            draft.set(element, number, [])
            siblings += draft.encode()
        runs = [bulk(deep_path(), 4096) for _ in range(8)]
        mallory.forge(*drafts(note.id, siblings + runs))
        received = sum(map(len, siblings + runs))
        tracemalloc.start()
        try:
            peers.sync()
            assert tracemalloc.get_traced_memory()[1] < 30 * received, "of blocks, rows and states together"
        finally:
            tracemalloc.stop()
        assert len(note.value) == 1 + 8 * 4096
        index = note.value.index(SIBLINGS - 1)
        written = [note.edit("set", index, "Bread"), note.edit("insert", 100, ["Eggs"]), note.edit("move", 100, 0)]
        assert max(size_of(alice, stamp) for stamp in written) < 4 * SMALL, "with a path of up to a KiB"
        epoch(peers)
        for peer in peers.all:
            assert peer.party.item(note.id).value[0] == "Eggs"
            assert peer.party.item(note.id).value.count("Bread") == 1
        note.edit("delete", 0, len(note.value))
        peers.sync()
        assert [peer.party.item(note.id).value for peer in peers.all] == [[], []]
