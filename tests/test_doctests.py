"""Every example in a docstring runs, in an empty folder of its own."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import antiphon

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(antiphon.__path__, "antiphon.")
    if not module.name.startswith("antiphon.core.v1") and not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", ["antiphon", *MODULES])
def test_examples_of(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    results = doctest.testmod(importlib.import_module(name))

    assert results.failed == 0, f"{results.failed} of {results.attempted} examples failed; they are printed above"


def test_the_walk_finds_the_modules() -> None:
    assert {"antiphon.core.keys", "antiphon.halo.keys.key_store"} <= set(MODULES)
