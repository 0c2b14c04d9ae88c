"""What people do in a simulation: with all models, alone and in batches. Each write that can carry a token does."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from typing import Any

from antiphon.core.errors import (
    AntiphonError,
    InvalidInput,
    MissingBlob,
    NotAuthorised,
    StoreError,
    UnknownItem,
    UnknownKey,
)
from antiphon.core.stamp import Stamp
from antiphon.halo.credentials.claims import Position
from antiphon.model.model import Model
from antiphon.party.live.item import Item
from antiphon.sim.peer import SimPeer

MODELS = ("antiphon/object", "antiphon/array", "antiphon/text", "antiphon/messenger", "antiphon/file")
MOSTLY_OBJECTS = (*MODELS, *["antiphon/object"] * 16)
STAYING = frozenset({"antiphon/array", "antiphon/messenger"})  # models in which nobody's word displaces another's
_TOKEN = re.compile(r"<\w+ \d+>")
_ITEMS_NEW = 4  # of so many items, each write makes a new one; of ten times as many, each tenth
_TRIES = 4


@dataclass(slots=True)
class Written:
    """A write that was acknowledged, and what it put into an item."""

    peer: str
    stamp: Stamp
    item: bytes
    token: str = ""
    stays: bool = False  # the token shows in the item until somebody takes it away: it is a post, or was appended

    @property
    def place(self) -> Position:
        return Position(bytes(self.stamp.feed), self.stamp.seq)


@dataclass(slots=True)
class Workload:
    """The writes of a run."""

    models: tuple[str, ...] = MODELS  # of new items
    odd: float = 0.05  # the share of writes that delete, and of those that move
    batches: float = 0.3  # the share of longer acts that are one batch
    sure: bool = False  # in a batch nothing is tried that may be refused: all of it would be
    stay: int = 1  # so many edits in a row go to one item: who types or pastes stays there
    written: list[Written] = field(default_factory=list)
    items: list[bytes] = field(default_factory=list)  # that were ever made, or begun
    erased: set[Position] = field(default_factory=set)
    opened: dict[bytes, int] = field(default_factory=dict)  # how much of the genesis feed each feed's writer had then
    refused: list[AntiphonError] = field(default_factory=list)
    makers: dict[bytes, str] = field(default_factory=dict)  # who has made each item
    deleted: set[bytes] = field(default_factory=set)  # items that somebody has deleted, be it for a while
    taken_away: set[str] = field(default_factory=set)  # tokens that somebody has overwritten or removed
    _tokens: int = 0
    _stays: list[Item] = field(default_factory=list)  # for each edit that is still to go to the item of the last one

    def write(self, peer: SimPeer, count: int, seed: int) -> int:
        """Some edits by one peer; returns how many messages were acknowledged."""
        chance = random.Random(seed)  # noqa: S311
        before = len(self.written)
        self._stays.clear()
        try:
            if count > 2 and chance.random() < self.batches:
                self._batch(peer, count, chance)
            else:
                for _ in range(count):
                    self._edit(peer, chance, self.written)
        except (NotAuthorised, InvalidInput, UnknownItem, UnknownKey, MissingBlob) as error:
            self.refused.append(error)  # who is not admitted, or not any more, or lacks the item's blobs, is told so
        except StoreError:
            if not peer.disk.full:
                raise
        return len(self.written) - before

    def _batch(self, peer: SimPeer, count: int, chance: random.Random) -> None:
        """All or nothing, so it is acknowledged when it is left."""
        made: list[Written] = []
        with peer.party.batch():
            for _ in range(count):
                self._edit(peer, chance, made)
        self.written += made

    def _edit(self, peer: SimPeer, chance: random.Random, written: list[Written]) -> None:
        item = self._choose(peer, chance)
        token = f"<{peer.name} {self._tokens}>"
        self._tokens += 1
        stamp, used = self._change(item, peer, token, chance)
        feed = bytes(stamp.feed)
        if feed not in self.opened:
            self.opened[feed] = peer.store.record(peer.genesis_feed).length
        written.append(Written(peer.name, stamp, item.id, token if used else "", used and item.model[0] in STAYING))

    def _choose(self, peer: SimPeer, chance: random.Random) -> Item:
        """An item that is here, or now and then a new one; the more there are, the less often."""
        if not self._stays:
            self._stays += [self._find(peer, chance)] * self.stay
        return self._stays.pop()

    def _find(self, peer: SimPeer, chance: random.Random) -> Item:
        if self.items and chance.random() > _ITEMS_NEW / len(self.items):
            for _ in range(_TRIES):
                try:
                    return peer.party.item(chance.choice(self.items))
                except UnknownItem:  # it has not come yet
                    continue
        item = peer.party.create(chance.choice(self.models))
        self.items.append(item.id)
        self.makers[item.id] = peer.name
        return item

    def _change(self, item: Item, peer: SimPeer, token: str, chance: random.Random) -> tuple[Stamp, bool]:
        """One message to an item; whether it carries the token."""
        name, drawn = item.model[0], chance.random()
        if drawn < self.odd:
            self.deleted.add(item.id)
            return (item.restore() if item.deleted else item.delete()), False
        if drawn < 2 * self.odd:
            parent = chance.choice(self.items)
            return item.move(parent if parent != item.id else None), False
        if drawn < 2 * self.odd + 0.2 and not (self.sure and peer.party.open_batch()):
            return self._rehearsed(item, peer, chance), False
        if name == "antiphon/object":
            return item.edit("set", f"key {chance.randrange(4)}", token), True
        if name == "antiphon/array":
            return item.edit("append", token), True
        if name == "antiphon/text":
            return item.edit("insert", chance.randint(0, len(str(item.value))), token), True
        if name == "antiphon/messenger":
            return item.edit("post", token), True
        if name == "antiphon/file":
            return item.edit("rename", token), True
        return self._rehearsed(item, peer, chance), False

    def _rehearsed(self, item: Item, peer: SimPeer, chance: random.Random) -> Stamp:
        """Something that the model itself thinks of. It may take away what was there."""
        if item.model[0] not in STAYING:
            return _rehearsed(item, peer, chance)
        before = set(_TOKEN.findall(repr(item.value)))
        stamp = _rehearsed(item, peer, chance)
        self.taken_away |= before.difference(_TOKEN.findall(repr(item.value)))
        return stamp


def _rehearsed(item: Item, peer: SimPeer, chance: random.Random) -> Stamp:
    feed = bytes(peer.member.open_data_feed().feed)

    def think(model: Model[Any], state: Any) -> bytes:
        return model.rehearse(state, chance, feed)

    try:
        return item.mutate(item.read(think))
    except AntiphonError:
        return item.set_metadata("note", chance.randrange(100))
