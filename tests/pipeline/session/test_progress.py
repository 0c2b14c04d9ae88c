"""The progress display of the command line, over a real Spark job that is not finished yet."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread
from time import monotonic

from pyspark.sql import SparkSession

from antiphon.cli.pipeline.progress import Watch


def test_spark_tells_how_many_tasks_of_a_stage_are_done(spark: SparkSession, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    def act(number: int) -> None:
        if number == 3:
            gate.read_bytes()  # until somebody has opened it to write

    watch = Watch(spark.sparkContext.statusTracker())
    watch.begin("fold", 400)
    job = Thread(target=lambda: spark.sparkContext.parallelize(range(4), 4).foreach(act))
    job.start()
    try:
        latest = monotonic() + 60
        while watch.tasks() != (3, 4) and monotonic() < latest:
            pass
        line = watch.line()
    finally:
        gate.write_bytes(b"")
        job.join()

    assert line.startswith("fold: 3 of 4 tasks, about 300 of 400 messages, ")
    assert watch.tasks() == (4, 4)
