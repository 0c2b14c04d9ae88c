"""One Spark for all tests of the pipeline: it takes seconds to start. And homes that peers have written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.small import small_jobs

from antiphon.pipeline import open_session

# Sockets of Spark's that are closed when they are collected are none of ours.
QUIET = ["ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.slow)
            for rule in QUIET:
                item.add_marker(pytest.mark.filterwarnings(rule))


@pytest.fixture(scope="session")
def spark(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # Executors import models of the tests.
    os.environ["PYTHONPATH"] = str(root)
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
    """The same for tests of many tiny jobs; in `make soak` they are played as large ones are."""
    with nullcontext() if os.environ.get("ANTIPHON_SOAK") == "1" else small_jobs(spark):
        yield spark
