"""Spark's Python workers, which tell where their time goes; bench/pipeline.py names it as `spark.python.daemon.module`.

It is the pipeline's own (`antiphon.pipeline.session.worker_daemon`), with methods that are wrapped before it forks;
time in one that another calls is the inner one's alone. It is CPU time, and each process writes what it has used, by
part, into a file of its own after each task.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from pyspark import worker

from antiphon.pipeline.session.worker_daemon import main as manage

FOLDER = "ANTIPHON_BENCH_PARTS"
REST = "workers: Spark's own Python, Arrow streams, the rest"
BETWEEN = "workers: between tasks"
PAGE = os.sysconf("SC_PAGE_SIZE")
LOOK_EVERY_S = 0.02
now = time.process_time
work = worker.main


class Parts:
    """One stopwatch for each part, of which one runs at a time."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open = [BETWEEN]
        self._since = 0.0  # all that the process has used so far

    def turn(self) -> None:
        at = now()
        self.seconds[self._open[-1]] = self.seconds.get(self._open[-1], 0.0) + at - self._since
        self._since = at

    def enter(self, part: str) -> None:
        self.turn()
        self._open.append(part)

    def leave(self) -> None:
        self.turn()
        self._open.pop()

    def during(self, part: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*values: Any, **named: Any) -> Any:
            self.enter(part)
            try:
                return act(*values, **named)
            finally:
                self.leave()

        return timed

    def each(self, part: str, act: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        """The same for a generator: the time between two values does not count."""

        def timed(*values: Any, **named: Any) -> Iterator[Any]:
            found = act(*values, **named)
            while True:
                self.enter(part)
                try:
                    value = next(found)
                except StopIteration:
                    return
                finally:
                    self.leave()
                yield value

        return timed


PARTS = Parts()
PATCHED = ("fold.fold_job", "order.shuffle_chunk", "plan.survey")


def wrap() -> None:
    """Wrap the pipeline's methods, so that their time counts for their parts."""
    from antiphon.model import item_codec
    from antiphon.pipeline.columnar.register_fold import RegisterFold
    from antiphon.pipeline.fold.summary import Tally
    from antiphon.pipeline.order.total_order import OrderedMessages
    from antiphon.pipeline.plan.party_plan import Planner

    modules: list[Any] = [import_module(f"antiphon.pipeline.{name}") for name in PATCHED]
    fold_job, shuffle_chunk, survey = modules
    survey.verify_task = PARTS.during("verify: hashes, heads, rules", survey.verify_task)
    Planner.plan = PARTS.during("plan: delivery, rights", Planner.plan)  # type: ignore[method-assign]
    read_chunks = PARTS.each("read blocks, pack chunks", shuffle_chunk.read_chunks)
    fold_job.read_chunks = shuffle_chunk.read_chunks = read_chunks
    OrderedMessages.of = PARTS.during("put into the total order", OrderedMessages.of)  # type: ignore[method-assign]
    RegisterFold.__init__ = PARTS.during("registers on columns", RegisterFold.__init__)  # type: ignore[method-assign]
    fold_job._fold = PARTS.each("fold items", fold_job._fold)
    item_codec.snapshot = PARTS.during("items' bytes", item_codec.snapshot)
    for name in ("add_folded", "finish"):
        setattr(Tally, name, PARTS.during("digests of items", getattr(Tally, name)))


class Peak:
    """Peak of the memory that this process has allocated, sampled fifty times a second.

    The kernel's own peak would not do: it has the pages of mapped files in it, here those of the feeds.
    """

    def __init__(self) -> None:
        self.most = 0
        self._thread: threading.Thread | None = None

    def look(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        self._look()

    def _look(self) -> None:
        _, held, shared, *_ = Path("/proc/self/statm").read_text().split()
        self.most = max(self.most, (int(held) - int(shared)) * PAGE)

    def _watch(self) -> None:
        while True:
            time.sleep(LOOK_EVERY_S)
            self._look()


PEAK = Peak()


def main(infile: Any, outfile: Any) -> None:
    """Run one task."""
    PEAK.look()
    PARTS.enter(REST)
    try:
        work(infile, outfile)
    finally:
        PARTS.leave()
        told = {"parts": PARTS.seconds, "peak": PEAK.most}
        Path(os.environ[FOLDER], f"{os.getpid()}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    wrap()
    worker.main = main
    manage()
