"""The commands about feeds, parties and files, on the homes of three devices that have worked together."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from tests.cli.conftest import Run, answer

import antiphon

pytestmark = pytest.mark.slow


def exchange(*stores: antiphon.Store) -> None:
    """Two rounds: the first of them hears of the last."""
    for one, other in [*pairwise(stores)] * 2:
        antiphon.sync(one, other)


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Alice and Bob own a party, Carol edits in it; they have written before and after an epoch."""
    folder = tmp_path_factory.mktemp("homes")
    with (
        antiphon.open(folder / "alice", name="Alice", unprotected=True) as alice,
        antiphon.open(folder / "bob", name="Bob", unprotected=True) as bob,
        antiphon.open(folder / "carol", name="Carol", unprotected=True) as carol,
    ):
        party = alice.create_party("Household")
        bob.join(party.invite(bob.me, antiphon.Role.OWNER))
        carol.join(party.invite(carol.me, antiphon.Role.EDITOR))
        exchange(alice, bob, carol)
        for store in (alice, bob, carol):
            store.party("Household").object({"title": "Before the epoch."})
        exchange(alice, bob, carol)
        party.epochs.declare()
        exchange(alice, bob, carol)
        bob.party("Household").object({"title": "After the epoch."})
        exchange(alice, bob, carol)
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
    assert sorted(member["roles"] for member in one["members"]) == [["editor"], ["owner"], ["owner"]]
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
    assert f"1 of 1 can be repaired: antiphon doctor --repair --home {homes / 'bob'}" in done.stdout


@pytest.mark.parametrize(
    ("file", "command", "told"),
    [
        ("meta.db", "party", "the list of parties is missing. Put a copy of the file back, or make it anew"),
        ("meta.db", "epoch list {}", "the list of parties is missing. Put a copy of the file back, or make it anew"),
        ("feeds/data.mdb", "feeds", "the feeds of this home are missing. Put a copy of the folder back"),
        ("feeds/data.mdb", "quarantine", "the feeds of this home are missing. Put a copy of the folder back"),
        ("keys", "gc", "the private keys of this home are missing. Put a copy of the file back; or begin a new home"),
    ],
)
def test_a_lost_file_is_told_with_the_ways_back(
    file: str, command: str, told: str, run: Run, homes: Path, tmp_path: Path
) -> None:
    home = shutil.copytree(homes / "alice", tmp_path / "alice")
    key = answer(run("party", "--json", "--home", str(home)))[0]["party"]
    (home / file).unlink()

    done = run(*command.format(key).split(), "--home", str(home))

    assert done.returncode == 2
    assert f"{home / file}: {told}" in done.stderr


def test_errors_are_told_in_a_line(run: Run, start: Run) -> None:
    done = start("feeds", "--home", "nowhere[/x]")
    assert done.returncode == 2
    assert run("party", "--home", "nowhere").returncode == 2
    assert "there is no peer in nowhere[/x]" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_is_told(start: Run) -> None:
    assert answer(start("version", "--json"))["version"]
