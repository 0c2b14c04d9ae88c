"""The upgrade of a home: step by step, interrupted anywhere, always with the same result."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.budget import budget
from tests.full_disk import FullDisk

import antiphon
from antiphon.api import home_keys as opening
from antiphon.api.health import upgrade
from antiphon.api.health.check import check_home
from antiphon.api.health.finding import FindingCode
from antiphon.api.health.repair import repair_home
from antiphon.api.health.upgrade import STEPS, Step, upgrade_home
from antiphon.core.errors import DamagedStore, DiskFull, StoreError, StoreLocked
from antiphon.core.home_version import HOME_VERSION, VERSION_FILE, read_version, write_version
from antiphon.feed.store.lock import lock
from antiphon.feed.store.private_files import replace_file

PROGRAM = """
import sys
from pathlib import Path
from tests.api.health.test_upgrade import LONGER
from antiphon.api.health.upgrade import upgrade_home
upgrade_home(Path(sys.argv[1]), LONGER)
"""


class Interrupted(BaseException):
    """A process that ends."""


def number_notes(home: Path) -> None:
    """A step that changes several files: each file of `notes` gets its name as a first line."""
    for path in sorted((home / "notes").glob("*.txt")):
        if not path.read_bytes().startswith(path.name.encode()):
            replace_file(path, path.name.encode() + b"\n" + path.read_bytes())


def drop_old(home: Path) -> None:
    """A step that deletes a file, which may be gone already."""
    (home / "old").unlink(missing_ok=True)


UPGRADED = {name: f"{name}\ntext of {name}" for name in ("one.txt", "two.txt", "three.txt")}
LONGER = (*STEPS, Step(3, "number the notes", number_notes), Step(4, "drop the old file", drop_old))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of version 1: as an earlier program left it."""
    path = tmp_path / "home"
    with antiphon.open(path, name="Ada", unprotected=True, epochs=False) as store:
        store.create_party("Household").object({"a": 1})
    (path / VERSION_FILE).unlink()
    (path / "notes").mkdir()
    for name in UPGRADED:
        (path / "notes" / name).write_text(f"text of {name}")
    (path / "old").touch()
    for file in (path / "meta.db", *(path / "items").glob("*.db")):
        file.chmod(0o644)
    path.chmod(0o755)
    return path


def state(home: Path) -> dict[str, Any]:
    """The version, the notes, and the permissions of all files of a home."""
    notes = {path.name: path.read_text() for path in (home / "notes").glob("*.txt")}
    paths = (home, home / "meta.db", *(home / "items").glob("*.db"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in paths}
    return {"version": read_version(home), "notes": notes, "old": (home / "old").exists(), "modes": modes}


def test_a_home_of_an_earlier_program_is_upgraded_when_it_is_opened(home: Path) -> None:
    assert read_version(home) == 1
    with antiphon.open(home) as store:
        assert read_version(home) == HOME_VERSION
        assert [party.name for party in store] == ["Household"]
    assert set(state(home)["modes"].values()) == {0o700, 0o600}


def test_the_steps_that_lack_are_taken_in_order(home: Path) -> None:
    assert [step.version for step in upgrade_home(home, LONGER)] == [2, 3, 4]
    first = state(home)
    assert (first["version"], first["notes"], first["old"]) == (4, UPGRADED, False)
    assert upgrade_home(home, LONGER) == []
    for again in (1, 2, 3):  # as if the version had not reached the disk
        write_version(home, again)
        upgrade_home(home, LONGER)
        assert state(home) == first


def interrupt_at(monkeypatch: pytest.MonkeyPatch, number: int) -> Callable[[], int]:
    """Interrupt the calls that write to the disk: after `number` of them, before it, and for ever after."""
    count = 0
    for owner, name in ((os, "fsync"), (os, "replace"), (os, "rename"), (os, "chmod"), (os, "unlink"), (os, "open")):
        real = getattr(owner, name)

        def counted(*given: Any, real: Any = real, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count > number:
                raise Interrupted
            return real(*given, **named)

        monkeypatch.setattr(owner, name, counted)
    return lambda: count


def test_interrupted_at_every_call_it_ends_in_the_same_state(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade_home(home, LONGER)
    whole = state(home)
    for number in range(200):
        (home / VERSION_FILE).unlink(missing_ok=True)
        (home / "old").touch()
        (home / "meta.db").chmod(0o644)
        for path in (home / "notes").iterdir():
            path.unlink()
        for name in UPGRADED:
            (home / "notes" / name).write_text(f"text of {name}")
        with monkeypatch.context() as patched:
            count = interrupt_at(patched, number)
            try:
                upgrade_home(home, LONGER)
            except Interrupted:
                pass
            else:
                break
            assert count() > number
        version = read_version(home)
        assert version in (1, 2, 3, 4)
        upgrade_home(home, LONGER)
        assert state(home) == whole, number
    assert number > 10
    write_version(home, HOME_VERSION)
    with antiphon.open(home) as store:
        assert [party.name for party in store] == ["Household"]


@pytest.mark.slow
def test_killed_at_a_write_it_ends_in_the_same_state(home: Path, tmp_path: Path) -> None:
    """The same with real processes and SIGKILL."""
    disk = FullDisk(home, tmp_path / "count")
    environment = disk.environment(tmp_path, kill=True)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    kills = 0
    for after in budget([0, 2, 5, 9, 14], list(range(40))):
        disk.fill(after)
        done = subprocess.run([sys.executable, "-c", PROGRAM, str(home)], env=environment, check=False)
        assert done.returncode in (0, -signal.SIGKILL)
        kills += done.returncode != 0
        assert read_version(home) in (1, 2, 3, 4)
    assert kills > 1
    upgrade_home(home, LONGER)
    found = state(home)
    assert (found["version"], found["notes"], found["old"]) == (4, UPGRADED, False)


def test_a_step_that_fails_is_taken_again(home: Path) -> None:
    def fail(_: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(DiskFull, match="the upgrade of the home could not be written"):
        upgrade_home(home, (*STEPS, Step(3, "fail", fail)))
    assert read_version(home) == 2
    assert [step.version for step in upgrade_home(home, LONGER)] == [3, 4]


def test_two_processes_do_not_upgrade_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def upgrade_too(_: Path) -> None:
        with pytest.raises(StoreLocked):
            upgrade_home(home)

    upgrade_home(home, (Step(2, "two at once", upgrade_too),))

    (home / VERSION_FILE).unlink()

    def meanwhile(path: Path) -> int:
        write_version(home, HOME_VERSION)
        return lock(path)

    monkeypatch.setattr(upgrade, "lock", meanwhile)
    assert upgrade_home(home) == [], "another process was first"


def test_a_newer_home_is_neither_opened_nor_changed(home: Path) -> None:
    write_version(home, HOME_VERSION + 1)
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}

    with pytest.raises(StoreError, match="a newer Antiphon"):
        antiphon.open(home)
    with pytest.raises(StoreError, match="a newer Antiphon"):
        antiphon.backup(home, home.with_name("copy"))
    [finding] = check_home(home).wrong
    assert (finding.code, finding.file) == (FindingCode.VERSION_NEWER, VERSION_FILE)
    assert repair_home(home).wrong == (finding,)

    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_a_home_that_is_upgraded_by_a_newer_program_meanwhile_is_not_opened(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newer program upgrades after the version was read, and before the lock is taken."""
    keys = opening._open_keys

    def meanwhile(*given: Any) -> Any:
        found = keys(*given)
        monkeypatch.setattr(opening, "upgrade_home", lambda _: write_version(home, HOME_VERSION + 1))
        return found

    monkeypatch.setattr(opening, "_open_keys", meanwhile)
    with pytest.raises(StoreError, match="a newer Antiphon"):
        antiphon.open(home)


@pytest.mark.parametrize("data", [b"", b"antiphon.home.3 3b5cca12e3278366", bytes(33)])
def test_a_damaged_version_is_named_and_repaired(home: Path, data: bytes) -> None:
    (home / VERSION_FILE).write_bytes(data)

    with pytest.raises(DamagedStore, match="doctor --repair"):
        antiphon.open(home)
    assert FindingCode.VERSION_DAMAGED in {finding.code for finding in check_home(home).wrong}
    assert repair_home(home).wrong == ()

    with antiphon.open(home) as store:
        assert [party.name for party in store] == ["Household"]
    assert read_version(home) == HOME_VERSION


def test_a_new_home_has_the_version(tmp_path: Path) -> None:
    antiphon.open(tmp_path / "new", unprotected=True).close()
    assert read_version(tmp_path / "new") == HOME_VERSION == STEPS[-1].version
    assert [step.version for step in STEPS] == list(range(2, HOME_VERSION + 1))
