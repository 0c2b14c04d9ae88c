"""`Workload`: the edits of a run, with all models, singly and in batches. A write carries a unique token if it can."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from typing import Any

from antiphon.core.errors import (
    AntiphonError,
    InvalidInput,
    MissingBlob,
    MissingBlocks,
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
STAYING = frozenset({"antiphon/array", "antiphon/messenger"})  # models in which a write never replaces another's
_TOKEN = re.compile(r"<\w+ \d+>")
_ITEMS_NEW = 4  # a write makes a new item with the probability of this over the number of items
_TRIES = 4


@dataclass(slots=True)
class Written:
    """An acknowledged write, with the token that it put into an item."""

    peer: str
    stamp: Stamp
    item: bytes
    token: str = ""
    stays: bool = False  # the token shows in the item until it is removed: it was posted or appended

    @property
    def place(self) -> Position:
        return Position(bytes(self.stamp.feed), self.stamp.seq)


@dataclass(slots=True)
class Workload:
    """The writes of a run."""

    models: tuple[str, ...] = MODELS  # of new items
    odd: float = 0.05  # the share of writes that delete, and the share of those that move
    batches: float = 0.3  # the share of longer acts that are one batch
    sure: bool = False  # try nothing in a batch that may be refused, because the whole batch would be
    stay: int = 1  # number of consecutive edits of one item, as of a user who types or pastes
    written: list[Written] = field(default_factory=list)
    items: list[bytes] = field(default_factory=list)  # created, or begun to be created
    erased: set[Position] = field(default_factory=set)
    opened: dict[bytes, int] = field(default_factory=dict)  # blocks of the genesis feed that its writer knew
    refused: list[AntiphonError] = field(default_factory=list)
    makers: dict[bytes, str] = field(default_factory=dict)  # the creator of each item
    deleted: set[bytes] = field(default_factory=set)  # items that were deleted, also if restored since
    taken_away: set[str] = field(default_factory=set)  # tokens that were overwritten or removed
    _tokens: int = 0
    _stays: list[Item] = field(default_factory=list)  # the items of the next edits (`stay`)

    def write(self, peer: SimPeer, count: int, seed: int) -> int:
        """Make `count` edits as one peer. Return the number of acknowledged messages."""
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
            self.refused.append(error)  # not admitted, no longer admitted, or without the blobs of the item
        except MissingBlocks as error:
            with peer.party.locked() as engine:
                own = engine.delivery.blocked_at(peer.member.open_data_feed().feed)
            if own is None or own.waits_for is None:
                raise
            self.refused.append(error)  # own blocks wait until the branch that they have seen is shown again
        except StoreError:
            if not peer.disk.full:
                raise
        return len(self.written) - before

    def _batch(self, peer: SimPeer, count: int, chance: random.Random) -> None:
        """Write a batch. It is acknowledged as a whole, when the context exits."""
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
            self.opened[feed] = peer.member.machine.delivered(bytes(peer.genesis_feed))
        written.append(Written(peer.name, stamp, item.id, token if used else "", used and item.model[0] in STAYING))

    def _choose(self, peer: SimPeer, chance: random.Random) -> Item:
        """An item for the next edit: the one of the last edits, a known one, or sometimes a new one."""
        if not self._stays:
            self._stays += [self._find(peer, chance)] * self.stay
        return self._stays.pop()

    def _find(self, peer: SimPeer, chance: random.Random) -> Item:
        if self.items and chance.random() > _ITEMS_NEW / len(self.items):
            for _ in range(_TRIES):
                try:
                    return peer.party.item(chance.choice(self.items))
                except UnknownItem:  # this peer has not received it
                    continue
        item = peer.party.create(chance.choice(self.models))
        self.items.append(item.id)
        self.makers[item.id] = peer.name
        return item

    def _change(self, item: Item, peer: SimPeer, token: str, chance: random.Random) -> tuple[Stamp, bool]:
        """Write one message to an item. Return its stamp, and True if it carries the token."""
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
        """Write a mutation that the model itself proposes (`rehearse`). It may remove tokens."""
        if item.model[0] not in STAYING:
            return _rehearsed(item, peer, chance)
        before = set(_TOKEN.findall(repr(item.value))) - self.taken_away
        self.taken_away |= before  # before the call: the peer may crash right after it has written the mutation
        stamp = _rehearsed(item, peer, chance)
        self.taken_away -= before.intersection(_TOKEN.findall(repr(item.value)))
        return stamp


def _rehearsed(item: Item, peer: SimPeer, chance: random.Random) -> Stamp:
    feed = bytes(peer.party.authority.writer().feed)  # as an edit does: it raises if this device may not write

    def think(model: Model[Any], state: Any) -> bytes:
        return model.rehearse(state, chance, feed)

    try:
        return item.mutate(item.read(think))
    except AntiphonError:
        return item.set_metadata("note", chance.randrange(100))
