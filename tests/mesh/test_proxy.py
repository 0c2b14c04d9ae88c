"""The proxy for tests makes the faults of its script, at their places, and no others."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

import pytest
from tests.mesh.proxy import Fault, Kind, Proxy, Script, seeded

SECONDS_MAX = 20
DATA = bytes(range(256)) * 40


@contextmanager
def line(*faults: Fault, delay_ms: int = 0) -> Iterator[tuple[Proxy, socket.socket, socket.socket]]:
    """Connect two sockets through a proxy with these faults on the way up; yield the proxy and both ends."""

    def script(number: int, is_up: bool) -> Iterable[Fault]:
        return faults if is_up else ()

    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        Proxy(server.getsockname()[1], faults=script, delay_ms=delay_ms) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX) as near,
    ):
        server.settimeout(SECONDS_MAX)
        far, _ = server.accept()
        with far:
            far.settimeout(SECONDS_MAX)
            yield proxy, near, far


def read(end: socket.socket, size: int) -> bytes:
    """Read so many bytes, or all until the end."""
    got = b""
    while len(got) < size and (data := end.recv(size - len(got))):
        got += data
    return got


def test_bytes_pass_in_both_directions() -> None:
    with line(delay_ms=5) as (proxy, near, far):
        near.sendall(DATA)
        far.sendall(DATA[::-1])
        assert read(far, len(DATA)) == DATA
        assert read(near, len(DATA)) == DATA[::-1]
        near.shutdown(socket.SHUT_WR)
        assert far.recv(1) == b""
        assert (proxy.sizes, proxy.connections, proxy.happened) == ([len(DATA), len(DATA)], 1, {})


def test_a_bit_is_flipped_at_its_place() -> None:
    with line(Fault(0, Kind.FLIP), Fault(1000, Kind.FLIP), Fault(1000, Kind.SPLIT)) as (proxy, near, far):
        near.sendall(DATA)
        got = read(far, len(DATA))

    assert [place for place in range(len(DATA)) if got[place] != DATA[place]] == [0, 1000]
    assert bin(got[1000] ^ DATA[1000]).count("1") == 1
    assert proxy.happened == {Kind.FLIP: 2, Kind.SPLIT: 1}


def test_a_stream_is_truncated_and_the_other_direction_stays() -> None:
    with line(Fault(1234, Kind.TRUNCATE)) as (_, near, far):
        near.sendall(DATA)
        assert read(far, len(DATA)) == DATA[:1234]
        far.sendall(b"still here")
        assert read(near, 10) == b"still here"


def test_a_connection_is_cut_in_both_directions() -> None:
    with line(Fault(1234, Kind.CUT)) as (_, near, far):
        near.sendall(DATA)
        for end in (near, far):
            with pytest.raises(ConnectionResetError):
                read(end, len(DATA))


def test_a_stall_without_an_end_lasts_until_the_proxy_is_calm() -> None:
    with line(Fault(10, Kind.STALL), Fault(20, Kind.CUT)) as (proxy, near, far):
        near.sendall(DATA)
        assert read(far, 10) == DATA[:10]
        far.settimeout(0.05)
        with pytest.raises(TimeoutError):
            far.recv(1)
        far.settimeout(SECONDS_MAX)
        proxy.calm()
        assert read(far, len(DATA) - 10) == DATA[10:], "a fault came from a calm proxy"
        assert proxy.happened == {Kind.STALL: 1}


def test_all_connections_can_be_cut_at_once() -> None:
    with line() as (proxy, near, far):
        near.sendall(b"x")
        assert far.recv(1) == b"x"
        proxy.cut()
        for end in (near, far):
            with pytest.raises(ConnectionResetError):
                end.recv(1)


def test_a_target_that_is_gone_refuses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with Proxy(port) as proxy, socket.socket() as near:

        def call() -> None:
            near.connect(("127.0.0.1", proxy.port))
            near.recv(1)

        with pytest.raises(ConnectionResetError):
            call()


def test_a_seed_is_a_script() -> None:
    def first(script: Script, number: int, is_up: bool) -> list[Fault]:
        return list(islice(script(number, is_up), 50))

    made = first(seeded(1, every=100), 0, True)
    assert made == first(seeded(1, every=100), 0, True)
    assert all(made != first(seeded(*other, every=100), 0, up) for other, up in (((2,), True), ((1,), False)))
    assert made != first(seeded(1, every=100), 1, True)
    assert [fault.at for fault in made] == sorted({fault.at for fault in made})
    assert {fault.kind for fault in made} == set(Kind)


def test_a_seeded_proxy_ends_no_thread_and_no_task_badly() -> None:
    """Many connections, each until a fault ends it: all threads end with the proxy."""
    before = threading.active_count()
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        server.settimeout(SECONDS_MAX)
        with Proxy(server.getsockname()[1], faults=seeded(3, every=3000, stall_ms_max=5)) as proxy:
            for _ in range(15):
                with socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX) as near:
                    far, _ = server.accept()
                    far.settimeout(SECONDS_MAX)
                    with far:
                        try:
                            near.sendall(DATA)
                            near.shutdown(socket.SHUT_WR)
                            while far.recv(1 << 16):
                                pass
                        except ConnectionResetError:
                            pass
            assert set(proxy.happened) == set(Kind)
    assert threading.active_count() == before
