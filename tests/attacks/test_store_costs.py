"""Attacks 5 and 6 as a peer meets them: blocks in a store, which every opening reads (rules 22, 24, 25).

2.9 MB of control blocks took 1.15 GB at every opening; 160 grants into a group, narrowed 160 times, took 19 s at every
later act. Memory is what Python has allocated, and work is counted in function calls: no test depends on the machine.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.attacks.survival import Attack, Scene
from tests.attacks.test_memory import kept
from tests.attacks.test_survival import much_seen, narrowed_groups, void_policies
from tests.attacks.work import GROWTH_MAX, calls
from tests.party.epochs.epoch_acts import member

from antiphon.halo.control.control_feeds import fold_control_feeds
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import Policy
from antiphon.testing.peers import Peer

MEMORY_MAX = 10  # bytes for each further byte received


def attacked(folder: Path, attack: Attack, count: int) -> tuple[Scene, int]:
    """A scene whose attack has reached Alice by a session, and the bytes that she received."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.attacks.test_survival.MANY", count)
        scene = Scene(folder)
        next(attack(scene))
    before = stored(scene.alice)
    scene.by_session()
    return scene, stored(scene.alice) - before


def opened(peer: Peer) -> PartyMachine:
    """The control state, read from the store as at every opening."""
    machine = PartyMachine(peer.party.key, member(peer).genesis_feed)
    fold_control_feeds(machine, peer.store)
    machine.state()
    return machine


def stored(peer: Peer) -> int:
    """The bytes of all blocks in a store."""
    return sum(span.size for record in peer.store.feeds() for span in peer.store.spans(record.feed))


class Costs(NamedTuple):
    """What an attack of some size costs Alice."""

    received: int  # bytes
    memory: int  # bytes, of the control state after opening
    opening: int  # calls
    act: int  # calls, of a later act


def costs(folder: Path, attack: Attack, count: int) -> Costs:
    scene, received = attacked(folder, attack, count)
    alice = scene.alice
    try:
        memory, opening = kept(partial(opened, alice)), calls(partial(opened, alice))
        act = calls(lambda: member(alice).set_policy(Policy(keep_epochs=5)))
        return Costs(received, memory, opening, act)
    finally:
        scene.close()


@pytest.mark.slow
@pytest.mark.parametrize("attack", [much_seen, narrowed_groups, void_policies], ids=lambda attack: attack.__name__)
def test_costs_are_in_proportion_to_what_was_received(tmp_path: Path, attack: Attack) -> None:
    small, large = (costs(tmp_path / str(count), attack, count) for count in (60, 120))
    more = large.received - small.received
    assert more > 0.8 * small.received
    assert large.memory - small.memory <= MEMORY_MAX * more
    assert large.opening <= GROWTH_MAX * small.opening
    assert large.act <= GROWTH_MAX * small.act
