"""The fold on columns comes to what `fold` comes to, whatever the messages are: bytes, verdicts and counts."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from antiphon.core.errors import InvalidMutation
from antiphon.core.ids import NONCE_SIZE, ItemId
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.model.access import EVERYONE, Access
from antiphon.model.envelope import Change, Genesis, Note, wrap, write_change, write_genesis
from antiphon.model.factory import ModelFactory
from antiphon.model.itemcodec import restore
from antiphon.model.object import ObjectModel
from antiphon.model.objectcodec import write_mutation
from antiphon.model.objectstate import Op
from antiphon.party.ports import Void
from antiphon.pipeline.bulk import fold_ordered
from antiphon.pipeline.items import Folding
from antiphon.pipeline.ordered import Ordered
from antiphon.pipeline.plan import LanePlan, PartyPlan
from antiphon.pipeline.registers import Lanes, Registers

SEEDS = 400 if os.environ.get("ANTIPHON_SOAK") else 30
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
        item = bytes(ItemId.derive(self.lamport, party=PARTY, feed=FEEDS[lane], nonce=nonce))
        model = "antiphon/text" if self.chance.random() < 0.1 * self.wild else OBJECT.name
        if self.chance.random() < 0.2 * self.wild:
            self.add(lane, Kind.MUTATION, item, wrap(Kind.MUTATION, OBJECT.set(OBJECT.initial(), "early", 1)))
        else:
            self.add(lane, Kind.GENESIS, item, write_genesis(Genesis(nonce, model, 1)))
        self.items.append(item)
        for side in range(2):
            self.states[side, item] = OBJECT.initial()

    def step(self) -> None:
        chance = self.chance
        lane, item = chance.randrange(len(FEEDS)), chance.choice(self.items)
        roll = chance.random()
        if roll < 0.85:
            self.plain(lane, item)
        elif roll < 0.9:
            message = write_change(Change(deleted=chance.random() < 0.5))
            self.add(lane, Kind.CHANGE, item, message)
        elif roll < 0.95:
            named = OBJECT.set(OBJECT.initial(), "name", chance.choice(TEXTS))
            self.add(lane, Kind.METADATA, item, wrap(Kind.METADATA, named))
        elif chance.random() < self.wild:
            self.odd(lane, item)

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
    """Parcels: the messages of each lane, in a few pieces, and these in any order."""
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
            reason = "a data feed holds item messages only"
        groups.setdefault(item, []).append(note._replace(void=reason))
    folding = Folding({PARTY: plan}, MODELS)
    return sorted((row for item, notes in groups.items() for row in folding.fold(PARTY, item, None, notes)), key=repr)


@pytest.mark.parametrize("wild", [0.0, 0.1, 0.5])
def test_partitions_are_folded_as_messages_one_by_one_are(wild: float) -> None:
    taken = 0
    for seed in range(SEEDS):
        chance = random.Random(f"{seed} {wild}")
        messages = History(chance, wild).write()
        plan = plan_of(messages, chance, wild)
        ordered = Ordered.of(rows_of(messages, chance), [plan])
        assert ordered is not None
        taken += int(Registers(ordered, Lanes.of([plan])).plain.sum())
        found = sorted(fold_ordered(Folding({PARTY: plan}, MODELS), ordered), key=repr)

        assert found == fold_whole(messages, plan), seed
    assert taken > SEEDS // 4, "next to nothing was folded on columns"


def test_an_object_of_plain_writes_is_folded_on_columns() -> None:
    chance = random.Random(7)
    messages = History(chance, 0.0).write()
    plan = plan_of(messages, chance, 0.0)
    ordered = Ordered.of(rows_of(messages, chance), [plan])

    assert ordered is not None
    assert Registers(ordered, Lanes.of([plan])).plain.all()


def test_items_whose_numbers_meet_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.pipeline.ordered.mixed", lambda items, party: np.zeros(len(items), dtype=np.uint64))
    chance = random.Random(3)
    messages = History(chance, 1.0).write()
    plan = plan_of(messages, chance, 1.0)
    ordered = Ordered.of(rows_of(messages, chance), [plan])

    assert ordered is not None
    found = sorted(fold_ordered(Folding({PARTY: plan}, MODELS), ordered), key=repr)
    assert found == fold_whole(messages, plan)


def parcels_of(feeds: Sequence[bytes], notes: Sequence[tuple[bytes, Note]]) -> list[tuple[Any, ...]]:
    """Parcels, one for each feed."""
    rows = []
    for lane, feed in enumerate(feeds):
        mine = [(item, note) for item, note in notes if note.feed == feed]
        numbers = [np.array([getattr(note, name) for _, note in mine]) for name in ("lamport", "seq", "created_ms")]
        bodies = [note.message or b"" for _, note in mine]
        sizes = np.array([len(body) for body in bodies], dtype=np.int32).tobytes()
        kinds, ids = bytes(note.kind for _, note in mine), b"".join(item for item, _ in mine)
        rows.append((0, lane, ids, *(column.tobytes() for column in numbers), kinds, sizes, b"".join(bodies)))
    return rows


def both(feeds: Sequence[bytes], notes: Sequence[tuple[bytes, Note]]) -> tuple[Any, Any, bool]:
    """What columns come to, what `fold` comes to, and whether it was columns that did it."""
    plan = PartyPlan("home", PARTY, tuple(LanePlan(feed, 0, 0, 99, 1 << 62, 99) for feed in feeds), {}, {})
    ordered = Ordered.of(parcels_of(feeds, notes), [plan])
    assert ordered is not None
    folding, plain = Folding({PARTY: plan}, MODELS), Registers(ordered, Lanes.of([plan])).plain.all()
    (found,) = fold_ordered(folding, ordered)
    (_, item), _, messages = next(ordered.groups())
    (expected,) = folding.fold(PARTY, item, None, messages)
    return found, expected, bool(plain)


def genesis_of(feed: bytes, lamport: int = 1) -> tuple[bytes, Note]:
    item = bytes(ItemId.derive(lamport, party=PARTY, feed=feed, nonce=b"n" * NONCE_SIZE))
    return item, Note(Kind.GENESIS, lamport, feed, 0, 5, write_genesis(Genesis(b"n" * NONCE_SIZE, OBJECT.name, 1)))


def test_an_object_of_hundreds_of_writers_has_the_bytes_of_its_model() -> None:
    """Their places in the table take two bytes, as do sizes of registers; stamps are of all sizes, and 0."""
    feeds = sorted(number.to_bytes(32, "big") for number in range(1, 300))
    item, genesis = genesis_of(feeds[0])
    notes = [(item, genesis)]
    for number, feed in enumerate(feeds):
        for seq in range(1 if number == 0 else 0, 2):
            lamport = 2 + (number << (number % 50)) + seq
            mutation = OBJECT.set(
                OBJECT.initial(), "kk\0"[: number % 4], (number << 20) - 7 if number % 2 else "t" * number
            )
            notes.append(
                (item, Note(Kind.MUTATION, lamport, feed, seq << (number % 38), 5, wrap(Kind.MUTATION, mutation)))
            )
    found, expected, plain = both(feeds, notes)

    assert plain
    assert found == expected


def test_a_write_in_the_batch_that_makes_the_item_is_folded_on_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the lamport of the genesis. Hot items often begin so, and were folded message by message."""
    item, genesis = genesis_of(FEEDS[0])
    mutation = wrap(Kind.MUTATION, OBJECT.set(OBJECT.initial(), "title", "x"))
    notes = [(item, genesis), (item, Note(Kind.MUTATION, 1, FEEDS[0], 1, 5, mutation))]
    monkeypatch.setattr(Ordered, "group", None)  # by which whole items go to `fold`
    plan = plan_of([(0, item, note) for item, note in notes], random.Random(1), 0.0)
    ordered = Ordered.of(parcels_of(FEEDS[:1], notes), [plan])
    assert ordered is not None

    (row,) = fold_ordered(Folding({PARTY: plan}, MODELS), ordered)
    assert restore(row[8], MODELS).value == {"title": "x"}


@pytest.mark.parametrize(
    "number", [b"\x80\x00", b"\x85\x00", b"\xff\x80\x00", b"\x05", b"\x00", b"\x85\x01"], ids=bytes.hex
)
def test_a_number_that_is_written_too_long_has_the_bytes_of_its_value(number: bytes) -> None:
    item, genesis = genesis_of(FEEDS[0])
    value = b"\x18" + number
    op = b"\x0a\x01k\x1a" + bytes([len(value)]) + value
    notes = [
        (item, genesis),
        (item, Note(Kind.MUTATION, 2, FEEDS[0], 1, 5, wrap(Kind.MUTATION, b"\x12" + bytes([len(op)]) + op))),
    ]
    found, expected, plain = both(FEEDS[:1], notes)

    assert found == expected
    assert plain is (number[-1] != 0 or len(number) == 1)
