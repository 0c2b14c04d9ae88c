"""Over real sockets, four devices that may have nothing get one answer: as many bytes, in the same frames, as soon.

A stranger knows no party; a non-member knows the key of one, from an invitation perhaps; a revoked member has been in
it; and the last one asks for a party that is not here.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.budget import budget, only_in_soak
from tests.mesh.network.prober import Prober

import antiphon
from antiphon import Store
from antiphon.core.keys import KeyPair
from antiphon.halo.member.device_proof import vouch
from antiphon.mesh.link.frames import Digest, Tags
from antiphon.mesh.replication.admits import NewcomerAdmits
from antiphon.mesh.replication.replica import ControlReplica
from antiphon.mesh.replication.session import Session
from antiphon.mesh.transport.address import Address

TRIES = budget(50, 500)
TIMED = 10_000  # messages shown in each case: with fewer, chance alone moves the median by 5 % of the spread
JUDGED_S = 1.5  # a message that was shown is looked into within a second


class Case(NamedTuple):
    """A device, the party that it asks about, and what it shows."""

    name: str
    device: KeyPair
    party: bytes
    greeting: bytes


@pytest.fixture
def alice(tmp_path: Path) -> Iterator[Store]:
    with antiphon.open(tmp_path / "alice", name="Alice", unprotected=True, epochs=False) as store:
        store.create_party("Chess")
        yield store


@pytest.fixture
def cases(alice: Store, tmp_path: Path) -> list[Case]:
    party = alice.party("Chess")
    found = []
    for name, asked in (
        ("stranger", os.urandom(32)),
        ("non-member", bytes(party.key)),
        ("revoked", bytes(party.key)),
        ("no such party", os.urandom(32)),
    ):
        with antiphon.open(tmp_path / name, name=name, unprotected=True, epochs=False) as store:
            if name == "revoked":
                store.join(party.invite(store.me))
                antiphon.sync(alice, store)
                assert len(store.party("Chess").members.members) == 2
                party.revoke(store.me)
            found.append(Case(name, store.manager.device.pair, asked, greeting(store, asked, alice)))
    size = max(len(case.greeting) for case in found)
    assert all(len(case.greeting) == size for case in found)
    return found


def greeting(store: Store, party: bytes, other: Store) -> bytes:
    """Return the first message of a newcomer, which shows its identity's word for the device."""
    admits = NewcomerAdmits(vouch(party, store.identity, store.manager.device))
    session = Session(ControlReplica(store.manager.feeds, party, admits), other.device)
    session.tick(0)
    (message,) = session.outgoing()
    return message


Shape = tuple[int, list[tuple[str, int]]]


def probe(case: Case, address: Address, *, waits: bool = True) -> Shape:
    """Name the party, show the greeting, and return the shape of all that comes, until it has been judged if asked."""
    with Prober(case.device, address) as prober:
        prober.hear(Tags)
        prober.tag(case.party)
        prober.show(case.party, case.greeting)
        prober.answered()
        prober.ping()
        if waits:
            prober.listen(JUDGED_S)
        prober.show(case.party, case.greeting)
        prober.say(Digest(prober.tags.tag(case.party), bytes(32)))
        prober.answered()
        prober.ping()
        return prober.shape()


def probes(case: Case, address: Address) -> list[Shape]:
    """Probe again and again: a device has one connection only."""
    return [probe(case, address, waits=number % 25 == 0) for number in range(TRIES)]


@pytest.mark.slow
def test_all_four_get_the_same_bytes(alice: Store, cases: list[Case]) -> None:
    address = alice.listen()
    with ThreadPoolExecutor(len(cases)) as pool:
        found = list(pool.map(lambda case: probes(case, address), cases))

    expected = found[0][0]
    assert [kind for kind, _ in expected[1]] == ["Tags", "Shown", "Pong", "Shown", "Pong"]
    for case, shapes in zip(cases, found, strict=True):
        assert all(shape == expected for shape in shapes), case.name


@pytest.mark.slow
@only_in_soak
def test_all_four_are_answered_as_soon(alice: Store, cases: list[Case]) -> None:
    address = alice.listen()
    probers = [Prober(case.device, address) for case in cases]
    times: list[list[float]] = [[] for _ in cases]
    for number in range(TIMED + 200):
        for index, (case, prober) in enumerate(zip(cases, probers, strict=True)):
            began = time.perf_counter()
            prober.show(case.party, case.greeting)
            prober.answered()
            prober.heard.clear()
            if number >= 200:  # the first ones warm up
                times[index].append(time.perf_counter() - began)
    every = [span for spans in times for span in spans]
    quartiles = statistics.quantiles(every, n=4)
    allowed = 0.05 * (quartiles[2] - quartiles[0])
    for case, spans in zip(cases, times, strict=True):
        assert abs(statistics.median(spans) - statistics.median(every)) <= allowed, case.name


@pytest.mark.slow
def test_a_member_who_asks_like_that_is_answered(alice: Store, tmp_path: Path) -> None:
    """Else the other tests would pass with a store that answers nobody."""
    party = alice.party("Chess")
    with antiphon.open(tmp_path / "bob", name="Bob", unprotected=True, epochs=False) as bob:
        party.invite(bob.me)
        case = Case("member", bob.manager.device.pair, bytes(party.key), greeting(bob, bytes(party.key), alice))
    _, frames = probe(case, alice.listen())
    assert {"Digest", "Data"} & {kind for kind, _ in frames}
