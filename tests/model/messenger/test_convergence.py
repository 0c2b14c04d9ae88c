"""Messengers converge: any messages, honest or hostile, in any order that keeps each feed's own, end in equal bytes."""

from __future__ import annotations

import contextlib
import random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import messenger_pb2 as pb
from antiphon.model.bounds import covers
from antiphon.model.heard import FeedTable
from antiphon.model.messenger.codec import Edit, Post, read_act
from antiphon.model.messenger.model import MessengerModel, MessengerState
from antiphon.model.model import Discard, InvalidMutation
from antiphon.model.value import to_proto

MESSENGER = MessengerModel()
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
        self.states = {feed: MESSENGER.initial() for feed in FEEDS}
        self.seen = {feed: dict.fromkeys(FEEDS, 0) for feed in FEEDS}
        for _ in range(steps):
            feed, other = self.chance.choice(FEEDS), self.chance.choice(FEEDS)
            if self.chance.random() < 0.5:
                self.write(feed)
            elif self.seen[feed][other] < len(self.logs[other]):
                self.take(feed, other, self.seen[feed][other] + 1)

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
            mutation = MESSENGER.rehearse(self.states[feed], self.chance, feed)
        sent = Sent(mutation, Stamp(lamport, feed, 2 * len(log)), self.chance.random() < 0.1, dict(seen))
        log.append(sent)
        seen[feed] += 1
        deliver(self.states[feed], sent)

    def name(self) -> Stamp:
        stamps = [sent.stamp for log in self.logs.values() for sent in log]
        if stamps and self.chance.random() < 0.7:
            return self.chance.choice(stamps)
        return Stamp(self.chance.randrange(1, 20), self.chance.choice(FEEDS), self.chance.randrange(20))

    def attack(self, feed: bytes) -> bytes:
        table = FeedTable(feed)
        target, body = table.name(self.name()), to_proto(self.chance.randrange(99))
        act = self.chance.choice(["post", "edit", "edit", "edit", "redact"])
        if act == "post":
            mutation = pb.MessengerMutation(post=pb.MessengerPost(body=body, reply_to=target))
        elif act == "redact":
            mutation = pb.MessengerMutation(redact=pb.MessengerRedact(target=target))
        else:
            replaces = [table.name(self.name()) for _ in range(self.chance.randrange(4))]
            replaces += [target] if self.chance.random() < 0.5 else []
            mutation = pb.MessengerMutation(edit=pb.MessengerEdit(target=target, body=body, replaces=replaces))
        mutation.feeds.extend(table.feeds)
        return mutation.SerializeToString(deterministic=True)


def deliver(state: MessengerState, sent: Sent) -> bool:
    try:
        MESSENGER.apply(state, sent.mutation, sent.stamp, void=sent.void)
    except InvalidMutation:
        return False
    return True


def play(
    world: World,
    chance: random.Random,
    *,
    causal: bool,
    start: MessengerState | None = None,
    held: dict[bytes, int] | None = None,
) -> tuple[bytes, Any, set[Stamp]]:
    """Deliver everything, or what is beyond `held`, in some order; with a restart from the snapshot now and then."""
    state, refused = start or MESSENGER.initial(), set()
    held = dict(held or dict.fromkeys(FEEDS, 0))
    while True:
        ready = [feed for feed in FEEDS if held[feed] < len(world.logs[feed])]
        if causal:
            ready = [
                feed
                for feed in ready
                if all(held[other] >= count for other, count in world.logs[feed][held[feed]].seen.items())
            ]
        if not ready:
            break
        feed = chance.choice(ready)
        sent = world.logs[feed][held[feed]]
        held[feed] += 1
        if not deliver(state, sent):
            refused.add(sent.stamp)
        if chance.random() < 0.1:
            data = MESSENGER.snapshot(state)
            state = MESSENGER.restore(data)
            assert MESSENGER.snapshot(state) == data
    assert held == {feed: len(log) for feed, log in world.logs.items()}
    return MESSENGER.snapshot(state), MESSENGER.value(state), refused


def told(world: World, refused: set[Stamp]) -> list[tuple[Stamp, Any, Any]]:
    """The definition: what all messages say, looked at at once and in no order."""
    sent = [one for log in world.logs.values() for one in log if one.stamp not in refused and not one.void]
    acts = [(one.stamp, read_act(one.mutation, one.stamp)) for one in sorted(sent, key=lambda one: one.stamp)]
    versions = {stamp: {stamp: act.body} for stamp, act in acts if isinstance(act, Post)}
    for stamp, act in acts:
        if isinstance(act, Edit) and act.target in versions:
            versions[act.target][stamp] = act.body
    redacted: dict[Stamp, Stamp] = {}
    for stamp, act in acts:
        if isinstance(act, Edit) and act.target in versions:
            written = versions[act.target]
            for known in list(written):
                named = any(past.feed == known.feed and covers(past, known) for past in act.replaces)
                if named or (known.feed == stamp.feed and known.seq < stamp.seq):
                    del written[known]
        elif not isinstance(act, Edit | Post):
            redacted.setdefault(act.target, stamp)
    return [
        (stamp, None, redacted[stamp].feed) if stamp in redacted else (stamp, held[max(held)], None)
        for stamp, held in sorted(versions.items())
    ]


@given(seeds)
@settings(max_examples=60)
def test_every_order_gives_the_same_bytes_and_what_the_messages_say(seed: int) -> None:
    world = World(seed, 70)
    chance = random.Random(seed + 1)
    first, value, refused = play(world, chance, causal=True)
    for number in range(4):
        assert play(world, chance, causal=number < 2) == (first, value, refused)
    assert [(post["id"], post["body"], post["redacted_by"]) for post in value] == told(world, refused)


@given(seeds)
@settings(max_examples=40)
def test_after_an_epoch_every_order_of_the_rest_gives_the_same(seed: int) -> None:
    """The epoch's cut is what one peer had seen; what others say of posts that it let go comes late."""
    world = World(seed, 70)
    chance = random.Random(seed + 1)
    base, cut = world.states[FEEDS[0]], world.seen[FEEDS[0]]
    MESSENGER.discard(base, Discard(now_ms=10_000, age_ms_max=6_000, count_max=5))
    snapshot = MESSENGER.snapshot(base)
    ends = [
        play(world, chance, causal=number < 2, start=MESSENGER.restore(snapshot), held=cut)[:2] for number in range(4)
    ]
    assert all(end == ends[0] for end in ends)


@given(seeds)
@settings(max_examples=40)
def test_a_snapshot_by_hand_is_what_the_library_would_write(seed: int) -> None:
    for state in World(seed, 70).states.values():
        data = MESSENGER.snapshot(state)
        assert pb.MessengerState.FromString(data).SerializeToString(deterministic=True) == data


def test_the_worlds_are_worth_playing() -> None:
    taken = pending = 0
    for seed in range(20):
        world = World(seed, 70)
        _, _, refused = play(world, random.Random(seed), causal=True)
        taken += sum(sent.stamp not in refused for feed in HOSTILE for sent in world.logs[feed])
        pending += any(state.pending or state.due for state in world.states.values())
    assert taken > 100
    assert pending > 5


def test_what_honest_writers_leave_is_nothing_but_posts() -> None:
    state, chance = MESSENGER.initial(), random.Random(3)
    for number in range(300):
        feed = chance.choice(FEEDS)
        MESSENGER.apply(state, MESSENGER.rehearse(state, chance, feed), Stamp(number + 1, feed, number))
    assert not state.pending
    assert not state.due
    assert not any(entry.waits for entry in state.posts.values())


# -- hostile bytes


@given(seeds, st.data())
@settings(max_examples=60)
def test_damaged_snapshots_are_refused_or_come_back(seed: int, data: st.DataObject) -> None:
    world = World(seed % 50, 30)
    raw = bytearray(MESSENGER.snapshot(world.states[HOSTILE[0]]))
    for _ in range(data.draw(st.integers(1, 3))):
        if raw:
            at = data.draw(st.integers(0, len(raw) - 1))
            raw[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    try:
        state = MESSENGER.restore(bytes(raw))
    except InvalidInput:
        return
    assert MESSENGER.snapshot(state) == bytes(raw)
    MESSENGER.threads(state)


@given(st.binary(max_size=80))
def test_random_bytes_are_no_surprise(data: bytes) -> None:
    state = MESSENGER.initial()
    try:
        MESSENGER.apply(state, data, Stamp(3, FEEDS[0], 1))
    except InvalidMutation:
        assert not state.heard
    with contextlib.suppress(InvalidInput):
        assert MESSENGER.snapshot(MESSENGER.restore(data)) == data


def test_snapshots_that_no_history_gives_are_refused() -> None:
    state = MESSENGER.initial()
    MESSENGER.apply(state, MESSENGER.post(state, "a", feed=FEEDS[0]), Stamp(1, FEEDS[0], 0))
    good = pb.MessengerState.FromString(MESSENGER.snapshot(state))

    def damaged(**changes: Any) -> bytes:
        proto = pb.MessengerState()
        proto.CopyFrom(good)
        for field, value in changes.items():
            row = proto.posts[0]
            row.ClearField(field) if value is None else setattr(row, field, value)
        return proto.SerializeToString(deterministic=True)

    MESSENGER.restore(damaged())
    for changes in ({"versions": None}, {"name": None}, {"sent_ms": 1 << 63}):
        with pytest.raises(InvalidInput):
            MESSENGER.restore(damaged(**changes))
    good.ClearField("heard")
    with pytest.raises(InvalidInput, match="not heard"):
        MESSENGER.restore(damaged())
