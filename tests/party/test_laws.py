"""Laws 1 and 2 on whole peers: any causal delivery, any split, a restart at any point, one state, byte for byte."""

from __future__ import annotations

import os
import random
import tempfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.model.factory import ModelFactory
from antiphon.model.interface import Feeding, InvalidMutation, Model
from antiphon.testing.peers import Peer, Peers

EXAMPLES = 400 if os.environ.get("ANTIPHON_SOAK") == "1" else 40


class Moves(Model[list[int]]):
    """ORDERED, with a snapshot: a move must be one above the last, so that what counts depends on the order."""

    name = "test/moves"
    feeding = Feeding.ORDERED

    def initial(self) -> list[int]:
        return []

    def apply(self, state: list[int], mutation: bytes, stamp: Any, *, void: bool = False) -> None:
        if len(mutation) != 1 or mutation[0] != len(state) % 3:
            raise InvalidMutation(f"after {len(state)} moves this one is not allowed")
        if not void:
            state.append(mutation[0] + 10 * (stamp.seq % 10))

    def snapshot(self, state: list[int]) -> bytes:
        return bytes(state)

    def restore(self, data: bytes) -> list[int]:
        return list(data)

    def value(self, state: list[int]) -> list[int]:
        return list(state)

    def rehearse(self, state: list[int], chance: random.Random, feed: bytes) -> bytes:
        return bytes([len(state) % 3])


class Jottings(Model[dict[int, bytes]]):
    """COMMUTATIVE, without a snapshot: the list of its messages is kept."""

    name = "test/jottings"

    def initial(self) -> dict[int, bytes]:
        return {}

    def apply(self, state: dict[int, bytes], mutation: bytes, stamp: Any, *, void: bool = False) -> None:
        if not void:
            key = hash((stamp.lamport, stamp.seq, mutation))
            state[key] = mutation

    def value(self, state: dict[int, bytes]) -> list[bytes]:
        return sorted(state.values())

    def rehearse(self, state: dict[int, bytes], chance: random.Random, feed: bytes) -> bytes:
        return chance.randbytes(3)


MODELS = ("antiphon/object", "antiphon/array", "antiphon/text", "antiphon/messenger", "test/moves", "test/jottings")


def models() -> ModelFactory:
    factory = ModelFactory.standard()
    factory.register(Moves)
    factory.register(Jottings)
    return factory


def act(peer: Peer, chance: random.Random) -> None:
    """Something that a user might do: create, edit, edit several at once, delete, move, describe, restart."""
    party, items = peer.party, peer.party.items()
    what = chance.randrange(12) if items else 0
    if what <= 1:
        parent = chance.choice(items) if items and chance.random() < 0.5 else None
        party.create(chance.choice(MODELS), parent=parent)
    elif what <= 7:
        edit(peer, chance.choice(items), chance)
    elif what == 8:
        with party.batch():
            for _ in range(chance.randrange(1, 4)):
                edit(peer, chance.choice(items), chance)
    elif what == 9:
        item = party.item(chance.choice(items))
        if chance.random() < 0.5:
            item.describe("name", chance.randrange(9))
        elif item.deleted:
            item.restore()
        else:
            item.delete()
    elif what == 10 and len(items) > 1:
        child, parent_id = chance.sample(items, 2)
        party.item(child).move(parent_id)
    else:
        peer.restart(crash=chance.random() < 0.5)


def edit(peer: Peer, item_id: bytes, chance: random.Random) -> None:
    item = peer.party.item(item_id)
    with peer.party.batch() as batch:

        def make(model: Model[Any], state: Any) -> bytes:
            mutation = model.rehearse(state, chance, batch.feed)
            return model.in_batch(state, mutation, batch.feed, batch.lamport)

        item.mutate(item.read(make))


def some_ranges(giver: Peer, taker: Peer, chance: random.Random) -> None:
    """Part of what the other lacks, cut anywhere that a feed can be cut, feeds in any order."""
    ranges = giver.ranges(taker.lengths())
    chance.shuffle(ranges)
    taker.take(ranges[: chance.randrange(len(ranges) + 1)])


def check_histories(folder: str, seed: int, *, authority: bool, steps: int) -> None:
    chance = random.Random(seed)
    with Peers(folder, authority=authority, models=models()) as peers:
        names = ("alice", "bob", "carol")
        for name in names:
            peers.add(name)
        for _ in range(steps):
            peer, other = chance.sample(peers.all, 2)
            if chance.random() < 0.3:
                some_ranges(other, peer, chance)
            else:
                act(peer, chance)
        peers.exchange()
        alice, bob, carol = peers.all
        wanted = alice.snapshots()
        values = {item: alice.party.item(item).value for item in wanted}
        refused = alice.party.refused()
        assert bob.snapshots() == wanted
        carol.rebuild()  # from the feeds alone
        assert carol.snapshots() == wanted
        bob.restart(crash=True)
        assert bob.snapshots() == wanted
        assert {item: bob.party.item(item).value for item in wanted} == values
        assert bob.party.refused() == refused == carol.party.refused()
        assert not bob.party.status().blocked


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 1 << 32), authority=st.booleans())
def test_any_delivery_any_split_any_restart_gives_the_same_bytes(seed: int, authority: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_histories(folder, seed, authority=authority, steps=40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_longer_histories_too(tmp_path: Any, seed: int) -> None:
    check_histories(str(tmp_path), seed, authority=True, steps=250)
