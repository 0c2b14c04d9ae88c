"""Shared by all tests: Hypothesis profiles, the scheduler for xdist, and the folder of large test data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from antiphon.testing.peers import Peers

ROOT = Path(__file__).resolve().parent.parent
SPARK = "spark"  # the id of the parameter of `spark_worker`

# No deadline: two cores are shared, and a slow example is no wrong one. CI must not fail by luck.
settings.register_profile("default", deadline=None, max_examples=50, derandomize="CI" in os.environ)
settings.register_profile("soak", deadline=None, max_examples=2000)
settings.register_profile("quick", deadline=None, max_examples=25)
# Under mutation testing any failure is a kill: no shrinking, no examples of earlier runs, and no luck.
settings.register_profile(
    "mutants",
    deadline=None,
    max_examples=25,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(
    next(
        (name for name in ("soak", "quick", "mutants") if os.environ.get(f"ANTIPHON_{name.upper()}") == "1"), "default"
    )
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With xdist, put slow tests first: the other workers would wait for a slow test that begins last."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)


class OneSpark(LoadScopeScheduling):  # type: ignore[misc]
    """Run all tests that need Spark on one worker, and any other test on whichever worker is free.

    A second Spark costs more than it saves. The scheduler sees nothing but node ids, so the fixture `spark_worker`
    writes its parameter into the id of each test that uses it: `test_survey.py::test_x[spark]`. xdist's own mark for
    groups does not work here: xdist 3.8 writes the group to an attribute that pytest 9.2 does not read.

    xdist hands out the unit with the most tests first, which is that of Spark.
    """

    def _split_scope(self, nodeid: str) -> str:
        _, _, parameters = nodeid.removesuffix("]").partition("[")
        return SPARK if SPARK in parameters.split("-") else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneSpark | None:
    return OneSpark(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(scope="session", params=[SPARK], ids=[SPARK])
def spark_worker() -> None:
    """Send the test to the worker that runs Spark. The `spark` fixture uses it; tests that start a Spark themselves do
    so with `pytest.mark.usefixtures("spark_worker")`.
    """


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


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    """A party of three devices: Alice, who founded it, Bob and Carol."""
    from antiphon.testing.peers import Peers  # most tests need none of it

    with Peers(tmp_path / "peers") as made:
        for name in ("alice", "bob", "carol"):
            made.add(name)
        yield made
