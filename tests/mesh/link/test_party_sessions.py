"""Parties replicate over links: who shares what is found out, newcomers are let in, and nobody is told more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mesh.link.link_net import Device, LinkNet, even
from tests.party.epochs.epoch_acts import member, note

from antiphon.halo.credentials.claims import Role
from antiphon.testing.peers import Peer, Peers


class Town:
    """Parties of several devices, each founded by its own founder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._peers: list[Peers] = []
        self.devices: dict[str, Device] = {}

    def party(self, founder: str, *names: str, newcomers: tuple[str, ...] = ()) -> Peers:
        """A party of members, and newcomers who are admitted but know nothing."""
        peers = Peers(self._folder / f"{len(self._peers)}")
        self._peers.append(peers)
        for name in (founder, *names):
            peers.add(name)
        for name in newcomers:
            peer = peers.add(name, None)
            member(peers.all[0]).admit(peer.key, [Role.EDITOR])
        for peer in peers.all:
            self.devices.setdefault(peer.name, Device(peer.name)).follow(peer)
        return peers

    def net(self, *names: str, budget: int = 1 << 16, pace_ms: int = 1) -> LinkNet:
        return LinkNet(*(self.devices[name] for name in names), budget=budget, pace_ms=pace_ms)

    def close(self) -> None:
        for peers in self._peers:
            for peer in peers.all:
                peer.close()


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    town = Town(tmp_path)
    yield town
    town.close()


def get(peers: Peers, name: str) -> Peer:
    return next(peer for peer in peers.all if peer.name == name)


def changed(town: Town, peer: Peer) -> None:
    """Tell a device of a local write."""
    town.devices[peer.name].host.replica(bytes(peer.party.key)).refresh()


def key(peers: Peers) -> bytes:
    return bytes(peers.all[0].party.key)


def test_members_exchange_what_each_lacks_and_then_what_is_written(town: Town) -> None:
    peers = town.party("alice", "bob")
    alice, bob = peers.all
    note(alice)
    note(bob)
    net = town.net("alice", "bob")
    wire = net.connect(*net.devices)
    net.run()
    assert even(peers.all)
    note(alice, "later")
    changed(town, alice)
    net.run(100)
    assert even(peers.all)
    carried = wire.carried
    net.run(600_000)
    assert wire.carried - carried < 10_000  # keep-alives


def test_a_newcomer_joins_by_showing_its_admission(town: Town) -> None:
    peers = town.party("alice", newcomers=("bob",))
    alice, bob = peers.all
    note(alice)
    net = town.net("bob", "alice")
    net.connect(*net.devices)
    net.run(3_000)
    assert even(peers.all)
    bob.join()
    note(bob, "hello")
    changed(town, bob)
    net.run(3_000)
    assert even(peers.all)


def test_a_newcomer_that_is_dialled_joins_too_in_several_parties(town: Town) -> None:
    parties = [town.party(founder, "alice", newcomers=("bob",)) for founder in ("ann", "ben", "cid")]
    for peers in parties:
        peers.pass_on(peers.all[0], get(peers, "alice"))
        changed(town, get(peers, "alice"))
    net = town.net("alice", "bob")
    net.connect(*net.devices)
    net.run(10_000)
    for peers in parties:
        assert even((get(peers, "alice"), get(peers, "bob")))


def test_newcomers_who_meet_first_are_let_in_by_the_one_who_is_let_in_first(town: Town) -> None:
    """They spoke to each other as newcomers. Then one is a member, who knows nothing of the other one's device."""
    peers = town.party("alice", newcomers=("bob", "carol"))
    alice, bob, carol = peers.all
    net = town.net("bob", "carol", "alice")
    _, _, alices = net.devices
    net.connect(*net.devices[:2])
    net.run(2_000)
    net.connect(net.devices[0], alices)
    net.run(2_000)
    bob.join()
    changed(town, bob)
    net.run(70_000)
    assert even((alice, bob, carol))


def test_members_who_do_not_know_each_other_meet(town: Town) -> None:
    peers = town.party("alice", "bob", newcomers=("carol",))
    alice, bob, carol = peers.all
    peers.pass_on(alice, carol)
    carol.join()
    note(carol, "from carol")
    changed(town, carol)
    assert carol.lengths() != bob.lengths()
    net = town.net("bob", "carol")
    net.connect(*net.devices)
    net.run(5_000)
    assert even((bob, carol))


def test_a_device_that_was_never_admitted_gets_nothing(town: Town) -> None:
    peers = town.party("alice", "bob")
    note(peers.all[0])
    eve = peers.add("eve", None)
    town.devices["eve"] = Device("eve")
    town.devices["eve"].follow(eve)
    net = town.net("eve", "alice")
    net.connect(*net.devices)
    net.run(200_000)
    assert eve.lengths() == {}
    assert all(peer.lengths() != {} for peer in peers.all[:2])


def test_a_member_who_is_revoked_gets_nothing_more(town: Town) -> None:
    peers = town.party("alice", "bob")
    alice, bob = peers.all
    net = town.net("alice", "bob")
    wire = net.connect(*net.devices)
    net.run(3_000)
    for number in range(20):
        note(alice, f"{number}" * 3_000)
    changed(town, alice)
    (device, link), _ = wire.ends
    device.host.tick(net.now_ms)
    assert link.waiting_size  # announcements, or what follows
    member(alice).revoke(bob.key)
    note(alice, "without bob")
    changed(town, alice)
    device.host.tick(net.now_ms)
    assert not link.waiting_size
    assert not link.speaks(key(peers))
    control = member(alice).control
    assert control is not None
    held = bob.lengths()
    net.run(200_000)
    assert bob.lengths() == held
    assert held[control.feed] < alice.lengths()[control.feed]


def test_parties_that_are_equal_open_no_session(town: Town) -> None:
    equal, other = town.party("ann", "alice", "bob"), town.party("ben", "alice", "bob")
    note(get(other, "alice"))
    changed(town, get(other, "alice"))
    net = town.net("alice", "bob")
    wire = net.connect(*net.devices)
    net.run()
    for device, link in wire.ends:
        assert device.host.session(link, key(equal)) is None
        assert device.host.session(link, key(other)) is not None
    assert even((get(other, "alice"), get(other, "bob")))

    note(get(equal, "bob"), "then one writes")
    changed(town, get(equal, "bob"))
    net.run(5_000)
    assert even((get(equal, "alice"), get(equal, "bob")))


def test_a_tiny_party_does_not_wait_for_a_huge_one(town: Town) -> None:
    huge, tiny = town.party("ann", "alice", "bob"), town.party("ben", "alice", "bob")
    for number in range(30):
        note(get(huge, "alice"), f"{number:05}" * 20_000)
    changed(town, get(huge, "alice"))
    net = town.net("alice", "bob", budget=4_000, pace_ms=20)
    net.connect(*net.devices)
    net.run(200)
    assert not even((get(huge, "alice"), get(huge, "bob")))
    note(get(tiny, "alice"), "tiny")
    changed(town, get(tiny, "alice"))
    net.run(400)
    assert even((get(tiny, "alice"), get(tiny, "bob")))
    assert not even((get(huge, "alice"), get(huge, "bob")))
    net.run(60_000)
    assert even((get(huge, "alice"), get(huge, "bob")))


def test_a_cut_connection_is_resumed_by_another(town: Town) -> None:
    peers = town.party("alice", "bob")
    alice, bob = peers.all
    for number in range(30):
        note(alice, f"{number:05}" * 5_000)
    changed(town, alice)
    net = town.net("alice", "bob", budget=20_000, pace_ms=20)
    wire = net.connect(*net.devices)
    net.run(150)
    net.cut(wire)
    before = sum(bob.lengths().values())
    net.run(1_000)
    assert sum(bob.lengths().values()) == before < sum(alice.lengths().values())
    net.connect(*reversed(net.devices))
    net.run()
    assert even(peers.all)
