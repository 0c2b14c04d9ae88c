"""A party without a policy, whose founder's folder comes back from a backup before there was any epoch."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import antiphon
from antiphon import NotAuthorised, sync

pytestmark = pytest.mark.slow


def test_the_party_has_epochs_all_the_same(tmp_path: Path) -> None:
    with (
        antiphon.open(tmp_path / "ada", name="Ada", unprotected=True) as ada,
        antiphon.open(tmp_path / "bob", name="Bob", unprotected=True) as bob,
    ):
        party = ada.create_party("Household")
        bob.join(party.invite(bob.me))
        sync(ada, bob)
        key = party.key
    shutil.copytree(tmp_path / "ada", tmp_path / "twin")
    with (
        antiphon.open(tmp_path / "twin", unprotected=True) as twin,
        antiphon.open(tmp_path / "bob", unprotected=True) as bob,
    ):
        sync(twin, bob)
        there = twin.party(key)
        there.object({"title": "Milk"})
        with pytest.raises(NotAuthorised, match="may have forgotten"):
            there.epochs.declare()
        there.epochs.recover()
        there.epochs.declare()
        sync(twin, bob)
        assert (there.epochs.number, bob.party(key).epochs.number) == (1, 1)
    with (
        antiphon.open(tmp_path / "twin", unprotected=True) as twin,
        antiphon.open(tmp_path / "bob", unprotected=True) as bob,
    ):
        again = twin.party(key)
        again.object({"title": "Bread"})
        again.epochs.declare()  # that it has recovered need not be said for the next
        sync(twin, bob)
        assert (again.epochs.number, bob.party(key).epochs.number) == (2, 2)
