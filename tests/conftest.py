"""What all tests share: Hypothesis profiles and the folder of large test data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).resolve().parent.parent
SPARK = "tests/pipeline/"

# No deadline: two cores are shared, and a slow example is no wrong one. CI must not fail by luck.
settings.register_profile("default", deadline=None, derandomize="CI" in os.environ)
settings.register_profile("soak", deadline=None, max_examples=2000)
settings.register_profile("quick", deadline=None, max_examples=25)
settings.load_profile(
    next((name for name in ("soak", "quick") if os.environ.get(f"ANTIPHON_{name.upper()}") == "1"), "default")
)


class OneSpark(LoadScopeScheduling):  # type: ignore[misc]
    """Each test goes to whichever worker is free, but those of the pipeline to one: a second Spark costs more than it
    saves.

    Marks of groups would say the same, but xdist 3.8 writes them where pytest 9.2 does not look.
    """

    def _split_scope(self, nodeid: str) -> str:
        return SPARK if nodeid.startswith(SPARK) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneSpark | None:
    return OneSpark(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def data() -> Path:
    """Data too large for the repository: ANTIPHON_TEST_DATA, or ../shared/data beside it."""
    folder = Path(os.environ.get("ANTIPHON_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no test data in {folder}; set ANTIPHON_TEST_DATA to the folder that holds vectors/")
    return folder
