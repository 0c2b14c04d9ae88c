"""The object model by example: registers, maps, sets, counters, and what concurrent changes of them give."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.model.object.model import ObjectModel, ObjectState
from antiphon.model.value import VALUE_DEPTH_MAX, Reference

MODEL = ObjectModel()
ADA, BOB, EVE = b"a" * 32, b"b" * 32, b"e" * 32


class Peer:
    """A writer with its own copy of one object."""

    def __init__(self, feed: bytes) -> None:
        self.feed, self.state, self.sent, self.got = feed, MODEL.initial(), list[tuple[bytes, Stamp]](), set[Stamp]()
        self.lamport = 0

    def do(self, command: str, *args: Any) -> Stamp:
        mutation = getattr(MODEL, command)(self.state, *args, feed=self.feed)
        return self.send(mutation)

    def send(self, mutation: bytes) -> Stamp:
        stamp = Stamp(self.lamport + 1, self.feed, len(self.sent))
        self.sent.append((mutation, stamp))
        self.take(mutation, stamp)
        return stamp

    def take(self, mutation: bytes, stamp: Stamp) -> None:
        if stamp not in self.got:
            MODEL.apply(self.state, mutation, stamp)
            self.got.add(stamp)
            self.lamport = max(self.lamport, stamp.lamport)

    @property
    def value(self) -> dict[str, Any]:
        return MODEL.value(self.state)


def meet(*peers: Peer) -> Any:
    """All get everything; they agree to the last byte; what they see then."""
    messages = sorted((message for peer in peers for message in peer.sent), key=lambda message: message[1])
    for peer in peers:
        for message in messages:
            peer.take(*message)
    assert len({MODEL.snapshot(peer.state) for peer in peers}) == 1
    return peers[0].value


@pytest.fixture
def ada() -> Peer:
    return Peer(ADA)


@pytest.fixture
def bob() -> Peer:
    return Peer(BOB)


# -- alone


VALUES = [
    None,
    True,
    0,
    -(2**63),
    2**63 - 1,
    2.5,
    "text",
    b"raw",
    datetime(2026, 1, 2, tzinfo=UTC),
    Reference(b"i" * 16),
]


@pytest.mark.parametrize("value", [*VALUES, VALUES, [{"deep": [1, {}]}], [], ""], ids=repr)
def test_every_kind_of_value_is_kept(ada: Peer, value: object) -> None:
    ada.do("set", "key", value)
    assert MODEL.get(ada.state, "key") == value
    assert type(MODEL.get(ada.state, "key")) is type(value)
    restored = MODEL.restore(MODEL.snapshot(ada.state))
    assert MODEL.get(restored, "key") == value


def test_nan_is_kept(ada: Peer) -> None:
    ada.do("set", "key", math.nan)
    assert math.isnan(MODEL.get(ada.state, "key"))


def test_the_deepest_value_comes_through_a_snapshot(ada: Peer) -> None:
    value: Any = 1
    for _ in range(VALUE_DEPTH_MAX - 1):
        value = {"k": value}
    ada.do("set", "key", [value])
    assert MODEL.get(MODEL.restore(MODEL.snapshot(ada.state)), "key") == [value]


def test_a_dotted_key_is_not_a_nested_path(ada: Peer) -> None:
    ada.do("set", "a.b", 1)
    ada.do("set", ("a", "b"), 2)
    assert ada.value == {"a": {"b": 2}, "a.b": 1}


def test_a_dict_becomes_a_map_into_which_others_can_write(ada: Peer, bob: Peer) -> None:
    ada.do("set", "a", {"x": 1, "y": {"z": 2}, "empty": {}, "tags": {"p", "q"}})
    meet(ada, bob)
    bob.do("set", ("a", "y", "w"), 3)
    ada.do("set", ("a", "y", "z"), 4)
    assert meet(ada, bob) == {"a": {"empty": {}, "tags": ["p", "q"], "x": 1, "y": {"w": 3, "z": 4}}}


def test_a_write_takes_the_subtree_that_it_saw(ada: Peer) -> None:
    ada.do("set", "a", {"x": 1})
    ada.do("set", "a", 5)
    assert ada.value == {"a": 5}
    assert MODEL.conflicts(ada.state, "a") == []
    ada.do("set", ("a", "x"), 2)
    assert ada.value == {"a": {"x": 2}}
    assert MODEL.conflicts(ada.state, "a") == []


def test_a_map_and_a_set_stay_when_they_are_emptied(ada: Peer) -> None:
    ada.do("set", ("a", "x"), 1)
    ada.do("delete", ("a", "x"))
    ada.do("add", "tags", 1)
    ada.do("remove", "tags", 1)
    assert ada.value == {"a": {}, "tags": []}
    ada.do("delete", "a")
    ada.do("delete", "tags")
    assert ada.value == {}
    assert not ada.state.root.children


def test_an_update_is_one_mutation(ada: Peer) -> None:
    ada.do("update", {"a": 1, ("m", "x"): 2, ("m", "y"): 3})
    assert ada.value == {"a": 1, "m": {"x": 2, "y": 3}}
    assert len(ada.sent) == 1


def test_what_is_read_can_be_changed_without_changing_the_state(ada: Peer) -> None:
    ada.do("set", "list", [[1], {"k": [2]}])
    MODEL.get(ada.state, "list")[1]["k"].append(9)
    ada.value["list"][0].append(9)
    assert ada.value == {"list": [[1], {"k": [2]}]}


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("set", ("", object())),
        ("set", (("a", 1), 1)),
        ("set", ((), 1)),
        ("set", (b"key", 1)),
        ("set", (None, 1)),
        ("set", ("k" * 1025, 1)),
        ("set", ("é" * 513, 1)),
        ("set", (["k"] * 33, 1)),
        ("set", ("bad \ud800", 1)),
        ("set", ("key", "bad \ud800")),
        ("set", ("key", {1: 2})),
        ("set", ("key", {"m": {str(number): 1 for number in range(4096)}})),
        ("set", ("key", 1 << 63)),
        ("set", (("tags", "key"), 1)),
        ("update", ({},)),
        ("update", ({"a": 1, ("a", "b"): 2},)),
        ("delete", ("missing",)),
        ("delete", (("title", "x"),)),
        ("get", ("missing",)),
        ("conflicts", ("missing",)),
        ("add", ("title", 1)),
        ("add", ("map", 1)),
        ("add", ("tags", "x" * 1025)),
        ("add", ("tags", {1, 2})),
        ("add", (["k"] * 32, 1)),
        ("remove", ("tags", "missing")),
        ("remove", ("tags", True)),
        ("remove", ("missing", 1)),
        ("remove", ("title", 1)),
        ("increment", ("title", 1)),
        ("increment", ("new", True)),
        ("increment", ("new", 1.5)),
        ("increment", ("new", 1 << 63)),
        ("counter", ("new", "1")),
    ],
)
def test_what_cannot_be_is_refused_and_says_so(ada: Peer, command: str, arguments: tuple[Any, ...]) -> None:
    ada.do("update", {"title": "x", "map": {}, "tags": {1}})
    with pytest.raises(InvalidInput):
        getattr(MODEL, command)(ada.state, *arguments)


# -- concurrently


def test_concurrent_values_stay_readable_until_somebody_writes(ada: Peer, bob: Peer) -> None:
    first, second = ada.do("set", "a", 1), bob.do("set", "a", 2)
    assert meet(ada, bob) == {"a": 2}
    assert MODEL.conflicts(ada.state, "a") == [(second, 2), (first, 1)]
    ada.do("set", "a", 3)
    assert meet(ada, bob) == {"a": 3}
    assert MODEL.conflicts(bob.state, "a") == []


def test_a_concurrent_write_survives_a_delete(ada: Peer, bob: Peer) -> None:
    ada.do("set", "a", {"x": 1, "y": 2})
    meet(ada, bob)
    ada.do("delete", "a")
    bob.do("set", ("a", "x"), 3)
    assert meet(ada, bob) == {"a": {"x": 3}}


def test_of_a_parent_and_its_child_the_later_shows_and_the_other_is_a_conflict(ada: Peer, bob: Peer) -> None:
    value = ada.do("set", "a", 5)
    child = bob.do("set", ("a", "b"), 1)
    assert meet(ada, bob) == {"a": {"b": 1}}
    assert MODEL.conflicts(ada.state, "a") == [(child, {"b": 1}), (value, 5)]

    eve = Peer(EVE)
    later = eve.do("set", "a", 7)
    assert meet(ada, bob, eve) == {"a": 7}
    assert MODEL.conflicts(ada.state, "a") == [(later, 7), (child, {"b": 1}), (value, 5)]
    assert not MODEL.has(ada.state, ("a", "b")), "it is hidden"
    ada.do("set", ("a", "c"), 2)
    assert meet(ada, bob, eve) == {"a": {"b": 1, "c": 2}}, "nobody deleted b"


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize(
    ("write", "removal", "empty"),
    [(("set", ("a", "k"), 1), ("delete", ("a", "k")), {}), (("add", "a", "x"), ("remove", "a", "x"), [])],
)
def test_a_removal_leaves_a_hidden_value_above_it(
    ada: Peer, bob: Peer, write: tuple[Any, ...], removal: tuple[Any, ...], empty: Any, replaced: bool
) -> None:
    """Ada writes a value where Bob changes a set or map; Bob's shows, until he removes from it all that he wrote."""
    if replaced:  # Ada's value replaces the set or map, of which Bob's change is all that is left
        ada.do(*write)
        meet(ada, bob)
    ada.do("set", "a", 5)
    bob.do(*write)
    assert type(meet(ada, bob)["a"]) is type(empty)
    assert [value for _, value in MODEL.conflicts(ada.state, "a")][1] == 5, "it is hidden"
    bob.do(*removal)
    assert meet(ada, bob) == {"a": 5 if replaced else empty}
    if not replaced:
        assert [value for _, value in MODEL.conflicts(ada.state, "a")] == [empty, 5]
    bob.do(*write) if not replaced else bob.do("set", "a", empty)
    meet(ada, bob)
    assert MODEL.conflicts(ada.state, "a") == [], "a write takes what its writer saw"


def test_of_a_map_and_a_set_at_one_path_the_later_shows(ada: Peer, bob: Peer) -> None:
    ada.do("set", ("a", "k"), 1)
    bob.do("add", "a", "x")
    assert meet(ada, bob) == {"a": ["x"]}
    ada.do("add", "a", "y")
    assert meet(ada, bob) == {"a": ["x", "y"]}
    assert [value for _, value in MODEL.conflicts(bob.state, "a")] == [["x", "y"], {"k": 1}]


def test_an_addition_wins_over_a_concurrent_removal(ada: Peer, bob: Peer) -> None:
    ada.do("add", "tags", "x")
    meet(ada, bob)
    ada.do("remove", "tags", "x")
    bob.do("add", "tags", "x")
    assert meet(ada, bob) == {"tags": ["x"]}
    ada.do("remove", "tags", "x")
    assert meet(ada, bob) == {"tags": []}


def test_elements_are_told_apart_by_type(ada: Peer) -> None:
    for element in (1, True, 1.0, "1", b"1", None, [1], {"k": 1}, 1):
        ada.do("add", "tags", element)
    assert sorted(map(repr, ada.value["tags"])) == sorted(map(repr, (1, True, 1.0, "1", b"1", None, [1], {"k": 1})))


def test_counters_add_up(ada: Peer, bob: Peer) -> None:
    ada.do("increment", "n", 5)
    meet(ada, bob)
    ada.do("increment", "n", 2)
    bob.do("increment", "n", -10)
    assert meet(ada, bob) == {"n": -3}


def test_concurrent_counters_are_one(ada: Peer, bob: Peer) -> None:
    ada.do("increment", ("m", "n"), 5)
    bob.do("increment", ("m", "n"), 3)
    assert meet(ada, bob) == {"m": {"n": 8}}
    ada.do("increment", ("m", "n"), 1)
    assert meet(ada, bob) == {"m": {"n": 9}}
    ada.do("set", ("m", "n"), "done")
    bob.do("increment", ("m", "n"), 1)
    assert meet(ada, bob) == {"m": {"n": "done"}}, "what it counted on is gone"


def test_a_total_may_outgrow_64_bits(ada: Peer) -> None:
    for _ in range(3):
        ada.do("increment", "n", 2**63 - 1)
    assert ada.value == {"n": 3 * (2**63 - 1)}
    assert MODEL.value(MODEL.restore(MODEL.snapshot(ada.state))) == ada.value


def test_a_new_counter_takes_the_place_of_a_value(ada: Peer) -> None:
    ada.do("set", "n", "text")
    ada.do("counter", "n", 7)
    ada.do("increment", "n")
    assert ada.value == {"n": 8}


def test_a_void_message_shows_nothing_but_keeps_its_place(ada: Peer) -> None:
    ada.do("set", "a", 1)
    before = MODEL.value(ada.state)
    MODEL.apply(ada.state, MODEL.set(ada.state, "a", 2), Stamp(9, BOB, 4), void=True)
    assert MODEL.value(ada.state) == before
    assert ada.state.heard[BOB] == 4
    with pytest.raises(InvalidInput):
        MODEL.apply(ada.state, b"\xff", Stamp(10, BOB, 5), void=True)
    assert ada.state.heard[BOB] == 4


# -- speed


def test_a_flat_write_costs_the_same_in_a_large_object() -> None:
    def seconds(state: ObjectState) -> float:
        first = state.heard.get(BOB, -1) + 1
        begin = time.perf_counter()
        for number in range(first, first + 1000):
            MODEL.apply(state, MODEL.set(state, "key", "x", feed=BOB), Stamp(10**6 + number, BOB, number))
        return time.perf_counter() - begin

    small, large = MODEL.initial(), MODEL.initial()
    for number in range(10_000):
        MODEL.apply(large, MODEL.set(large, f"key {number}", "x", feed=ADA), Stamp(number + 1, ADA, number))

    assert min(seconds(large) for _ in range(3)) < 5 * min(seconds(small) for _ in range(3))
