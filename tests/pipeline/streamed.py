"""A program that follows a home, and kills itself at a point that it is told; the tests of the stream start it.

    python -m tests.pipeline.streamed HOME TABLES CHECKPOINT BLOCKS POINT

POINT is `before commit:3`, `after commit:3`, `before publish:1` or `after publish:1`, at the call of that number; or
`-`, for who is killed from outside: each stage is told as it begins.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from antiphon.pipeline import open_session
from antiphon.pipeline.goon import GoOn
from antiphon.pipeline.stream import StreamJob
from antiphon.pipeline.tablelog import TableLog

METHODS = {"commit": "_commit", "publish": "publish"}


def die_at(point: str) -> None:
    moment, _, rest = point.partition(" ")
    name, _, number = rest.partition(":")
    real: Callable[..., Any] = getattr(TableLog, METHODS[name])
    calls = 0

    def act(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == int(number) and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        made = real(*given)
        if calls == int(number):
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    setattr(TableLog, METHODS[name], act)


def tell(text: str, _: int = 0) -> None:
    print(text, flush=True)


def main(home: str, tables: str, checkpoint: str, blocks: str, point: str) -> None:
    if point != "-":
        die_at(point)
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.local.dir": str(Path(tables).parent)}
    spark = open_session("killed", master="local[2]", partitions=2, memory_mb=768, settings=quick)
    job = StreamJob(GoOn(spark, TableLog(tables), [home], tell=tell), Path(checkpoint), int(blocks), available_now=True)
    job.run()
    tell("done")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
