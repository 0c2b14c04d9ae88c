"""What is new since the tables were written, folded: a run that goes on. Where nothing is remembered, it is all of it.

An item is touched if a message to it is delivered now, or if one that was delivered counts otherwise: because a control
block voids or revives it, ends its feed, or changes whose it is. The first are folded onto the states that the tables
have, as far as that will do; the others, from all their messages, which are read from the feeds again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from antiphon.core.cid import Cid
from antiphon.party.base import EpochBase
from antiphon.pipeline.account import REFUSED
from antiphon.pipeline.blocks import NEEDED
from antiphon.pipeline.bulk import Task, fold_survey, tasks_of
from antiphon.pipeline.columns import spark_schema
from antiphon.pipeline.difference import Difference, Parts
from antiphon.pipeline.goingon import LATE
from antiphon.pipeline.home import open_blobs
from antiphon.pipeline.items import Folding, Models, fold_with, items, refused
from antiphon.pipeline.judged import PENDING, judged
from antiphon.pipeline.messages import BASE_ROWS, base_rows, messages
from antiphon.pipeline.messages import SCHEMA as MESSAGES
from antiphon.pipeline.onto import Ids, fold_onto, ids_in
from antiphon.pipeline.onward import Step
from antiphon.pipeline.plan import PartyPlan
from antiphon.pipeline.ranges import Range
from antiphon.pipeline.recall import read_rows
from antiphon.pipeline.showing import SHOWING
from antiphon.pipeline.survey import Survey
from antiphon.pipeline.tablelog import TableLog

KEYS = ["party", "item"]
_FOUND = ("party", "feed", "seq", "item")
_FOLDED = tuple(name for name in NEEDED if name != "fault")


@dataclass
class Advance:
    """The steps of some parties, and what they come to."""

    spark: SparkSession
    homes: tuple[str, ...]
    steps: Sequence[Step]
    models: Models
    log: TableLog | None = None  # what the tables hold; None if that is nothing

    def __post_init__(self) -> None:
        self._kept: list[DataFrame] = []
        self._found: dict[int, pa.Table] = {}  # what frames of items hold
        self.known = None if self.log is None else self.log.read(self.spark, "items")
        moved = [step for step in self.steps if not step.still]
        self.afresh = [step.plan for step in moved if step.afresh or self.known is None]
        self.on = [step for step in moved if not step.afresh and self.known is not None]
        self._plans = [step.plan for step in self.on]
        self._other = [Difference.between(step.before.plan, step.plan) for step in self.on if step.before is not None]

    def close(self) -> None:
        """Let go of what Spark keeps for this."""
        while self._kept:
            self._kept.pop().unpersist()

    def _here(self, keys: DataFrame) -> DataFrame | None:
        """Items, each once, fetched: plans that are built on them would grow and grow. None if there are none."""
        found = keys.select("party", "item").distinct().toArrow()
        if not found.num_rows:
            return None
        return self._frame(found)

    def _frame(self, keys: pa.Table) -> DataFrame:
        frame = self.spark.createDataFrame(keys)
        self._found[id(frame)] = keys
        return frame

    def _keep(self, rows: DataFrame) -> DataFrame:
        self._kept.append(rows.persist())
        return rows

    # -- what comes of it

    def fold(self) -> None:
        """Have Spark fold, so that what is asked for afterwards is there."""
        self.folded.count()

    @property
    def folds(self) -> bool:
        """Whether there is anything to fold: else items are as they were."""
        return bool(self.afresh) or self.touched is not None

    @property
    def items(self) -> DataFrame:
        """The items of parties that are read afresh, and those that were touched."""
        return items(self.folded)

    @property
    def refused(self) -> DataFrame:
        """What is refused of the messages that were folded."""
        return refused(self.folded)

    @cached_property
    def touched(self) -> DataFrame | None:
        """The items of parties that go on whose rows are replaced; None if nothing can have changed."""
        return _united([keys for keys in (self._keys, self.whole) if keys is not None])

    @property
    def touched_count(self) -> int:
        """About how many those are."""
        return sum(self._found[id(keys)].num_rows for keys in (self._keys, self.whole) if keys is not None)

    @cached_property
    def folded(self) -> DataFrame:
        """Items and refusals, with what tables show of items."""
        made = [] if self._onto is None else [self._onto.where(~_is_late())]
        if self.whole is not None and self._whole_parties:
            made.append(self._keep(self._fold_whole()))
        if self.afresh:
            survey = Survey(self.homes, tuple(self.afresh))
            made.append(self._keep(fold_survey(self.spark, survey, self.models, form=SHOWING)))
        return _united(made) or self.spark.createDataFrame([], SHOWING.schema)

    def new_blocks(self, columns: Sequence[str]) -> DataFrame:
        """The blocks that the tables do not have yet."""
        parts: Parts = {}
        for step in self.steps:
            had = {} if step.before is None or step.plan in self.afresh else step.before.heads
            starts = {lane.feed: lane.start for lane in step.plan.lanes}
            for feed, (length, _) in () if step.still else step.now.heads.items():
                parts[feed] = had[feed][0] if feed in had else starts.get(feed, 0), length
        rows = self._read(parts, columns)
        return self.spark.createDataFrame([], spark_schema(columns)) if rows is None else rows

    @cached_property
    def waiting(self) -> DataFrame | None:
        """What is pending, of all parties that have moved."""
        plans = [*self.afresh, *self._plans]
        parts = {lane.feed: (lane.position, min(lane.end, lane.length)) for plan in plans for lane in plan.lanes}
        parts |= {feed: (0, length) for plan in plans for feed, length in plan.other.items()}
        rows = self._read(parts, _FOUND)
        return None if rows is None else judged(rows, plans).where(f.col("standing") == PENDING)

    # -- new messages, onto the states of the tables

    @cached_property
    def _tasks(self) -> list[Task]:
        return tasks_of(self._plans, self._ranges(_joined(other.delivered for other in self._other)))

    @cached_property
    def _ids(self) -> Ids:
        """The items with new messages that may be folded onto their states."""
        found = ids_in(self.spark, self._tasks)
        spoilt = None if self._spoilt is None else self._found[id(self._spoilt)]
        for row in () if spoilt is None else spoilt.to_pylist():
            found.get(row["party"], set()).discard(row["item"])
        return {party: ids for party, ids in found.items() if ids}

    @cached_property
    def _keys(self) -> DataFrame | None:
        rows = [(party, item) for party, items in self._ids.items() for item in items]
        columns = [pa.array(column, pa.binary()) for column in zip(*rows, strict=True)]
        return self._frame(pa.table(columns, KEYS)) if rows else None

    @cached_property
    def _onto(self) -> DataFrame | None:
        if self._keys is None:
            return None
        assert self.log is not None
        files, refused = self.log.files("items"), self._refused_before()
        given = (self._plans, self._tasks, self._ids, files, refused, self.models, SHOWING)
        return self._keep(fold_onto(self.spark, *given))

    def _refused_before(self) -> set[bytes]:
        """Of the items with new messages those to which messages came that do not count."""
        assert self.log is not None
        found = set()
        for part in self.log.parts("quarantine", ["party", "item"], [("standing", "==", REFUSED)]):
            for row in part.to_pylist():
                if row["item"] in self._ids.get(row["party"], ()):
                    found.add(row["party"] + row["item"])
        return found

    # -- what has to be folded from all messages

    @cached_property
    def _spoilt(self) -> DataFrame | None:
        """The items with messages that count otherwise than before."""
        spoilt = self._read(_joined(other.spoilt for other in self._other), _FOUND)
        found = [] if spoilt is None else [spoilt.select("party", "item")]
        authored = self._read(_joined(other.authored for other in self._other), _FOUND)
        if authored is not None:
            assert self.known is not None
            guarded = self.known.where("guarded").select("party", "item")
            found.append(authored.select("party", "item").join(guarded, ["party", "item"], "left_semi"))
        keys = _united(found)
        return None if keys is None else self._here(keys)

    @cached_property
    def whole(self) -> DataFrame | None:
        """The items that are folded from all their messages; None if there are none."""
        late = None if self._onto is None else self._onto.where(_is_late()).select("party", "item")
        keys = _united([rows for rows in (self._spoilt, late) if rows is not None])
        return None if keys is None else self._here(keys)

    @cached_property
    def _whole_parties(self) -> list[PartyPlan]:
        parties = set(self._found[id(self.whole)].column("party").unique().to_pylist())
        return [plan for plan in self._plans if plan.party in parties]

    def _fold_whole(self) -> DataFrame:
        assert self.whole is not None
        plans = self._whole_parties
        parts = {lane.feed: (lane.base, lane.position) for plan in plans for lane in plan.lanes}
        rows = self._read(parts, _FOLDED)
        rows = self.spark.createDataFrame([], MESSAGES) if rows is None else judged(rows, plans)
        found = rows.join(self.whole, ["party", "item"], "left_semi")
        rows = messages(found, _bases(self.spark, plans, self.whole))
        return fold_with(Folding, rows, plans, self.models, SHOWING)

    def _read(self, parts: Parts, columns: Sequence[str]) -> DataFrame | None:
        """The blocks of parts of feeds; None if there are none."""
        ranges = self._ranges(parts)
        return read_rows(self.spark, ranges, columns) if ranges else None

    def _ranges(self, parts: Parts) -> list[Range]:
        """Parts of feeds, as far as they were verified."""
        ranges = []
        for step in self.steps:
            for feed, (length, _) in step.now.heads.items():
                low, high = parts.get(feed, (0, 0))
                if low < min(high, length):
                    ranges.append(Range(step.plan.home, step.plan.party, feed, low, min(high, length)))
        return ranges


def _is_late() -> Column:
    return f.coalesce(f.col("reason") == LATE, f.lit(False)) & f.col("feed").isNull()


def _joined(parts: Iterable[Parts]) -> Parts:
    return {feed: part for some in parts for feed, part in some.items()}


def _united(frames: Sequence[DataFrame]) -> DataFrame | None:
    return reduce(DataFrame.unionByName, frames) if frames else None


def _bases(spark: SparkSession, plans: Sequence[PartyPlan], keys: DataFrame) -> DataFrame | None:
    """The states of some items in the epochs that their parties stand on."""
    homes = [(plan.party, plan.home, plan.base) for plan in plans if plan.base]
    if not homes:
        return None
    rows = keys.join(f.broadcast(spark.createDataFrame(homes, "party binary, home string, base binary")), ["party"])
    return rows.sortWithinPartitions("party", "item").mapInArrow(_states_in, MESSAGES)


def _states_in(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in given:
        rows = batch.to_pylist()
        for home, party, base in sorted({(row["home"], row["party"], row["base"]) for row in rows}):
            ids = sorted(row["item"] for row in rows if row["party"] == party)
            with open_blobs(home) as blobs:
                found = sorted(EpochBase.load(Cid(base), blobs, party=party).sure(ids).items())
            for at in range(0, len(found), BASE_ROWS):
                yield base_rows(party, found[at : at + BASE_ROWS])
