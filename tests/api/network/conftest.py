"""Fixtures of the network tests: stores with background threads, as applications open them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.network.meeting import until

import antiphon
from antiphon import Party, Store


@pytest.fixture
def ada(tmp_path: Path) -> Iterator[Store]:
    with antiphon.open(tmp_path / "ada", name="Ada", unprotected=True) as store:
        yield store


@pytest.fixture
def bob(tmp_path: Path) -> Iterator[Store]:
    with antiphon.open(tmp_path / "bob", name="Bob", unprotected=True) as store:
        yield store


@pytest.fixture
def party(ada: Store, bob: Store) -> Party:
    """A party of Ada that Bob was invited to; his store has nothing of it yet."""
    made = ada.create_party("Household")
    bob.join(made.invite(bob.me))
    return made


@pytest.fixture
def theirs(ada: Store, bob: Store, party: Party) -> Party:
    """The same party on Bob's device, once it has come over a connection, which stays."""
    assert bob.connect(ada.listen())
    assert party.synced(timeout=30)
    until(lambda: bob.party(party.key).member.control is not None)
    return bob.party(party.key)
