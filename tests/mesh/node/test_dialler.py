"""Which addresses are dialled again, and when."""

from __future__ import annotations

import pytest

from antiphon.core.errors import InvalidInput
from antiphon.core.keys import KeyPair
from antiphon.core.ports import SeededRandomness
from antiphon.mesh.node.dialler import Dialler
from antiphon.mesh.node.limits import DIAL_PAUSE_MS, DIAL_PAUSE_MS_MAX, DIALLED_MAX, STEADY_MS
from antiphon.mesh.transport.address import Address

NOW_MS = 1_000


def address(name: str = "bob", port: int = 4242) -> Address:
    return Address(KeyPair.generate(SeededRandomness(name)).key, "192.0.2.7", port)


@pytest.fixture
def dialler() -> Dialler:
    return Dialler(SeededRandomness("pauses"))


def test_a_new_address_is_dialled_at_once_and_once(dialler: Dialler) -> None:
    target = dialler.add(address(), NOW_MS)
    assert dialler.due(NOW_MS) == [target]
    assert dialler.due(NOW_MS) == []
    assert dialler.next_ms() is None


def test_pauses_double_up_to_a_limit_with_jitter(dialler: Dialler) -> None:
    target = dialler.add(address(), NOW_MS)
    pauses = []
    for _ in range(12):
        dialler.due(NOW_MS + 10**9)
        dialler.ended(target.address.device, "refused", NOW_MS)
        assert target.next_ms is not None
        pauses.append(target.next_ms - NOW_MS)
    for number, pause in enumerate(pauses):
        most = min(DIAL_PAUSE_MS << number, DIAL_PAUSE_MS_MAX)
        assert most // 2 <= pause <= most
    assert len(set(pauses[6:])) > 1, "all peers of a machine that restarts would dial it at once"


def test_a_connection_that_lasted_begins_with_short_pauses_again(dialler: Dialler) -> None:
    target = dialler.add(address(), NOW_MS)
    for _ in range(5):
        dialler.ended(target.address.device, "refused", NOW_MS)
    dialler.connected(target.address.device, NOW_MS)
    assert dialler.next_ms() is None
    dialler.ended(target.address.device, "lost", NOW_MS, lasted_ms=STEADY_MS)
    assert target.next_ms is not None
    assert target.next_ms <= NOW_MS + DIAL_PAUSE_MS


def test_a_device_has_one_address_and_the_last_counts(dialler: Dialler) -> None:
    dialler.add(address(), NOW_MS)
    moved = dialler.add(address(port=4243), NOW_MS)
    assert dialler.targets() == [moved]
    assert dialler.remove(moved.address.device)
    assert not dialler.remove(moved.address.device)
    dialler.ended(moved.address.device, "lost", NOW_MS)
    assert dialler.next_ms() is None


def test_so_many_addresses_are_kept_connected(dialler: Dialler) -> None:
    for number in range(DIALLED_MAX):
        dialler.add(address(str(number)), NOW_MS)
    with pytest.raises(InvalidInput, match="disconnect one"):
        dialler.add(address("one more"), NOW_MS)
