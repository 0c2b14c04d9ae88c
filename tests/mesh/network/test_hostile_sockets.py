"""Strangers at the sockets of a store in a process of its own: it stays small, and members join as fast as ever."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, Any

import pytest
from tests.mesh.network.prober import PATIENCE, Prober

from antiphon.core.keys import KeyPair
from antiphon.core.ports import SystemRandomness
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.link.frames import Data, Ping, UnknownFrame
from antiphon.mesh.transport.address import Address

if TYPE_CHECKING:
    from harness.mesh_pair import Pair

pytestmark = pytest.mark.slow
SILENT = 1_000
SILENT_SIZE_MAX = 8_000  # bytes of memory for each silent socket
JOIN_S_MAX = 1.0
MESSAGE_1_SIZE = 2 + 32 + 8 + 16  # the length, the ephemeral key, the time, its tag


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two members in processes of their own; the writer listens."""
    from harness.mesh_pair import Pair

    with closing(Pair(tmp_path_factory.mktemp("pair"), None, 1)) as made:
        made.listen()
        made.reader.ask("open", home=made.homes[0])
        yield made


def address_of(pair: Pair) -> Address:
    return Address.parse(pair.address)


def join_time(pair: Pair) -> float:
    """Return the seconds in which the other member connects and takes a feed of a few blocks."""
    return pair.take_here(pair.fill(20, 100))["applied"]


def knock(address: Address, number: int = 0) -> socket.socket:
    """Connect, from one of many addresses of this machine."""
    source = f"127.1.{number // 250}.{number % 250 + 1}"
    return socket.create_connection((address.host, address.port), PATIENCE, source_address=(source, 0))


def drained(met: socket.socket) -> bytes:
    """Return all that comes until the store hangs up."""
    found = b""
    with suppress(ConnectionError):
        while data := met.recv(1 << 16):
            found += data
    return found


def first_message(address: Address, *, now_ms: int | None = None, device: KeyPair | None = None) -> bytes:
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    own, other = KeyPair.generate(SystemRandomness()), address.device if device is None else device.key
    return Channel.dial(own, other, now_ms=now_ms, randomness=SystemRandomness()).outgoing()


@pytest.mark.parametrize("spread", [False, True], ids=["from one address", "from many addresses"])
def test_a_thousand_silent_sockets_take_little_and_keep_nobody_out(pair: Pair, spread: bool) -> None:
    address, usual = address_of(pair), join_time(pair)
    before = pair.writer.ask("usage")["memory"]
    with ExitStack() as stack:
        for number in range(SILENT):
            with suppress(ConnectionError):
                stack.enter_context(knock(address, number if spread else 0))
        grown = pair.writer.ask("usage")["memory"] - before
        took = join_time(pair)
    assert grown / SILENT <= SILENT_SIZE_MAX
    assert took < max(JOIN_S_MAX, 3 * usual)


GARBAGE: dict[str, Callable[[Address], bytes]] = {
    "noise": lambda address: os.urandom(3_000),
    "zeros": lambda address: bytes(3_000),
    "a web page": lambda address: b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an empty message": lambda address: bytes(2),
    "the longest message": lambda address: struct.pack(">H", 0xFFFF) + os.urandom(0xFFFF),
    "a wrong key": lambda address: first_message(address, device=KeyPair.generate(SystemRandomness())),
    "an old clock": lambda address: first_message(address, now_ms=int(time.time() * 1000) - 3_600_000),
    "a first message that is cut": lambda address: first_message(address)[:-1],
}


def test_who_does_not_know_the_protocol_or_the_key_is_told_nothing(pair: Pair) -> None:
    address = address_of(pair)
    with ExitStack() as stack:
        met = [(kind, stack.enter_context(knock(address, number))) for number, kind in enumerate([*GARBAGE] * 4)]
        for kind, one in met:
            with suppress(ConnectionError):
                one.sendall(GARBAGE[kind](address))
        assert {kind: answer for kind, one in met if (answer := drained(one))} == {}
    assert join_time(pair) < 3 * JOIN_S_MAX


def test_a_first_message_is_answered_once(pair: Pair) -> None:
    address = address_of(pair)
    recorded = first_message(address)
    with knock(address) as met:
        met.sendall(recorded)
        assert met.recv(1 << 16)
    with knock(address) as met:
        met.sendall(recorded)
        assert drained(met) == b""


def test_a_stranger_who_breaks_the_protocol_is_dropped(pair: Pair) -> None:
    address = address_of(pair)
    faults = (
        struct.pack(">H", 2_000) + os.urandom(2_000),
        struct.pack(">H", 0xFFFF) + os.urandom(0xFFFF),
        struct.pack(">H", 3) + b"abc",
    )
    for number, record in enumerate(faults):
        with Prober(KeyPair.generate(SystemRandomness()), address, source=f"127.3.0.{number + 1}") as prober:
            prober.socket.sendall(record)
            drained(prober.socket)  # it ends
    assert join_time(pair) < 3 * JOIN_S_MAX


def flood(prober: Prober, seconds: float, frames: list[Any]) -> int:
    """Say the same frames again and again, without waiting for answers. Return how many bytes went."""
    deadline, sent = time.monotonic() + seconds, 0
    prober.socket.settimeout(0.05)
    while time.monotonic() < deadline:
        try:
            prober.say(*frames)
            sent += 1
        except (TimeoutError, ConnectionError):  # it is not read any more, or was dropped
            break
    return sent


@pytest.mark.parametrize("kind", ["pings", "unknown frames", "pieces of messages", "shown messages"])
def test_a_flood_of_strangers_holds_up_no_member(pair: Pair, kind: str) -> None:
    address, usual = address_of(pair), join_time(pair)
    before = pair.writer.ask("usage")["memory"]
    with ExitStack() as stack:
        probers = [
            stack.enter_context(Prober(KeyPair.generate(SystemRandomness()), address, source=f"127.2.0.{number + 1}"))
            for number in range(4)
        ]
        for prober in probers:
            if kind == "shown messages":
                with suppress(TimeoutError, ConnectionError):
                    for _ in range(300):
                        prober.show(os.urandom(32), os.urandom(30_000))
            elif kind == "pings":
                flood(prober, 0.5, [Ping(os.urandom(8))] * 50)
            elif kind == "unknown frames":
                flood(prober, 0.5, [UnknownFrame(b"\x80" + os.urandom(16_000))])
            else:
                flood(prober, 0.5, [Data(os.urandom(16), True, False, os.urandom(16_000))])
        took = join_time(pair)
    grown = pair.writer.ask("usage")["memory"] - before
    assert took < max(JOIN_S_MAX, 3 * usual)
    assert grown < 32 << 20
