"""`check_home` names whatever has changed in a home: file, feed, blob or party, a stable code, and the next step."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

import antiphon
from antiphon.api.health.check import check_home
from antiphon.api.health.finding import Finding, FindingCode, Remedy
from antiphon.cli.app import app
from antiphon.core.errors import AntiphonError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with items, a file and an epoch."""
    folder = tmp_path / "home"
    with antiphon.open(folder, name="Ada", unprotected=True, epochs=False) as store:
        party = store.create_party("Household")
        for number in range(5):
            party.object({"number": number, "text": "a text of some length"})
        party.file(b"contents of a file" * 1000, name="notes.txt")
        party.epochs.declare()
        party.text("after the epoch")
    return folder


def codes(home: Path) -> set[FindingCode]:
    return {finding.code for finding in check_home(home).findings}


def flip(path: Path, part: bytes) -> None:
    """Change the last byte of a part of a file wherever it lies."""
    data = path.read_bytes()
    assert part in data
    path.write_bytes(data.replace(part, part[:-1] + bytes([part[-1] ^ 1])))


def items_of(home: Path, suffix: str = ".db") -> Path:
    (found,) = (home / "items").glob(f"*{suffix}")
    return found


def test_a_sound_home_has_no_findings(home: Path) -> None:
    report = check_home(home)
    assert report.findings == ()
    assert report.feeds == 2
    assert report.blocks > 5


def test_a_running_peer_may_use_the_home(home: Path) -> None:
    with antiphon.open(home) as store:
        party = next(iter(store))
        party.text("meanwhile")
        command = [sys.executable, "-c", "from antiphon.cli import main; main()", "verify", "--home", str(home)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")


def test_zeroed_blobs_and_garbage_in_the_metadata(home: Path) -> None:
    """`verify` said "all right"."""
    for path in (home / "blobs" / "data.mdb", home / "meta.db"):
        path.write_bytes(bytes(path.stat().st_size))

    assert codes(home) == {FindingCode.FILE_DAMAGED, FindingCode.METADATA_DAMAGED}
    done = CliRunner().invoke(app, ["verify", "--home", str(home)])
    assert done.exit_code == 1
    assert "NOT right" in done.stdout


def test_a_blob(home: Path) -> None:
    flip(home / "blobs" / "data.mdb", b"contents of a file" * 10)

    (finding,) = check_home(home).findings
    assert (finding.code, finding.remedy, finding.file) == (FindingCode.BLOB, Remedy.PEER, "blobs/data.mdb")
    assert finding.cid in finding.what


def test_a_block(home: Path) -> None:
    flip(home / "feeds" / "data.mdb", b"after the epoch")

    (finding,) = check_home(home).findings
    assert (finding.code, finding.remedy) == (FindingCode.FEED_BLOCKS, Remedy.PEER)
    assert finding.seq is not None
    assert finding.feed[:8] in finding.what
    assert "sync" in finding.next_step


def _drop_rows(home: Path) -> None:
    with sqlite3.connect(home / "meta.db") as db:
        db.execute("DELETE FROM parties")


def _garble_items(home: Path) -> None:
    with closing(sqlite3.connect(items_of(home))) as db, db:
        db.execute("UPDATE items SET record = x'00010203' WHERE model != ''")


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda home: (home / "keys").unlink(), FindingCode.FILE_MISSING),
        (lambda home: flip(home / "keys", (home / "keys").read_bytes()[-40:]), FindingCode.KEYS_DAMAGED),
        (lambda home: (home / "feeds" / "data.mdb").unlink(), FindingCode.FILE_MISSING),
        (lambda home: os.truncate(home / "feeds" / "data.mdb", 9000), FindingCode.FILE_DAMAGED),
        (lambda home: (home / "blobs" / "data.mdb").unlink(), FindingCode.FILE_MISSING),
        (lambda home: os.truncate(home / "blobs" / "data.mdb", 9000), FindingCode.FILE_DAMAGED),
        (lambda home: (home / "meta.db").unlink(), FindingCode.METADATA_DAMAGED),
        (_drop_rows, FindingCode.METADATA_PARTY),
        (_garble_items, FindingCode.ITEMS_DAMAGED),
        (lambda home: os.truncate(items_of(home), 5000), FindingCode.ITEMS_DAMAGED),
        (lambda home: (home / "names.json").write_bytes(b"{"), FindingCode.SETTINGS_DAMAGED),
        (lambda home: (home / "views.json").write_bytes(b"\xff"), FindingCode.SETTINGS_DAMAGED),
        (lambda home: (home / "meta.db").chmod(0o644), FindingCode.FILE_PERMISSIONS),
    ],
)
def test_each_file_of_a_home(home: Path, spoil: Callable[[Path], object], code: FindingCode) -> None:
    spoil(home)
    if code is not FindingCode.FILE_PERMISSIONS:
        for path in home.glob("*.json"):
            path.chmod(0o600)

    found = [finding for finding in check_home(home).findings if finding.code is code]

    assert found, check_home(home).findings
    assert all(finding.next_step and (home / finding.file).parent.exists() for finding in found)
    done = CliRunner().invoke(app, ["verify", "--home", str(home), "--json"])
    assert done.exit_code == 1
    assert code in done.stdout


def test_keys_under_a_passphrase_are_a_note(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "home", passphrase="secret", epochs=False) as store:
        store.create_party("Household")

    report = check_home(tmp_path / "home")
    assert [finding.code for finding in report.findings] == [FindingCode.FILE_LOCKED]
    assert report.wrong == ()
    assert check_home(tmp_path / "home", "secret").findings == ()
    assert {one.code for one in check_home(tmp_path / "home", "wrong").findings} == {FindingCode.KEYS_DAMAGED}


def test_all_files_of_a_home_are_private(home: Path) -> None:
    """Before, every local user could read `items/*.db`, also of a home under a passphrase."""
    umask = os.umask(0)
    try:
        with antiphon.open(home.parent / "other", unprotected=True) as store:
            party = store.create_party("Household")
            party.object({"a": 1})
            modes = {path: stat.S_IMODE(path.stat().st_mode) for path in store.path.rglob("*")}
            modes[store.path] = stat.S_IMODE(store.path.stat().st_mode)
    finally:
        os.umask(umask)

    assert {path.name: oct(mode) for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}


def test_an_open_home_is_tightened(home: Path) -> None:
    for path in (home, home / "items", items_of(home), home / "keys"):
        path.chmod(0o755)
    assert FindingCode.FILE_PERMISSIONS in codes(home)

    antiphon.open(home).close()

    assert check_home(home).findings == ()


def test_a_home_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(AntiphonError, match="there is no home"):
        check_home(tmp_path / "nowhere")
    assert "there is no peer" in str(CliRunner().invoke(app, ["verify", "--home", str(tmp_path)]).exception)


def test_each_code_has_a_next_step() -> None:
    for code in FindingCode:
        finding = Finding(code, "file", "something is wrong")
        assert finding.next_step
        assert finding.row()["remedy"] in {remedy.value for remedy in Remedy}
