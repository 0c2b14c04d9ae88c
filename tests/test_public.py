"""The public names: each is there, is what it says, and importing a package alone loads nothing heavy."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import antiphon
from antiphon.core import errors
from antiphon.schema.errors import SchemaViolation

PACKAGES = ("antiphon", *(f"antiphon.{name}" for name in ("api", "core", "feed", "halo", "model", "party", "snapshot")))
PUBLIC: list[str] = importlib.import_module("antiphon").__all__
NAMES = [(package, name) for package in PACKAGES for name in importlib.import_module(package).__all__]


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_every_public_name_is_there(package: str, name: str) -> None:
    module = importlib.import_module(package)
    assert getattr(module, name) is not None
    assert name in dir(module)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no 'Nothing'"):
        _ = antiphon.Nothing  # type: ignore[attr-defined]


def test_every_error_is_public() -> None:
    raised = {name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)}
    assert raised | {SchemaViolation.__name__} <= set(PUBLIC)


def test_open_has_a_real_signature() -> None:
    assert {"path", "name", "passphrase", "keyring", "unprotected", "live"} <= inspect.signature(
        antiphon.open
    ).parameters.keys()


def documented(package: str, name: str) -> list[str]:
    """The public members of a public class that lack a docstring; of a function, itself."""
    value = getattr(importlib.import_module(package), name)
    lacking = [] if inspect.getdoc(value) else [name]
    for member, found in vars(value).items() if inspect.isclass(value) else ():
        function = found.__func__ if isinstance(found, classmethod | staticmethod) else found
        shown = isinstance(function, property) or inspect.isfunction(function)
        if shown and not member.startswith("_") and not inspect.getdoc(getattr(value, member)):
            lacking.append(f"{name}.{member}")
    return lacking


def test_every_public_member_has_a_docstring() -> None:
    assert [member for package, name in NAMES for member in documented(package, name)] == []


def test_importing_the_packages_loads_nothing_heavy() -> None:
    code = (
        f"import sys, {', '.join(PACKAGES)}; print(sorted({{'pyarrow', 'numpy', 'lmdb', 'nacl'}} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
