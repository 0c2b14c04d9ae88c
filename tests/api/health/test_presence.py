"""A lost file is never taken for one that was not made yet: no new person, no empty list, no second history."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

import antiphon
from antiphon.api.health.check import check_home
from antiphon.api.health.finding import FindingCode
from antiphon.api.health.repair import repair_home
from antiphon.core.errors import AntiphonError, DamagedStore
from antiphon.party.store.meta_store import MetaStore


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with antiphon.open(tmp_path / "home", name="Ada", unprotected=True, epochs=False) as store:
        party = store.create_party("Household")
        party.object({"a": 1})
        party.epochs.declare()
    return tmp_path / "home"


@pytest.mark.parametrize("file", ["keys", "feeds/data.mdb", "meta.db", "blobs/data.mdb"])
@pytest.mark.parametrize("how", ["deleted", "emptied", "zeroed", "cut short"])
def test_a_lost_file_is_named(home: Path, file: str, how: str) -> None:
    path = home / file
    data = path.read_bytes()
    path.unlink()
    content = {"emptied": b"", "zeroed": bytes(len(data)), "cut short": data[: min(9000, len(data) // 2)]}
    if how in content:
        path.write_bytes(content[how])

    for _ in range(2):
        with pytest.raises(AntiphonError) as told:
            antiphon.open(home, unprotected=True)
        assert str(path) in str(told.value) or str(path.parent) in str(told.value)
        assert any(word in str(told.value) for word in ("copy", "restore", "Restore", "Fetch", "backup"))
    assert check_home(home).wrong

    path.unlink(missing_ok=True)
    path.write_bytes(data)
    with antiphon.open(home) as store:
        assert [party.name for party in store] == ["Household"]


def test_metadata_is_made_from_the_feeds(home: Path) -> None:
    (home / "meta.db").write_bytes(b"garbage" * 1000)

    done = repair_home(home)

    assert [finding.code for finding in done.repaired] == [FindingCode.METADATA_DAMAGED]
    assert done.left == ()
    assert (home / "meta.db.damaged").read_bytes() == b"garbage" * 1000
    with antiphon.open(home) as store:
        assert [party.name for party in store] == ["Household"]


def test_damaged_metadata_is_set_aside_under_a_new_name_with_its_log(home: Path) -> None:
    for content in (b"first" * 1000, b"second" * 1000):
        (home / "meta.db").write_bytes(content)
        (home / "meta.db-wal").write_bytes(content[:6])
        assert repair_home(home).left == ()

    assert (home / "meta.db.damaged").read_bytes() == b"first" * 1000
    assert (home / "meta.db.damaged-wal").read_bytes() == b"firstf"
    assert (home / "meta.db.damaged.2").read_bytes() == b"second" * 1000
    assert (home / "meta.db.damaged.2-wal").read_bytes() == b"second"


@contextmanager
def newer(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA user_version = 99")
    yield


@contextmanager
def in_use(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        yield
        db.execute("ROLLBACK")


@contextmanager
def in_a_place_of_another(path: Path) -> Iterator[None]:
    path.unlink()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE recipes (name TEXT)")
    path.chmod(0o600)
    yield


@pytest.mark.parametrize("state", [newer, in_use, in_a_place_of_another])
def test_metadata_that_may_be_sound_is_not_replaced(
    home: Path, state: Callable[[Path], AbstractContextManager[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = cast(Any, MetaStore.open).__func__.__kwdefaults__
    monkeypatch.setitem(patience, "busy_timeout_ms", 1)
    path = home / "meta.db"
    with state(path):
        before = path.stat().st_ino, path.read_bytes()
        done = repair_home(home)

        assert [(finding.code, finding.repairable) for finding in done.wrong] == [(FindingCode.METADATA_UNREAD, False)]
        assert (path.stat().st_ino, path.read_bytes()) == before
        assert not list(home.glob("*.damaged*"))


def test_keys_of_another_home_make_nobody_else(home: Path, tmp_path: Path) -> None:
    """The home of one person does not become that of another because of a wrong copy."""
    antiphon.open(tmp_path / "other", name="Eve", unprotected=True).close()
    (home / "keys").write_bytes((tmp_path / "other" / "keys").read_bytes())

    with pytest.raises(DamagedStore, match="keys of another home"):
        antiphon.open(home)
    assert FindingCode.KEYS_DAMAGED in {finding.code for finding in check_home(home).wrong}
