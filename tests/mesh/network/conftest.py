"""The laboratory of `bench/harness/lab.py` for tests: a link between two network namespaces, or a reason to skip."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.append(str(BENCH))  # for the harness, which these tests and the benchmark of the network share

if TYPE_CHECKING:
    from harness.lab import Lab, Link


@pytest.fixture(scope="session", autouse=True)
def harness_path() -> Iterator[None]:
    """Let processes that the harness starts find it, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(BENCH), prepend=os.pathsep)
        yield


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the compiled link. The test skips where no laboratory can be made."""
    from harness.lab import why_not

    folder = tmp_path_factory.mktemp("lab")
    if reason := why_not(folder):
        pytest.skip(f"no laboratory of networks: {reason}")
    return folder


@pytest.fixture
def make_lab(lab_folder: Path) -> Iterator[Callable[..., Lab]]:
    """A function that makes laboratories, which end with the test."""
    from harness.lab import Lab

    with ExitStack() as stack:

        def make(link: Link, **how: Any) -> Lab:
            return stack.enter_context(Lab(link, lab_folder, **how))

        yield make
