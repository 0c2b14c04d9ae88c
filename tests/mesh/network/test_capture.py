"""What the devices of the demo send each other holds no key, name, invitation or text that others could read."""

from __future__ import annotations

import base64
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path

import pytest
from examples.three_devices import NAMES, NEWCOMER, PARTY, direct
from rich.console import Console

import antiphon
from antiphon.halo.keys.key_file import KeyKind
from antiphon.mesh.transport.address import Address

pytestmark = pytest.mark.slow
WORDS = (PARTY, "alice", "carol", "dora's device", "A trip to the sea", "In June: ", "by train", "towels", "note 17")
SIZE_MIN = 5  # bytes: shorter words are in any noise


def forms(secret: bytes) -> Iterator[bytes]:
    """Yield the ways in which bytes may be written: raw, in hex, and in base64 wherever they begin in it."""
    yield secret
    yield secret.hex().encode()
    yield secret.hex().upper().encode()
    for before in range(3):
        text = base64.b64encode(bytes(before) + secret + bytes(-(before + len(secret)) % 3))
        inner = text[-(-8 * before // 6) : (8 * (before + len(secret))) // 6]
        yield inner
        yield inner.translate(bytes.maketrans(b"+/", b"-_"))


def leaks(sent: bytes, secrets: dict[str, bytes]) -> set[str]:
    return {name for name, secret in secrets.items() if any(form in sent for form in forms(secret))}


@pytest.mark.parametrize("before", range(6))
@pytest.mark.parametrize(
    "write",
    [bytes, bytes.hex, base64.b64encode, base64.urlsafe_b64encode],
    ids=["raw", "hex", "base64", "base64 of URLs"],
)
def test_a_secret_is_found_however_it_is_written(before: int, write: Callable[[bytes], bytes | str]) -> None:
    secret = os.urandom(32)
    written = write(os.urandom(before) + secret + os.urandom(7))
    sent = os.urandom(100) + (written.encode() if isinstance(written, str) else written) + os.urandom(100)
    assert leaks(sent, {"it": secret, "another": os.urandom(32)}) == {"it"}


def secrets_of(home: Path) -> dict[str, bytes]:
    """Return all that nobody else may read in what the devices say: keys, words, invitations."""
    found = {word: word.encode() for word in WORDS}
    assert all(len(word) >= SIZE_MIN for word in found)
    for name in (*NAMES, NEWCOMER):
        with antiphon.open(home / name, epochs=False) as store:
            for record in (one for kind in KeyKind for one in store.keys.keys(kind)):
                found[f"{name}: {record.label}"] = bytes(record.key)
            party = store.party(PARTY)
            found["the party"] = bytes(party.key)
            for feed in store.manager.feeds.feeds():
                found[f"feed {feed.feed.hex()[:8]}"] = bytes(feed.feed)
            for item in party.items():
                found[f"item {item.id.hex()[:8]}"] = bytes(item.id)
    return found


def test_the_devices_of_the_demo_send_nothing_that_can_be_read(tmp_path: Path) -> None:
    from harness.mesh_sockets import CountingRelay

    relays: dict[str, CountingRelay] = {}

    def route(address: str) -> str:
        if address not in relays:
            relays[address] = CountingRelay(Address.parse(address).port, keeps=True)
        return address.replace(f":{Address.parse(address).port}", f":{relays[address].port}")

    home = tmp_path / "demo"
    assert direct(home, Console(file=StringIO()), route)
    sent: dict[int, list[bytes]] = defaultdict(list)
    for relay in relays.values():
        with closing(relay):
            for port, data in relay.kept or ():
                sent[port].append(data)
    everything = b"\0".join(b"".join(data) for data in sent.values())
    secrets = secrets_of(home)
    assert len(everything) > 20_000
    assert len(secrets) > 20
    assert leaks(everything, secrets) == set()
