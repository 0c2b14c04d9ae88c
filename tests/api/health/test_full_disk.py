"""A disk that is full at any write: the error says so, what was acknowledged is kept, and work goes on by itself."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from tests.api.small_disk import SmallDisk
from tests.budget import budget

import antiphon
from antiphon import Object, Party
from antiphon.api.health.check import check_home
from antiphon.api.health.finding import FindingCode
from antiphon.core.errors import AntiphonError, DiskFull, InvalidInput, KeyStoreError
from antiphon.generate.home import generate
from antiphon.generate.options import Options


def check_named(error: AntiphonError, disk: SmallDisk) -> None:
    """Check that an error says what is full, and where."""
    assert "o space" in str(error), error
    assert str(disk.folder) in str(error), error


def item_of(party: Party, item: bytes) -> Object:
    found = party.item(item)
    assert isinstance(found, Object)
    return found


class Journal:
    """Acts of an application, and what it was told of each."""

    def __init__(self, disk: SmallDisk) -> None:
        self._disk = disk
        self.acknowledged: dict[str, int] = {}
        self.failed = 0

    def write(self, party: Party, item: bytes, key: str) -> None:
        try:
            item_of(party, item)[key] = len(self.acknowledged)
        except AntiphonError as error:
            check_named(error, self._disk)
            self.failed += 1
        else:
            self.acknowledged[key] = len(self.acknowledged)

    def attempt(self, act: Callable[[], object]) -> bool:
        try:
            act()
        except AntiphonError as error:
            check_named(error, self._disk)
            return False
        return True


@pytest.mark.parametrize("pages", budget([0, 1, 2, 5, 17, 40], list(range(80))))
def test_an_application_goes_on_when_there_is_room_again(disk: SmallDisk, pages: int) -> None:
    """Writing, saving and declaring with no room at all, or with room for a while; in one process, then in the next."""
    journal = Journal(disk)
    with antiphon.open(disk.home, unprotected=True, epochs=False) as store:
        party = store.create_party("Household")
        item = party.object({}).id
        journal.write(party, item, "before")
        disk.leave(pages)
        for number in range(budget(30, 60)):
            journal.write(party, item, f"full {number}")
        journal.attempt(party.processor.save)
        journal.attempt(party.epochs.declare)
        disk.free()
        failed = journal.failed
        journal.write(party, item, "after")

        assert journal.failed == failed, "it does not go on by itself"
        assert party.item(item).value == journal.acknowledged
        party.epochs.declare()
    assert check_home(disk.home).findings == ()
    with antiphon.open(disk.home) as store:
        assert store.party(party.key).item(item).value == journal.acknowledged


@pytest.mark.parametrize("pages", budget([0, 1, 3, 9, 30], list(range(60))))
def test_a_home_opens_after_room_was_made(disk: SmallDisk, pages: int) -> None:
    """Closing and opening with a full disk: nothing is broken by it."""
    journal = Journal(disk)
    with antiphon.open(disk.home, unprotected=True, epochs=False) as store:
        party = store.create_party("Household")
        item = party.object({}).id
        for number in range(20):
            journal.write(party, item, f"before {number}")
        disk.leave(pages)
        journal.write(party, item, "full")
        journal.attempt(store.close)

    def use() -> None:
        with antiphon.open(disk.home, epochs=False) as again:
            assert again.party(party.key).item(item).value == journal.acknowledged

    journal.attempt(use)
    disk.free()
    use()
    assert check_home(disk.home).findings == ()


@pytest.mark.parametrize("pages", budget([0, 1, 4, 20, 60, 90, 112], list(range(140))))
def test_a_home_that_could_not_be_made(disk: SmallDisk, pages: int) -> None:
    """The next attempt makes it, or completes it."""
    journal = Journal(disk)

    def make() -> None:
        with antiphon.open(disk.home, unprotected=True, epochs=False) as store:
            store.create_party("Household")

    disk.leave(pages)
    journal.attempt(make)
    disk.free()
    make()

    with antiphon.open(disk.home) as store:
        assert {party.name for party in store} <= {"Household", ""}
    # The first attempt may have begun a party that nobody was told of.
    assert {finding.code for finding in check_home(disk.home).wrong} <= {FindingCode.METADATA_PARTY}


@pytest.mark.parametrize("pages", budget([0, 1, 3, 8], list(range(30))))
def test_an_export_leaves_no_part_of_a_file(disk: SmallDisk, pages: int) -> None:
    journal = Journal(disk)
    with antiphon.open(disk.home, unprotected=True, epochs=False) as store:
        party = store.create_party("Household")
        party.file(os.urandom(200_000), name="noise")
        disk.leave(pages)
        target = disk.folder / "household.car"

        assert not journal.attempt(lambda: party.export(target))
        assert sorted(os.listdir(disk.folder)) == ["filler", "home"]
        disk.free()
        party.export(target)
        assert store.import_party(target).key == party.key


@pytest.mark.parametrize("pages", [0, 10, 200])
def test_generate_cleans_up_behind_itself(disk: SmallDisk, pages: int) -> None:
    disk.leave(pages)

    with pytest.raises((DiskFull, KeyStoreError), match="o space"):
        generate(disk.folder / "town", Options(parties=2, items=50, messages=5_000, epochs=0))

    assert not (disk.folder / "town").exists()
    (disk.folder / "made").mkdir()
    with pytest.raises((DiskFull, KeyStoreError), match="o space"):
        generate(disk.folder / "made", Options(parties=2, items=50, messages=5_000, epochs=0))
    assert os.listdir(disk.folder / "made") == []


def test_a_folder_with_files_is_not_cleared(disk: SmallDisk) -> None:
    (disk.folder / "own").write_text("mine")
    with pytest.raises(InvalidInput, match="not empty"):
        generate(disk.folder, Options(parties=1, items=1, messages=2, epochs=0))
    assert (disk.folder / "own").read_text() == "mine"
