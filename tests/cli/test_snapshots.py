"""`antiphon epoch show`, `save`, `step` and `adopt`, and `antiphon gc`: an operator looks after snapshots."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import call, told

import antiphon
from antiphon.core.cid import RAW, Cid
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.epochs.epochs import Epochs
from antiphon.snapshot import BlobStore
from antiphon.snapshot.car_file import CarFile

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Ada, with a board, many notes, and two epochs."""
    with antiphon.open(tmp_path / "home", name="Ada", unprotected=True) as store:
        party = store.create_party("Household")
        board = party.create_view("org.example:board", name="Board")
        card = party.object({"title": "Milk", "tags": {"white", "cold"}}, parent=board, name="card")
        with party.batch():
            for number in range(200):
                party.object({"number": number})
        party.epochs.declare()
        card["title"] = "Oat milk"
        party.epochs.declare()
    return tmp_path / "home"


@pytest.fixture
def key(home: Path) -> str:
    (row,) = told("party", "--home", home)
    return str(row["party"])


@pytest.fixture
def card(home: Path) -> str:
    return named(home, "card")


def named(home: Path, name: str) -> str:
    with antiphon.open(home, unprotected=True) as store:
        (found,) = [item for item in store.party("Household").query() if item.name == name]
        return found.id.hex()


def test_the_snapshot_of_an_epoch_is_shown_by_its_number(home: Path, key: str) -> None:
    first, last = told("epoch", "show", key, "1", "--home", home), told("epoch", "show", key, "--home", home)
    assert (first["epoch"], first["previous"], first["items"]) == (1, None, 203)  # with the system item
    assert (last["epoch"], last["previous"]) == (2, first["snapshot"])
    assert "antiphon/object 1" in last["models"]
    assert first["snapshot"] in call("epoch", "show", key, "1", "--home", home).output


def test_an_item_is_shown_as_it_was_at_an_epoch(home: Path, key: str, card: str) -> None:
    values = [told("epoch", "show", key, number, "--item", card, "--home", home) for number in ("1", "2")]
    assert [found["value"]["title"] for found in values] == ["Milk", "Oat milk"]
    assert values[0]["value"]["tags"] == ["cold", "white"]
    assert (values[0]["name"], values[0]["model"], values[0]["deleted"]) == ("card", "antiphon/object", False)
    assert "Oat milk" in call("epoch", "show", key, "--item", card, "--home", home).output


def test_a_snapshot_is_saved_whole_or_of_one_view(home: Path, key: str, card: str, tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.car", tmp_path / "part.car"
    all_of_it = told("epoch", "save", key, "1", str(whole), "--home", home)
    one_view = told("epoch", "save", key, "1", str(part), "--view", named(home, "Board"), "--home", home)
    assert all_of_it["root"] == one_view["root"]
    assert (all_of_it["items"], one_view["items"]) == (203, 2)
    assert one_view["blobs"] < all_of_it["blobs"]
    for path in (whole, part):
        with CarFile.open(path) as file:
            base = EpochBase.load(file.roots[0], file, party=bytes.fromhex(key))
            assert base.item(bytes.fromhex(card)) is not None
    assert "2 items" in call("epoch", "save", key, 1, part, "--view", named(home, "Board"), "--home", home).output
    assert sorted(path.name for path in tmp_path.glob("*.car*")) == ["part.car", "whole.car"], "no half-written ones"


def test_what_is_not_there_is_told(home: Path, key: str, card: str, tmp_path: Path) -> None:
    for arguments, reason in (
        (("show", key, "3"), "has no final epoch 3; its epochs are 1 to 2"),
        (("show", key, "--item", "ff"), "is no id of an item"),
        (("show", key, "--item", "ff" * 16), "has no item"),
        (("save", key, "1", str(tmp_path / "no" / "folder.car")), "cannot be written"),
        (("save", key, "1", str(tmp_path / "x.car"), "--view", "ff" * 16), "it may be newer"),
        (("adopt", key), "does not differ from its epochs here"),
    ):
        done = call("epoch", *arguments, "--home", home)
        assert isinstance(done.exception, antiphon.AntiphonError), (arguments, done.output)
        assert reason in str(done.exception)
    assert list(tmp_path.glob("x.car*")) == []


def test_a_snapshot_that_was_collected_is_told(home: Path, key: str, card: str, tmp_path: Path) -> None:
    told("gc", "--home", home)
    for arguments in (("show", key, 1), ("show", key, 1, "--item", card), ("save", key, 1, tmp_path / "one.car")):
        done = call("epoch", *arguments, "--home", home)
        assert "the snapshot of epoch 1 is not in" in str(done.exception)
    assert list(tmp_path.glob("one.car*")) == []
    last = told("epoch", "list", key, "--home", home)[-1]["snapshot"]
    with BlobStore.open(home / "blobs") as blobs:
        blobs.delete([cid for cid in blobs if str(cid) != last])
    done = call("epoch", "show", key, 2, "--item", card, "--home", home)
    assert "or not whole" in str(done.exception)


def test_what_no_party_refers_to_is_collected(home: Path) -> None:
    with BlobStore.open(home / "blobs") as blobs:
        loose = blobs.put(random.Random(1).randbytes(5_000))
        before = blobs.count
    assert told("gc", "--every", "--home", home) == {"blobs": 1, "bytes": 5_000, "stopped": ""}
    found = told("gc", "--home", home)
    assert found["blobs"] > 0, "the first epoch's own blobs: policy keeps none"
    with BlobStore.open(home / "blobs") as blobs:
        assert not blobs.has(loose)
        assert blobs.count == before - 1 - found["blobs"]
    assert "0 blobs deleted" in call("gc", "--home", home).output


def test_what_was_let_go_leaves_the_files(home: Path) -> None:
    with BlobStore.open(home / "blobs") as blobs:
        for number in range(40):
            blobs.put(random.Random(number).randbytes(200_000))
    before = told("compact", "--home", home)
    assert before["bytes"] == before["feeds"] + before["blobs"]
    assert before["blobs"] > 8_000_000
    assert told("gc", "--home", home)["blobs"] >= 40
    after = told("compact", "--home", home)
    assert after["blobs"] < 1_000_000
    assert f"{after['bytes']} bytes are left" in call("compact", "--home", home).output
    assert told("verify", "--home", home)["wrong"] == []


def test_a_device_that_differs_is_told_so_and_adopts(home: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = home.with_name("bob")
    with antiphon.open(home, unprotected=True) as ada, antiphon.open(there, name="Bob", unprotected=True) as bob:
        party = ada.party("Household")
        bob.join(party.invite(bob.me))
        antiphon.sync(ada, bob)
        party.object({"title": "Salt"})
        party.epochs.declare()
        with monkeypatch.context() as patched:  # Bob's code makes another snapshot of it
            compute = Epochs._compute

            def other(epochs: Epochs, *arguments: Any) -> Any:
                made = compute(epochs, *arguments)
                return made if epochs is not bob.manager.epochs(party.key) else replace(made, cid=Cid.of(b"x", RAW))

            patched.setattr(Epochs, "_compute", other)
            antiphon.sync(ada, bob)
            assert bob.party("Household").epochs.disagreement is not None
    monkeypatch.setattr(Epochs, "_compute", lambda *arguments: replace(compute(*arguments), cid=Cid.of(b"x", RAW)))
    found = told("epoch", "step", key, "--home", there)
    assert (found["epoch"], found["differs"]["epoch"], found["differs"]["ours"]) == (2, 3, str(Cid.of(b"x", RAW)))
    shown = call("epoch", "step", key, "--home", there).output
    assert "epoch 3 differs here" in shown
    assert told("epoch", "adopt", key, "--home", there)["epoch"] == 3


def test_steps_are_done_and_told(home: Path, key: str) -> None:
    found = told("epoch", "step", key, "--home", home)
    assert found == {"epoch": 2, "waits_for": "", "differs": None, "moved": False}
    assert "the party is based on epoch 2 here" in call("epoch", "step", key, "--recovered", "--home", home).output


def test_a_proposal_is_attested_by_the_other_device_from_its_own_command_line(
    home: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        antiphon.open(home, unprotected=True) as ada,
        antiphon.open(home.with_name("bob"), name="Bob", unprotected=True) as bob,
    ):
        party = ada.party("Household")
        bob.join(party.invite(bob.me))
        antiphon.sync(ada, bob)
        party.epochs.set_policy(attesters=[ada.me, bob.me], generator=ada.me)
        party.epochs.declare()  # who attests changes with the next
        antiphon.sync(ada, bob)
        party.object({"title": "Salt"})
        party.epochs.declare()
        with monkeypatch.context() as patched:
            patched.setattr(Epochs, "step", lambda self: False)
            antiphon.sync(ada, bob)
    found = told("epoch", "step", key, "--home", home.with_name("bob"))
    assert (found["epoch"], found["moved"]) == (4, True)
    with antiphon.open(home, unprotected=True) as ada, antiphon.open(home.with_name("bob"), unprotected=True) as bob:
        antiphon.sync(ada, bob)
        assert ada.party("Household").epochs.number == 4
