"""Random histories of objects, most of their messages plain, and the chunks and plans that they come in."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from antiphon.core.errors import InvalidMutation
from antiphon.core.ids import NONCE_SIZE, ItemId
from antiphon.core.keys import KeyPair
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.model.access import EVERYONE, Access
from antiphon.model.factory import ModelFactory
from antiphon.model.message import Change, Genesis, Inception, Note, wrap, write_change, write_genesis
from antiphon.model.object.model import ObjectModel
from antiphon.model.object.mutation_codec import write_mutation
from antiphon.model.object.state import Op
from antiphon.party.engine.ports import Void
from antiphon.pipeline.fold.item_fold import ItemFold
from antiphon.pipeline.plan.party_plan import LanePlan, PartyPlan

OBJECT, MODELS = ObjectModel(), ModelFactory.standard()
FEEDS = sorted(bytes([number]) * 8 + bytes(23) + bytes([number]) for number in (1, 9, 9 << 4))
PARTY = b"p" * 32
TEXTS = ("x", "", "δέλτα", "a" * 126, "b" * 127, "c" * 128, "long " * 40, "z" * 20_000)
KEYS = ("title", "k", "", "κλειδί", "sixteen bytes id", "seventeen bytes a")

Message = tuple[int, bytes, Note]  # lane, item, note


class History:
    """Messages of three writers to a few objects, most of them plain, some of them anything but."""

    def __init__(self, chance: random.Random, wild: float) -> None:
        self.chance = chance
        self.wild = wild
        self.lamport = 1
        self.seqs = [0] * len(FEEDS)
        self.messages: list[Message] = []
        self.items: list[bytes] = []
        self.states: dict[tuple[int, bytes], Any] = {}

    def add(self, lane: int, kind: Kind, item: bytes, message: bytes | None) -> Stamp:
        if self.messages and self.messages[-1][0] != lane and self.chance.random() >= self.wild / 4:
            self.lamport = max(note.lamport for _, _, note in self.messages) + 1
        note = Note(kind, self.lamport, FEEDS[lane], self.seqs[lane], 1_000 + self.lamport, message)
        self.messages.append((lane, item, note))
        self.seqs[lane] += 1
        self.lamport += self.chance.random() < 0.9  # else a batch, or somebody names what they cannot have seen
        return note.stamp

    def write(self) -> list[Message]:
        for _ in range(self.chance.randrange(2, 5)):
            self.create()
        for _ in range(self.chance.randrange(120)):
            self.step()
        return self.messages

    def create(self) -> None:
        lane, nonce = self.chance.randrange(len(FEEDS)), self.chance.randbytes(NONCE_SIZE)
        model = "antiphon/text" if self.chance.random() < 0.1 * self.wild else OBJECT.name
        message = write_genesis(Genesis(nonce, model, 1))
        item = bytes(ItemId.derive(self.lamport, party=PARTY, feed=FEEDS[lane], genesis=message))
        if self.chance.random() < 0.1:
            pair = KeyPair.from_seed(self.chance.randbytes(32))
            item = bytes(ItemId.of_view(self.lamport, party=PARTY, key=pair.key))
            view = Inception(pair.key, pair.sign(Inception.statement(PARTY, FEEDS[lane])))
            self.add(lane, Kind.GENESIS, item, write_genesis(Genesis(b"", model, 1, view=view)))
        elif self.chance.random() < 0.2 * self.wild:
            self.add(lane, Kind.MUTATION, item, wrap(Kind.MUTATION, OBJECT.set(OBJECT.initial(), "early", 1)))
        else:
            self.add(lane, Kind.GENESIS, item, message)
        self.items.append(item)
        for side in range(2):
            self.states[side, item] = OBJECT.initial()

    def step(self) -> None:
        chance = self.chance
        lane, item = chance.randrange(len(FEEDS)), chance.choice(self.items)
        roll = chance.random()
        if roll < 0.8:
            self.plain(lane, item)
        elif roll < 0.9:
            self.add(lane, Kind.CHANGE, item, write_change(self.change(item)))
        elif roll < 0.95:
            named = OBJECT.set(OBJECT.initial(), "name", chance.choice(TEXTS))
            self.add(lane, Kind.METADATA, item, wrap(Kind.METADATA, named))
        elif chance.random() < self.wild:
            self.odd(lane, item)
        elif chance.random() < self.wild:
            self.add(lane, Kind.CHANGE, item, self.guard(lane, item))

    def change(self, item: bytes) -> Change:
        """It is deleted or restored, moved, once or often, or forked."""
        roll = self.chance.random()
        if roll < 0.4:
            return Change(deleted=self.chance.random() < 0.5)
        if roll < 0.45:
            return Change(forked_to=self.chance.choice(self.items))
        parents = [b"", *(other for other in self.items if other != item)]
        for _ in range(self.chance.choice((0, 0, 0, 20))):
            moved = write_change(Change(parent=self.chance.choice(parents)))
            self.add(self.chance.randrange(len(FEEDS)), Kind.CHANGE, item, moved)
        return Change(parent=self.chance.choice(parents))

    def plain(self, lane: int, item: bytes) -> None:
        """A write, as a writer makes it who has heard of one side; the other side may hear of it later, or never."""
        chance, side = self.chance, self.chance.randrange(2)
        state, key = self.states[side, item], self.chance.choice(KEYS[: 3 + round(3 * self.wild)])
        value: Any = chance.choice((chance.choice(TEXTS[:5]), chance.randrange(-70_000, 1 << 40), chance.randrange(9)))
        mutation = OBJECT.set(state, key, value, feed=FEEDS[lane])
        stamp = self.add(lane, Kind.MUTATION, item, wrap(Kind.MUTATION, mutation))
        for other in range(2):
            if other == side or chance.random() < 0.8:
                with suppress(InvalidMutation):
                    OBJECT.apply(self.states[other, item], mutation, stamp)

    def odd(self, lane: int, item: bytes) -> None:
        chance = self.chance
        message: bytes | None = chance.choice((self.other, self.lie, self.broken, self.form, self.guard))(lane, item)
        if chance.random() < 0.1:
            message = None
        kind = Kind.CHANGE if message is not None and message[:1] == b"\x1a" else Kind.MUTATION
        self.add(lane, chance.choice((kind, kind, kind, Kind.CREDENTIAL, Kind.GENESIS)), item, message)

    def other(self, lane: int, item: bytes) -> bytes:
        return wrap(Kind.MUTATION, OBJECT.rehearse(self.states[0, item], self.chance, FEEDS[lane]))

    def lie(self, lane: int, item: bytes) -> bytes:
        """It names what is not here, or not yet, or not at this key."""
        chance = self.chance
        feed = chance.choice((*FEEDS, b"f" * 32))
        names = [Stamp(chance.randrange(self.lamport + 2), feed, chance.randrange(20)) for _ in range(3)]
        names += [note.stamp for _, _, note in chance.sample(self.messages, 1)]
        op = Op((chance.choice(KEYS),), chance.choice(TEXTS), chance.sample(names, chance.randrange(1, 5)))
        return wrap(Kind.MUTATION, write_mutation([op], FEEDS[lane]))

    def broken(self, lane: int, item: bytes) -> bytes:
        known = [note.message for _, _, note in self.messages if note.message]
        data = bytearray(self.chance.choice(known))
        for _ in range(self.chance.randrange(1, 3)):
            data[self.chance.randrange(len(data))] = self.chance.choice((0, 1, 0x12, 0x22, 0x80, 0xFF, len(data) % 256))
        return bytes(data[: self.chance.choice((None, -1, 3))])

    def form(self, lane: int, item: bytes) -> bytes:
        """The same in another form: values of other kinds, fields that are not known, numbers written long."""
        chance = self.chance
        value: Any = chance.choice((None, True, 0.5, b"\xff", [1], -(1 << 62), (1 << 62), 1 << 34))
        plain = OBJECT.set(OBJECT.initial(), "k", value)
        extra = chance.choice((b"", b"\x0a\x20" + FEEDS[0], b"\xf8\x01\x00"))
        return b"\x22" + bytes([len(plain + extra) | 0x80, 0]) + extra + plain

    def guard(self, lane: int, item: bytes) -> bytes:
        cuts = tuple((feed, self.chance.randrange(20)) for feed in FEEDS)
        return write_change(Change(access=Access((FEEDS[0],), (EVERYONE,), cuts)))


def rows_of(messages: Sequence[Message], chance: random.Random) -> Iterator[tuple[Any, ...]]:
    """Shuffle chunks: the messages of each lane, in a few pieces, and these in any order."""
    found = []
    for lane in range(len(FEEDS)):
        mine = [(item, note) for where, item, note in messages if where == lane]
        at = 0
        while at < len(mine):
            stop = at + chance.randrange(1, 60)
            some = mine[at:stop]
            numbers = [np.array([getattr(note, name) for _, note in some]) for name in ("lamport", "seq", "created_ms")]
            sizes = np.array([-1 if note.message is None else len(note.message) for _, note in some], dtype=np.int32)
            kinds, bodies = bytes(note.kind for _, note in some), b"".join(note.message or b"" for _, note in some)
            ids = b"".join(item for item, _ in some)
            found.append((0, lane, ids, *(column.tobytes() for column in numbers), kinds, sizes.tobytes(), bodies))
            at = stop
    chance.shuffle(found)
    return iter(found)


def plan_of(messages: Sequence[Message], chance: random.Random, wild: float) -> PartyPlan:
    lanes = []
    for number, feed in enumerate(FEEDS):
        length = sum(lane == number for lane, _, _ in messages)
        voids = (Void(length // 2, length, "it was revoked"),) if chance.random() < wild / 4 else ()
        lanes.append(LanePlan(feed, 0, 0, length, 1 << 62, length, voids))
    return PartyPlan("home", PARTY, tuple(lanes), {}, {})


def fold_whole(messages: Sequence[Message], plan: PartyPlan) -> list[tuple[Any, ...]]:
    """What the stages do, message by message."""
    groups: dict[bytes, list[Note]] = {}
    for lane, item, note in sorted(messages, key=lambda message: message[2].stamp):
        reason = next((void.reason for void in plan.lanes[lane].voids if void.start <= note.seq < void.stop), "")
        if note.kind == Kind.CREDENTIAL and not reason:
            reason = "a data feed holds item messages only [rights.item-messages-only]"
        groups.setdefault(item, []).append(note._replace(void=reason))
    folding = ItemFold({PARTY: plan}, MODELS)
    return sorted((row for item, notes in groups.items() for row in folding.fold(PARTY, item, None, notes)), key=repr)
