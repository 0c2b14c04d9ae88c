"""The public names of `antiphon.model`: importable, and loaded only when they are used."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import antiphon.model

PUBLIC: list[str] = import_module("antiphon.model").__all__
HEAVY = ("lmdb", "numpy", "pyarrow", "nacl", "google.protobuf", "antiphon.model.model")


@pytest.mark.parametrize("name", PUBLIC)
def test_every_exported_name_is_importable(name: str) -> None:
    assert getattr(antiphon.model, name).__name__ == name
    assert name in dir(antiphon.model)


def test_the_parts_of_a_model_are_exported() -> None:
    parts = {"Discard", "Feeding", "InvalidMutation", "Model", "ModelFactory", "Reference"}
    collection = {"ArrayModel", "FileModel", "MessengerModel", "ObjectModel", "TextModel"}
    assert parts | collection <= set(PUBLIC)
    with pytest.raises(AttributeError, match="has no 'nothing'"):
        _ = antiphon.model.nothing  # type: ignore[attr-defined]


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, antiphon.model; print(*(name for name in {HEAVY} if name in sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
