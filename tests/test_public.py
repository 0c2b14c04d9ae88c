"""The public names: each is there, is what it says, and importing the package alone loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

import antiphon


@pytest.mark.parametrize("name", antiphon.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(antiphon, name) is not None
    assert name in dir(antiphon)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no 'Nothing'"):
        _ = antiphon.Nothing


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, antiphon; print(sorted({'pyarrow', 'numpy', 'lmdb', 'nacl'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
