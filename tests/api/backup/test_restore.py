"""A restored home: verified, made whole or not at all, and nobody takes its device for a liar."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

import antiphon
from antiphon import Party, Store, sync
from antiphon.api.backup.manifest import encode_manifest, read_manifest
from antiphon.api.backup.restore import check_backup
from antiphon.api.health.check import check_home
from antiphon.core.errors import DamagedStore, InvalidInput, NotAuthorised, StoreError, WrongPassphrase
from antiphon.core.home_version import HOME_VERSION, encode_version, read_version
from antiphon.halo.keys import key_store
from antiphon.halo.keys.key_file import MINIMUM

FILES = ["blobs/data.mdb", "feeds/data.mdb", "home.version", "keys", "meta.db"]


def names(party: Party) -> list[str]:
    return sorted(item.name for item in party.query())


def unharmed(*stores: Store) -> bool:
    """True if nobody was taken for a liar, and nothing was refused."""
    return all(
        not store.manager.feeds.forks() and not store.manager.feeds.quarantine().refusals and party.refused() == []
        for store in stores
        for party in store
    )


@pytest.fixture
def two(tmp_path: Path) -> tuple[Store, Store, Party]:
    """Ada and Bob, in one party; Ada has written one item."""
    ada = antiphon.open(tmp_path / "ada", name="Ada", unprotected=True, epochs=False)
    bob = antiphon.open(tmp_path / "bob", name="Bob", unprotected=True, epochs=False)
    party = ada.create_party("Household")
    bob.join(party.invite(bob.me))
    party.object({}, name="before")
    sync(ada, bob)
    return ada, bob, party


def test_a_restored_home_has_everything_and_goes_on(made: Path, tmp_path: Path) -> None:
    done = antiphon.restore(made, tmp_path / "new" / "home")

    assert (done.parties, done.retired, done.wrong) == (1, 2, 0)
    assert check_home(done.home).wrong == ()
    assert read_version(done.home) == HOME_VERSION
    with antiphon.open(done.home, epochs=False) as store:
        old = {record.feed for record in store.manager.feeds.feeds() if record.writable}
        party = store.party("Household")
        assert names(party) == ["letter", "more", "values"]
        party.object({}, name="new")
        feeds = store.manager.feeds.feeds()
        assert {record.feed for record in feeds if record.writable and record.retired} == old
        assert len([record for record in feeds if record.writable and not record.retired]) == 2
        assert unharmed(store)
    with antiphon.open(done.home, epochs=False) as store:
        assert names(store.party("Household")) == ["letter", "more", "new", "values"]


def test_what_was_written_after_the_backup_comes_back_from_others(
    two: tuple[Store, Store, Party], tmp_path: Path
) -> None:
    ada, bob, party = two
    ada.backup(tmp_path / "made")
    party.object({}, name="after")
    sync(ada, bob)
    ada.close()
    shutil.rmtree(tmp_path / "ada")

    antiphon.restore(tmp_path / "made", tmp_path / "ada")

    with antiphon.open(tmp_path / "ada", epochs=False) as again, bob:
        mine, theirs = again.party("Household"), bob.party("Household")
        assert names(mine) == ["before"]
        mine.object({}, name="again")
        sync(again, bob)
        assert names(mine) == names(theirs) == ["after", "again", "before"]
        mine.object({}, name="and on")
        theirs.object({}, name="so does Bob")
        sync(again, bob)
        assert names(mine) == names(theirs)
        assert len(names(mine)) == 5
        assert unharmed(again, bob)


def test_nobody_is_a_liar_if_the_old_home_goes_on(two: tuple[Store, Store, Party], tmp_path: Path) -> None:
    """It should not, but a lost laptop may be found again, and write on in its old feeds."""
    ada, bob, party = two
    ada.backup(tmp_path / "made")
    antiphon.restore(tmp_path / "made", tmp_path / "again")
    party.object({}, name="old home")
    with antiphon.open(tmp_path / "again", epochs=False) as again:
        mine = again.party("Household")
        mine.object({}, name="new home")
        sync(again, bob)
        party.object({}, name="old home once more")
        sync(ada, bob)
        sync(again, bob)
        sync(ada, bob)
        expected = ["before", "new home", "old home", "old home once more"]
        assert names(mine) == names(party) == names(bob.party("Household")) == expected
        assert unharmed(ada, bob, again)
    ada.close()
    bob.close()


def test_its_votes_wait(two: tuple[Store, Store, Party], tmp_path: Path) -> None:
    ada, bob, _ = two
    ada.backup(tmp_path / "made")
    ada.close()
    antiphon.restore(tmp_path / "made", tmp_path / "again")
    with antiphon.open(tmp_path / "again", epochs=False) as again, bob:
        party = again.party("Household")
        party.object({}, name="new")
        with pytest.raises(NotAuthorised, match="may have forgotten"):
            party.epochs.declare()
        sync(again, bob)
        party.epochs.recover()
        party.epochs.declare()
        sync(again, bob)
        assert (party.epochs.number, bob.party("Household").epochs.number) == (1, 1)


def test_keys_stay_under_their_passphrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_store, "MODERATE", MINIMUM)
    with antiphon.open(tmp_path / "home", name="Ada", passphrase="correct horse") as store:
        store.create_party("Household")
        assert store.backup(tmp_path / "made").protection == "passphrase"
    antiphon.restore(tmp_path / "made", tmp_path / "new")
    with pytest.raises(WrongPassphrase):
        antiphon.open(tmp_path / "new", passphrase="wrong")
    with antiphon.open(tmp_path / "new", passphrase="correct horse") as store:
        assert [party.name for party in store] == ["Household"]


def test_names_and_held_views_are_kept(home: Path, tmp_path: Path) -> None:
    (home / "names.json").write_text("[]")
    (home / "views.json").write_text("[]")
    antiphon.backup(home, tmp_path / "made")
    antiphon.restore(tmp_path / "made", tmp_path / "new")
    assert [(tmp_path / "new" / name).read_text() for name in ("names.json", "views.json")] == ["[]", "[]"]


def test_a_home_of_version_1_is_upgraded_after_it_was_restored(home: Path, tmp_path: Path) -> None:
    (home / "home.version").unlink()
    antiphon.backup(home, tmp_path / "made")
    antiphon.restore(tmp_path / "made", tmp_path / "new")
    assert read_version(tmp_path / "new") == 1
    antiphon.open(tmp_path / "new").close()
    assert read_version(tmp_path / "new") == HOME_VERSION


def test_an_existing_home_is_not_touched(home: Path, made: Path) -> None:
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    with pytest.raises(InvalidInput, match="is there already"):
        antiphon.restore(made, home)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


# -- damaged backups


def truncated(path: Path, _: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flipped(path: Path, _: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def zeroed(path: Path, _: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def deleted(path: Path, _: Path) -> None:
    path.unlink()


def swapped(path: Path, other: Path) -> None:
    path.write_bytes(other.read_bytes())


def longer(path: Path, _: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def linked(path: Path, _: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def pipe(path: Path, _: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path, _: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A backup of another home."""
    with antiphon.open(tmp_path / "other home", name="Bob", unprotected=True, epochs=False) as store:
        store.create_party("Club").object({}, name="another")
        return store.backup(tmp_path / "other").path


@pytest.mark.parametrize("how", [truncated, flipped, zeroed, deleted, swapped, longer, linked, pipe, folder])
def test_a_damaged_backup_is_refused_by_name(
    made: Path, other: Path, tmp_path: Path, how: Callable[[Path, Path], None]
) -> None:
    whole = made.rename(made.with_name("whole"))
    before = {*os.listdir(tmp_path), "made"}
    for file in (*FILES, "antiphon-backup.json"):
        if how is swapped and file == "home.version":
            continue  # it is the same in both
        shutil.copytree(whole, made)
        how(made / file, other / file)
        for act in (lambda: antiphon.restore(made, tmp_path / "new"), lambda: check_backup(made)):
            with pytest.raises((DamagedStore, InvalidInput, StoreError)) as told:
                act()
            assert str(made) in str(told.value)
            if file != "antiphon-backup.json":
                assert str(made / file) in str(told.value)
                assert isinstance(told.value, DamagedStore)
                assert "recovery phrase" in str(told.value)
        assert {*os.listdir(tmp_path)} == before
        shutil.rmtree(made)


@pytest.mark.parametrize("file", FILES)
def test_a_forged_backup_whose_checksums_are_right_makes_no_home(made: Path, tmp_path: Path, file: str) -> None:
    """Who writes the folder can write the checksums: what the files say is looked at, too."""
    data = made / file
    data.write_bytes(encode_version(HOME_VERSION + 1) if file == "home.version" else b"rotten" * 3000)
    manifest = read_manifest(made)
    files = tuple(
        replace(one, size=data.stat().st_size, sha256=sha256(data.read_bytes()).digest()) if one.name == file else one
        for one in manifest.files
    )
    (made / "antiphon-backup.json").write_bytes(encode_manifest(replace(manifest, files=files)))
    with pytest.raises(StoreError, match="No home was made" if file != "home.version" else "a newer Antiphon"):
        antiphon.restore(made, tmp_path / "new")
    assert sorted(os.listdir(tmp_path)) == ["home", "made"]


def test_files_that_are_not_in_the_list_are_not_taken(made: Path, tmp_path: Path) -> None:
    (made / "items").mkdir()
    (made / "items" / "evil.db").touch()
    (made / "names.json").write_text("garbage")
    antiphon.restore(made, tmp_path / "new")
    assert not (tmp_path / "new" / "items").exists()
    assert not (tmp_path / "new" / "names.json").exists()


def test_feeds_that_were_opened_after_the_copy_are_not_written_again(tmp_path: Path) -> None:
    """The keys know a data feed that the copied feeds lack; another member knows its admission, and not its blocks."""
    stores = [
        antiphon.open(tmp_path / name, name=name, unprotected=True, epochs=False) for name in ("ada", "bob", "eve")
    ]
    ada, bob, eve = stores
    party = ada.create_party("Household")
    for other in (bob, eve):
        other.join(party.invite(other.me))
        sync(ada, other)
    sync(ada, bob)
    bob.backup(tmp_path / "backup")
    bob.party("Household").member.data_writer()
    sync(bob, eve)
    bob.party("Household").object({}, name="after the backup")
    sync(ada, bob)
    bob.close()
    shutil.rmtree(tmp_path / "bob" / "feeds")
    shutil.copytree(tmp_path / "backup" / "feeds", tmp_path / "bob" / "feeds")
    with antiphon.open(tmp_path / "bob", epochs=False) as again:
        sync(eve, again)
    with antiphon.open(tmp_path / "bob", epochs=False) as again:
        again.party("Household").object({}, name="from the copy")
        sync(ada, again)
        assert unharmed(ada, again)
    assert names(party) == ["after the backup", "from the copy"]
    for store in (ada, eve):
        store.close()


def test_the_current_folder_is_no_new_home(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(InvalidInput, match="current folder"):
        antiphon.restore(made, ".")
    assert list((tmp_path / "empty").iterdir()) == []
