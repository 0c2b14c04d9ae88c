"""SQLite's log goes into the item store's file beside whoever commits, and an error of that is not lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from antiphon.core.errors import StoreError
from antiphon.party.engine.ports import ItemRow, Save
from antiphon.party.store import wal_checkpoints
from antiphon.party.store.item_store import ItemStore

PARTY = bytes(32)


def fill(store: ItemStore, first: int, count: int = 4) -> None:
    """Some 4 MB of rows in one transaction."""
    rows = [ItemRow(bytes([first + at]) * 16, bytes(1 << 20), "m", 1, b"", False, False, False) for at in range(count)]
    with store.saving() as put:
        put(Save(rows=rows))


def finish(store: ItemStore) -> None:
    assert store._checkpoints is not None
    store._checkpoints.finish()


def test_a_log_that_has_grown_is_moved_by_another_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by: list[threading.Thread] = []
    work = wal_checkpoints._checkpoint

    def noted(db: sqlite3.Connection) -> int:
        by.append(threading.current_thread())
        return work(db)

    monkeypatch.setattr(wal_checkpoints, "_checkpoint", noted)
    path = tmp_path / "items.db"
    store = ItemStore(path, PARTY)
    fill(store, 1, 1)
    assert not by  # too little to be worth it
    fill(store, 10)
    finish(store)
    assert len(by) == 1
    assert by[0] is not threading.current_thread()
    assert path.stat().st_size > 5 << 20
    fill(store, 20, 1)  # the log begins again, and is cut down
    assert (tmp_path / "items.db-wal").stat().st_size <= wal_checkpoints.LOG_SIZE
    store.close()
    assert len(by) == 2  # the last one, before SQLite would
    assert len(list(ItemStore(path, PARTY).ids())) == 6


def test_what_fails_beside_is_done_again_where_somebody_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    store = ItemStore(tmp_path / "items.db", PARTY)
    monkeypatch.setattr(wal_checkpoints, "_checkpoint", fail)
    fill(store, 1)
    finish(store)
    with pytest.raises(StoreError, match="disk I/O error"):
        fill(store, 10, 1)
    monkeypatch.undo()
    fill(store, 20, 1)
    assert store.count() == 6  # both were committed: only the move failed
    store.close()


def test_a_log_that_nobody_could_move_is_moved_by_the_committer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal_checkpoints, "LOG_SIZE_MAX", 1 << 20)
    by: list[threading.Thread] = []
    work = wal_checkpoints._checkpoint

    def noted(db: sqlite3.Connection) -> int:
        by.append(threading.current_thread())
        return work(db)

    monkeypatch.setattr(wal_checkpoints, "_checkpoint", noted)
    store = ItemStore(tmp_path / "items.db", PARTY)
    fill(store, 1)
    assert by == [threading.current_thread()]
    store.close()


def test_a_log_that_was_far_too_long_is_cut_off_at_once_but_nobody_waits_for_who_reads_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal_checkpoints, "LOG_SIZE_MAX", 1 << 20)
    store, log = ItemStore(tmp_path / "items.db", PARTY), tmp_path / "items.db-wal"
    with store.view() as view:
        fill(store, 1)
        assert log.stat().st_size > 4 << 20
        assert view.count() == 0
    fill(store, 10)
    assert log.stat().st_size == 0
    assert store.count() == 8
    store.close()


# -- a power loss


class Disk:
    """A copy of each file as it was when it was last synced. SQLite's own syncs are not seen."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.images: list[dict[str, bytes]] = []  # at each sync, with the newest sums
        self._folder = folder
        self._sync = os.fsync
        monkeypatch.setattr(os, "fsync", self.sync)

    def sync(self, file: int) -> None:
        self._sync(file)
        path = Path(os.readlink(f"/proc/self/fd/{file}"))
        if path == self._folder:
            self.synced = {name: data for name, data in self.synced.items() if (path / name).exists()}
            return
        if path.parent != self._folder:  # of another item store
            return
        name = path.name
        self.synced[name] = (self._folder / name).read_bytes()
        self.images.append(self.synced | {"items.db-sums": (self._folder / "items.db-sums").read_bytes()})


def reopened(folder: Path, files: dict[str, bytes]) -> str:
    """Why an item store is built again from these files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    store = ItemStore(folder / "items.db", PARTY)
    store.close()
    return store.why_rebuilt


def save_small(store: ItemStore, first: int) -> None:
    with store.saving() as put:
        put(Save(rows=[ItemRow(bytes([first]) * 16, bytes(5000), "m", 1, b"", False, False, False)]))


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """The folder of a small item store that was closed."""
    store = ItemStore(tmp_path / "home" / "items.db", PARTY)
    save_small(store, 1)
    store.close()
    return tmp_path / "home"


def test_a_power_loss_soon_after_an_opening_builds_nothing_again(
    closed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(closed, monkeypatch)
    store = ItemStore(closed / "items.db", PARTY)
    save_small(store, 2)
    log = (closed / "items.db-wal").read_bytes()  # the system may write it at any time
    assert reopened(tmp_path / "after", disk.synced | {"items.db-wal": log}) == ""
    store.close()


def test_a_power_loss_before_a_checkpoint_builds_nothing_again(
    closed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(closed, monkeypatch)
    store = ItemStore(closed / "items.db", PARTY)
    save_small(store, 2)
    store.close()
    monkeypatch.undo()
    assert disk.images
    for image in disk.images:
        assert reopened(tmp_path / "after", image) == ""


@pytest.mark.parametrize("log", [b"", bytes(32), bytes(5000)])
def test_a_log_without_a_transaction_is_no_log(closed: Path, log: bytes) -> None:
    (closed / "items.db-wal").write_bytes(log)
    store = ItemStore(closed / "items.db", PARTY)
    assert (store.why_rebuilt, store.count()) == ("", 1)
    store.close()


def test_a_power_loss_after_an_item_store_was_closed(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its header said "closed" before the disk had removed the log, so a sound item store was built again."""
    disk = Disk(closed, monkeypatch)
    store = ItemStore(closed / "items.db", PARTY)
    save_small(store, 2)
    store.close()
    newest = {path.name: path.read_bytes() for path in closed.iterdir()}

    assert "items.db-wal" not in disk.synced
    assert reopened(closed.parent / "lost", disk.synced | newest) == ""
