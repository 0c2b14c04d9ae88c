"""Whole stores on a network that stalls, truncates and cuts their connections: they hold the same in the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.budget import FIRST_SEED, budget
from tests.mesh.proxy import Kind, Proxy, seeded

import antiphon
from antiphon import Party, Store
from antiphon.mesh.transport.address import Address

pytestmark = pytest.mark.slow
NAMES = ("alice", "bob", "carol")
KINDS = (Kind.STALL, Kind.TRUNCATE, Kind.CUT, Kind.SPLIT)  # who flips bits is banned, like who lies
SYNCED_S = 60.0
SEEDS = [FIRST_SEED + number for number in range(budget(2, 40))]


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[Store]]:
    """Three members of one party, who hold the same."""
    with ExitStack() as stack:
        made = [
            stack.enter_context(antiphon.open(tmp_path / name, name=name, unprotected=True, epochs=False))
            for name in NAMES
        ]
        party = made[0].create_party("Chess")
        for other in made[1:]:
            other.join(party.invite(other.me))
            antiphon.sync(made[0], other)
        antiphon.sync(made[0], made[1])
        yield made


def party_of(store: Store) -> Party:
    return store.party("Chess")


def write(store: Store, number: int, size: int) -> None:
    with party_of(store).batch():
        made = party_of(store).object({"by": store.path.name, "number": number})
        for key in range(10):
            made[f"text {key}"] = f"{store.path.name} {number} {key} ".ljust(size, "x")


def states(store: Store) -> list[bytes]:
    return sorted(item.snapshot() for item in party_of(store).items())


@pytest.mark.parametrize("seed", SEEDS)
def test_all_converge_once_the_faults_end(stores: list[Store], seed: int) -> None:
    alice, *others = stores
    address = alice.listen()
    script = seeded(seed, every=15_000, kinds=KINDS)
    with Proxy(address.port, faults=script) as proxy:
        through = Address(address.device, proxy.host, proxy.port)
        for number in range(12):
            for store in others:
                store.connect(through, 0.2)  # at once, however long a pause it would make
            for store in stores:
                write(store, number, 1_000)
            party_of(alice).synced(timeout=0.5)
        assert sum(proxy.happened[kind] for kind in (Kind.STALL, Kind.TRUNCATE, Kind.CUT)) > 5
        proxy.calm()
        for store in others:
            assert store.connect(through, SYNCED_S)
        assert party_of(alice).synced(timeout=SYNCED_S)
        for store in others:
            assert party_of(store).synced(timeout=SYNCED_S)

        assert states(stores[0]) == states(stores[1]) == states(stores[2])
        assert len(states(alice)) == 12 * len(stores)
