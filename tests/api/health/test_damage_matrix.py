"""Every kind of file of a home, damaged in every way: no crash, no wrong value, and a way back is named."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.budget import FIRST_SEED, budget

import antiphon
from antiphon import sync
from antiphon.api.registry import RegistryEntry
from antiphon.halo.control.checkpoint_file import CheckpointFile

pytestmark = pytest.mark.slow

PROBE = Path(__file__).with_name("damage_probe.py")
FLIPS = budget(2, 250)
KINDS = (
    "keys",
    "keys.lock",
    "feeds/data.mdb",
    "feeds/lock.mdb",
    "feeds/readers.lock",
    "feeds/writer.lock",
    "blobs/data.mdb",
    "blobs/lock.mdb",
    "blobs/readers.lock",
    "blobs/writer.lock",
    "meta.db",
    "meta.db-wal",
    "meta.db-shm",
    "items/PARTY.db",
    "items/PARTY.db-sums",
    "items/PARTY.db-wal",
    "items/PARTY.db-shm",
    "items/PARTY.checkpoint",
    "names.json",
    "views.json",
    "home.version",
)
DAMAGES = ("truncated", *(f"flipped {number}" for number in range(FLIPS)), "zeroed", "deleted", "swapped", "older")
WAY_BACK = re.compile(r"doctor|copy|sync|recover|built again|verify|correct|repair it")


@dataclass
class Prepared:
    """Homes to damage copies of, and all states that each item of Ada ever had."""

    closed: Path  # Ada's home
    running: Path  # the same while it is open: with the logs of SQLite
    older: Path  # the same, open, before the last writes
    other: Path  # Bob's, open
    final: dict[str, dict[str, str]] = field(default_factory=dict)
    had: dict[str, dict[str, set[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))

    def note(self, store: antiphon.Store) -> None:
        for party in store:
            key = party.key.hex()
            self.final[key] = {item.name: item.snapshot().hex() for item in party.query()}
            for name, snapshot in self.final[key].items():
                self.had[key][name].add(snapshot)

    def copy_with(self, kind: str, damage: str, folder: Path) -> Path:
        """Copy Ada's home, with one kind of file damaged."""
        source = self.closed if paths(self.closed, kind) else self.running
        home = folder / "home"
        shutil.copytree(source, home)
        for path in paths(home, kind):
            spoil(path, damage, kind, self)
        return home


def kind_of(path: Path, home: Path) -> str:
    return re.sub(r"[0-9a-f]{64}", "PARTY", path.relative_to(home).as_posix())


def paths(home: Path, kind: str) -> list[Path]:
    return [path for path in sorted(home.rglob("*")) if path.is_file() and kind_of(path, home) == kind]


def spoil(path: Path, damage: str, kind: str, prepared: Prepared) -> None:
    """Damage one file. An empty file can only be deleted."""
    data = bytearray(path.read_bytes())
    if damage == "deleted":
        path.unlink()
    elif damage in ("swapped", "older"):
        there = prepared.other if damage == "swapped" else prepared.older
        same = there / path.relative_to(path.parents[kind.count("/")])
        found = [same] if same.exists() else paths(there, kind)
        if found:
            shutil.copyfile(found[0], path)
    elif damage == "truncated":
        os.truncate(path, len(data) * 2 // 3)
    elif damage == "zeroed":
        path.write_bytes(bytes(len(data)))
    elif data:
        chance = random.Random(f"{FIRST_SEED} {kind} {damage}")
        used = [at for at, byte in enumerate(data) if byte]  # most of a file may be empty
        at = chance.choice(used) if used else 0
        data[at] ^= 1 << chance.randrange(8)
        path.write_bytes(data)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("prepared")
    made = Prepared(folder / "ada", folder / "running", folder / "older", folder / "other")
    with (
        antiphon.open(made.closed, name="Ada", unprotected=True, epochs=False) as ada,
        antiphon.open(folder / "bob", name="Bob", unprotected=True, epochs=False) as bob,
    ):
        household, club = ada.create_party("Household"), ada.create_party("Club")
        bob.join(str(household.invite(bob.me)))
        sync(ada, bob)
        board = bob.create_party("Board")
        view = board.create_view("org.example:board", name="view")
        board.object({"number": 1}, parent=view, name="card")
        ada.hold_view(str(view.locator), str(board.invite(ada.me)))
        sync(ada, bob)
        ada.registry.register(RegistryEntry("org.example:board", "view class", "A board"))
        bob.registry.register(RegistryEntry("org.example:other", "view class", "Another"))
        for number in range(4):
            household.object({"number": number, "text": "a text of some length"}, name=f"note {number}")
            made.note(ada)
        household.file(b"contents of a file" * 500, name="file")
        made.note(ada)
        household.epochs.declare()
        club.list(["one", "two"], name="list")
        sync(ada, bob)
        bob.party("Household").text("of Bob", name="his")
        sync(ada, bob)
        made.note(ada)
        shutil.copytree(made.closed, made.older)
        text = household.text("after the epoch", name="late")
        made.note(ada)
        text.append(", and more")
        made.note(ada)
        club.object({"number": 7}, name="seven")
        made.note(ada)
        sync(ada, bob)
        made.note(ada)
        for party in (household, club):
            CheckpointFile(made.closed / "items" / f"{party.key.hex()}.checkpoint", party.key).save([])
        shutil.copytree(made.closed, made.running)
        shutil.copytree(folder / "bob", made.other)
    for party in (household, club):
        CheckpointFile(made.closed / "items" / f"{party.key.hex()}.checkpoint", party.key).save([])
    return made


class Probe:
    """The process that tries homes, and is tried."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(PROBE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, home: Path, parties: Iterable[str]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([str(home), list(parties)]), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())  # type: ignore[no-any-return]

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def probe() -> Iterator[Probe]:
    probe = Probe()
    yield probe
    probe.close()


def check_read(answer: dict[str, Any], prepared: Prepared, what: str) -> bool:
    """Check what a home shows or refuses. True if all that it had is shown."""
    if "refused" in answer:
        assert WAY_BACK.search(answer["refused"]), f"{what}: no way back in {answer['refused']!r}"
        return False
    for name, values in answer["parties"].items():
        if isinstance(values, str):
            assert WAY_BACK.search(values), f"{what}: no way back in {values!r}"
            continue
        for item, snapshot in values.items():
            assert snapshot in prepared.had[name][item], f"{what}: item {item!r} never had this value"
    return bool(answer["parties"] == prepared.final)


def is_told(answer: dict[str, Any]) -> bool:
    return "refused" in answer or answer["told"] or any(isinstance(one, str) for one in answer["parties"].values())


def test_the_matrix_has_every_kind_of_file(prepared: Prepared) -> None:
    found = {
        kind_of(path, home)
        for home in (prepared.closed, prepared.running)
        for path in home.rglob("*")
        if path.is_file()
    }
    assert found == set(KINDS)
    assert len(prepared.final) == 3


def test_a_sound_copy_shows_all(prepared: Prepared, probe: Probe, tmp_path: Path) -> None:
    for source in (prepared.closed, prepared.running):
        home = tmp_path / source.name
        shutil.copytree(source, home)
        answer = probe.ask(home, prepared.final)
        assert "crash" not in answer, answer["crash"]
        assert (answer["found"], answer["again"], answer["left"]) == ([], [], [])
        assert check_read(answer["read"], prepared, "read")
        assert check_read(answer["after"], prepared, "after")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_damage(kind: str, damage: str, prepared: Prepared, probe: Probe, tmp_path: Path) -> None:
    home = prepared.copy_with(kind, damage, tmp_path)

    answer = probe.ask(home, prepared.final)

    assert "crash" not in answer, answer["crash"]
    for finding in (*answer["found"], *answer["again"], *answer["left"]):
        assert finding["next"], finding
    for when in ("read", "after"):
        whole = check_read(answer[when], prepared, when)
        silent = not is_told(answer[when]) and not (when == "after" and (answer["repaired"] or answer["left"]))
        if damage not in ("swapped", "older"):  # each may be a sound state of its own
            assert whole or not silent, f"{when}: less is shown than there was, without a word"
    if not answer["left"]:
        assert "refused" not in answer["after"], answer["after"]
