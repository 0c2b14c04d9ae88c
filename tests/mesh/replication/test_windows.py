"""Requests as windows: one request is answered by many parts, at the rate of the link, and nothing comes twice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.mesh.replication.slow_link import SlowLink
from tests.mesh.replication.wire import Weather, Wire
from tests.party.epochs.epoch_acts import note

from antiphon.mesh.replication import limits
from antiphon.mesh.replication.codec import decode
from antiphon.mesh.replication.message import More, Ranges, Want
from antiphon.testing.peers import Peer, Peers


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path) as made:
        made.add("alice")
        made.add("bob")
        peers = made
        peers.sync()
        yield made


def write(peer: Peer, count: int, size: int = 100_000) -> int:
    text = peer.party.create("antiphon/text")
    for _ in range(count):
        text.edit("insert", 0, "x" * size)
    return count * size


def spans_of(data: bytes) -> tuple[int, Want | Ranges | More] | None:
    body = decode(data).body
    return (len(data), body) if isinstance(body, Want | Ranges | More) else None


def test_a_long_feed_comes_by_one_request(peers: Peers) -> None:
    alice, bob = peers.all
    size = write(alice, 60)
    link = SlowLink(alice, bob, rate=1_000, delay_ms=100)
    seen: list[Want | Ranges | More] = []
    receive = link.session("bob").receive

    def noted(data: bytes, now_ms: int) -> None:
        found = spans_of(data)
        seen.extend([] if found is None else [found[1]])
        receive(data, now_ms)

    link.session("bob").receive = noted  # type: ignore[method-assign]
    link.run()

    assert bob.snapshots() == alice.snapshots()
    parts = [body for body in seen if isinstance(body, Ranges) and body.spans]
    assert len({part.request for part in parts}) <= 2
    longest = max(part.part for part in parts)
    assert longest > 5
    assert [part.last for part in parts if part.request == parts[-1].request].count(True) == 1
    assert link.bytes < 1.05 * size


@pytest.mark.parametrize(
    ("rate", "delay_ms", "count", "time", "bytes_"),
    [(125.0, 20, 20, 1.25, 1.1), (12_500.0, 150, 500, 2.0, 1.05)],
    ids=["1 Mbit/s, 40 ms", "100 Mbit/s, 300 ms, 50 MB"],
)
@pytest.mark.slow
def test_a_link_is_filled(peers: Peers, rate: float, delay_ms: float, count: int, time: float, bytes_: float) -> None:
    alice, bob = peers.all
    size = write(alice, count)
    link = SlowLink(alice, bob, rate=rate, delay_ms=delay_ms)
    link.run(until_ms=600_000)
    came_ms = link.ways["alice"].free_ms + delay_ms

    assert bob.snapshots() == alice.snapshots()
    assert link.bytes < bytes_ * size
    assert came_ms < time * size / rate, f"{came_ms:.0f} ms, where the link takes {size / rate:.0f} ms"


def test_the_first_parts_are_small_so_that_their_way_tells_the_delay(peers: Peers) -> None:
    alice, bob = peers.all
    write(alice, 300, size=4_000)
    parts: list[int] = []

    def noted(giver: str, taker: str, data: bytes) -> bool:
        body = decode(data).body
        if isinstance(body, Ranges) and body.size > 1_000 and not body.last:
            parts.append(body.size)
        return True

    wire = Wire(peers)
    wire.watch = noted
    wire.run()
    assert bob.snapshots() == alice.snapshots()
    assert parts[0] <= limits.FIRST_SIZE + 4_500, "a block more at most"
    assert all(later <= 2.5 * earlier for earlier, later in pairwise(parts))
    assert max(parts) > limits.ANSWER_SIZE // 2


def test_feeds_take_turns_and_a_small_one_does_not_wait_for_a_large_one(peers: Peers) -> None:
    alice, bob = peers.all
    carol = peers.add("carol")
    peers.sync()
    write(alice, 30)
    small = note(carol, "small")
    peers.pass_on(carol, alice)
    link = SlowLink(alice, bob, rate=125, delay_ms=20)
    link.run(until_ms=3_000)
    assert small.id in bob.party.items()
    assert bob.snapshots() != alice.snapshots()


def test_a_message_comes_though_an_answer_is_under_way(peers: Peers) -> None:
    """What is written while a long answer comes does not wait for its end."""
    alice, bob = peers.all
    carol = peers.add("carol")
    peers.sync()
    write(carol, 30)
    peers.pass_on(carol, alice)
    link = SlowLink(alice, bob, rate=125, delay_ms=20)
    link.run(until_ms=2_000)
    note(alice, "fresh")
    link.nodes["alice"].replica.refresh()
    link.run(until_ms=8_000)
    mine = bytes(alice.member.open_data_feed().feed)  # type: ignore[union-attr]
    assert bob.lengths()[mine] == alice.lengths()[mine], "its item waits for what was written before"
    assert bob.lengths() != alice.lengths()
    link.run()
    assert bob.snapshots() == alice.snapshots()


def test_a_lost_part_is_asked_for_again(peers: Peers) -> None:
    alice, bob = peers.all
    write(alice, 30)
    wire = Wire(peers, weather=Weather(random.Random(1), delay_ms=(5, 5)))
    lost: list[Ranges] = []

    def lose(giver: str, taker: str, data: bytes) -> bool:
        body = decode(data).body
        gone = isinstance(body, Ranges) and body.part == 2 and not lost
        if isinstance(body, Ranges) and gone:
            lost.append(body)
        return not gone

    wire.watch = lose
    wire.run()
    assert lost
    assert bob.snapshots() == alice.snapshots()


def test_parts_may_come_in_any_order_and_twice(peers: Peers) -> None:
    alice, bob = peers.all
    write(alice, 40)
    wire = Wire(peers, weather=Weather(random.Random(2), twice=0.5, delay_ms=(5, 400)))
    wire.run()
    assert bob.snapshots() == alice.snapshots()


def test_time_outs_rest_while_bytes_come(peers: Peers) -> None:
    """A link that takes 20 s for one part of an answer: nothing is asked for twice, of nobody."""
    alice, bob = peers.all
    size = write(alice, 8)
    link = SlowLink(alice, bob, rate=20, delay_ms=20)
    link.run()
    assert bob.snapshots() == alice.snapshots()
    assert link.bytes < 1.05 * size


def test_limits_of_a_window_agree() -> None:
    assert limits.WINDOW_MIN <= limits.WINDOW_START <= limits.WINDOW_MAX
    assert limits.GRANT_MIN < limits.WINDOW_MIN
