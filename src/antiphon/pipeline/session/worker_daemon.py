"""The process that forks Spark's Python workers. It imports the modules that workers need before the first fork.

`open_session` sets it as `spark.python.daemon.module` for sessions on this machine. Three costs go away:

- A worker forked by Spark's own daemon imports for a second before its first task. Here the imports are done once.
- After each task it runs a garbage collection over all imported objects: 25 ms, as long as some ten thousand messages
  take. Here these objects are frozen.
- With each task Spark sends a few bytes, and waits for the kernel to acknowledge them before it sends the rest. The
  kernel delays acknowledgements by 40 ms unless `TCP_QUICKACK` is set.

No module imported here may start a thread that holds a lock, or open a file: the forks would inherit the lock and share
the file.
"""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable
from importlib import import_module

from pyspark import daemon

Worker = Callable[[socket.socket, bool], int]

#: Modules that tasks of the pipeline use: the source, the survey, the fold, the models, and the files of tables.
NEEDED = (
    "pyspark.worker",
    "antiphon.pipeline.source.datasource",
    "antiphon.pipeline.plan.survey",
    "antiphon.pipeline.tables.shard_fold",
    "antiphon.pipeline.tables.block_rows",
)


def preload() -> None:
    """Import the modules that workers need, and exempt their objects from garbage collection."""
    for name in NEEDED:
        import_module(name)
    gc.collect()
    gc.freeze()
    # Tasks keep many rows and states until a batch is complete, and none of them is garbage. With Python's default
    # thresholds, collections take 2 % of decoding, folding and returning 5,000 items, and 21 % if all items are kept.
    gc.set_threshold(50_000, 20, 100)


def with_quick_ack(work: Worker) -> Worker:
    """Wrap a worker so that it sets `TCP_QUICKACK` for each task: the kernel resets the option by itself."""

    def act(sock: socket.socket, authenticated: bool) -> int:
        if hasattr(socket, "TCP_QUICKACK") and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return work(sock, authenticated)

    return act


def main() -> None:
    """Run the daemon."""
    preload()
    daemon.worker = with_quick_ack(daemon.worker)  # type: ignore[assignment]
    daemon.manager()


if __name__ == "__main__":
    main()
