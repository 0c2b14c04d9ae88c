"""The streaming job: follows homes, and keeps their tables. Each micro-batch is a run that goes on.

Spark's checkpoint says up to which anchor a batch goes, before it is begun; the tables say which batch is in them, in
the very step in which they are published. So wherever the program is killed, a batch is in the tables once: what was
not published is done again, up to the same anchor, and what was is left out.
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
from antiphon.core.timeframe import Timeframe
from antiphon.pipeline.jobs.report import totals
from antiphon.pipeline.jobs.table_run import GoOn
from antiphon.pipeline.session.tasks import in_workers
from antiphon.pipeline.source.datasource import ANCHOR, MICRO_BATCH_BLOCKS
from antiphon.pipeline.source.home import read_anchor
from antiphon.pipeline.source.inventory import take_inventory
from antiphon.pipeline.source.ranges import Limits
from antiphon.pipeline.tables.delta_folder import Stream

LOOK_EVERY_S = 0.2  # whether the query has ended, or somebody wants it to


@dataclass(frozen=True, slots=True)
class Batch:
    """What one micro-batch has done."""

    number: int
    run: int  # the tables are at this run
    blocks: int  # that were new
    parties: int  # with something new
    seconds: float  # that it took
    latency: float  # seconds from when Spark saw that there were new blocks, to when readers of tables see them
    afresh: dict[str, int]  # parties that did not go on, and why
    books: dict[str, int]  # what has become of all blocks so far; nothing is lost

    @property
    def rate(self) -> float:
        """Blocks a second."""
        return self.blocks / self.seconds if self.seconds else 0.0

    def row(self) -> dict[str, Any]:
        """For JSON."""
        times = {"seconds": round(self.seconds, 3), "rate": round(self.rate, 1), "latency": round(self.latency, 3)}
        about = {"batch": self.number, "run": self.run, "blocks": self.blocks, "parties": self.parties}
        return {**about, **times, "afresh": self.afresh, "books": self.books}


def _nobody(_: Batch) -> None:
    pass


@dataclass
class StreamJob:
    """One stream. It ends when it is told to, when all is read that was there (`available_now`), or by an error."""

    go_on: GoOn
    checkpoint: Path
    max_blocks: int = MICRO_BATCH_BLOCKS  # of a micro-batch, about: what waits, waits in its feeds
    trigger_s: float = 1.0
    available_now: bool = False
    told: Callable[[Batch], None] = _nobody
    _error: BaseException | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _idle: threading.Event = field(default_factory=threading.Event)
    _stopping: bool = False

    def run(self) -> None:
        """Follow the homes."""
        self.checkpoint = Path(self.checkpoint).expanduser().absolute()
        with self.go_on.log.locked():
            self._idle.set()
            query = self._start()
            try:
                while not self._stopping and query.isActive:
                    with suppress(StreamingQueryException):  # it is asked for below
                        query.awaitTermination(LOOK_EVERY_S)  # type: ignore[arg-type]
            finally:
                with self._lock:  # either a batch has begun, and is finished, or none begins
                    asked, self._stopping = self._stopping, True
                self._idle.wait()
                failed = query.exception()
                query.stop()
            if self._error is not None:
                raise self._error
            if failed is not None and not asked:
                raise AntiphonError(f"the stream has ended: {failed}")

    def stop(self) -> None:
        """Begin no other batch. May be called from anywhere, a signal's handler too."""
        self._stopping = True

    def _start(self) -> StreamingQuery:
        reader = self.go_on.spark.readStream.format("antiphon").option("columns", "feed,seq,fault")
        reader = reader.option("maxBlocksPerTrigger", str(self.max_blocks)).option("verify", "false")
        if self.go_on.parties:
            (found,) = in_workers(self.go_on.spark, take_inventory, [(self.go_on.places, Limits())])
            found.check(self.go_on.parties)  # else it would wait for ever
            reader = reader.option("party", ",".join(bytes(party).hex() for party in self.go_on.parties))
        rows = reader.option("paths", json.dumps(self.go_on.places)).load()
        writer = rows.writeStream.foreachBatch(self._batch).option("checkpointLocation", f"file://{self.checkpoint}")
        if self.available_now:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{round(1000 * self.trigger_s)} milliseconds").start()

    def _batch(self, rows: DataFrame, number: int) -> None:
        """Spark calls this for each micro-batch. The rows are not asked for: a run reads what its plan says."""
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
        stream: Stream = (self._id(), number)
        before = self.go_on.log.current()
        if before.streams.get(stream[0], -1) >= number:
            return
        now = self.go_on.advance(until=until, stream=stream)
        moved = [step for step in self.go_on.steps if not step.still]
        blocks = sum(step.grown for step in moved)
        self.go_on.compact_when_due()
        accounts = self.go_on.books()
        took = monotonic() - begun
        latency = max(took, time() - planned_ms / 1000)
        books = totals(accounts.values())
        self.told(Batch(number, now.run, blocks, len(moved), took, latency, self.go_on.afresh, books))
        lost = {party.hex()[:8]: one.lost for party, one in accounts.items() if one.lost}
        if lost:
            raise AntiphonError(
                f"batch {number}: blocks that nobody accounts for, by party: {lost}; `run --full` with these tables"
            )

    def _offset(self, number: int) -> tuple[int, Timeframe]:
        """When a batch was planned, and the anchor up to which it goes: Spark has written it down before it began."""
        file = self.checkpoint / "offsets" / str(number)
        try:
            lines = file.read_text().splitlines()
            about, offset = json.loads(lines[1]), json.loads(lines[-1])
            return int(about["batchTimestampMs"]), read_anchor(offset[ANCHOR])
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            raise BadEncoding(f"{file} is no offset of a stream of feeds; begin with another --checkpoint") from None

    def _id(self) -> str:
        """The id of this stream: that of its checkpoint, for that is what goes on when a stream is started again."""
        try:
            return str(json.loads((self.checkpoint / "metadata").read_text())["id"])
        except (OSError, ValueError, KeyError, TypeError):
            raise BadEncoding(f"{self.checkpoint} is no checkpoint of a stream; name another one") from None
