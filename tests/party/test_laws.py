"""Laws 1 and 2 on whole peers: any causal delivery, any split, a restart at any point, one state, byte for byte."""

from __future__ import annotations

import random
import tempfile
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget
from tests.party.crowded import open_many_feeds
from tests.party.epochs.epoch_acts import agree_on, epoch, join, same
from tests.party.forked import confront, fork_with_items
from tests.party.helpers import narrow
from tests.party.histories import MODELS, act, models, some_ranges

from antiphon.core.errors import FeedRetired, InvalidInput, InvalidMutation, NotAuthorised, UnknownItem
from antiphon.testing.peers import Peers

EXAMPLES = budget(15, 400)


def check_histories(folder: str, seed: int, *, authority: bool, steps: int) -> None:
    chance = random.Random(seed)
    with Peers(folder, authority=authority, models=models()) as peers:
        names = ("alice", "bob", "carol")
        for name in names:
            peers.add(name)
        for _ in range(steps):
            peer, other = chance.sample(peers.all, 2)
            what = chance.random()
            # Messages may be erased, rights taken away and feeds ended, those with the genesis of an item too.
            with suppress(NotAuthorised, InvalidInput, InvalidMutation, UnknownItem, FeedRetired):
                if what < 0.3:
                    some_ranges(other, peer, chance)
                elif what < 0.36 and authority:
                    narrow(peers, chance)
                elif what < 0.37 and authority:
                    fork_with_items(peers, chance, MODELS)
                elif what < 0.38 and authority:
                    open_many_feeds(peers, chance)
                else:
                    act(peer, chance)
        peers.sync()
        if authority:
            confront(peers)
            confront(peers)  # what was written about forks refers to blocks that others have to be shown
        alice, bob, carol = peers.all
        wanted = alice.snapshots()
        values = {item: alice.party.item(item).value for item in wanted}
        refused = alice.party.refused()
        assert bob.snapshots() == wanted
        carol.rebuild()  # from the feeds alone
        assert carol.snapshots() == wanted
        bob.restart(crash=True)
        assert bob.snapshots() == wanted
        assert {item: bob.party.item(item).value for item in wanted} == values
        assert bob.party.refused() == refused == carol.party.refused()
        assert not bob.party.status().blocked
        if authority:
            check_joiners(peers)


def check_joiners(peers: Peers) -> None:
    """An epoch comes: who joins with its snapshot alone, and who computes it from the feeds, judge like veterans."""
    agree_on(peers, peers.all[0])
    epoch(peers)
    computes = peers.add("computes", None)
    for giver in peers.all[:-1]:
        computes.take(giver.ranges({}))
    computes.epochs.step()
    same(*peers.all)
    same(*peers.all, join(peers, "joins"))


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 1 << 32), authority=st.booleans())
def test_any_delivery_any_split_any_restart_gives_the_same_bytes(seed: int, authority: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_histories(folder, seed, authority=authority, steps=40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_longer_histories_too(tmp_path: Any, seed: int) -> None:
    check_histories(str(tmp_path), seed, authority=True, steps=250)
