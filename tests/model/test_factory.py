"""Which models are here: registered by hand, or by an entry point of an installed package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import antiphon
from antiphon.core.errors import InvalidInput, UnknownModel
from antiphon.model.factory import MODEL_NAME_SIZE_MAX, ModelFactory
from antiphon.model.model import Model


class Chess(Model[int]):
    name = "example/chess"


class Chess2(Chess):
    version = 2


class Impostor(Model[int]):
    name = "example/chess"


def test_the_base_collection_is_always_here() -> None:
    names = list(ModelFactory.standard())
    assert {"antiphon/object 1", "antiphon/array 1", "antiphon/text 1", "antiphon/messenger 1"} <= set(names)
    assert names == sorted(names)


def test_a_model_is_found_by_name_and_version_and_the_newest_by_name() -> None:
    factory = ModelFactory(Chess, Chess2)
    assert isinstance(factory.find("example/chess", 2), Chess2)
    assert isinstance(factory.get("example/chess"), Chess2)
    assert type(factory.get("example/chess", 1)) is Chess
    assert factory.find("example/chess", 3) is None
    assert ("example/chess", 1) in factory
    assert factory.keys == {("example/chess", 1), ("example/chess", 2)}


def test_an_unknown_model_says_what_is_installed() -> None:
    with pytest.raises(UnknownModel, match=r"no code for model example/go is here; installed: example/chess 1$"):
        ModelFactory(Chess).get("example/go")
    with pytest.raises(UnknownModel, match=r"no code for model example/chess 2 is here"):
        ModelFactory(Chess).get("example/chess", 2)
    with pytest.raises(UnknownModel, match=r"installed: none"):
        ModelFactory().get("example/chess")


def test_two_models_of_one_name_and_version_are_refused_because_peers_would_differ() -> None:
    factory = ModelFactory(Chess)
    factory.register(Chess)
    with pytest.raises(InvalidInput, match=r"model example/chess 1 is registered already, as Chess"):
        factory.register(Impostor)


@pytest.mark.parametrize("name", ["", "x" * (MODEL_NAME_SIZE_MAX + 1), "é" * MODEL_NAME_SIZE_MAX])
def test_a_name_that_no_genesis_can_hold_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"a model's name has 1 to 256 bytes"):
        ModelFactory(type("Named", (Chess,), {"name": name}))


@pytest.mark.parametrize("version", [0, -1, 1 << 32])
def test_a_version_that_no_genesis_can_hold_is_refused(version: int) -> None:
    with pytest.raises(InvalidInput, match=r"a version is an integer from 1 on"):
        ModelFactory(type("Versioned", (Chess,), {"version": version}))


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("raise RuntimeError('half installed')", "half installed"),
        ("import nothing_of_this_name", "nothing_of_this_name"),
        ("Go = 7", "not callable"),
        ("def Go(", "SyntaxError"),
        (
            "from antiphon.model import Model\n\n\nclass Go(Model[int]):\n    name = 'antiphon/text'\n",
            "antiphon/text 1 is registered already",
        ),
    ],
)
def test_a_broken_entry_point_is_skipped_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: str, error: str
) -> None:
    info = tmp_path / "brokengames-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brokengames\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[antiphon.models]\ngo = brokengames_of_a_test:Go\n")
    (tmp_path / "brokengames_of_a_test.py").write_text(code)
    before = ModelFactory.standard().keys
    monkeypatch.syspath_prepend(tmp_path)
    factory = ModelFactory.standard()
    sys.modules.pop("brokengames_of_a_test", None)
    assert factory.keys == before
    assert factory.find("example/go", 3) is None, "its items stay opaque"
    (record,) = caplog.records
    assert record.name == "antiphon"
    assert record.levelname == "WARNING"
    assert "brokengames: its model 'go' cannot be loaded" in record.getMessage()
    assert error in record.getMessage()


def test_a_store_opens_beside_a_broken_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "brokengames-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brokengames\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[antiphon.models]\ngo = brokengames_that_are_not_there:Go\n")
    monkeypatch.syspath_prepend(tmp_path)
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        assert list(store) == []


def test_an_installed_package_offers_its_models_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "boardgames-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: boardgames\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[antiphon.models]\ngo = boardgames_of_a_test:Go\n")
    (tmp_path / "boardgames_of_a_test.py").write_text(
        "from antiphon.model.model import Model\n\n\nclass Go(Model[int]):\n    name = 'example/go'\n    version = 3\n"
    )
    assert ModelFactory.standard().find("example/go", 3) is None
    monkeypatch.syspath_prepend(tmp_path)
    found = ModelFactory.standard().find("example/go", 3)
    assert found is not None
    assert type(found).__module__ == "boardgames_of_a_test"
    del sys.modules["boardgames_of_a_test"]
