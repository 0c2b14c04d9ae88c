"""The public names of `antiphon.feed` and `antiphon.snapshot`: importable, and loaded only when they are used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

HEAVY = ("lmdb", "numpy", "pyarrow", "nacl")


@pytest.mark.parametrize("package", ["antiphon.feed", "antiphon.snapshot"])
def test_every_exported_name_is_importable(package: str) -> None:
    module = importlib.import_module(package)

    assert module.__all__
    for name in module.__all__:
        assert getattr(module, name).__name__ == name or name == "ModelPin"  # which is an alias of a tuple
        assert name in dir(module)
    with pytest.raises(AttributeError, match="has no 'nothing'"):
        _ = module.nothing


@pytest.mark.parametrize("package", ["antiphon.feed", "antiphon.snapshot"])
def test_importing_a_package_loads_no_heavy_library(package: str) -> None:
    loaded = f"import sys, {package}; print(*(name for name in {HEAVY} if name in sys.modules))"

    found = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)

    assert found.stdout.split() == []
