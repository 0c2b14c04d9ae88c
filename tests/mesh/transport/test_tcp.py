"""Pipes over TCP on loopback: the laws, what a silent socket costs, ends that do not behave, and words for failures."""

from __future__ import annotations

import asyncio
import errno
import gc
import random
import resource
import socket
import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from tests.budget import FIRST_SEED, budget
from tests.mesh.proxy import Kind, Proxy, seeded
from tests.mesh.transport.owners import Ear, TcpSetup, over_tcp

from antiphon.core.errors import InvalidInput
from antiphon.core.keys import PublicKey
from antiphon.core.reasons import Reason, code_of
from antiphon.mesh.transport import tcp
from antiphon.mesh.transport.address import Address
from antiphon.mesh.transport.limits import UNSENT_LOW
from antiphon.testing import run_transport_tests

DEVICE = PublicKey(bytes(32))
SILENT_COUNT = 1000
SILENT_SIZE_MAX = 8 << 10


@pytest.fixture
def setup() -> Iterator[TcpSetup]:
    with over_tcp() as made:
        yield made


def serve(setup: TcpSetup) -> tuple[list[Ear], int]:
    """Listen; return the owners of what is accepted or dialled, and the port."""
    return setup.ears, setup.transport.listen(setup.host, 0, setup.own).port


def call(port: int) -> socket.socket:
    """Connect as a stranger would."""
    return socket.create_connection(("127.0.0.1", port))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_tcp_keeps_every_law(host: str) -> None:
    assert len(run_transport_tests(lambda: over_tcp(host))) == 15


def test_a_silent_socket_costs_little(setup: TcpSetup) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 3 * SILENT_COUNT and hard < 3 * SILENT_COUNT:
        pytest.skip("too few descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3 * SILENT_COUNT), hard))
    ears, port = serve(setup)
    strangers: list[socket.socket] = []

    def connect(count: int) -> None:
        strangers.extend(call(port) for _ in range(count))
        setup.run(lambda: len(ears) == len(strangers))

    try:
        connect(20)
        gc.collect()
        tracemalloc.start()
        connect(100)
        gc.collect()
        own = sum(stat.size for stat in tracemalloc.take_snapshot().filter_traces(_OUTSIDE).statistics("filename"))
        tracemalloc.stop()
        assert own / 100 < SILENT_SIZE_MAX / 2, "in objects of Python; measured 1.8 kB, and 1.9 kB of resident memory"

        while len(strangers) < SILENT_COUNT:
            connect(20)  # no more at once than the kernel keeps waiting
        member = call(port)
        setup.run(lambda: len(ears) > SILENT_COUNT)
        member.sendall(b"hello")
        setup.run(lambda: ears[-1].got == b"hello")
        member.close()
    finally:
        for stranger in strangers:
            stranger.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    setup.run(lambda: all(ear.whys for ear in ears))


#: Everything but the sockets of the strangers and the machinery of the measurement.
_OUTSIDE = [tracemalloc.Filter(False, __file__), tracemalloc.Filter(False, tracemalloc.__file__)]


def test_a_reset_is_told_as_a_loss(setup: TcpSetup) -> None:
    ears, port = serve(setup)
    stranger = call(port)
    setup.run(lambda: bool(ears))
    stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stranger.close()
    setup.run(lambda: bool(ears[0].whys))

    assert code_of(ears[0].whys[0]) is Reason.PIPE_LOST
    ears[0].pipe.write(b"into nothing")
    ears[0].pipe.close()


def test_a_close_is_over_in_time_if_the_other_end_does_not_read(
    setup: TcpSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp, "CLOSE_MS_MAX", 50)
    ears, port = serve(setup)
    with call(port):
        setup.run(lambda: bool(ears))
        while ears[0].pipe.backlog < 1 << 20:
            ears[0].pipe.write(bytes(1 << 20))
        ears[0].pipe.close("had enough")
        setup.run(lambda: bool(ears[0].whys))

        assert ears[0].whys == ["had enough [pipe.closed]"]


def test_a_close_is_over_in_time_if_the_other_end_goes_on_sending(
    setup: TcpSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp, "CLOSE_MS_MAX", 50)
    ears, port = serve(setup)
    with call(port) as stranger:
        stranger.setblocking(False)
        setup.run(lambda: bool(ears))
        ears[0].pipe.close()

        def flood() -> bool:
            with suppress(BlockingIOError, ConnectionError):
                stranger.send(bytes(1 << 16))
            return bool(ears[0].whys)

        setup.run(flood)
        assert not ears[0].got


def test_urgent_bytes_wait_for_no_acknowledgement_and_not_behind_megabytes_in_the_kernel(setup: TcpSetup) -> None:
    ears, port = serve(setup)
    setup.transport.dial(Address(DEVICE, setup.host, port), setup.own, pytest.fail)
    setup.run(lambda: len(ears) == 2)

    for ear in ears:
        assert isinstance(ear.pipe, tcp.TcpPipe)
        assert ear.pipe._socket is not None
        raw = ear.pipe._socket.get_extra_info("socket")
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT) == UNSENT_LOW


def test_what_cannot_be_listened_on_is_refused(setup: TcpSetup) -> None:
    _, port = serve(setup)
    for host, taken in (("127.0.0.1", port), ("192.0.2.7", 0), ("no such host", 0), ("a" * 300, 0), ("::1", 1 << 20)):
        with pytest.raises(InvalidInput, match="choose an address of this machine, and a free port or 0"):
            setup.transport.listen(host, taken, Ear)


def test_every_address_of_the_machine_can_be_listened_on(setup: TcpSetup) -> None:
    port = setup.transport.listen("::", 0, setup.own).port
    with call(port), socket.create_connection(("::1", port)):
        setup.run(lambda: len(setup.ears) == 2)

    assert sorted(ear.pipe.far_end.rsplit(":", 1)[0] for ear in setup.ears) == ["127.0.0.1", "[::1]"]


def test_a_name_is_looked_up(setup: TcpSetup) -> None:
    ears, port = serve(setup)
    setup.transport.dial(Address(DEVICE, "localhost", port), setup.own, pytest.fail)
    setup.run(lambda: len(ears) == 2)

    assert f"localhost:{port}" in [ear.pipe.far_end for ear in ears]


def failure(setup: TcpSetup, error: Exception | None, monkeypatch: pytest.MonkeyPatch) -> str:
    """Dial in a system that fails with `error`, or never answers; return the one reason that was told."""

    async def connect(*arguments: object, **options: object) -> None:
        if error is not None:
            raise error
        await asyncio.Event().wait()

    whys: list[str] = []
    monkeypatch.setattr(setup.loop, "create_connection", connect)
    monkeypatch.setattr(tcp, "DIAL_MS_MAX", 20)
    setup.transport.dial(Address(DEVICE, "peer.example", 4242), Ear, whys.append)
    setup.run(lambda: bool(whys))
    assert len(whys) == 1
    return whys[0]


SEVERAL = (
    "Multiple exceptions: [Errno 101] Connect call failed ('::1', 1), [Errno 111] Connect call failed ('127.0.0.1')"
)


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), Reason.DIAL_REFUSED, "does the other store"),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset"), Reason.DIAL_REFUSED, "try again later"),
        (OSError(SEVERAL), Reason.DIAL_REFUSED, "nothing listens on that port"),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), Reason.DIAL_UNREACHABLE, "Network is unreachable"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), Reason.DIAL_UNREACHABLE, "check the address"),
        (OSError(errno.EMFILE, "Too many open files"), Reason.DIAL_UNREACHABLE, "Too many open files"),
        (socket.gaierror(-2, "Name or service not known"), Reason.DIAL_UNKNOWN_HOST, "peer.example was not found"),
        (TimeoutError(errno.ETIMEDOUT, "Connection timed out"), Reason.DIAL_TIMEOUT, "did not answer"),
        (None, Reason.DIAL_TIMEOUT, "did not answer"),
    ],
)
def test_a_failed_dial_says_what_to_do(
    setup: TcpSetup, monkeypatch: pytest.MonkeyPatch, error: Exception | None, code: Reason, text: str
) -> None:
    why = failure(setup, error, monkeypatch)

    assert code_of(why) is code
    assert text in why
    assert "peer.example" in why


def test_a_transport_that_is_closed_gives_up_dials_and_listeners(setup: TcpSetup) -> None:
    whys: list[str] = []
    _, port = serve(setup)
    setup.transport.dial(Address(DEVICE, setup.host, port), Ear, whys.append)
    setup.transport.close()
    setup.transport.close()

    with pytest.raises(ConnectionRefusedError):
        call(port)
    setup.run(lambda: not setup.transport._dials)
    assert whys == []


def test_a_process_without_descriptors_accepts_again_later(setup: TcpSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "FULL_MS", 10)
    ears, port = serve(setup)
    listener = next(iter(setup.transport._listeners))
    bound, failed = listener._socket, 0

    class Full:
        def accept(self) -> tuple[socket.socket, object]:
            nonlocal failed
            failed += 1
            if failed < 3:
                raise OSError(errno.EMFILE, "Too many open files")
            return bound.accept()

        def __getattr__(self, name: str) -> Any:
            return getattr(bound, name)

    monkeypatch.setattr(listener, "_socket", Full())
    with call(port):
        setup.run(lambda: bool(ears))
    assert failed >= 3


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + budget(6, 200)))
def test_a_bad_network_gives_the_beginning_of_what_was_sent_and_an_end(setup: TcpSetup, seed: int) -> None:
    """Given a network that splits, stalls, truncates and cuts, then each owner has a part from the beginning."""
    ears, port = serve(setup)
    there, back = random.Random(seed).randbytes(1 << 20), random.Random(~seed).randbytes(1 << 20)
    kinds = (Kind.SPLIT, Kind.SPLIT, Kind.STALL, Kind.CUT, Kind.TRUNCATE)
    with Proxy(port, faults=seeded(seed, every=200_000, kinds=kinds, stall_ms_max=20)) as proxy:
        setup.transport.dial(Address(DEVICE, proxy.host, proxy.port), setup.own, pytest.fail)
        setup.run(lambda: len(ears) == 2)
        near, far = sorted(ears, key=lambda ear: not ear.pipe.far_end.endswith(f":{proxy.port}"))
        near.pipe.write(there)
        far.pipe.write(back)
        setup.run(lambda: bool(near.whys and far.whys) or (far.got, near.got) == (there, back))

    assert there.startswith(far.got)
    assert back.startswith(near.got)
    assert len(near.whys) <= 1
    assert len(far.whys) <= 1
