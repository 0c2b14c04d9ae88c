"""Backups of homes that are in use: of one moment, whole, and never over anything."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.api.small_disk import SmallDisk
from tests.api.test_kill import EMPTY, WRITER, apply
from tests.budget import budget

import antiphon
from antiphon import File, Store
from antiphon.api.backup import backup as backups
from antiphon.api.backup.restore import check_backup
from antiphon.api.health.check import check_home
from antiphon.api.health.finding import FindingCode
from antiphon.core.errors import DiskFull, InvalidInput, StoreError
from antiphon.core.home_version import write_version
from antiphon.feed.store.feed_store import FeedStore
from antiphon.snapshot.blob_store import BlobStore


def names(store: Store) -> dict[str, list[str]]:
    return {party.name: sorted(item.name for item in party.query()) for party in store}


def test_a_backup_has_everything_that_is_not_derived(home: Path, tmp_path: Path) -> None:
    (home / "notes.txt").write_text("mine")
    steps: set[str] = set()

    done = antiphon.backup(home, tmp_path / "to", tick=lambda step, done, total: steps.add(step))

    assert (done.parties, done.wrong, done.protection) == (1, (), "UNPROTECTED")
    assert done.left_out == ("items", "notes.txt")
    assert {"copy feeds", "copy blobs", "checksums"} <= steps
    files = sorted(path.relative_to(done.path).as_posix() for path in done.path.rglob("*") if path.is_file())
    assert files == ["antiphon-backup.json", "blobs/data.mdb", "feeds/data.mdb", "home.version", "keys", "meta.db"]
    for path in (done.path, *done.path.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert check_backup(done.path).size == done.size
    assert check_home(home).wrong == (), "the home is as it was"


def test_the_feeds_of_the_device_are_retired_in_the_copy_itself(home: Path, made: Path) -> None:
    """However the copy becomes a home, also by hand: rule 6 does not hang on the number of an inode."""
    with FeedStore.open(made / "feeds", readonly=True) as feeds:
        assert {record.retired for record in feeds.feeds() if record.writable} == {True}
    with FeedStore.open(home / "feeds", readonly=True) as feeds:
        assert {record.retired for record in feeds.feeds() if record.writable} == {False}


def test_erased_bytes_are_not_in_a_backup(tmp_path: Path) -> None:
    secret = b"a secret that was erased" * 20
    with antiphon.open(tmp_path / "home", unprotected=True, epochs=False) as store:
        party = store.create_party()
        note = party.object({"text": secret})
        stamp = note.history()[-1].stamp
        store.manager.feeds.erase(stamp.feed, stamp.seq)
        assert secret in (tmp_path / "home" / "feeds" / "data.mdb").read_bytes()
        store.backup(tmp_path / "to")
    assert secret not in (tmp_path / "to" / "feeds" / "data.mdb").read_bytes()


def test_a_store_that_is_open_here_is_copied(home: Path, tmp_path: Path) -> None:
    with antiphon.open(home) as store:
        store.party("Household").object({}, name="last")
        assert store.backup(tmp_path / "to").wrong == ()
        store.party("Household").object({}, name="too late")
        with pytest.raises(StoreError):  # a process opens a store once
            antiphon.backup(home, tmp_path / "other")
    with pytest.raises(antiphon.StoreClosed):
        store.backup(tmp_path / "closed")
    antiphon.restore(tmp_path / "to", tmp_path / "new")
    with antiphon.open(tmp_path / "new") as store:
        assert names(store) == {"Household": ["last", "letter", "more", "values"]}


@contextmanager
def writing(home: Path) -> Iterator[tuple[subprocess.Popen[bytes], list[list[Any]]]]:
    """A process that writes into a home without end, and the acts that it has acknowledged."""
    process = subprocess.Popen([sys.executable, str(WRITER), str(home), "7"], stdout=subprocess.PIPE, bufsize=0)
    assert process.stdout is not None
    acts: list[list[Any]] = []
    lines = os.fdopen(os.dup(process.stdout.fileno()), "rb")

    def read() -> None:
        for line in lines:
            acts.append(json.loads(line))
            more.set()

    more = threading.Event()
    thread = threading.Thread(target=read)
    thread.start()
    assert more.wait(60)
    try:
        yield process, acts
    finally:
        process.kill()
        process.wait()
        thread.join()
        lines.close()
        process.stdout.close()


def test_beside_a_writing_process_a_backup_is_of_one_moment(tmp_path: Path) -> None:
    """Every backup holds what was acknowledged before it began, and is a state that existed."""
    begun = []
    with writing(tmp_path / "home") as (_, acts):
        for number in range(budget(4, 40)):
            begun.append(len(acts))
            assert antiphon.backup(tmp_path / "home", tmp_path / f"backup {number}").wrong == ()
    for number, first in enumerate(begun):
        antiphon.restore(tmp_path / f"backup {number}", tmp_path / f"home {number}")
        with antiphon.open(tmp_path / f"home {number}", epochs=False) as store:
            items = {item.name: item for item in store.party("Journal").query()}
            found = {"object": items["object"].value, "list": items["list"].value, "text": items["text"].value}
            assert store.party("Journal").refused() == []
        state, states = deepcopy(EMPTY), []
        for act in acts[1:]:
            apply(state, act)
            states.append(deepcopy(state))
        assert found in [deepcopy(EMPTY), *states][max(0, first - 1) :], number


def test_beside_epochs_files_and_garbage_every_blob_is_there(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "home", unprotected=True, epochs=False) as store:
        party = store.create_party("Household")
        stop = threading.Event()

        def write() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                letter = party.file(os.urandom(300_000), name=f"letter {number}")
                party.epochs.declare()
                if number > 3:
                    letter.delete()
                party.epochs.prune()
                store.collect_garbage()

        thread = threading.Thread(target=write)
        thread.start()
        try:
            for number in range(budget(4, 40)):
                assert store.backup(tmp_path / f"backup {number}").wrong == ()
        finally:
            stop.set()
            thread.join()
    for number in range(budget(4, 40)):
        antiphon.restore(tmp_path / f"backup {number}", tmp_path / f"home {number}")
        with antiphon.open(tmp_path / f"home {number}", epochs=False) as store:
            party = store.party("Household")
            assert party.status().blocked == ()
            for item in party.query():
                letter = party.item(item.id, File)
                assert letter.missing() == []
                assert letter.size == 300_000
            assert party.epochs.number == 0 or party.epochs.verify().whole


def test_blobs_that_change_between_two_looks_are_looked_at_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A garbage collection between the moment of the feeds and the moment of the blobs."""
    with antiphon.open(home, epochs=False) as store:
        blobs, frozen = store.manager.blobs, FeedStore.frozen
        assert isinstance(blobs, BlobStore)
        changes = [3]

        @contextmanager
        def changing(feeds: FeedStore) -> Iterator[Any]:
            with frozen(feeds) as found:
                if changes[0]:
                    changes[0] -= 1
                    blobs.put(f"blob {changes}".encode())
                yield found

        monkeypatch.setattr(FeedStore, "frozen", changing)
        store.backup(tmp_path / "to")
        assert changes == [0]
        changes[0] = 10**9
        monkeypatch.setattr(backups, "_ATTEMPTS_MAX", 5)
        with pytest.raises(StoreError, match="changes so quickly"):
            store.backup(tmp_path / "other")
        assert not (tmp_path / "other").exists()


def test_an_upgrade_meanwhile_is_noticed(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = backups._read

    def upgraded(path: Path, size_max: int) -> bytes | None:
        if path.name == "names.json":
            write_version(home, 5)
        return read(path, size_max)

    monkeypatch.setattr(backups, "_read", upgraded)
    with pytest.raises(StoreError, match="was upgraded while it was copied"):
        antiphon.backup(home, tmp_path / "to")
    assert not (tmp_path / "to").exists()


# -- what is refused


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_nothing_is_written_over(home: Path, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "to"
    if kind == "file":
        target.write_text("mine")
    elif kind == "link":
        target.symlink_to(tmp_path / "nowhere")
    else:
        target.mkdir()
        (target / "mine").touch()
    with pytest.raises(InvalidInput, match="is there already"):
        antiphon.backup(home, target)
    assert sorted(os.listdir(tmp_path)) == ["home", "to"]


def test_a_backup_inside_the_home_is_refused(home: Path) -> None:
    with pytest.raises(InvalidInput, match="is inside the home"):
        antiphon.backup(home, home / "backups" / "monday")
    assert not (home / "backups").exists()


def test_a_backup_is_no_home(made: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a backup, and opening it would spoil it"):
        antiphon.open(made)
    with pytest.raises(InvalidInput, match="is a backup"):
        antiphon.backup(made, tmp_path / "to")
    check_backup(made)


def test_no_home_no_backup(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no home in"):
        antiphon.backup(tmp_path / "nowhere", tmp_path / "to")
    with pytest.raises(InvalidInput, match="there is no home in"):
        antiphon.backup(tmp_path, tmp_path.parent / "to")
    with pytest.raises(InvalidInput, match="is a URI"):
        antiphon.backup(tmp_path, "s3://bucket/backup")
    with pytest.raises(InvalidInput, match="is a URI"):
        antiphon.backup("s3://bucket/home", tmp_path / "to")


@pytest.mark.parametrize("file", ["keys", "feeds/data.mdb", "meta.db", "blobs/data.mdb"])
@pytest.mark.parametrize("how", ["deleted", "zeroed", "cut short"])
def test_a_home_that_has_lost_a_file_is_not_copied_in_silence(home: Path, tmp_path: Path, file: str, how: str) -> None:
    path = home / file
    data = path.read_bytes()
    path.unlink()
    if how != "deleted":
        path.write_bytes(bytes(len(data)) if how == "zeroed" else data[: min(9000, len(data) // 2)])
    with pytest.raises(antiphon.AntiphonError) as told:
        antiphon.backup(home, tmp_path / "to")
    assert str(path) in str(told.value) or str(path.parent) in str(told.value)
    assert os.listdir(tmp_path) == ["home"]


def test_a_rotten_block_is_copied_and_told(home: Path, tmp_path: Path) -> None:
    """A backup of what is left is better than none; it says that it is not all right."""
    path = home / "feeds" / "data.mdb"
    data = path.read_bytes()
    path.write_bytes(data.replace(b"values", b"volues"))

    done = antiphon.backup(home, tmp_path / "to")

    assert {finding.code for finding in done.wrong} == {FindingCode.FEED_BLOCKS}
    assert antiphon.restore(tmp_path / "to", tmp_path / "new").wrong == len(done.wrong)


# -- a full disk

FULL = budget([0, 1, 5, 30, 60, 100, 113], list(range(120)))  # free pages that are too few for the home


@pytest.mark.parametrize("pages", FULL)
def test_a_full_disk_is_named_and_nothing_is_left(home: Path, disk: SmallDisk, pages: int) -> None:
    disk.leave(pages)
    with pytest.raises(DiskFull, match="no space is left on the disk") as told:
        antiphon.backup(home, disk.folder / "to")
    assert str(disk.folder) in str(told.value)
    assert os.listdir(disk.folder) == ["filler"]
    disk.free()
    assert antiphon.backup(home, disk.folder / "to").wrong == ()


@pytest.mark.parametrize("pages", FULL)
def test_a_restore_to_a_full_disk_is_named_and_nothing_is_left(made: Path, disk: SmallDisk, pages: int) -> None:
    disk.leave(pages)
    with pytest.raises(DiskFull, match="no space is left on the disk") as told:
        antiphon.restore(made, disk.home)
    assert str(disk.folder) in str(told.value)
    assert os.listdir(disk.folder) == ["filler"]
    disk.free()
    antiphon.restore(made, disk.home)
    with antiphon.open(disk.home) as store:
        assert names(store) == {"Household": ["letter", "more", "values"]}
