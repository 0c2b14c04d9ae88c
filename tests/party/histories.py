"""Random histories on whole peers: models of all kinds, what a user might do, and how little of it may arrive."""

from __future__ import annotations

import random
from typing import Any

from antiphon.model.factory import ModelFactory
from antiphon.model.model import Feeding, InvalidMutation, Model
from antiphon.testing.peers import Peer


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
            item.set_metadata("name", chance.randrange(9))
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
