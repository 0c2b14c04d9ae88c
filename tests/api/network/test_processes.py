"""Two stores in two processes: what they hold is the same afterwards, whichever of them is killed on the way."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.api.network import peer_process
from tests.api.network.meeting import until
from tests.budget import budget

import antiphon
from antiphon import Party, Store

ITEMS, SIZE = 150, 40_000
SENT_AGAIN_MAX = 2 << 20


class Peer:
    """A running `peer_process`."""

    def __init__(self, home: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, peer_process.__file__, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def count(self, party: Party) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(party.key.hex() + "\n")
        self._process.stdin.flush()
        return int(self._answer())

    def end(self, *, kill: bool) -> None:
        if kill:
            self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._process.wait(60)


@contextmanager
def running(home: Path, *, kill: bool = False) -> Iterator[Peer]:
    peer = Peer(home)
    try:
        yield peer
    finally:
        peer.end(kill=kill)


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Path, Path]:
    """The home of Ada, with a party of 6 MB, and that of Bob, a member who has nothing of it but its beginning."""
    with (
        antiphon.open(tmp_path / "ada", name="Ada", unprotected=True) as ada,
        antiphon.open(tmp_path / "bob", name="Bob", unprotected=True) as bob,
    ):
        party = ada.create_party("Household")
        bob.join(party.invite(bob.me))
        antiphon.sync(ada, bob)
        chance = random.Random(1)
        for _ in range(ITEMS):
            party.object({"data": chance.randbytes(SIZE)})
    return tmp_path / "ada", tmp_path / "bob"


def moved(store: Store) -> int:
    return sum(peer.bytes_in + peer.bytes_out for peer in store.peers)


def test_two_processes_replicate(homes: tuple[Path, Path]) -> None:
    ada, bob = homes
    with running(ada) as peer, antiphon.open(bob) as store:
        party = store.party("Household")
        assert store.connect(peer.address, timeout=30)
        until(lambda: len(party.query()) == ITEMS, 120)
        party.object({"data": "Bob's"})
        assert party.synced(timeout=60)
        until(lambda: peer.count(party) == ITEMS + 1)


@pytest.mark.parametrize("killed", ["sender", "receiver"])
@pytest.mark.parametrize("seed", range(budget(1, 60)))
def test_replication_goes_on_where_a_killed_process_left_it(homes: tuple[Path, Path], killed: str, seed: int) -> None:
    """Five kills at random moments: nothing is lost, and little is sent again."""
    ada, bob = homes
    mine, theirs = (bob, ada) if killed == "sender" else (ada, bob)
    chance = random.Random(f"{killed} {seed}")
    total = 0
    with antiphon.open(mine) as store:
        party = store.party("Household")
        for _ in range(5):
            with running(theirs, kill=True) as peer:
                assert store.connect(peer.address, timeout=30)
                enough = chance.randrange(10_000, 1_500_000)
                until(lambda enough=enough: moved(store) > enough or party.synced(timeout=0), 120)  # type: ignore[misc]
                total += moved(store)
            until(lambda: moved(store) == 0)
        with running(theirs) as peer:
            assert store.connect(peer.address, timeout=30)
            assert party.synced(timeout=120)
            total += moved(store)
            until(lambda: peer.count(party) == ITEMS == len(party.query()))
    assert total < ITEMS * SIZE * 1.1 + 5 * SENT_AGAIN_MAX
