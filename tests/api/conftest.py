"""What the tests of the API share: Ada, who founds a party, and Bob, who is invited to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import antiphon
from antiphon import Party, Store


@pytest.fixture
def ada(tmp_path: Path) -> Iterator[Store]:
    with antiphon.open(tmp_path / "ada", name="Ada") as store:
        yield store


@pytest.fixture
def bob(tmp_path: Path) -> Iterator[Store]:
    with antiphon.open(tmp_path / "bob", name="Bob") as store:
        yield store


@pytest.fixture
def party(ada: Store) -> Party:
    return ada.create_party("Household")


@pytest.fixture
def theirs(ada: Store, bob: Store, party: Party) -> Party:
    """The same party on Bob's device; what is written is apart until `exchange`."""
    bob.join(party.invite(bob.me))
    antiphon.exchange(ada, bob)
    return bob.party(party.key)
