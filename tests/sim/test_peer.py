"""A simulated peer goes on after a fault of its disk."""

from __future__ import annotations

from pathlib import Path

from antiphon.model.factory import ModelFactory
from antiphon.sim.network import CALM, Network
from antiphon.sim.peer import SimPeer
from antiphon.sim.world import World


def test_a_message_that_comes_first_after_a_full_disk_is_received(tmp_path: Path) -> None:
    """The full disk stopped the party; the message may come before the peer's own work begins again (seed 4000400)."""
    world = World(1)
    network, models = Network(world, CALM), ModelFactory.standard()
    for name in ("alice", "bob"):
        (tmp_path / name).mkdir()
    alice = SimPeer("alice", 1, tmp_path / "alice", world, network, models=models)
    bob = SimPeer("bob", 1, tmp_path / "bob", world, network, models=models, founder=alice)
    alice.link(bob)
    note = alice.party.create("antiphon/object")
    alice.disk.full = True
    assert not alice.guarded(alice.party.save)
    assert not alice.party.running
    alice.disk.full = False
    world.run(10_000)  # Bob greets, and she answers
    assert alice.party.item(note.id).value == {}
    alice.close()
    bob.close()
