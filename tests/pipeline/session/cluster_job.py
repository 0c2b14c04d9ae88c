"""A driver, run as a program: the whole job over a home on a cluster, twice; the second time its folds wait for a word.

What it has come to goes to the standard output, a line of JSON each time.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from antiphon.model.factory import ModelFactory
from antiphon.pipeline.epoch.epoch_snapshot import changed, plan_epoch, snapshot
from antiphon.pipeline.jobs.batch_run import Run
from antiphon.pipeline.session.session import open_session

WAIT_S = 90


def told(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


def waiting(folder: Path) -> Callable[[], ModelFactory]:
    """The models, for which a fold has to wait until it is told to go on."""

    def models() -> ModelFactory:
        (folder / f"waits {os.getpid()}").touch()
        end, never = time.monotonic() + WAIT_S, threading.Event()
        while not (folder / "go").exists() and time.monotonic() < end:
            never.wait(0.05)
        return ModelFactory.standard()

    return models


def job(spark: SparkSession, home: str, models: Callable[[], ModelFactory]) -> dict[str, Any]:
    """A run, and the snapshots of the epochs that parties stand on, computed again."""
    with Run.begin(spark, home, models=models) as run:
        report, plans = run.report(), run.survey.plans
    roots = {}
    for plan in plans:
        if plan.number:
            epoch = plan_epoch(spark, home, plan.party, plan.number)
            rows = snapshot(changed(spark, epoch, models), epoch).select("cid", "root").collect()
            roots[plan.party.hex()] = [bytes(row.cid).hex() for row in rows if row.root]
    return {"parties": [party.row() for party in report.parties], "roots": roots}


def main(master: str, home: str, folder: str) -> None:
    spark = open_session(
        "antiphon on a cluster",
        master=master,
        partitions=4,
        memory_mb=512,
        settings={
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.ui.enabled": "true",  # it has the list of tasks
            "spark.ui.port": "0",
        },
    )
    context = spark.sparkContext
    told({"tasks": f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"})
    told(job(spark, home, ModelFactory.standard))
    told(job(spark, home, waiting(Path(folder))))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
