"""The streaming job: follows homes, and keeps their tables up to date. Each micro-batch is an incremental run.

Spark writes the anchor at which a batch ends into its checkpoint before the batch begins. The tables record the number
of the last batch in the same step that publishes them. So each batch is in the tables exactly once, wherever the
process is killed: an unpublished batch is repeated up to the same anchor, and a published one is skipped.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, time
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from antiphon.core.errors import AntiphonError, BadEncoding
from antiphon.core.local_path import local_path
from antiphon.core.timeframe import Timeframe
from antiphon.feed.store.private_files import make_folder
from antiphon.pipeline.jobs.report import totals
from antiphon.pipeline.jobs.table_run import TableRun
from antiphon.pipeline.session.tasks import in_workers
from antiphon.pipeline.source.datasource import ANCHOR, MICRO_BATCH_BLOCKS
from antiphon.pipeline.source.home import read_anchor
from antiphon.pipeline.source.inventory import take_inventory
from antiphon.pipeline.source.ranges import Limits
from antiphon.pipeline.tables.delta_folder import StreamBatch

LOOK_EVERY_S = 0.2  # how often to check whether the query has ended or was stopped


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of one micro-batch."""

    number: int
    run: int  # number of the run in the tables
    blocks: int  # new blocks
    parties: int  # parties with something new
    seconds: float  # duration
    latency: float  # seconds from when Spark saw new blocks until readers of the tables see them
    full: dict[str, int]  # parties that were read in full, by reason
    account: dict[str, int]  # what became of all blocks so far; lost is 0

    @property
    def rate(self) -> float:
        """Blocks per second."""
        return self.blocks / self.seconds if self.seconds else 0.0

    def row(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        times = {"seconds": round(self.seconds, 3), "rate": round(self.rate, 1), "latency": round(self.latency, 3)}
        about = {"batch": self.number, "run": self.run, "blocks": self.blocks, "parties": self.parties}
        return {**about, **times, "full": self.full, "account": self.account}


def _ignore(_: BatchResult) -> None:
    pass


@dataclass
class StreamJob:
    """A stream. It ends by `stop`, an error, or, with `available_now`, when it has read what was there at its start."""

    table_run: TableRun
    checkpoint: Path
    max_blocks: int = MICRO_BATCH_BLOCKS  # about the most of a micro-batch; the rest waits in its feeds
    trigger_s: float = 1.0
    available_now: bool = False
    on_batch: Callable[[BatchResult], None] = _ignore
    _error: BaseException | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _idle: threading.Event = field(default_factory=threading.Event)
    _stopping: bool = False

    def run(self) -> None:
        """Follow the homes until the stream ends."""
        self.checkpoint = make_folder(local_path(self.checkpoint).absolute())
        with self.table_run.full_disk_named(), self.table_run.tables.locked():
            self._idle.set()
            query = self._start()
            try:
                while not self._stopping and query.isActive:
                    with suppress(StreamingQueryException):  # reported below
                        query.awaitTermination(LOOK_EVERY_S)  # type: ignore[arg-type]
            finally:
                with self._lock:  # a batch that has begun is finished, and no other begins
                    asked, self._stopping = self._stopping, True
                self._idle.wait()
                failed = query.exception()
                query.stop()
            if self._error is not None:
                raise self._error
            if failed is not None and not asked:
                raise AntiphonError(f"the stream has ended: {failed}")

    def stop(self) -> None:
        """Begin no other batch. May be called from any thread, and from a signal handler."""
        self._stopping = True

    def _start(self) -> StreamingQuery:
        reader = self.table_run.spark.readStream.format("antiphon").option("columns", "feed,seq,fault")
        reader = reader.option("maxBlocksPerTrigger", str(self.max_blocks)).option("verify", "false")
        if self.table_run.parties:
            (found,) = in_workers(self.table_run.spark, take_inventory, [(self.table_run.home_paths, Limits())])
            found.check(self.table_run.parties)  # a stream of an unknown party would wait for ever
            reader = reader.option("party", ",".join(bytes(party).hex() for party in self.table_run.parties))
        rows = reader.option("paths", json.dumps(self.table_run.home_paths)).load()
        writer = rows.writeStream.foreachBatch(self._batch).option("checkpointLocation", f"file://{self.checkpoint}")
        if self.available_now:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{round(1000 * self.trigger_s)} milliseconds").start()

    def _batch(self, rows: DataFrame, number: int) -> None:
        """Run a micro-batch; called by Spark. Its rows are not read: the run reads what its plan says."""
        with self._lock:
            if self._stopping:
                raise InterruptedError("the stream is stopping; this batch is left to the next one")
            self._idle.clear()
        try:
            self._advance(number)
        except BaseException as error:
            self._error = error
            raise
        finally:
            self._idle.set()

    def _advance(self, number: int) -> None:
        begun = monotonic()
        planned_ms, until = self._offset(number)
        stream: StreamBatch = (self._id(), number)
        before = self.table_run.tables.current()
        if before.streams.get(stream[0], -1) >= number:
            return
        now = self.table_run.update(until=until, stream=stream)
        moved = [step for step in self.table_run.steps if not step.unchanged]
        blocks = sum(step.new_blocks for step in moved)
        self.table_run.tidy()
        accounts = self.table_run.accounts()
        took = monotonic() - begun
        latency = max(took, time() - planned_ms / 1000)
        account = totals(accounts.values())
        self.on_batch(BatchResult(number, now.run, blocks, len(moved), took, latency, self.table_run.full, account))
        lost = {party.hex()[:8]: one.lost for party, one in accounts.items() if one.lost}
        if lost:
            raise AntiphonError(
                f"batch {number}: blocks that nobody accounts for, by party: {lost}; `run --full` with these tables"
            )

    def _offset(self, number: int) -> tuple[int, Timeframe]:
        """Return when a batch was planned, and its end anchor, from Spark's checkpoint."""
        file = self.checkpoint / "offsets" / str(number)
        try:
            lines = file.read_text().splitlines()
            about, offset = json.loads(lines[1]), json.loads(lines[-1])
            return int(about["batchTimestampMs"]), read_anchor(offset[ANCHOR])
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            raise BadEncoding(f"{file} is no offset of a stream of feeds; begin with another --checkpoint") from None

    def _id(self) -> str:
        """Return the id of this stream: that of its checkpoint, which stays the same when the stream is restarted."""
        try:
            return str(json.loads((self.checkpoint / "metadata").read_text())["id"])
        except (OSError, ValueError, KeyError, TypeError):
            raise BadEncoding(f"{self.checkpoint} is no checkpoint of a stream; name another one") from None
