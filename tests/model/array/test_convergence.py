"""Arrays converge: any messages, honest or hostile, in any order that keeps each feed's own, end in the same bytes."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import array_pb2 as pb
from antiphon.model.array.codec import Delete, Draft, Insert, Item, Move, Set, read_mutation
from antiphon.model.array.model import ArrayModel, ArrayState, ElementId
from antiphon.model.array.position import SELF, Place, between, encode_int
from antiphon.model.bounds import covers
from antiphon.model.model import InvalidMutation

ARRAY = ArrayModel()
FEEDS = [bytes([65 + number]) * 32 for number in range(4)]
HOSTILE = FEEDS[2:]
seeds = st.integers(0, 1 << 32)


class Sent(NamedTuple):
    mutation: bytes
    stamp: Stamp
    void: bool
    seen: dict[bytes, int]  # how many messages of each feed its writer held


class World:
    """Writers that each see some of what the others wrote; the hostile ones name what they cannot have seen."""

    def __init__(self, seed: int, steps: int) -> None:
        self.chance = random.Random(seed)
        self.logs: dict[bytes, list[Sent]] = {feed: [] for feed in FEEDS}
        self.states = {feed: ARRAY.initial() for feed in FEEDS}
        self.seen = {feed: dict.fromkeys(FEEDS, 0) for feed in FEEDS}
        for _ in range(steps):
            feed = self.chance.choice(FEEDS)
            if self.chance.random() < 0.5:
                self.read(feed)
            else:
                self.write(feed)

    def read(self, feed: bytes) -> None:
        """Take the next message of somebody, and what that one had seen before it."""
        seen = self.seen[feed]
        other = self.chance.choice(FEEDS)
        if seen[other] < len(self.logs[other]):
            self.take(feed, other, seen[other] + 1)

    def take(self, feed: bytes, other: bytes, count: int) -> None:
        seen = self.seen[feed]
        while seen[other] < count:
            sent = self.logs[other][seen[other]]
            for past, past_count in sent.seen.items():
                if past != other:
                    self.take(feed, past, past_count)
            if seen[other] < count:
                seen[other] += 1
                deliver(self.states[feed], sent)

    def write(self, feed: bytes) -> None:
        seen, log = self.seen[feed], self.logs[feed]
        known = [sent.stamp.lamport for other in FEEDS for sent in self.logs[other][: seen[other]]]
        lamport = max(known, default=0) + 1
        if feed in HOSTILE and self.chance.random() < 0.7:
            lamport += self.chance.randrange(6)
            mutation = self.attack(feed)
        else:
            mutation = ARRAY.rehearse(self.states[feed], self.chance, feed)
        sent = Sent(mutation, Stamp(lamport, feed, 2 * len(log)), self.chance.random() < 0.1, dict(seen))
        log.append(sent)
        seen[feed] += 1
        deliver(self.states[feed], sent)

    def names(self) -> Iterator[ElementId]:
        """Any element: one that is there for somebody, one that was, one that will be, and one that never is."""
        stamps = [sent.stamp for log in self.logs.values() for sent in log]
        while True:
            feed = self.chance.choice(FEEDS)
            future = Stamp(self.chance.randrange(1, 20), feed, self.chance.randrange(20))
            stamp = self.chance.choice(stamps) if stamps and self.chance.random() < 0.7 else future
            yield ElementId(stamp, self.chance.randrange(3))

    def place(self, feed: bytes) -> Place:
        keys = [key for state in self.states.values() for key in ARRAY.keys(state)]
        if not keys or self.chance.random() < 0.1:
            return Place(self.chance.randbytes(self.chance.randrange(12)), self.chance.randrange(-3, 3), False)
        left = self.chance.choice(keys)
        return between(left, self.chance.choice([None, *(key for key in keys if key > left)]), 2, feed)

    def attack(self, feed: bytes) -> bytes:
        draft, names = Draft(feed), self.names()
        for _ in range(self.chance.choice([1, 1, 2])):
            act = self.chance.choice(["insert", "move", "delete", "set", "set", "set"])
            some = [next(names) for _ in range(self.chance.randint(1, 2))]
            if act == "insert":
                draft.put(self.place(feed), [Item(None, "evil"), Item(None, "too")])
            elif act == "move":
                draft.put(self.place(feed), [Item(name) for name in some])
            elif act == "delete" and self.chance.random() < 0.5:
                draft.delete(some)
            else:
                replaces = [next(names).stamp for _ in range(self.chance.randrange(4))]
                value = self.chance.randrange(99)
                draft.set(some[0], value, [*replaces, *([some[0].stamp] if self.chance.random() < 0.5 else [])])
        return draft.encode()[0]


def deliver(state: ArrayState, sent: Sent) -> bool:
    try:
        ARRAY.apply(state, sent.mutation, sent.stamp, void=sent.void)
    except InvalidMutation:
        return False
    return True


def play(world: World, chance: random.Random, *, causal: bool) -> tuple[bytes, Any, set[Stamp]]:
    """Deliver everything in some order; with a restart from the snapshot now and then."""
    state, refused = ARRAY.initial(), set()
    held = dict.fromkeys(FEEDS, 0)
    while True:
        ready = [
            feed
            for feed in FEEDS
            if held[feed] < len(world.logs[feed])
            and (not causal or all(held[other] >= count for other, count in world.logs[feed][held[feed]].seen.items()))
        ]
        if not ready:
            break
        feed = chance.choice(ready)
        sent = world.logs[feed][held[feed]]
        held[feed] += 1
        if not deliver(state, sent):
            refused.add(sent.stamp)
        if chance.random() < 0.1:
            data = ARRAY.snapshot(state)
            state = ARRAY.restore(data)
            assert ARRAY.snapshot(state) == data
    assert held == {feed: len(log) for feed, log in world.logs.items()}
    return ARRAY.snapshot(state), ARRAY.value(state), refused


def told(world: World, refused: set[Stamp]) -> list[Any]:
    """The definition: what all messages say, looked at at once and in no order."""
    sent = [one for log in world.logs.values() for one in log if one.stamp not in refused and not one.void]
    acts = [(one.stamp, act) for one in sorted(sent, key=lambda one: one.stamp) for act in read_mutation(*one[:2])]
    keys: dict[ElementId, bytes] = {}
    values: dict[ElementId, dict[Stamp, Any]] = {}
    for stamp, act in acts:
        if isinstance(act, Insert):
            for number, key in enumerate(act.span.all_keys()):
                name = ElementId(stamp, act.first + number)
                keys[name], values[name] = key, {stamp: act.values[number]}
    for stamp, act in acts:
        if isinstance(act, Move):
            keys.update((name, key) for name, key in zip(act.names, act.span.all_keys(), strict=True) if name in keys)
        elif isinstance(act, Set) and act.name in values:
            values[act.name][stamp] = act.value
    for stamp, act in acts:
        if isinstance(act, Set) and act.name in values:
            written = values[act.name]
            for known in list(written):
                named = any(past.feed == known.feed and covers(past, known) for past in act.replaces)
                if named or (known.feed == stamp.feed and known.seq < stamp.seq):
                    del written[known]
        elif isinstance(act, Delete):
            for name in act.names:
                keys.pop(name, None)
    return [values[name][max(values[name])] for name in sorted(keys, key=keys.__getitem__)]


@given(seeds)
@settings(max_examples=60)
def test_every_order_gives_the_same_bytes_and_what_the_messages_say(seed: int) -> None:
    world = World(seed, 70)
    chance = random.Random(seed + 1)
    first, value, refused = play(world, chance, causal=True)
    for number in range(4):
        assert play(world, chance, causal=number < 2) == (first, value, refused)
    assert value == told(world, refused)


@given(seeds)
@settings(max_examples=40)
def test_a_snapshot_by_hand_is_what_the_library_would_write(seed: int) -> None:
    for state in World(seed, 70).states.values():
        data = ARRAY.snapshot(state)
        assert pb.ArrayState.FromString(data).SerializeToString(deterministic=True) == data


def test_the_worlds_are_worth_playing() -> None:
    """Hostile messages are mostly taken, and some come before what they name."""
    taken = pending = 0
    for seed in range(20):
        world = World(seed, 70)
        _, _, refused = play(world, random.Random(seed), causal=True)
        hostile = [sent for feed in HOSTILE for sent in world.logs[feed]]
        taken += sum(sent.stamp not in refused for sent in hostile)
        pending += any(state.pending or state.due for state in world.states.values())
    assert taken > 100
    assert pending > 5


def test_what_honest_writers_leave_is_nothing_but_the_elements() -> None:
    state, chance = ARRAY.initial(), random.Random(3)
    for number in range(300):
        feed = chance.choice(FEEDS)
        ARRAY.apply(state, ARRAY.rehearse(state, chance, feed), Stamp(number + 1, feed, number))
    assert not state.pending
    assert not state.due
    proto = pb.ArrayState.FromString(ARRAY.snapshot(state))
    assert not any(row.waits for row in proto.elements)


def test_a_name_with_a_wrong_lamport_names_nothing() -> None:
    alice, eve = FEEDS[0], FEEDS[2]
    insert = ARRAY.append(ARRAY.initial(), "a", "b", feed=alice)
    draft = Draft(eve)
    draft.delete([ElementId(Stamp(1, alice, 0), 0), ElementId(Stamp(2, alice, 0), 1)])
    messages = [Sent(insert, Stamp(1, alice, 0), False, {}), Sent(draft.encode()[0], Stamp(5, eve, 0), False, {})]
    ends = set()
    for order in (messages, messages[::-1]):
        state = ARRAY.initial()
        assert all(deliver(state, sent) for sent in order)
        assert ARRAY.value(state) == ["b"]
        ends.add(ARRAY.snapshot(state))
    assert len(ends) == 1


# -- hostile bytes


@given(seeds, st.data())
@settings(max_examples=60)
def test_damaged_snapshots_are_refused_or_come_back(seed: int, data: st.DataObject) -> None:
    world = World(seed % 50, 30)
    raw = bytearray(ARRAY.snapshot(world.states[HOSTILE[0]]))
    for _ in range(data.draw(st.integers(1, 3))):
        if raw:
            at = data.draw(st.integers(0, len(raw) - 1))
            raw[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    try:
        state = ARRAY.restore(bytes(raw))
    except InvalidInput:
        return
    assert ARRAY.snapshot(state) == bytes(raw)
    ARRAY.value(state)
    for index in range(ARRAY.length(state) + 1):
        ARRAY.insert(state, index, ["x"], feed=FEEDS[0])


@given(st.binary(max_size=80))
def test_random_bytes_are_no_surprise(data: bytes) -> None:
    state = ARRAY.initial()
    try:
        ARRAY.apply(state, data, Stamp(3, FEEDS[0], 1))
    except InvalidMutation:
        assert not state.heard
    with contextlib.suppress(InvalidInput):
        assert ARRAY.snapshot(ARRAY.restore(data)) == data


def test_snapshots_that_no_history_gives_are_refused() -> None:
    state = ARRAY.initial()
    ARRAY.apply(state, ARRAY.append(state, "a", "b", "c", "d", feed=FEEDS[0]), Stamp(1, FEEDS[0], 0))
    ARRAY.apply(state, ARRAY.set(state, 1, "B", feed=FEEDS[0]), Stamp(2, FEEDS[0], 1))
    good = pb.ArrayState.FromString(ARRAY.snapshot(state))

    def damaged(**changes: Any) -> bytes:
        proto = pb.ArrayState()
        proto.CopyFrom(good)
        for field, value in changes.items():
            row = proto.elements[1]
            row.ClearField(field) if value is None else setattr(row, field, value)
        return proto.SerializeToString(deterministic=True)

    ARRAY.restore(damaged())
    for changes in (
        {"index": 0},
        {"shared": 3},
        {"shared": 99},
        {"path": b"\x01"},
        {"path": b"\x80" * 2000},
        {"writes": None},
        {"deleted": True},
        {"name": None},
    ):
        with pytest.raises(InvalidInput):
            ARRAY.restore(damaged(**changes))
    good.ClearField("heard")
    with pytest.raises(InvalidInput, match="not heard"):
        ARRAY.restore(damaged())


def test_what_goes_on_unchanged_is_one_row_of_a_snapshot_however_it_was_split() -> None:
    state = ARRAY.initial()
    ARRAY.apply(state, ARRAY.append(state, *range(9), feed=FEEDS[0]), Stamp(1, FEEDS[0], 0))
    whole = ARRAY.snapshot(state)
    assert [len(row.more) for row in pb.ArrayState.FromString(whole).elements] == [8]
    state.order.split(next(iter(state.order)), 4)
    assert ARRAY.snapshot(state) == whole
    assert ARRAY.value(ARRAY.restore(whole)) == list(range(9))
    proto = pb.ArrayState.FromString(whole)
    for damage in ("split", "changed", "waits"):
        harmed = pb.ArrayState()
        harmed.CopyFrom(proto)
        row = harmed.elements[0]
        if damage == "split":
            other = harmed.elements.add()
            other.CopyFrom(row)
            other.index, other.shared, other.path = 8, len(row.path) - 2, encode_int(8) + SELF
            other.ClearField("more")
            del row.more[-1]
        elif damage == "changed":
            row.writes[0].name.feed, row.writes[0].name.lamport = 1, 7
        else:
            row.waits.add(feed=1, lamport=9, seq=9)
        with pytest.raises(InvalidInput):
            ARRAY.restore(harmed.SerializeToString(deterministic=True))
