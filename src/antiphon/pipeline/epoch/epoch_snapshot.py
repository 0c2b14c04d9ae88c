"""Stage `snapshot`: the blobs of an epoch, computed in bulk. A live peer computes the same root CID.

The messages in the cut are folded in partitions, with the judge of the epoch and `fold_epoch`. Then one task builds the
trees of the changed items, with the code of live peers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions as f
from pyspark.sql.types import BinaryType, BooleanType, StructField, StructType

from antiphon.core.cid import Cid
from antiphon.core.errors import InvalidInput, MissingBlocks
from antiphon.feed.store.reader import FeedReader
from antiphon.halo.control.machine import PartyMachine
from antiphon.model import item_codec
from antiphon.model.epoch_fold import fold_epoch
from antiphon.model.factory import ModelFactory
from antiphon.model.message import Note
from antiphon.party.engine.authority import PartyAuthority
from antiphon.party.engine.branch_geneses import find_at_cut
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.lane import Lane
from antiphon.party.engine.lanes_at_cut import lanes_at
from antiphon.party.epochs.plan import plan_of
from antiphon.party.epochs.snapshot_fold import EpochFold, EpochPlan
from antiphon.party.live.manager import find_genesis
from antiphon.pipeline.fold.fold_job import fold_survey
from antiphon.pipeline.fold.item_fold import ItemFold, Models, refusal_rows
from antiphon.pipeline.plan.party_plan import LanePlan, PartyPlan, bounds_of, ranges_of
from antiphon.pipeline.plan.survey import Survey
from antiphon.pipeline.session.session import prepare
from antiphon.pipeline.session.tasks import in_workers
from antiphon.pipeline.source.block_columns import arrow_of
from antiphon.pipeline.source.home import open_blobs, open_feeds
from antiphon.snapshot.blob_overlay import BlobOverlay
from antiphon.snapshot.blobs import Blobs

#: The blobs that a snapshot adds to those of the snapshot before it. `root` marks the root blob.
SCHEMA = StructType(
    [
        StructField("cid", BinaryType(), nullable=False),
        StructField("data", BinaryType(), nullable=False),
        StructField("root", BooleanType(), nullable=False),
    ]
)
_ARROW = arrow_of(SCHEMA)
BLOBS_AT_ONCE = 1_000


def plan_epoch(spark: SparkSession, home: str | Path, party: bytes, epoch: int | EpochPlan) -> PartyPlan:
    """Plan how to compute an epoch from its messages and the snapshot before it. `epoch` is the number of a final
    epoch, or the plan of one that is about to be declared.
    """
    return in_workers(spark, _plan, [(str(home), bytes(party), epoch)])[0]


def changed(spark: SparkSession, plan: PartyPlan, models: Models = ModelFactory.standard) -> DataFrame:
    """The items that changed since the epoch before. `snapshot` is null for an item that the epoch drops."""
    return fold_survey(prepare(spark), Survey((plan.home,), (plan,)), models, folding=EpochFolding)


def snapshot(changed: DataFrame, plan: PartyPlan) -> DataFrame:
    """The blobs of an epoch, from the items that it changes."""
    rows = changed.where(f.col("reason").isNull()).select("item", "snapshot", "deleted", "messages")

    def act(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _build(plan, given)

    return rows.repartition(1).sortWithinPartitions("item").mapInArrow(act, SCHEMA)


class EpochFolding(ItemFold):
    """Folds the items of a partition with the rules of an epoch (`fold_epoch`)."""

    def fold(self, party: bytes, item: bytes, base: bytes | None, notes: list[Note]) -> Iterator[tuple[Any, ...]]:
        epoch = self.plans[party].epoch
        assert epoch is not None
        lost = next((note for note in notes if note.message is None), None)
        if lost is not None:  # void or not: a model may read a void message, too (rule 13)
            place = f"the body of block {lost.seq} of feed {lost.feed.hex()[:8]}"
            raise MissingBlocks(f"epoch {epoch.number} cannot be computed: {place} is not here; fetch it from a peer")
        listed = frozenset((name, version) for name, version, _ in epoch.models)
        beyond = self.beyond(party, item, base, notes)
        authors, discard = self.authors(party), epoch.discard
        data, verdicts = fold_epoch(party, item, base, notes, self.models, listed, authors, discard, beyond)
        if data != base or notes:
            dead = data is not None and item_codec.summary(data).is_dying
            yield (party, item, None, None, None, dead, None, None, data, len(notes), None, None, None, None)
        yield from refusal_rows(party, item, verdicts)


def _plan(asked: tuple[str, bytes, int | EpochPlan]) -> PartyPlan:
    home, party, wanted = asked
    with open_feeds(home) as store, open_blobs(home) as blobs:
        machine, authority = _party(store, party)
        chain = machine.epochs().final
        number = wanted if isinstance(wanted, int) else wanted.number
        if not 0 < number <= (len(chain) if isinstance(wanted, int) else len(chain) + 1):
            raise InvalidInput(f"party {party.hex()[:8]} has no final epoch {number}; {len(chain)} are final")
        epoch = plan_of(machine, chain[number - 1]) if isinstance(wanted, int) else wanted
        base = _base(chain[number - 2].snapshot if number > 1 else b"", blobs, party, number - 1)
        judge = authority.epoch_judge(epoch.control, epoch.control_hash)
        lanes = []
        states_at = lanes_at(store, authority.is_control_block, base, epoch.cut)
        for state in states_at:
            voids, authors = ranges_of(Lane(state), judge, state.position)
            places = (state.base, state.base, state.position, state.position, state.position)
            lanes.append(LanePlan(state.feed, *places, voids, authors))
        known, states = (b"", 0) if base is None else (bytes(base.cid), base.root.item_count)
        geneses = dict(find_at_cut(store, bounds_of(map(Lane, states_at))))
        plan = PartyPlan(home, party, tuple(lanes), {}, {}, known, number - 1, epoch=epoch, states=states)
        return replace(plan, branch_geneses=geneses)


def _party(store: FeedReader, party: bytes) -> tuple[PartyMachine, PartyAuthority]:
    genesis = find_genesis(store, party)
    if genesis is None:
        raise MissingBlocks(f"party {party.hex()[:8]}: its genesis is not here; fetch its control feeds from a peer")
    machine = PartyMachine(party, genesis)
    authority = PartyAuthority(store, machine)
    authority.refresh()
    return machine, authority


def _base(cid: bytes, blobs: Blobs, party: bytes, number: int) -> EpochBase | None:
    return EpochBase.load(Cid(cid), blobs, party=party, number=number) if cid else None


class _Trees(EpochFold):
    """Builds the trees of an epoch from items that were folded in other tasks."""

    def __init__(self, rows: Iterator[dict[str, Any]], *given: Any) -> None:
        super().__init__(*given)
        self._rows = rows
        self._count = 0  # folded messages

    def _touched(self) -> tuple[set[bytes], set[bytes]]:
        return set(), set()

    def _changes(self, touched: set[bytes], slow: set[bytes]) -> Iterator[tuple[bytes, bytes | None]]:
        for row in self._rows:
            self._dying[row["item"]] = row["deleted"]
            self._count += row["messages"]
            yield row["item"], row["snapshot"]
        wanted = sum(lane.state.position - lane.state.base for lane in self._lanes)
        if self._count != wanted:
            raise InvalidInput(
                f"epoch {self._plan.number}: {wanted} messages are in its cut, {self._count} were folded"
            )


def _build(plan: PartyPlan, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    assert plan.epoch is not None
    rows = (row for batch in given for row in batch.to_pylist())
    with open_feeds(plan.home) as store, open_blobs(plan.home) as blobs, closing(_Recorder(blobs)) as overlay:
        base = _base(plan.base, overlay, plan.party, plan.number)
        _, authority = _party(store, plan.party)
        lanes = lanes_at(store, authority.is_control_block, base, plan.epoch.cut)
        judge = authority.epoch_judge(plan.epoch.control, plan.epoch.control_hash)
        made = _Trees(rows, plan.party, plan.epoch, base, lanes, None, store, ModelFactory(), judge, overlay).run()
        yield from _batches(overlay, made.cid)


class _Recorder(BlobOverlay):
    """Records the CIDs of all blobs that are put, also of those that the store below already has."""

    def __init__(self, below: Blobs) -> None:
        super().__init__(below)
        self.made: dict[Cid, None] = {}

    def put_all(self, pairs: Iterable[tuple[Cid, bytes]]) -> None:
        given = list(pairs)
        self.made.update((cid, None) for cid, _ in given)
        super().put_all(given)


def _batches(blobs: _Recorder, root: Cid) -> Iterator[pa.RecordBatch]:
    made = iter(blobs.made)
    while some := list(islice(made, BLOBS_AT_ONCE)):
        rows = [{"cid": bytes(cid), "data": blobs.get(cid), "root": cid == root} for cid in some]
        yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)
