"""`antiphon party costs`, `devices`, `ignore`, `heed`, `revoke`, `end-device`, `leave`, `take-back` as run."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cli.conftest import call, told

import antiphon
from antiphon import Object, sync
from antiphon.halo import new_device

pytestmark = pytest.mark.slow


class Homes(NamedTuple):
    """Ada's home and Bob's; their party, an item in it, Bob's identity and data feed, and where his rubbish begins."""

    ada: Path
    bob: Path
    party: bytes
    item: bytes
    identity: str
    rubbish: str


@pytest.fixture
def homes(tmp_path: Path) -> Homes:
    with (
        antiphon.open(tmp_path / "ada", name="Ada", unprotected=True) as ada,
        antiphon.open(tmp_path / "bob", name="Bob", unprotected=True) as bob,
    ):
        party = ada.create_party("Household")
        bob.join(party.invite(bob.me))
        note = party.object({"title": "Milk"})
        sync(ada, bob)
        theirs = bob.party(party.key).item(note.id, Object)
        for title in ("Oat milk", "x" * 5_000):
            theirs["title"] = title
        sync(ada, bob)
        last = note.history()[-1].stamp
        rubbish = f"{last.feed.hex()[:12]}/{last.seq}"
        return Homes(ada.path, bob.path, bytes(party.key), bytes(note.id), bob.me.hex(), rubbish)


def title(home: Path, homes: Homes) -> object:
    with antiphon.open(home, epochs=False) as store:
        return store.party(homes.party).item(homes.item, Object).value["title"]


def test_costs_are_told_the_dearest_first(homes: Homes) -> None:
    rows = told("party", "costs", homes.party.hex()[:8], "--home", homes.ada)
    assert {row["identity"] for row in rows} >= {homes.identity}
    (his,) = [row for row in rows if row["identity"] == homes.identity]
    assert his["body_bytes"] > 5_000
    assert {"blocks", "header_bytes", "refused", "seconds", "feeds", "ignored"} <= his.keys()
    assert homes.identity[:16] in call("party", "costs", homes.party.hex()[:8], "--home", homes.ada).output


def test_a_member_is_ignored_and_heeded_again(homes: Homes) -> None:
    answer = told("party", "ignore", homes.party.hex()[:8], homes.identity[:10], "--home", homes.ada)
    assert answer == {"ignored": [homes.identity]}
    assert title(homes.ada, homes) == "Milk"
    (his,) = [
        row
        for row in told("party", "costs", homes.party.hex()[:8], "--home", homes.ada)
        if row["identity"] == homes.identity
    ]
    assert (his["ignored"], his["body_bytes"] < 5_000) == (1, True)
    assert told("party", "heed", homes.party.hex()[:8], homes.identity, "--home", homes.ada) == {"ignored": []}
    with antiphon.open(homes.ada) as ada, antiphon.open(homes.bob) as bob:
        sync(ada, bob)
    assert title(homes.ada, homes) == "x" * 5_000
    assert call("party", "ignore", homes.party.hex()[:8], "77", "--home", homes.ada).exit_code != 0


def test_a_member_is_revoked_from_a_message_on(homes: Homes) -> None:
    asked = ("party", "revoke", homes.party.hex()[:8], homes.identity[:8], "--home", homes.ada)
    assert "FEED/SEQ" in str(call(*asked, "--before", "nothing").exception)
    assert told(*asked, "--before", homes.rubbish) == {"revoked": homes.identity, "refused": 1}
    assert title(homes.ada, homes) == "Oat milk"


def test_the_devices_of_a_party_are_listed(homes: Homes) -> None:
    asked = ("party", "devices", homes.party.hex()[:8], "--home", homes.bob)
    with antiphon.open(homes.bob, epochs=False) as bob, antiphon.open(homes.ada, epochs=False) as ada:
        stolen = bob.device.hex()
        party = bob.party(homes.party)
        assert party.member.data is not None
        feed, label = party.member.data.feed.hex(), bob.keys.record(bob.device).label
        ada_device = ada.device.hex()
    rows = {row["device"]: row for row in told(*asked)}
    assert rows.keys() == {stolen, ada_device}
    mine = rows[stolen]
    assert (mine["identity"], mine["name"], mine["data_feeds"]) == (homes.identity, label, [feed])
    assert (len(mine["control_feeds"]), mine["ended"], mine["here"]) == (1, False, True)
    assert (rows[ada_device]["name"], rows[ada_device]["here"]) == ("", False)
    assert stolen[:16] in call(*asked).output

    with antiphon.open(homes.bob, epochs=False) as bob, antiphon.open(homes.ada, epochs=False) as ada:
        bob.manager.device = new_device(bob.keys, "phone", bob.me)
        bob.party(homes.party).operator.end_device(stolen)
        sync(ada, bob)
    asked = (*asked[:-1], homes.ada)
    rows = {row["device"]: row for row in told(*asked)}
    assert {row["ended"] for row in rows.values() if row["device"] != stolen} == {False}
    assert len(rows) == 3
    assert rows[stolen]["ended"]


def test_a_device_is_ended_from_a_message_on(homes: Homes) -> None:
    with antiphon.open(homes.bob, epochs=False) as bob, antiphon.open(homes.ada, epochs=False) as ada:
        both = {bob.device.hex()}
        bob.manager.device = new_device(bob.keys, "phone", bob.me)
        both.add(bob.device.hex())
        bob.party(homes.party)
        sync(ada, bob)
    with antiphon.open(homes.bob, epochs=False) as bob:
        here = bob.device.hex()
    asked = ("party", "end-device", homes.party.hex()[:8], "--home", homes.bob)
    assert "is this device" in str(call(*asked, here).exception)
    (other,) = both - {here}
    assert told(*asked, other[:10], "--before", homes.rubbish)["ended"] == other


def test_a_party_is_left_and_taken_back(homes: Homes) -> None:
    assert told("party", "leave", homes.party.hex()[:8], "--home", homes.bob) == {"left": homes.party.hex()}
    (row,) = told("party", "--home", homes.bob)
    assert row["state"] == "forgotten"
    with antiphon.open(homes.bob, epochs=False) as bob:
        assert bob.parties() == ()
    taken = told("party", "take-back", homes.party.hex()[:8], "--home", homes.bob)
    assert taken == {"party": homes.party.hex(), "items": 1}
    assert title(homes.bob, homes) == "x" * 5_000
