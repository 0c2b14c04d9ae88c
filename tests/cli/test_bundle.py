"""`antiphon party export`, `import` and `verify`, run as a person runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import antiphon
from antiphon.cli.app import app
from antiphon.snapshot import BlobStore

pytestmark = pytest.mark.slow


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def answer(*arguments: object) -> Any:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with antiphon.open(tmp_path / "home", name="Ada") as store:
        party = store.create_party("Household")
        notes = [party.object({"number": number, "body": "x" * 70}) for number in range(40)]
        party.file(b"scan" * 9000, name="scan.pdf")
        party.epochs.declare()
        notes[0]["number"] = 100
        party.epochs.declare()
        notes[1]["number"] = 101
    return tmp_path / "home"


def key(home: Path) -> str:
    [row] = answer("party", "--home", home)
    return str(row["party"])


def test_a_party_is_shown_as_before(home: Path) -> None:
    assert answer("party", key(home)[:8], "--home", home)["party"] == key(home)
    assert run("party", "--home", home).exit_code == 0
    assert "export" in run("party", "--help").output


def test_it_goes_through_a_file(home: Path, tmp_path: Path) -> None:
    car = tmp_path / "party.car"
    done = answer("party", "export", key(home)[:6], car, "--home", home)
    assert (done["number"], done["files"], done["size"]) == (2, 1, car.stat().st_size)
    assert "epoch 2 and what came since" in run("party", "export", key(home), car, "--home", home).output
    taken = answer("party", "import", car, "--home", tmp_path / "new", "--label", "From a stick")
    assert taken == {"party": key(home), "number": 2, "blocks": taken["blocks"], "items": 42}  # and the system item
    assert [row["label"] for row in answer("party", "--home", tmp_path / "new")] == ["From a stick"]
    bare = answer("party", "export", key(home), tmp_path / "bare.car", "--home", home, "--no-files")
    assert (bare["files"], bare["size"] < done["size"]) == (0, True)


def test_a_damaged_file_is_refused(home: Path, tmp_path: Path) -> None:
    car = tmp_path / "party.car"
    answer("party", "export", key(home), car, "--home", home)
    car.write_bytes(car.read_bytes()[:-5])
    done = run("party", "import", car, "--home", tmp_path / "new")
    assert done.exit_code == 1
    assert "is damaged" in str(done.exception)


def test_an_epoch_is_verified_beside_a_running_peer(home: Path) -> None:
    program, party = Path(sys.executable).with_name("antiphon"), key(home)
    with antiphon.open(home):
        command = [str(program), "party", "verify", party, "--home", str(home), "--json"]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert (found["number"], found["right"], found["whole"], found["since"]) == (2, True, True, 1)
    told = run("party", "verify", key(home), 1, "--home", home, "--anew").output
    assert "epoch 1 of party" in told
    assert ": right" in told


def test_what_is_not_here_is_told(home: Path, tmp_path: Path) -> None:
    with BlobStore.open(home / "blobs") as blobs:
        blobs.delete(list(blobs))
    found = answer("party", "verify", key(home), "--home", home)
    assert (found["right"], found["whole"], len(found["missing"])) == (True, False, 1)
    with antiphon.open(tmp_path / "empty") as store:
        party = store.create_party()
    done = run("party", "verify", party.key.hex(), "--home", tmp_path / "empty")
    assert "has no final epoch 0" in str(done.exception)
