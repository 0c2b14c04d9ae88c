"""One Spark session for all tests of the pipeline: it takes seconds to start.

A test that uses Spark asks for `spark` (or `quick`), also if only the command line that it calls uses the session. All
such tests run on one worker of xdist; the others run on any, where `open_session` is refused.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.budget import SOAK
from tests.pipeline.small import small_jobs

from antiphon.pipeline import open_session
from antiphon.pipeline.session import session as session_module

# Spark leaves sockets to the garbage collector, which warns of them.
QUIET = ["ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.slow)
            for rule in QUIET:
                item.add_marker(pytest.mark.filterwarnings(rule))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Function) -> Generator[None, object, object]:
    with pytest.MonkeyPatch.context() as patch:
        if "spark_worker" not in item.fixturenames:
            patch.setattr(session_module, "prepare", _refuse)
        return (yield)


def _refuse(_: SparkSession) -> SparkSession:
    raise AssertionError('the test uses Spark: it needs the fixture "spark"')


@pytest.fixture(scope="session")
def spark(spark_worker: None, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # Executors import models of the tests, and the sources of this tree, not those that are installed.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(root / "src"), str(root)])
    scratch = tmp_path_factory.mktemp("spark")
    session = open_session(
        "antiphon tests",
        master="local[2]",
        partitions=3,
        memory_mb=1024,
        settings={
            "spark.local.dir": str(scratch),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # Jobs are small and many: to compile them well takes longer than to run them.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )
    yield session
    session.stop()


@pytest.fixture
def quick(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, set for many tiny jobs. In `make soak` it keeps its settings for large ones."""
    with nullcontext() if SOAK else small_jobs(spark):
        yield spark
