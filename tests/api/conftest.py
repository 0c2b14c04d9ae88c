"""Fixtures of the API tests: Ada, who creates a party, and Bob, who is invited to it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.api.small_disk import SmallDisk

import antiphon
from antiphon import Party, Store
from antiphon.snapshot import BlobStore


@antiphon.typed("task")
@dataclass
class Task:
    """The class of the typed objects in tests."""

    title: str
    done: bool = False
    tags: set[str] = field(default_factory=set)


def blobs(store: Store) -> BlobStore:
    found = store.manager.blobs
    assert isinstance(found, BlobStore)
    return found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store for tests of one device."""
    with antiphon.open(tmp_path / "home", unprotected=True) as made:
        yield made


@pytest.fixture
def ada(tmp_path: Path) -> Iterator[Store]:
    """Ada's store, without a background thread: tests count what moves, and when."""
    with antiphon.open(tmp_path / "ada", name="Ada", unprotected=True, epochs=False) as store:
        yield store


@pytest.fixture
def bob(tmp_path: Path) -> Iterator[Store]:
    with antiphon.open(tmp_path / "bob", name="Bob", unprotected=True, epochs=False) as store:
        yield store


@pytest.fixture
def party(ada: Store) -> Party:
    return ada.create_party("Household")


@pytest.fixture
def theirs(ada: Store, bob: Store, party: Party) -> Party:
    """The same party on Bob's device; writes of the two devices are separate until `sync`."""
    bob.join(party.invite(bob.me))
    antiphon.sync(ada, bob)
    return bob.party(party.key)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
