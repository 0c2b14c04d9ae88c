"""The registry of names: a file that is replaced atomically, and models that are loaded by name."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import antiphon
from antiphon import InvalidInput, UnknownModel
from antiphon.api.json_file import FILE_SIZE_MAX
from antiphon.api.registry import NAME_SIZE_MAX, TEXT_SIZE_MAX, LocalRegistry, RegistryEntry, load_model
from antiphon.core import Stamp
from antiphon.core.errors import BadEncoding, StoreError
from antiphon.model import Model


class Counted(Model[list[int]]):
    """Counts its messages."""

    name = "test/counted"

    def initial(self) -> list[int]:
        return [0]

    def apply(self, state: list[int], mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        state[0] += not void

    def value(self, state: list[int]) -> int:
        return state[0]


COUNTED = RegistryEntry("test/counted", "model", "Counts", entry=f"{__name__}:Counted", package="test-counted")


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """This module, as an installed package would be."""
    import sys

    module = type(sys)(__name__)
    module.__dict__.update(globals())
    monkeypatch.setitem(sys.modules, __name__, module)


def test_names_are_found_by_version_and_kind(tmp_path: Path) -> None:
    registry = LocalRegistry(tmp_path / "names.json")
    assert registry.find("org.example:planner") is None
    planner = RegistryEntry("org.example:planner", "view class", "Boards")
    newer = RegistryEntry("test/counted", "model", version=2)
    for record in (newer, COUNTED, planner):
        registry.register(record)

    again = LocalRegistry(tmp_path / "names.json")
    assert again.find("test/counted") == newer
    assert again.find("test/counted", 1) == COUNTED
    assert again.find("test/counted", 3) is None
    assert again.records() == [planner, COUNTED, newer]
    assert again.records("view class") == [planner]
    again.register(RegistryEntry("org.example:planner", "view class", "Boards with lists"))
    assert [record.description for record in registry.records("view class")] == ["Boards with lists"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "two words"},
        {"name": "n" * (NAME_SIZE_MAX + 1)},
        {"name": 5},
        {"kind": "colour"},
        {"version": 0},
        {"version": True},
        {"description": "d" * (TEXT_SIZE_MAX + 1)},
        {"entry": 5},
    ],
)
def test_what_is_no_record_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="name"):
        RegistryEntry(**{"name": "a", "kind": "model", **wrong})


@pytest.mark.parametrize(
    "text", ["{", "{}", '[{"name": "a"}]', '[{"name": "a b", "kind": "model"}]', "[5]", "[" * 9999]
)
def test_a_file_that_is_no_registry_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "names.json").write_text(text)
    with pytest.raises(BadEncoding, match=r"names\.json"):
        LocalRegistry(tmp_path / "names.json").records()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be read"):
        LocalRegistry(tmp_path / "file" / "names.json").register(COUNTED)


def test_threads_lose_no_name(tmp_path: Path) -> None:
    registry = LocalRegistry(tmp_path / "names.json")
    threads = [
        threading.Thread(target=registry.register, args=(RegistryEntry(f"name-{number}", "model"),))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(registry.records()) == 8
    assert len(json.loads((tmp_path / "names.json").read_text())) == 8
    assert [path.name for path in tmp_path.iterdir()] == ["names.json"]


def test_a_model_is_loaded_by_its_name() -> None:
    assert load_model(COUNTED).name == "test/counted"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (RegistryEntry("test/x", "model", entry="no.such.module:X", package="test-x"), "install test-x"),
        (RegistryEntry("test/x", "model", entry="json:Nothing"), "cannot be loaded"),
        (RegistryEntry("test/x", "model", entry="json"), "names no model"),
        (RegistryEntry("test/x", "model", entry="json:JSONDecoder"), "names no model"),
        (RegistryEntry("test/counted", "view class", entry=COUNTED.entry), "names no model"),
        (RegistryEntry("test/counted", "model", version=2, entry=COUNTED.entry), "is the model test/counted 1, not"),
    ],
)
def test_a_name_whose_code_is_not_here_says_what_is_amiss(record: RegistryEntry, reason: str) -> None:
    with pytest.raises(UnknownModel, match=reason):
        load_model(record)


def test_a_store_loads_the_models_that_its_registry_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        store.models.register(Counted)
        party = store.create_party("Household")
        item = party.create("test/counted")
        item.item.mutate(b"x")
        assert item.value == 1

    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        party = store.party("Household")
        there = party.item(item.id)
        with pytest.raises(UnknownModel, match="no code for model test/counted 1 is here; its messages are safe"):
            _ = there.value
        store.registry.register(COUNTED)
        store.registry.register(RegistryEntry("test/absent", "model", entry="no.such.module:X"))
        (tmp_path / "antiphon_broken.py").write_text("1 / 0")
        monkeypatch.syspath_prepend(tmp_path)
        store.registry.register(RegistryEntry("test/broken", "model", entry="antiphon_broken:X"))
        assert store.load_models() == ["test/counted"]
        told = [record.getMessage() for record in caplog.records]
        assert ["no.such.module" in told[0], "ZeroDivisionError" in told[1]] == [True, True]
        party.refresh()
        assert there.value == 1
        assert store.load_models() == []


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    with path.open("wb") as file:
        file.truncate(FILE_SIZE_MAX + 1)
    with pytest.raises(BadEncoding, match=r"^the registry \S+ is larger than"):
        LocalRegistry(path).records()
