"""A program that follows a home, and kills itself at a point that it is told; the tests of the stream start it.

    python -m tests.pipeline.streamed HOME TABLES CHECKPOINT BLOCKS POINT

POINT is `before commit:3`, `after commit:3`, `before publish:1` or `after publish:1`, at the call of that number; or
`-`, for who is killed from outside: each stage is told as it begins. At SIGQUIT it tells what all its threads do,
as Java does, into its stderr.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from tests.pipeline.small import SMALL

from antiphon.pipeline import open_session
from antiphon.pipeline.jobs.stream_job import StreamJob
from antiphon.pipeline.jobs.table_run import TableRun
from antiphon.pipeline.session.stage_events import Tell
from antiphon.pipeline.tables.delta_folder import DeltaFolder


def die_at(point: str) -> None:
    moment, _, rest = point.partition(" ")
    name, _, number = rest.partition(":")
    real: Callable[..., Any] = getattr(DeltaFolder, name)
    calls = count(1)

    def act(*given: Any, **named: Any) -> Any:
        now = next(calls) == int(number)  # tables are committed by threads
        if now and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        made = real(*given, **named)
        if now:
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    setattr(DeltaFolder, name, act)


def only_ours() -> Tell:
    """Tell on stdout, which Java does not have: who listens there hears of the end of this program at once."""
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(text: str, _: int) -> None:
        print(text, file=told, flush=True)

    return tell


def main(home: str, tables: str, checkpoint: str, blocks: str, point: str) -> None:
    faulthandler.register(signal.SIGQUIT)
    tell = only_ours()
    if point != "-":
        die_at(point)
    java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    quick = {"spark.driver.extraJavaOptions": java, "spark.local.dir": str(Path(tables).parent), **SMALL}
    spark = open_session("killed", master="local[2]", memory_mb=512, settings=quick)
    job = StreamJob(
        TableRun(spark, DeltaFolder(tables), [home], tell=tell), Path(checkpoint), int(blocks), available_now=True
    )
    job.run()
    tell("done", 0)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
