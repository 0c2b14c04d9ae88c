"""Pipes in memory: the same seed gives the same pieces, and faults come where a test puts them."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, strategies as st
from tests.mesh.transport.owners import Ear, in_memory, joined

from antiphon.core.errors import InvalidInput
from antiphon.core.keys import PublicKey
from antiphon.core.reasons import Reason, code_of
from antiphon.mesh.transport.address import Address
from antiphon.mesh.transport.memory import MemoryNetwork
from antiphon.mesh.transport.pipe import Pipe
from antiphon.testing import run_transport_tests


@pytest.mark.parametrize("seed", [None, "one", "two"])
def test_memory_keeps_every_law(seed: str | None) -> None:
    assert len(run_transport_tests(lambda: in_memory(seed))) == 15


@given(st.text(max_size=4), st.lists(st.binary(max_size=2000), max_size=8))
def test_a_seed_cuts_writes_into_the_same_odd_pieces(seed: str, writes: list[bytes]) -> None:
    heard = []
    for _ in range(2):
        network = MemoryNetwork(seed)
        ends, (_, other) = joined(network)
        for data in writes:
            ends[0].write(data)
        network.run()
        assert other.got == b"".join(writes)
        heard.append(other.pieces)

    assert heard[0] == heard[1]


def test_without_a_seed_pieces_are_as_large_as_asked_for() -> None:
    network = MemoryNetwork()
    ends, (_, other) = joined(network)
    for _ in range(3):
        ends[0].write(b"abc")

    assert network.deliver(4)
    assert other.pieces == [b"abca"]
    assert ends[0].backlog == 5
    network.run()
    assert other.pieces == [b"abca", b"bcabc"]


@given(st.integers(0, 3000), st.lists(st.integers(0, 700), max_size=6))
def test_a_pipe_is_cut_at_a_byte(position: int, sizes: list[int]) -> None:
    network = MemoryNetwork()
    ends, (one, other) = joined(network)
    ends[0].cut_at(position)
    whole = b"".join(bytes([number]) * size for number, size in enumerate(sizes))
    for number, size in enumerate(sizes):
        ends[0].write(bytes([number]) * size)
    network.run()

    assert other.got == whole[:position]
    is_cut = len(whole) >= position
    assert [code_of(why) for why in one.whys + other.whys] == [Reason.PIPE_LOST] * (2 if is_cut else 0)


def test_nothing_leaves_a_stalled_end() -> None:
    network = MemoryNetwork()
    ends, (one, other) = joined(network)
    ends[0].stalled = True
    ends[0].write(b"later")
    ends[1].write(b"now")
    ends[0].abort("gone")
    network.run()

    assert (one.got, other.got) == (b"", b"")
    assert one.whys == ["gone [pipe.closed]"]
    assert other.whys == []
    ends[0].stalled = False
    network.run()
    assert [code_of(why) for why in other.whys] == [Reason.PIPE_CLOSED]


def test_one_way_can_stall_while_the_other_runs() -> None:
    network = MemoryNetwork()
    ends, (one, other) = joined(network)
    ends[0].stalled = True
    ends[0].write(b"later")
    ends[1].write(b"now")
    network.run()
    assert (one.got, other.got) == (b"now", b"")

    ends[0].stalled = False
    network.run()
    assert other.got == b"later"


def test_a_loop_can_move_the_bytes() -> None:
    async def talk() -> list[bytes]:
        network = MemoryNetwork("loop", call_soon=asyncio.get_running_loop().call_soon)
        done = asyncio.Event()

        class Last(Ear):
            def closed(self, why: str) -> None:
                super().closed(why)
                done.set()

        accepted: list[Last] = []

        def accept(pipe: Pipe) -> Last:
            accepted.append(Last(pipe))
            return accepted[0]

        def dialled(pipe: Pipe) -> Ear:
            pipe.write(bytes(100_000))
            pipe.close()
            return Ear(pipe)

        there = network.transport("there").listen("any", 0, accept)
        network.transport("here").dial(Address(PublicKey(bytes(32)), "there", there.port), dialled, pytest.fail)
        await asyncio.wait_for(done.wait(), 10)
        return accepted[0].pieces

    pieces = asyncio.run(talk())
    assert b"".join(pieces) == bytes(100_000)
    assert len(pieces) > 1


def test_machines_have_names_and_ports() -> None:
    network = MemoryNetwork()
    alice, bob = network.transport("alice"), network.transport("bob")
    heard: list[Ear] = []
    failures: list[str] = []

    def own(pipe: Pipe) -> Ear:
        heard.append(Ear(pipe))
        return heard[-1]

    assert [bob.listen("", 0, own).port, bob.listen("", 7, own).port, bob.listen("", 0, own).port] == [1, 7, 2]
    with pytest.raises(InvalidInput, match="bob:7 is listened on already"):
        bob.listen("", 7, own)
    for host, port in (("bob", 7), ("bob", 8), ("carol", 7)):
        alice.dial(Address(PublicKey(bytes(32)), host, port), own, failures.append)
    assert heard == []
    network.run()

    assert [ear.pipe.far_end for ear in heard] == ["bob:7", "alice:1"]
    assert [code_of(why) for why in failures] == [Reason.DIAL_REFUSED, Reason.DIAL_UNKNOWN_HOST]
