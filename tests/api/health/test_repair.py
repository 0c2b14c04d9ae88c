"""`antiphon doctor --repair`: what is derived is rebuilt, what is rotten is dropped, and nothing else is touched."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.api.health.test_check import _garble_items, flip, items_of
from typer.testing import CliRunner

import antiphon
from antiphon import sync
from antiphon.api.health.check import check_home
from antiphon.api.health.finding import FindingCode
from antiphon.api.health.repair import repair_home
from antiphon.cli.app import app

pytestmark = pytest.mark.slow

Values = dict[str, Any]


def values(store: antiphon.Store) -> Values:
    party = store.party("Household")
    return {item.name: item.value for item in party.query()}


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Path, Path, Values]:
    """The homes of Ada and of Bob, who has all that Ada has, and its values."""
    with (
        antiphon.open(tmp_path / "ada", name="Ada", unprotected=True, epochs=False) as ada,
        antiphon.open(tmp_path / "bob", name="Bob", unprotected=True, epochs=False) as bob,
    ):
        party = ada.create_party("Household")
        for number in range(5):
            party.object({"number": number, "text": "a text of some length"}, name=f"note {number}")
        party.epochs.declare()
        party.text("after the epoch", name="late")
        bob.join(str(party.invite(bob.me)))
        sync(ada, bob)
        bob.party("Household").text("of Bob", name="his")
        sync(ada, bob)
        assert values(ada) == values(bob)
        return tmp_path / "ada", tmp_path / "bob", values(ada)


SPOILT: dict[str, tuple[Callable[[Path], object], FindingCode]] = {
    "an own block": (lambda home: flip(home / "feeds" / "data.mdb", b"after the epoch"), FindingCode.FEED_BLOCKS),
    "a received block": (lambda home: flip(home / "feeds" / "data.mdb", b"of Bob"), FindingCode.FEED_BLOCKS),
    "an item": (_garble_items, FindingCode.ITEMS_DAMAGED),
    "an item store cut short": (lambda home: os.truncate(items_of(home), 5000), FindingCode.ITEMS_DAMAGED),
    "permissions": (lambda home: (home / "meta.db").chmod(0o644), FindingCode.FILE_PERMISSIONS),
}


@pytest.mark.parametrize("what", SPOILT)
def test_after_a_repair_and_a_sync_all_is_there_again(homes: tuple[Path, Path, Values], what: str) -> None:
    home, other, wanted = homes
    spoil, code = SPOILT[what]
    spoil(home)
    assert code in {finding.code for finding in check_home(home).findings}

    done = CliRunner().invoke(app, ["doctor", "--repair", "--home", str(home), "--json"])

    answer = json.loads(done.stdout)
    assert done.exit_code == 0, answer
    assert code in {row["code"] for row in answer["repaired"]}
    assert check_home(home).wrong == ()
    with (
        antiphon.open(home, unprotected=True, epochs=False) as ada,
        antiphon.open(other, unprotected=True, epochs=False) as bob,
    ):
        sync(ada, bob)
        assert values(ada) == values(bob) == wanted
        ada.party("Household").text("written after the repair", name="new")
        sync(ada, bob)
        assert values(bob) == {**wanted, "new": "written after the repair"}


@pytest.mark.parametrize("name", ["keys", "names.json"])
def test_what_only_a_copy_brings_back_is_left_as_it_is(homes: tuple[Path, Path, Values], name: str) -> None:
    home, _, _ = homes
    path = home / name
    path.write_bytes(b"{ rotten")
    path.chmod(0o600)
    files = {path: path.read_bytes() for path in home.rglob("*") if path.is_file() and "lock" not in path.name}

    done = CliRunner().invoke(app, ["doctor", "--repair", "--home", str(home)])

    assert done.exit_code == 1
    assert "0 repaired, 1 left" in done.stdout
    assert {path: path.read_bytes() for path in files} == files


def test_a_home_in_use_is_not_repaired(homes: tuple[Path, Path, Values]) -> None:
    home, _, _ = homes
    _garble_items(home)
    with (
        antiphon.open(home, unprotected=True, epochs=False),
        pytest.raises(antiphon.StoreLocked, match="being written by process"),
    ):
        repair_home(home)


def test_doctor_without_repair_changes_nothing(homes: tuple[Path, Path, Values]) -> None:
    home, _, _ = homes
    _garble_items(home)
    found = check_home(home).findings
    done = CliRunner().invoke(app, ["doctor", "--home", str(home)])
    assert done.exit_code == 1
    assert "NOT right" in done.stdout
    assert check_home(home).findings == found != ()
