"""Open a Spark session with settings for this machine. Any other session works too, after `prepare`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from weakref import WeakSet

from pyspark.sql import SparkSession

from antiphon.core.errors import InvalidInput
from antiphon.pipeline.session.java import use_java

MEMORY_SHARE = 0.4  # of the machine's memory, for the JVM; Python workers and the page cache need the rest
MEMORY_MIN_MB, MEMORY_MAX_MB = 512, 32 << 10
PARTITIONS_PER_CORE = 4  # so that a partition with a hot item delays the others little

#: For local sessions only: workers of a cluster may find Antiphon only in files that come with a task.
DAEMON = {"spark.python.daemon.module": "antiphon.pipeline.session.worker_daemon"}

_PREPARED: WeakSet[SparkSession] = WeakSet()

#: Settings that the pipeline needs in every session, also in one made elsewhere.
NEEDED = {
    "spark.sql.python.filterPushdown.enabled": "true",
}


def open_session(
    name: str = "antiphon",
    *,
    master: str | None = None,
    partitions: int | None = None,
    memory_mb: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the active session, or open one: on all cores of this machine, or on the cluster at `master`.

    `partitions` is the number of shuffle partitions, `memory_mb` the memory of the driver. `settings` are Spark's own
    and override all others.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return prepare(running)
    use_java()
    cores = os.cpu_count() or 1
    where = master or f"local[{cores}]"
    is_local = where.startswith("local")
    if is_local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = {
        "spark.master": where,
        "spark.driver.memory": f"{memory_mb or _memory_mb()}m",
        "spark.sql.shuffle.partitions": str(partitions or PARTITIONS_PER_CORE * cores),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        **({} if master else {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}),
        **(DAEMON if is_local and not where.startswith("local-cluster") else {}),
        **NEEDED,
        **(settings or {}),
    }
    session = SparkSession.builder.appName(name).config(map=chosen).getOrCreate()  # type: ignore[arg-type]
    if not is_local:
        check_workers(session)
    return prepare(session)


def check_workers(spark: SparkSession) -> None:
    """Raise `InvalidInput` if the Python of a cluster's workers has no Antiphon, or another version of it.

    Without `PYSPARK_PYTHON` workers start `python3`. The path of this process's Python would mean nothing on another
    machine, so it is no default.
    """
    try:
        (found,) = spark.sparkContext.parallelize([0], 1).map(_version).collect()
        told = "" if found == _version(0) else f"their Python has Antiphon {found}, and here it is {_version(0)}"
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        why = ("ModuleNotFoundError", "PYTHON_VERSION_MISMATCH", "Cannot run program")
        told = next((line for line in lines if any(one in line for one in why)), lines[0])
    if told:
        program = spark.sparkContext.pythonExec
        spark.stop()
        raise InvalidInput(
            f"the workers of the cluster cannot run Antiphon with {program!r}: {told:.300}; set PYSPARK_PYTHON to a "
            f"Python {sys.version_info.major}.{sys.version_info.minor} on the workers that has antiphon[spark]"
        )


def _version(_: int) -> str:
    """Return the version of Antiphon in the process that calls it."""
    return version("antiphon")


def prepare(spark: SparkSession) -> SparkSession:
    """Register the data source `antiphon` in a session: `spark.read.format("antiphon")`."""
    if spark not in _PREPARED:
        from antiphon.pipeline.source.datasource import AntiphonSource

        _choose_python(spark)
        for key, value in NEEDED.items():
            spark.conf.set(key, value)
        spark.dataSource.register(AntiphonSource)
        _PREPARED.add(spark)
    return spark


def _choose_python(spark: SparkSession) -> None:
    """Let workers on this machine run the Python of this process, unless the user has chosen one.

    They would run the first `python3` of the PATH, which may have no Antiphon.
    """
    context = getattr(spark, "sparkContext", None)  # none in a session of Spark Connect
    if context is not None and context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


def _memory_mb() -> int:
    held = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return int(min(max(held * MEMORY_SHARE, MEMORY_MIN_MB), MEMORY_MAX_MB))
