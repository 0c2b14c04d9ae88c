"""The public names of `antiphon.model`: importable, and loaded only when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import antiphon.model

HEAVY = ("lmdb", "numpy", "pyarrow", "nacl", "google.protobuf", "antiphon.model.model")


@pytest.mark.parametrize("name", antiphon.model.__all__)
def test_every_exported_name_is_importable(name: str) -> None:
    assert getattr(antiphon.model, name).__name__ == name
    assert name in dir(antiphon.model)


def test_the_parts_of_a_model_are_exported() -> None:
    parts = {"Discard", "Feeding", "InvalidMutation", "Model", "ModelFactory", "Reference"}
    collection = {"ArrayModel", "FileModel", "MessengerModel", "ObjectModel", "TextModel"}
    assert parts | collection <= set(antiphon.model.__all__)
    with pytest.raises(AttributeError, match="has no 'nothing'"):
        _ = antiphon.model.nothing


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, antiphon.model; print(*(name for name in {HEAVY} if name in sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
