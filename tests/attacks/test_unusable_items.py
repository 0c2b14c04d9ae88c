"""Attack 10: an editor makes an item unusable, with writes that cost others far more than they weigh (rule 28)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.party.epochs.epoch_acts import epoch

from antiphon.core.stamp import Stamp
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.model.message import wrap
from antiphon.model.object.mutation_codec import write_mutation
from antiphon.model.object.state import Op
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
