"""Where Spark's Python workers come from: a process that has imported what they need before it forks them.

`open_session` names it as `spark.python.daemon.module` for sessions on this machine. A worker of Spark's own imports
for a second before its first task, and looks through all of that for garbage after each: 25 ms, as long as some ten
thousand messages take. Here both are done once. With each task Spark also sends a few bytes, and the next ones when the
kernel has acknowledged those, which it puts off by 40 ms; here it is told not to. Nothing that is imported may start a
thread that holds a lock, or open a file: forks would have the lock, and share the file.
"""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable
from importlib import import_module

from pyspark import daemon

Worker = Callable[[socket.socket, bool], int]

#: What tasks of the pipeline use: the source, the survey, the fold, the models, and the files of tables.
NEEDED = (
    "pyspark.worker",
    "antiphon.pipeline.source.datasource",
    "antiphon.pipeline.plan.survey",
    "antiphon.pipeline.tables.shard_fold",
    "antiphon.pipeline.tables.block_rows",
)


def make_ready() -> None:
    """Import all that workers need, and let no collector of garbage look at it again."""
    for name in NEEDED:
        import_module(name)
    gc.collect()
    gc.freeze()
    # Rows wait for their batch, and states for their rows, and none of them is garbage. With Python's own thresholds
    # looking through them takes 2 % of decoding, folding and telling 5,000 items, and 21 % where all of these are kept.
    gc.set_threshold(50_000, 20, 100)


def prompt(work: Worker) -> Worker:
    """A worker to whose task nothing comes late. The kernel forgets what it was told, so it is told for each task."""

    def act(sock: socket.socket, authenticated: bool) -> int:
        if hasattr(socket, "TCP_QUICKACK") and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return work(sock, authenticated)

    return act


def main() -> None:
    make_ready()
    daemon.worker = prompt(daemon.worker)  # type: ignore[assignment]
    daemon.manager()


if __name__ == "__main__":
    main()
