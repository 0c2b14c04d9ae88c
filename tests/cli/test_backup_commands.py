"""`antiphon backup` and `antiphon restore`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.cli.conftest import Run

import antiphon
from antiphon.core.home_version import HOME_VERSION, write_version


class Call(Protocol):
    """Call the program, which must end with a code. Return its output and its errors."""

    def __call__(self, *arguments: str | Path, code: int = 0) -> tuple[str, str]: ...


@pytest.fixture
def homes(home: Path) -> Path:
    """The folder of the home, for `run`."""
    return home.parent


@pytest.fixture
def call(run: Run) -> Call:
    def called(*arguments: str | Path, code: int = 0) -> tuple[str, str]:
        done = run(*map(str, arguments))
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout, done.stderr

    return called


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with antiphon.open(tmp_path / "laptop", name="Ada", unprotected=True, epochs=False) as store:
        store.create_party("Household").object({"a": 1}, name="values")
    return tmp_path / "laptop"


def test_a_backup_beside_a_running_peer_and_a_home_of_it(call: Call, start: Run, home: Path, tmp_path: Path) -> None:
    with antiphon.open(home, epochs=False) as store:
        told = start("backup", "--home", str(home), "--to", str(tmp_path / "copy")).stdout
        store.party("Household").object({}, name="later")
    assert "1 parties, 2 feeds" in told
    assert "Left out: items" in told
    assert "UNPROTECTED" in told

    told, _ = call("restore", "--from", tmp_path / "copy", "--check")
    assert "all right" in told
    told, _ = call("restore", "--from", tmp_path / "copy", "--home", tmp_path / "new")
    assert "2 feeds of this device are retired: it writes into new ones" in told
    with antiphon.open(tmp_path / "new") as store:
        assert [item.name for item in store.party("Household").query()] == ["values"]


def test_as_json(call: Call, home: Path, tmp_path: Path) -> None:
    made: dict[str, Any] = json.loads(call("backup", "--home", home, "--to", tmp_path / "copy", "--json")[0])
    assert {name: made[name] for name in ("path", "parties", "protection", "left_out", "wrong")} == {
        "path": str(tmp_path / "copy"),
        "parties": 1,
        "protection": "UNPROTECTED",
        "left_out": ["items"],
        "wrong": [],
    }
    checked = json.loads(call("restore", "--from", tmp_path / "copy", "--check", "--json")[0])
    assert checked["size"] == made["size"]
    assert "feeds/data.mdb" in checked["files"]
    restored = json.loads(call("restore", "--from", tmp_path / "copy", "--home", tmp_path / "new", "--json")[0])
    assert (restored["home"], restored["retired"], restored["wrong"]) == (str(tmp_path / "new"), 2, 0)


def test_a_backup_with_damage_ends_with_1(call: Call, home: Path, tmp_path: Path) -> None:
    path = home / "feeds" / "data.mdb"
    path.write_bytes(path.read_bytes().replace(b"values", b"volues"))
    told, findings = call("backup", "--home", home, "--to", tmp_path / "copy", code=1)
    assert "NOT all right" in told
    assert "[feed.blocks]" in findings
    assert json.loads(call("backup", "--home", home, "--to", tmp_path / "b", "--json", code=1)[0])["wrong"]
    told, _ = call("restore", "--from", tmp_path / "copy", "--home", tmp_path / "new")
    assert "faults" in told


def test_errors_are_one_line(call: Call, home: Path, tmp_path: Path) -> None:
    call("backup", "--home", home, "--to", tmp_path / "copy")
    for arguments, words in (
        (("backup", "--home", home, "--to", tmp_path / "copy"), "is there already"),
        (("backup", "--home", home, "--to", home / "inside"), "is inside the home"),
        (("backup", "--home", tmp_path / "none", "--to", tmp_path / "b"), "there is no peer in"),
        (("backup", "--home", home, "--to", "s3://bucket/b"), "is a URI"),
        (("restore", "--from", tmp_path / "copy", "--home", home), "is there already"),
        (("restore", "--from", home, "--home", tmp_path / "new"), "there is no backup in"),
        (("restore", "--from", tmp_path / "copy"), "--home"),
        (("compact", "--home", tmp_path / "copy"), "is a backup"),
        (("doctor", "--repair", "--home", tmp_path / "copy"), "is a backup"),
    ):
        _, told = call(*arguments, code=2)
        assert words in told
        assert "Traceback" not in told
    (tmp_path / "copy" / "keys").write_bytes(b"rotten")
    _, told = call("restore", "--from", tmp_path / "copy", "--home", tmp_path / "new", code=2)
    assert str(tmp_path / "copy" / "keys") in told
    assert sorted(os.listdir(tmp_path)) == ["copy", "laptop"]


def test_commands_refuse_a_newer_home(call: Call, home: Path, tmp_path: Path) -> None:
    write_version(home, HOME_VERSION + 1)
    for command in (["feeds"], ["party"], ["compact"], ["gc"], ["backup", "--to", tmp_path / "copy"]):
        _, told = call(*command, "--home", home, code=2)
        assert "a newer Antiphon has upgraded it" in told
    told, findings = call("verify", "--home", home, code=1)
    assert "[version.newer]" in findings
