"""Fixtures of the tests of backups: a small home, and a backup of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import antiphon


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Ada's home, with a party, an epoch and a file."""
    with antiphon.open(tmp_path / "home", name="Ada", unprotected=True, epochs=False) as store:
        party = store.create_party("Household")
        party.object({"a": 1}, name="values")
        party.file(b"contents " * 1000, name="letter")
        party.epochs.declare()
        party.object({"b": 2}, name="more")
    return tmp_path / "home"


@pytest.fixture
def made(home: Path, tmp_path: Path) -> Path:
    """A backup of the home."""
    return antiphon.backup(home, tmp_path / "made").path
