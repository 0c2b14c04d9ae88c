"""Fixtures of the tests of the live engine: a party of two peers, apart until they exchange."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.testing.peers import Peer, Peers


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    """A party with nobody in it yet."""
    with Peers(tmp_path / "peers") as party:
        yield party


@pytest.fixture
def alice(peers: Peers) -> Peer:
    """The founder."""
    return peers.add("alice")


@pytest.fixture
def bob(peers: Peers, alice: Peer) -> Peer:
    """An editor, whom Alice has admitted."""
    return peers.add("bob")


@pytest.fixture
def lone(tmp_path: Path) -> Iterator[Peer]:
    """A store that runs alone, without credentials."""
    with Peers(tmp_path / "alone", authority=False) as party:
        yield party.add("lone")
