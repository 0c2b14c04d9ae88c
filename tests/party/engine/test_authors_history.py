"""Items with access lists follow from the blocks, whatever authors were recorded before: see `authors_history`."""

from __future__ import annotations

import random

import pytest
from tests.budget import FIRST_SEED, budget
from tests.party.authors_history import History, check
from tests.party.forked import confront

from antiphon.testing.peers import Peers


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + budget(6, 300)))
def test_items_with_access_lists_follow_from_the_blocks_in_any_history(peers: Peers, seed: int) -> None:
    history = History(peers, random.Random(seed))
    for _ in range(30):
        history.step()
    for _ in range(2):
        peers.settle()
        confront(peers)
    for one in peers.all:
        for other in peers.all:
            peers.pass_blobs(one, other, whole=True)
    for peer in peers.all:
        check(peer)
    assert len({peer.epochs.number for peer in peers.all}) == 1
    assert all(peer.snapshots() == peers.all[0].snapshots() for peer in peers.all)
