"""A party is exported from one home and imported into another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import antiphon
from antiphon import File, Store
from antiphon.core.errors import BadEncoding


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    with (
        antiphon.open(tmp_path / "one", unprotected=True) as one,
        antiphon.open(tmp_path / "two", unprotected=True) as two,
    ):
        yield one, two


def test_it_is_exported_and_imported(stores: tuple[Store, Store], tmp_path: Path) -> None:
    one, two = stores
    party = one.create_party("Household")
    note = party.object({"title": "Milk"})
    scan = party.file(b"scan" * 50_000, name="scan.pdf")
    party.invite(two.me)
    party.epochs.declare()
    note["title"] = "Oat milk"
    done = party.export(tmp_path / "party.car")
    assert (done.number, done.files) == (1, 1)

    theirs = two.import_party(tmp_path / "party.car", "From a stick")

    assert [known.label for known in two.parties()] == ["From a stick"]
    assert (theirs.epochs.number, theirs.item(note.id).value) == (1, {"title": "Oat milk"})
    assert theirs.item(scan.id, File).read_bytes() == b"scan" * 50_000
    assert theirs.epochs.verify().whole
    theirs.object({"title": "Salt"})  # it has joined by the way
    antiphon.sync(one, two)
    assert len(party.query()) == 3
    assert two.import_party(tmp_path / "party.car").key == party.key


def test_a_party_that_was_deleted_here_comes_back(stores: tuple[Store, Store], tmp_path: Path) -> None:
    one, _ = stores
    party = one.create_party("Household")
    note = party.object({"title": "Milk"})
    party.export(tmp_path / "party.car")
    one.manager.delete(party.key)
    assert one.import_party(tmp_path / "party.car").item(note.id).value == {"title": "Milk"}


def test_what_is_damaged_leaves_nothing(stores: tuple[Store, Store], tmp_path: Path) -> None:
    one, two = stores
    party = one.create_party()
    party.object({"title": "Milk"})
    party.export(tmp_path / "party.car")
    data = (tmp_path / "party.car").read_bytes()
    (tmp_path / "party.car").write_bytes(data[:-1])
    with pytest.raises(BadEncoding, match=r"party\.car is damaged"):
        two.import_party(tmp_path / "party.car")
    assert two.parties() == ()
    assert two.manager.feeds.feeds(party.key) == ()
