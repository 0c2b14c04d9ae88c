"""`antiphon party export`, `import` and `verify`, run as a person runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.cli.conftest import call, told

import antiphon
from antiphon.snapshot import BlobStore

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with antiphon.open(tmp_path / "home", name="Ada", unprotected=True) as store:
        party = store.create_party("Household")
        notes = [party.object({"number": number, "body": "x" * 70}) for number in range(40)]
        party.file(b"scan" * 9000, name="scan.pdf")
        party.epochs.declare()
        notes[0]["number"] = 100
        party.epochs.declare()
        notes[1]["number"] = 101
    return tmp_path / "home"


def key(home: Path) -> str:
    [row] = told("party", "--home", home)
    return str(row["party"])


def test_a_party_is_shown_as_before(home: Path) -> None:
    assert told("party", key(home)[:8], "--home", home)["party"] == key(home)
    assert call("party", "--home", home).exit_code == 0
    assert "export" in call("party", "--help").output


def test_it_goes_through_a_file(home: Path, tmp_path: Path) -> None:
    car = tmp_path / "party.car"
    done = told("party", "export", key(home)[:6], car, "--home", home)
    assert (done["number"], done["files"], done["size"]) == (2, 1, car.stat().st_size)
    assert "epoch 2 and the messages since" in call("party", "export", key(home), car, "--home", home).output
    taken = told("party", "import", car, "--home", tmp_path / "new", "--unprotected", "--label", "From a stick")
    assert len(taken["recovery_phrase"].split()) >= 12, "of the identity that was made with the home"
    assert (taken["party"], taken["number"], taken["items"]) == (key(home), 2, 42)  # and the system item
    assert told("party", "import", car, "--home", tmp_path / "new")["recovery_phrase"] == ""
    newer = call("party", "import", car, "--home", tmp_path / "newer", "--unprotected")
    assert "Write down its recovery phrase" in newer.output
    assert [row["label"] for row in told("party", "--home", tmp_path / "new")] == ["From a stick"]
    bare = told("party", "export", key(home), tmp_path / "bare.car", "--home", home, "--no-files")
    assert (bare["files"], bare["size"] < done["size"]) == (0, True)


def test_a_damaged_file_is_refused(home: Path, tmp_path: Path) -> None:
    car = tmp_path / "party.car"
    told("party", "export", key(home), car, "--home", home)
    car.write_bytes(car.read_bytes()[:-5])
    done = call("party", "import", car, "--home", tmp_path / "new", "--unprotected")
    assert done.exit_code == 1
    assert "is damaged" in str(done.exception)
    with antiphon.open(tmp_path / "new") as store:  # the new home is there, so its recovery phrase was shown
        assert store.identity.recovery_phrase() in done.stderr


def test_a_file_that_is_not_there_makes_no_home(tmp_path: Path) -> None:
    done = call("party", "import", tmp_path / "nothing.car", "--home", tmp_path / "new")
    assert "is no file" in str(done.exception)
    assert not (tmp_path / "new").exists()


def test_an_epoch_is_verified_beside_a_running_peer(home: Path) -> None:
    program, party = Path(sys.executable).with_name("antiphon"), key(home)
    with antiphon.open(home, unprotected=True):
        command = [str(program), "party", "verify", party, "--home", str(home), "--json"]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert (found["number"], found["right"], found["whole"], found["since"]) == (2, True, True, 1)
    shown = call("party", "verify", key(home), 1, "--home", home, "--full").output
    assert "epoch 1 of party" in shown
    assert ": right" in shown


def test_what_is_not_here_is_told(home: Path, tmp_path: Path) -> None:
    with BlobStore.open(home / "blobs") as blobs:
        blobs.delete(list(blobs))
    found = told("party", "verify", key(home), "--home", home)
    assert (found["right"], found["whole"], len(found["missing"])) == (True, False, 1)
    with antiphon.open(tmp_path / "empty", unprotected=True) as store:
        party = store.create_party()
    done = call("party", "verify", party.key.hex(), "--home", tmp_path / "empty")
    assert "has no final epoch yet" in str(done.exception)


def test_all_epochs_are_verified_at_once(home: Path) -> None:
    found = told("party", "verify", key(home), "--every", "--home", home)
    assert [(one["number"], one["right"], one["whole"]) for one in found] == [(1, True, True), (2, True, True)]
    shown = call("party", "verify", key(home), "--every", "--home", home).output
    assert "epoch 1 of party" in shown
    assert "epoch 2 of party" in shown
    done = call("party", "verify", key(home), 1, "--every", "--home", home)
    assert "not both" in str(done.exception)


def test_a_new_home_wants_a_choice_of_protection(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    car = tmp_path / "party.car"
    told("party", "export", key(home), car, "--home", home)

    done = call("party", "import", car, "--home", tmp_path / "new")
    assert done.exit_code
    assert "choose how its keys are kept: --passphrase-file, --keyring or --unprotected" in str(done.exception)
    assert not (tmp_path / "new").exists()

    monkeypatch.setattr("antiphon.cli.common.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    assert call("party", "import", car, "--home", tmp_path / "new", answers="open sesame\nopen sesame\n").exit_code == 0
    with pytest.raises(antiphon.KeyStoreError, match="is under a passphrase"):
        antiphon.open(tmp_path / "new")
    antiphon.open(tmp_path / "new", passphrase="open sesame").close()
