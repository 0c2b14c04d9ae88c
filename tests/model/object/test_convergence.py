"""Any causal order of any messages, honest or hostile, gives the same bytes."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from antiphon.core.stamp import Stamp
from antiphon.model.object import state as state_module
from antiphon.model.object.model import ObjectModel, ObjectState
from antiphon.model.object.mutation_codec import write_mutation
from antiphon.model.object.register import Counter, Mark, Node, Path, element_segment
from antiphon.model.object.state import DELETE, Increment, Op

MODEL = ObjectModel()
FEEDS = [bytes([97 + number]) * 32 for number in range(4)]
KEYS = "ab"
ELEMENTS = [element_segment(number) for number in range(2)]


class Sent(NamedTuple):
    mutation: bytes
    stamp: Stamp
    needs: dict[bytes, int]
    void: bool


def hostile(chance: random.Random, known: list[Stamp], stamp: Stamp) -> bytes:
    """Any operations at any paths, which name any messages that anybody has written, and some that nobody has."""
    earlier = [name for name in known if name.lamport < stamp.lamport]
    earlier += [Stamp(chance.randrange(stamp.lamport), chance.choice(FEEDS), chance.randrange(12)) for _ in range(2)]
    ops: dict[Path, Op] = {}
    for _ in range(chance.choice((1, 1, 2, 3))):
        path: Path = tuple(chance.choice(KEYS) for _ in range(chance.choice((1, 2, 3))))
        names = chance.sample(earlier, min(len(earlier), chance.choice((0, 1, 2, 3))))
        content = chance.choice([chance.randrange(9), "x", DELETE, Mark.MAP, Mark.SET, Counter(chance.randrange(9))])
        if names and chance.random() < 0.3:
            content, names = Increment(chance.randrange(-5, 5)), names[:1]
        elif chance.random() < 0.2:
            path, content = (*path, chance.choice(ELEMENTS)), chance.choice([Mark.MEMBER, DELETE])
        ops[path] = Op(path, content, names)
    return write_mutation(ops.values(), stamp.feed)


def history(chance: random.Random, count: int, evil: float) -> list[Sent]:
    """Writers that now and then hear of each other; the last feeds may be hostile."""
    states = {feed: MODEL.initial() for feed in FEEDS}
    heard: dict[bytes, dict[bytes, int]] = {feed: {} for feed in FEEDS}
    lamports = dict.fromkeys(FEEDS, 0)
    sent: list[Sent] = []
    for _ in range(count):
        feed = chance.choice(FEEDS)
        if chance.random() < 0.6:
            limit = chance.randrange(len(sent) + 1)
            for message in sent:
                if message.stamp.lamport <= limit and covered(message, heard[feed]):
                    take(states[feed], message, heard[feed])
                    lamports[feed] = max(lamports[feed], message.stamp.lamport)
        step = chance.choice((1, 1, 1, 5)) if evil else 1
        stamp = Stamp(lamports[feed] + step, feed, heard[feed].get(feed, -1) + 1)
        if chance.random() < evil:
            mutation = hostile(chance, [message.stamp for message in sent], stamp)
        else:
            mutation = MODEL.rehearse(states[feed], chance, feed)
        needs = {key: seq for key, seq in heard[feed].items() if key != feed}
        message = Sent(mutation, stamp, needs, bool(evil) and chance.random() < 0.1)
        sent.append(message)
        take(states[feed], message, heard[feed])
        lamports[feed] = stamp.lamport
    return sent


def covered(message: Sent, heard: dict[bytes, int]) -> bool:
    return heard.get(message.stamp.feed, -1) == message.stamp.seq - 1 and all(
        heard.get(feed, -1) >= seq for feed, seq in message.needs.items()
    )


def take(state: ObjectState, message: Sent, heard: dict[bytes, int]) -> None:
    MODEL.apply(state, message.mutation, message.stamp, void=message.void)
    heard[message.stamp.feed] = message.stamp.seq


def deliver(chance: random.Random, messages: list[Sent], restarts: float) -> ObjectState:
    """Everything in some causal order; now and then from a snapshot."""
    state, heard, left = MODEL.initial(), dict[bytes, int](), list(messages)
    while left:
        message = chance.choice([message for message in left if covered(message, heard)])
        left.remove(message)
        take(state, message, heard)
        if chance.random() < restarts:
            data = MODEL.snapshot(state)
            state = MODEL.restore(data)
            assert MODEL.snapshot(state) == data
    return state


@pytest.mark.slow
@given(st.randoms(use_true_random=False), st.integers(1, 24), st.sampled_from([0.0, 0.4, 1.0]))
@settings(max_examples=150)
def test_any_causal_order_gives_the_same_state(chance: random.Random, count: int, evil: float) -> None:
    messages = history(chance, count, evil)
    first = deliver(chance, messages, restarts=0)
    others = [deliver(chance, messages, restarts) for restarts in (0, 0, 0.3)]

    assert {MODEL.snapshot(other) for other in others} == {MODEL.snapshot(first)}
    assert [repr(MODEL.value(other)) for other in others] == [repr(MODEL.value(first))] * 3
    if not evil:
        assert not first.kept, "honest histories leave no trace"


def sent(ops: list[Op], lamport: int, feed: bytes, seq: int = 0) -> Sent:
    return Sent(write_mutation(ops, feed), Stamp(lamport, feed, seq), {}, False)


def check_both_orders(first: Sent, second: Sent) -> ObjectState:
    states = []
    for order in ((first, second), (second, first)):
        state = MODEL.initial()
        for message in order:
            state = MODEL.restore(MODEL.snapshot(state))
            MODEL.apply(state, message.mutation, message.stamp)
        states.append(state)
    assert MODEL.snapshot(states[0]) == MODEL.snapshot(states[1])
    assert not states[1].kept, "what was kept went when its message came"
    return states[0]


def test_a_name_that_is_not_here_yet_takes_effect_above_at_and_below_its_path() -> None:
    target = Stamp(1, FEEDS[0], 0)
    rows = [("a",), ("a", "b"), ("a", "b", "c"), ("a", "x")]
    values = sent([Op(path, 1) for path in rows], 1, FEEDS[0])
    state = check_both_orders(values, sent([Op(("a", "b"), DELETE, (target,))], 2, FEEDS[1]))
    assert MODEL.value(state) == {"a": {"x": 1}}

    marks = sent([Op(path, Mark.MAP) for path in rows], 1, FEEDS[0])
    state = check_both_orders(marks, sent([Op(("a", "b"), 2, (target,))], 2, FEEDS[1]))
    assert MODEL.value(state) == {"a": {"b": 2, "x": {}}}, "a mark above is no value that stands in the way"


def test_an_increment_waits_for_its_counter() -> None:
    target = Stamp(1, FEEDS[0], 0)
    counter = sent([Op(("n",), Counter(5)), Op(("m",), 5)], 1, FEEDS[0])
    increments = sent([Op(("n",), Increment(2), (target,)), Op(("m",), Increment(2), (target,))], 2, FEEDS[1])
    assert MODEL.value(check_both_orders(counter, increments)) == {"m": 5, "n": 7}


def test_what_was_kept_goes_when_its_feed_skips_it_or_the_message_is_void() -> None:
    fake = Stamp(1, FEEDS[0], 3)
    state = MODEL.initial()
    naming = sent([Op(("a",), 1, (fake,))], 9, FEEDS[1])
    MODEL.apply(state, naming.mutation, naming.stamp)
    assert state.kept.feeds.keys() == {fake.feed}
    MODEL.apply(state, write_mutation([Op(("a",), 2)], FEEDS[0]), Stamp(10, FEEDS[0], 2))
    assert state.kept
    MODEL.apply(state, write_mutation([Op(("a",), 2)], FEEDS[0]), Stamp(11, FEEDS[0], 4), void=True)
    assert not state.kept


def test_a_name_covers_earlier_messages_of_its_feed_and_no_later_ones() -> None:
    written = [Stamp(lamport, FEEDS[0], seq) for seq, lamport in enumerate((1, 2, 2, 6))]
    state = MODEL.initial()
    for stamp in written:
        MODEL.apply(state, write_mutation([Op(("map", f"{stamp.seq}"), stamp.seq)], FEEDS[0]), stamp)
    for name, left in ((written[1], "23"), (Stamp(2, FEEDS[0], 9), "3"), (Stamp(7, FEEDS[0], 2), "3")):
        changed = MODEL.restore(MODEL.snapshot(state))
        MODEL.apply(changed, write_mutation([Op(("map",), DELETE, [name])], FEEDS[1]), Stamp(9, FEEDS[1], 0))
        assert "".join(MODEL.value(changed)["map"]) == left


def test_a_feed_has_one_entry_at_a_path_its_last() -> None:
    state = MODEL.initial()
    for seq in range(1000):
        MODEL.apply(state, write_mutation([Op(("a", "b"), seq)], FEEDS[0]), Stamp(seq + 1, FEEDS[0], seq))
    MODEL.apply(state, write_mutation([Op(("a", "b"), "x")], FEEDS[1]), Stamp(5, FEEDS[1], 0))
    assert [value for _, value in MODEL.conflicts(state, ("a", "b"))] == [999, "x"]
    assert len(MODEL.set(state, ("a", "b"), 1)) < 100


def test_repeated_deletes_of_a_great_map_walk_over_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A delete of a few bytes that removes little or nothing must not cost as much as the map."""
    walked = 0

    def counted(node: Node, replaced: object) -> None:
        nonlocal walked
        walked += 1
        remove(node, replaced)  # type: ignore[arg-type]

    remove = state_module._remove_below
    monkeypatch.setattr(state_module, "_remove_below", counted)
    state = MODEL.initial()
    for seq in range(200):
        MODEL.apply(state, write_mutation([Op(("map", f"{seq:03}"), seq)], FEEDS[0]), Stamp(seq + 1, FEEDS[0], seq))
    for seq in range(150):
        name = Stamp(seq + 1, FEEDS[0], seq)
        MODEL.apply(state, write_mutation([Op(("map",), DELETE, [name])], FEEDS[1]), Stamp(500 + seq, FEEDS[1], seq))
    assert list(MODEL.value(state)["map"]) == [f"{seq:03}" for seq in range(150, 200)]
    assert walked == 1
