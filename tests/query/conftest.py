"""What the tests of subscriptions share: a party that runs alone, and its live queries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.query.live.live import LiveQueries
from antiphon.testing.peers import Peer, Peers


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path, authority=False) as peers:
        yield peers


@pytest.fixture
def alice(peers: Peers) -> Peer:
    return peers.add("alice")


@pytest.fixture
def live(alice: Peer) -> Iterator[LiveQueries]:
    live = LiveQueries(alice.party)
    yield live
    live.close()
