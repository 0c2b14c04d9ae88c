"""Control blocks that come are heard of by whoever reads the control state first, and judged by all the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.party.epochs.epoch_acts import member
from tests.party.helpers import shown

from antiphon.party.bundle.export import export_party
from antiphon.party.maintenance import garbage
from antiphon.testing.peers import Peer, Peers


def export(peer: Peer, folder: Path) -> None:
    export_party(peer.party, member(peer).machine, folder / "bundle.car")


def collect(peer: Peer, folder: Path) -> None:
    garbage._snapshots(peer.party, member(peer).machine, 0)  # of each party that `collect_garbage` visits


@pytest.mark.parametrize("reader", [export, collect])
def test_messages_are_judged_again_though_others_have_read_the_control_blocks(
    peers: Peers, alice: Peer, bob: Peer, tmp_path: Path, reader: Callable[[Peer, Path], None]
) -> None:
    """Bob exports a party, or collects garbage, before he processes the revocation of Carol that has come."""
    carol = peers.add("carol")
    note = alice.party.create("antiphon/object")
    peers.sync()
    member(alice).revoke(carol.key)
    carol.party.item(note.id).edit("set", "late", True)
    peers.pass_on(carol, bob)
    assert bob.party.item(note.id).value == {"late": True}
    for span in alice.ranges(bob.lengths()):
        bob.store.ingest_bytes(span.encode())
    reader(bob, tmp_path)
    bob.party.process()
    assert bob.party.item(note.id).value == {}
    peers.sync()
    assert shown(bob) == shown(alice)
