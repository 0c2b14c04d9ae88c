"""The command line on the stores that the demo leaves behind, run as a person runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run, answer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """The homes of the demo's three devices."""
    folder = tmp_path_factory.mktemp("demo")
    subprocess.run([sys.executable, "examples/three_devices.py", "--home", str(folder)], cwd=root, check=True)
    return folder


def test_feeds_are_listed(run: Run) -> None:
    rows = answer(run("feeds", "--json"))
    assert len(rows) == 6  # a control feed and a data feed each
    assert sum(row["writable"] for row in rows) == 2
    assert rows[0]["feed"][:16] in run("feeds").stdout


def test_everything_verifies(run: Run) -> None:
    found = answer(run("verify", "--json"))
    assert found["wrong"] == []
    assert found["blocks"] > 10  # an epoch holds the others
    assert "all right" in run("verify").stdout


def test_parties_and_their_members(run: Run) -> None:
    (row,) = answer(run("party", "--json"))
    assert row["state"] == "active"
    one, other = (answer(run("party", row["party"][:6], "--json", home=home)) for home in ("alice", "bob"))
    assert one["digest"] == other["digest"]
    assert sorted(member["roles"] for member in one["members"]) == [["owner"], ["owner"], ["reader"]]
    assert one["digest"][:16] in run("party", row["party"]).stdout


def test_the_quarantine_is_listed(run: Run) -> None:
    assert answer(run("quarantine", "--json")) == {"refusals": [], "dropped": 0}


def test_compaction_says_what_is_left(run: Run) -> None:
    assert answer(run("compact", "--json", home="carol"))["bytes"] > 0
    assert answer(run("verify", "--json", home="carol"))["wrong"] == []


def test_a_flipped_byte_ends_verify_with_an_error(run: Run, homes: Path) -> None:
    file = homes / "bob" / "feeds" / "data.mdb"
    file.write_bytes(file.read_bytes().replace(b"After the epoch.", b"After the epoch!"))
    done = run("verify", home="bob")
    assert done.returncode == 1
    assert "block" in done.stderr


def test_errors_are_told_in_a_line(run: Run) -> None:
    done = run("feeds", "--home", "nowhere[/x]")
    assert done.returncode == 2
    assert run("party", "--home", "nowhere").returncode == 2
    assert "there is no feed store" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_is_told(run: Run) -> None:
    assert answer(run("version", "--json"))["version"]
