"""`World` and `Side`: the items that all writers of a party know, and those that one side of a partition knows.

Of a flat object only the stamps of the current values at each key are kept: that is all the next mutation needs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple

from antiphon.core.ids import NONCE_SIZE, ItemId
from antiphon.core.keys import KeyPair
from antiphon.core.stamp import Stamp
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Entry, Kind
from antiphon.generate.item_edits import ARRAY, FILE, OBJECT, TEXT, THREAD, StateCopy, TrackedItem, act, join
from antiphon.generate.memory_feed import MemoryFeed
from antiphon.generate.mutation_parts import KEYS, Names, Parts, phrase
from antiphon.generate.report import PartyReport
from antiphon.model.access import EVERYONE, Access
from antiphon.model.message import Change, Genesis, Inception, wrap, write_change, write_genesis
from antiphon.model.model import Model
from antiphon.model.wire import plain_bytes, tags

SHARED_MAX = 60  # an item with more mutations is edited by one side only: copying its state costs too much
SHARED_EACH = 8  # one of so many items with a state may be edited by all sides of a partition
LINKS, VIEWS, CHILDREN = 0.03, 0.01, 0.3  # shares of the items
#: The models of a party's first items, so that small parties have all models. The very first may be the hot item.
_FIRST = (None, TEXT, OBJECT, ARRAY, THREAD, FILE)
_LINK, _VIEW = len(_FIRST), len(_FIRST) + 1
_WIDTH = len(KEYS)
_MUTATION = Kind.MUTATION
(_BODY,) = tags("Message")
#: The models of a hundred items. None is a flat object: only registers are written.
_MODELS = (None,) * 87 + (OBJECT,) * 4 + (TEXT,) * 3 + (ARRAY,) * 3 + (THREAD,) * 2 + (FILE,)


class NewItem(NamedTuple):
    """A new item: its id, its genesis message, and whether it is a link or a view."""

    id: bytes
    message: bytes
    link: bool
    view: bool


class World:
    """The items of a party that all writers know."""

    def __init__(
        self, party: bytes, parts: Parts, made: PartyReport, chance: random.Random, *, plain: bool = False
    ) -> None:
        self.party = party
        self.first: tuple[Model[Any] | None, ...] = () if plain else _FIRST
        self.models: tuple[Model[Any] | None, ...] = (None,) if plain else _MODELS
        self.parts = parts
        self.made = made
        self.chance = chance
        self.ids: list[bytes] = []
        self.plains: list[int] = []  # indexes of flat objects
        self.heads: dict[int, Names] = {}  # index and key → the stamps of the current values there
        self.tracked: dict[int, TrackedItem] = {}  # index → all other items
        self.guarded: dict[int, frozenset[bytes]] = {}  # index → identities that may write to it, besides owners
        self.people: list[bytes] = []  # identities that an access list may name
        self.latest: dict[bytes, Entry] = {}  # feed → its last block that other writers have seen

    def hear(self, entries: Iterable[Entry]) -> None:
        """Note that all writers have seen these blocks."""
        for entry in entries:
            known = self.latest.get(entry.feed)
            if known is None or entry.seq > known.seq:
                self.latest[entry.feed] = entry

    def genesis(self, log: MemoryFeed, lamport: int, model: str, version: int, known: list[bytes]) -> NewItem:
        """Make the genesis of a new item, whose parent or link ends are among the `known` items."""
        chance, nth = self.chance, len(self.ids)
        roll = chance.random()
        if nth in (_LINK, _VIEW):  # so that small parties have a link and a view
            roll = VIEWS if nth == _LINK else 0.0
        parent = known[int(chance.random() * len(known))] if known and chance.random() < CHILDREN else b""
        if roll < VIEWS:
            pair = KeyPair.from_seed(chance.randbytes(32))
            inception = Inception(pair.key, pair.sign(Inception.statement(self.party, log.feed)))
            item = ItemId.of_view(lamport, party=self.party, key=pair.key)
            message = write_genesis(Genesis(b"", model, version, parent, None, inception))
            return NewItem(bytes(item), message, False, True)
        link = None
        if known and roll < VIEWS + LINKS:
            link = (known[int(chance.random() * len(known))], known[int(chance.random() * len(known))])
        nonce = chance.randbytes(NONCE_SIZE)
        message = write_genesis(Genesis(nonce, model, version, parent, link))
        item = ItemId.derive(lamport, party=self.party, feed=log.feed, genesis=message)
        return NewItem(bytes(item), message, link is not None, False)


class Side:
    """One side of a partition. It has seen the world as it was when the partition began, and its own messages."""

    def __init__(self, world: World, nth: int = 0, count: int = 1, *, shared: int = 0) -> None:
        self.world = world
        self.view = dict(world.latest)
        self.base = len(world.ids)
        self._plains = len(world.plains)
        self._nth, self._count = nth, count  # the index of this side, and the number of sides
        self._shared = shared  # the residue of the indexes of items that all sides may edit
        self.new: list[int] = []
        self.over: dict[int, Names] = world.heads if count == 1 else {}
        self.copies: dict[int, StateCopy] = {}

    # -- what to write to

    def pick(self, draw: int) -> int:
        """Return an item that this side knows, for a random draw."""
        if draw < self.base:
            return draw
        if self.new and (not self.base or draw & 1):
            return self.new[draw % len(self.new)]
        return draw % self.base

    def sample(self) -> list[bytes]:
        """Return some items that this side knows, as parents or link ends of a new item."""
        ids, chance = self.world.ids, self.world.chance
        found = [ids[int(chance.random() * self.base)]] if self.base else []
        return found + [ids[index] for index in self.new[-2:]]

    # -- writing

    def create(self, log: MemoryFeed) -> int:
        """Write the genesis of a new item, and return its index."""
        world = self.world
        index = len(world.ids)
        first, models = world.first, world.models
        model = models[int(world.chance.random() * len(models))] if index >= len(first) else first[index]
        kind = model or OBJECT
        begun = world.genesis(log, log.next_lamport, kind.name, kind.version, self.sample())
        log.add(Kind.GENESIS, begun.id, begun.message)
        world.ids.append(begun.id)
        self.new.append(index)
        if model is None:
            world.plains.append(index)
        else:
            world.tracked[index] = TrackedItem(model)
        made = world.made
        made.items += 1
        made.models[kind.name] += 1
        made.kinds["genesis"] += 1
        made.links += begun.link
        made.views += begun.view
        return index

    def mutate(self, log: MemoryFeed, index: int, roll: int, now_ms: int) -> None:
        """Write a mutation of an item, made by its model."""
        work = self.world.tracked.get(index)
        if work is None:
            self.write(log, index, roll)
        elif self._count == 1 or index >= self.base:
            self._act(log, index, work.state, work, None, now_ms)
        elif index % SHARED_EACH == self._shared and work.count <= SHARED_MAX:
            copy = self.copies.get(index)
            if copy is None:
                copy = self.copies[index] = StateCopy(work)
            self._act(log, index, copy.state, work, copy, now_ms)
        elif (index // SHARED_EACH) % self._count == self._nth and index % SHARED_EACH != self._shared:
            self._act(log, index, work.state, work, None, now_ms)
        elif self._plains:
            other = self.world.plains[roll % self._plains]
            self.write(log, other if self.may(log, other) else 0, roll)
        else:
            self.describe(log, index)

    def write(self, log: MemoryFeed, index: int, roll: int) -> None:
        """Write a register of a flat object."""
        heads = self.world.heads
        key = (roll >> 10) % _WIDTH
        slot = index * _WIDTH + key
        over = self.over if index < self.base else heads
        names = over.get(slot)
        if names is None and over is not heads:
            names = heads.get(slot)
        feed, drafts = log.feed, log.drafts
        mutation = self.world.parts.write(key, (roll >> 30) & 255, names, feed)
        at = len(drafts)
        over[slot] = (log.lamport + at * log.step, feed, log.first + at)
        size = len(mutation)
        message = b"%b%c%b" % (_BODY.mutation, size, mutation) if size < 128 else wrap(_MUTATION, mutation)
        drafts.append(Draft(_MUTATION, self.world.ids[index], message))

    def _act(
        self, log: MemoryFeed, index: int, state: object, work: TrackedItem, copy: StateCopy | None, now_ms: int
    ) -> None:
        mutation = act(work.model, state, self.world.chance, log.feed, now_ms)
        stamp = Stamp(log.next_lamport, log.feed, log.next_seq)
        work.model.apply(state, mutation, stamp)
        if copy is None:
            work.count += 1
        else:
            copy.log.append((mutation, stamp))
        log.add(_MUTATION, self.world.ids[index], wrap(_MUTATION, mutation))

    def move(self, log: MemoryFeed, index: int) -> None:
        """Write a change to another parent, or to none."""
        item = self.world.ids[index]
        parents = [known for known in self.sample() if known != item]
        self._change(log, item, Change(parent=parents[-1] if parents else b""))

    def delete(self, log: MemoryFeed, index: int, roll: int) -> None:
        """Write a change that deletes an item, or restores it."""
        self._change(log, self.world.ids[index], Change(deleted=roll % 4 != 0))

    def _change(self, log: MemoryFeed, item: bytes, change: Change) -> None:
        log.add(Kind.CHANGE, item, write_change(change))
        self.world.made.kinds["change"] += 1

    def guard(self, log: MemoryFeed, index: int) -> None:
        """Write an access list for an item that only its creator knows: it, owners and some others may write."""
        world = self.world
        named = frozenset(person for person in world.people if world.chance.random() < 0.5 and person != log.identity)
        cuts = ((log.feed, log.next_seq),)
        self._change(log, world.ids[index], Change(access=Access(tuple(sorted(named)), (EVERYONE,), cuts)))
        world.guarded[index] = named
        world.made.guarded += 1

    def may(self, log: MemoryFeed, index: int) -> bool:
        """True if an item has no access list, or its list lets this writer write to it."""
        named = self.world.guarded.get(index)
        return named is None or log.owner or log.identity in named

    def describe(self, log: MemoryFeed, index: int) -> None:
        """Write a name into an item's metadata."""
        named = plain_bytes("name", phrase(self.world.chance), None)
        log.add(Kind.METADATA, self.world.ids[index], wrap(Kind.METADATA, named))
        self.world.made.kinds["metadata"] += 1


def merge_sides(world: World, sides: list[Side]) -> None:
    """End a partition: merge the sides into the world, so that all writers have seen all of their messages."""
    for side in sides:
        world.hear(side.view.values())
    if len(sides) == 1:
        return
    merged: dict[int, Names] = {}
    copies: dict[int, list[StateCopy]] = {}
    for side in sides:
        for slot, name in side.over.items():
            known = merged.get(slot)
            if known is None:
                merged[slot] = name
            else:
                merged[slot] = [*(known if isinstance(known, list) else [known]), name]  # type: ignore[list-item]
        for index, copy in side.copies.items():
            copies.setdefault(index, []).append(copy)
    world.heads.update(merged)
    for index, made in copies.items():
        join(world.tracked[index], made)
