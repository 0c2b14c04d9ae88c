"""Who connects and breaks the rules: a member is served all the same, and nothing of a stranger's is kept."""

from __future__ import annotations

import contextlib
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.network.meeting import until
from tests.mesh.network.prober import Prober

import antiphon
from antiphon import Party, Store
from antiphon.api.network.store_host import StoreHost
from antiphon.core.keys import KeyPair
from antiphon.core.ports import SystemRandomness
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.node.ports import PartyEnd
from antiphon.mesh.transport import limits
from antiphon.mesh.transport.address import Address
from antiphon.mesh.transport.limits import CLOSE_MS_MAX

SILENT = 1_000


@pytest.fixture
def address(ada: Store) -> Address:
    return ada.listen()


@contextlib.contextmanager
def sockets(address: Address, count: int) -> Iterator[list[socket.socket]]:
    """Connections from many addresses of this machine, which say nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * count + 256:
        pytest.skip(f"a process may open {hard} files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * count + 256), hard))
    with contextlib.ExitStack() as opened:
        made = []
        for number in range(count):
            one = opened.enter_context(socket.socket())
            one.bind((f"127.0.{1 + number // 200}.{1 + number % 200}", 0))
            one.connect((address.host, address.port))
            made.append(one)
        yield made


def test_a_member_joins_while_a_thousand_sockets_are_silent(bob: Store, party: Party, address: Address) -> None:
    with sockets(address, SILENT):
        began = time.monotonic()
        assert bob.connect(address, timeout=30)
        took_s = time.monotonic() - began
        assert party.synced(timeout=30)
    assert took_s < 1.0


def test_garbage_ends_only_the_connection_that_it_comes_on(bob: Store, party: Party, address: Address) -> None:
    chance = SystemRandomness()
    for size in (1, 48, 64, 1_000, 5_000):
        with socket.socket() as one:
            one.bind(("127.0.9.1", 0))
            one.connect((address.host, address.port))
            with contextlib.suppress(OSError):  # it may be closed already, or banned
                one.sendall(chance.bytes(size))
    assert bob.connect(address)
    assert party.synced(timeout=30)


def test_frames_that_a_proven_device_must_not_send_end_its_connection(
    ada: Store, bob: Store, party: Party, address: Address
) -> None:
    """Eve proves her device, and then sends what is no frame of a link."""
    with antiphon.open(ada.path.with_name("eve"), name="Eve", unprotected=True) as eve, socket.socket() as one:
        one.settimeout(30)
        one.bind(("127.0.9.2", 0))  # a stranger's address is banned, too
        one.connect((address.host, address.port))
        now_ms = int(time.time() * 1_000)
        channel = Channel.dial(eve.manager.device.pair, ada.device, now_ms=now_ms, randomness=SystemRandomness())
        one.sendall(channel.outgoing())
        while not channel.is_open:
            channel.receive(one.recv(4096))
        one.sendall(channel.outgoing() + channel.seal(b"\x05\xff" + bytes(40)))
        with contextlib.suppress(OSError):
            while one.recv(4096):
                pass
        until(lambda: not ada.peers)
    assert bob.connect(address)
    assert party.synced(timeout=30)


def test_a_member_that_writes_without_end_does_not_keep_others_waiting(
    tmp_path: Path, ada: Store, bob: Store, party: Party, theirs: Party
) -> None:
    other = ada.create_party("Another")
    stop = threading.Event()

    def flood() -> None:
        while not stop.is_set():
            with theirs.batch():
                for _ in range(20):
                    theirs.object({"data": bytes(20_000)})

    with antiphon.open(tmp_path / "eve", name="Eve", unprotected=True) as eve:
        other_invitation = other.invite(eve.me)
        eve.join(other_invitation)
        assert eve.connect(ada.listen())
        assert other.synced(eve.device, timeout=30)
        until(lambda: eve.party(other.key).member.control is not None)
        thread = threading.Thread(target=flood)
        thread.start()
        try:
            hers = eve.party(other.key)
            for number in range(5):
                note = other.object({"number": number})
                until(lambda note=note: hers.has(note.id), 20)  # type: ignore[misc]
        finally:
            stop.set()
            thread.join()


def test_a_device_may_say_much_right_behind_its_proof(
    bob: Store, party: Party, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tags of many parties may come in one piece with the last message of the handshake: they do not count."""
    for number in range(20):
        bob.create_party(f"Party {number}").invite(party.store.me)
    monkeypatch.setattr(limits, "UNPROVEN_SIZE_MAX", 400)
    assert bob.connect(address)
    assert party.synced(timeout=30)


def test_a_device_that_dials_again_and_again_holds_one_socket(ada: Store, address: Address) -> None:
    """Connections that another one replaces end at once: sockets in the course of closing have no places."""
    stranger = KeyPair.generate(SystemRandomness())
    with contextlib.ExitStack() as opened:
        probers = [Prober(stranger, address) for _ in range(6)]
        for prober in probers:
            opened.enter_context(prober.socket)
        node = ada.network.node
        assert node is not None
        until(lambda: len(node._links._pipes) == 1, CLOSE_MS_MAX / 2_000)


def test_what_strangers_show_does_not_open_a_party_again_and_again(
    ada: Store, party: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eve was a member, and knows the party's key. Opening a party can be a second's work."""
    key, path = party.key, ada.path
    ada.close()
    opened: list[bytes] = []
    honest = StoreHost.open

    def noted(self: StoreHost, one: bytes) -> PartyEnd | None:
        opened.append(one)
        return honest(self, one)

    monkeypatch.setattr(StoreHost, "open", noted)
    with antiphon.open(path) as store:
        eve = Prober(KeyPair.generate(SystemRandomness()), store.listen())
        with eve.socket:
            for _ in range(3):
                eve.show(key, b"let me in")
                eve.listen(1.1)  # one is judged in a second
            until(lambda: opened)
    assert opened == [key]
