"""A rotten blob: it is named, never served, dropped by a repair, and fetched again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.api.health.test_check import flip

import antiphon
from antiphon import File, sync
from antiphon.api.health.check import check_home
from antiphon.api.health.finding import FindingCode
from antiphon.api.health.repair import repair_home
from antiphon.snapshot.blob_store import BlobStore

CONTENTS = b"contents of a file " * 500
TEXT = "a text that only the snapshot of an epoch holds"


def opened(home: Path) -> antiphon.Store:
    return antiphon.open(home, unprotected=True, epochs=False)


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Path, Path]:
    """The homes of Ada and Bob, with a file and an epoch, below which messages are pruned."""
    with opened(tmp_path / "ada") as ada, opened(tmp_path / "bob") as bob:
        party = ada.create_party("Household")
        file = party.file(CONTENTS, name="file")
        party.text(TEXT, name="text")
        bob.join(str(party.invite(bob.me)))
        party.epochs.declare()
        party.epochs.prune()
        sync(ada, bob)
        theirs = bob.party("Household").item(file.id, File)
        theirs.fetch(ada.manager.blobs)
        assert theirs.read_bytes() == CONTENTS
    return tmp_path / "ada", tmp_path / "bob"


def only(party: antiphon.Party, name: str) -> antiphon.Handle:
    return next(item for item in party.query() if item.name == name)


def test_the_content_of_a_file_is_fetched_again(homes: tuple[Path, Path]) -> None:
    home, other = homes
    flip(home / "blobs" / "data.mdb", CONTENTS[:40])
    assert FindingCode.BLOB in {finding.code for finding in check_home(home).wrong}
    with opened(home) as ada:
        party = ada.party("Household")
        file = party.item(only(party, "file").id, File)
        with pytest.raises(antiphon.DamagedBlob):
            file.read_bytes()
        assert only(party, "text").value == TEXT  # the rest goes on

    assert repair_home(home).wrong == ()

    with opened(home) as ada, opened(other) as bob:
        file = ada.party("Household").item(file.id, File)
        with pytest.raises(antiphon.MissingBlob):
            file.read_bytes()
        file.fetch(bob.manager.blobs)
        assert file.read_bytes() == CONTENTS
    assert check_home(home).wrong == ()


@pytest.mark.parametrize("items_lost", [False, True])  # if so, the items have to come from the snapshot
def test_a_snapshot_is_fetched_again_by_a_sync(homes: tuple[Path, Path], items_lost: bool) -> None:
    home, other = homes
    with BlobStore.open(home / "blobs", readonly=True) as blobs:
        before = blobs.count
    flip(home / "blobs" / "data.mdb", TEXT.encode())
    assert FindingCode.BLOB in {finding.code for finding in check_home(home).wrong}

    assert repair_home(home).wrong == ()
    for path in (home / "items").glob("*.db*") if items_lost else ():
        path.unlink()

    with opened(home) as ada, opened(other) as bob:
        sync(ada, bob)
        party = ada.party("Household")
        assert (only(party, "text").value, party.epochs.number) == (TEXT, 1)
    with BlobStore.open(home / "blobs", readonly=True) as blobs:
        assert blobs.count == before
    assert check_home(home).wrong == ()
