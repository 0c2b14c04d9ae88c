"""Names of the two ends: who has forgotten is found out, and old messages neither bring a session back nor end one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tests.mesh.replication.wire import Wire
from tests.party.epochs.epoch_acts import note

from antiphon.mesh.replication.handshake import Handshake, HandshakeStep
from antiphon.testing.peers import Peers

_NUMBERS = count(1)


def new() -> Handshake:
    return Handshake(lambda: next(_NUMBERS).to_bytes(8, "big"))


def bound() -> tuple[Handshake, Handshake]:
    one, other = new(), new()
    assert other.receive(one.mine, b"") is HandshakeStep.ANSWER
    assert one.receive(*other.reply(one.mine)) is HandshakeStep.FRESH
    assert other.receive(one.mine, one.theirs) is HandshakeStep.FRESH
    return one, other


def test_two_ends_that_greet_come_to_know_each_other() -> None:
    one, other = bound()
    assert (one.mine, one.theirs) == (other.theirs, other.mine)
    assert one.receive(other.mine, other.theirs) is HandshakeStep.SAME


def test_a_greeting_that_comes_again_changes_nothing() -> None:
    one, other = bound()
    assert other.receive(one.mine, b"") is HandshakeStep.ANSWER
    assert one.receive(*other.reply(one.mine)) is HandshakeStep.SAME


def test_who_has_forgotten_is_known_once_it_answers_and_not_before() -> None:
    one, other = bound()
    again = new()
    assert other.receive(again.mine, b"") is HandshakeStep.ANSWER
    answer = other.reply(again.mine)
    assert other.receive(one.mine, one.theirs) is HandshakeStep.SAME  # the old session goes on meanwhile
    assert again.receive(*answer) is HandshakeStep.FRESH
    assert other.receive(again.mine, again.theirs) is HandshakeStep.FRESH
    assert other.receive(one.mine, one.theirs) is HandshakeStep.STALE


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 99)), max_size=40))
def test_whatever_old_messages_come_two_living_ends_come_to_know_each_other(moves: list[tuple[int, int]]) -> None:
    ends = [new(), new()]
    said: list[tuple[int, tuple[bytes, bytes]]] = []  # to which end, and the names

    def speak(at: int) -> None:
        said.append((1 - at, (ends[at].mine, ends[at].theirs)))

    def deliver(to: int, names: tuple[bytes, bytes]) -> None:
        if ends[to].receive(*names) is HandshakeStep.ANSWER:
            said.append((1 - to, ends[to].reply(names[0])))

    for move, which in moves:
        if move == 0:
            ends[which % 2] = new()  # it forgets
        elif move == 1 or not said:
            speak(which % 2)
        else:
            deliver(*said[which % len(said)])  # any message ever, again
    said.clear()
    for _ in range(12):  # from here on what is said comes, once
        speak(0)
        speak(1)
        for message in [*said]:
            said.remove(message)
            deliver(*message)
    assert (ends[0].mine, ends[0].theirs) == (ends[1].theirs, ends[1].mine)
    assert ends[0].theirs


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path) as made:
        made.add("alice")
        made.add("bob")
        yield made


def test_messages_of_a_session_that_is_over_are_passed_over(peers: Peers) -> None:
    alice, bob = peers.all
    note(alice)
    wire = Wire(peers)
    said: list[bytes] = []

    def listen(giver: str, taker: str, data: bytes) -> bool:
        if taker == "bob":
            said.append(data)
        return True

    wire.watch = listen
    wire.run()
    wire.restart("alice")
    wire.run()
    before = wire.messages
    for data in [*said]:
        wire.send("alice", "bob", data)
    wire.run()
    assert wire.messages - before - len(said) // 2 <= 2 * len(said)
    note(alice)
    wire.nodes["alice"].replica.refresh()
    wire.run()
    assert bob.snapshots() == alice.snapshots()
