"""The other side of the law: parties as Spark has them, in one run, and what it has otherwise than live peers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.pipeline.lawhomes import Live, models, more_models

from antiphon.core.cid import Cid
from antiphon.core.errors import AntiphonError
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.model import item_codec
from antiphon.model.fold import system_item
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.pipeline.epoch import epoch_snapshot
from antiphon.pipeline.fold.digest import states_digest
from antiphon.pipeline.fold.fold_job import fold_survey
from antiphon.pipeline.fold.item_fold import refused
from antiphon.pipeline.jobs.batch_run import Run
from antiphon.pipeline.jobs.report import PartyReport
from antiphon.pipeline.plan.party_plan import PartyPlan
from antiphon.pipeline.plan.standings import quarantine
from antiphon.pipeline.plan.survey import Survey
from antiphon.pipeline.session.session import prepare
from antiphon.pipeline.session.tasks import in_workers
from antiphon.pipeline.source.home import open_blobs, open_feeds
from antiphon.pipeline.tables.delta_folder import DeltaFolder


@dataclass
class Bulk:
    """A party as Spark has it."""

    plan: PartyPlan
    report: PartyReport
    states: dict[bytes, bytes | None] = field(default_factory=dict)
    refused: dict[tuple[bytes, int], str] = field(default_factory=dict)
    waiting: dict[bytes, tuple[int, str]] = field(default_factory=dict)  # by feed: the first block, and for what


def in_bulk(spark: SparkSession, homes: Sequence[Live], open_parties: Collection[bytes] = ()) -> dict[bytes, Bulk]:
    """All parties of some homes, in one run."""
    places = sorted({live.home for live in homes})
    with Run.begin(spark, places, models=models, open_parties=open_parties) as run:
        reports = {party.account.party: party for party in run.report().parties}
        bulk = {plan.party: Bulk(plan, reports[plan.party]) for plan in run.survey.plans}
        for row in run.items.select("party", "item", "snapshot").collect():
            data = row.snapshot
            bulk[bytes(row.party)].states[bytes(row.item)] = None if data is None else bytes(data)
        for row in refused(run.folded).collect():
            bulk[bytes(row.party)].refused[bytes(row.feed), row.seq] = row.reason
        for row in quarantine(run.judged).where("standing = 'pending'").collect():
            waiting, first = bulk[bytes(row.party)].waiting, (row.seq, row.reason)
            waiting[bytes(row.feed)] = min(first, waiting.get(bytes(row.feed), first))
    return bulk


def differences(live: Live, bulk: Bulk) -> Iterator[str]:
    """What Spark has otherwise than a live peer."""
    plan, counts = bulk.plan, bulk.report.account
    if counts.held != live.held or counts.lost:
        yield f"{counts.held} blocks are held, {live.held} in the store; {counts.lost} are lost"
    if plan.error or live.lacks:
        # Live, a party stays on its base while the snapshot of a later epoch is not here; Spark does not plan it.
        missing = live.lacks or next(iter(re.findall(r"blob (\w+) is not here", live.waits_for)), "")
        if not missing or f"blob {missing}" not in plan.error:
            yield f"no plan: {plan.error}, and live {live.lacks} is not here"
        return
    if (plan.number, plan.base) != (live.number, live.base):
        yield f"it stands on epoch {plan.number}, and not on {live.number}"
    frame = {lane.feed: lane.position - 1 for lane in plan.lanes if lane.position}
    if frame != live.frame:
        yield f"delivered: {_few(frame, live.frame)}"
    yield from _other_items(live, bulk)
    if bulk.refused != live.refused:
        yield f"refused: {_few(bulk.refused, live.refused)}"
    lanes = {lane.feed: lane for lane in plan.lanes}
    held = {feed: place for feed, place in live.blocked.items() if feed in lanes and place[0] < lanes[feed].length}
    waiting = {feed: place for feed, place in bulk.waiting.items() if feed in lanes}
    if waiting != held:
        yield f"waiting: {_few(waiting, held)}"


def _other_items(live: Live, bulk: Bulk) -> Iterator[str]:
    states = dict(bulk.states)
    untouched = item_codec.snapshot(system_item(models()))
    if states.pop(bytes(SYSTEM_ITEM), untouched) != live.system:
        yield "the system item is another"
    if states != live.states:
        yield f"items: {_few(states, live.states)}"
    digest = states_digest((item, data or b"") for item, data in live.states.items())
    if (bulk.report.items, bulk.report.states) != (len(live.states), digest):
        yield f"{bulk.report.items} items with digest {bulk.report.states.hex()}, and not {digest.hex()}"


def _few(here: Mapping[Any, Any], there: Mapping[Any, Any]) -> str:
    keys = sorted((key for key in here.keys() | there.keys() if here.get(key) != there.get(key)), key=str)
    return f"{len(keys)}, as {keys[0]}: {here.get(keys[0])!r}, and live {there.get(keys[0])!r}"


def computed_again(spark: SparkSession, homes: Sequence[Live]) -> dict[bytes, bytes]:
    """The CIDs of the snapshots that parties stand on, from their messages, of those that still have all of them.

    Items are folded in one run; only the trees are made here, for a task of its own for each would take long.
    """
    asked = [(live.home, live.party, live.number) for live in homes if live.number]
    plans = [plan for plan in in_workers(spark, _planned, asked) if plan is not None]
    looked = Survey(tuple(sorted({plan.home for plan in plans})), tuple(plans))
    made = fold_survey(prepare(spark), looked, more_models, folding=epoch_snapshot.EpochFolding)
    rows: dict[bytes, list[dict[str, Any]]] = defaultdict(list)
    for row in made.where("reason is null").select("party", "item", "snapshot", "deleted", "messages").collect():
        data = None if row.snapshot is None else bytes(row.snapshot)
        one = {"item": bytes(row.item), "snapshot": data, "deleted": row.deleted, "messages": row.messages}
        rows[bytes(row.party)].append(one)
    return {plan.party: _root(plan, sorted(rows[plan.party], key=lambda row: row["item"])) for plan in plans}


def _planned(asked: tuple[str, bytes, int]) -> PartyPlan | None:
    """How to compute an epoch; None where messages, bodies, or blobs of the epoch before are gone."""
    try:
        plan = epoch_snapshot._plan(asked)
        with open_feeds(plan.home) as store:
            spans = [span for lane in plan.lanes for span, _, _ in store.runs(lane.feed, lane.base, lane.position)]
        if plan.base:
            with open_blobs(plan.home) as blobs:
                _ = list(EpochBase.load(Cid(plan.base), blobs, party=plan.party).all())
        return None if any(any(span.states) for span in spans) else plan
    except AntiphonError:
        return None


_ROWS = pa.schema([("item", pa.binary()), ("snapshot", pa.binary()), ("deleted", pa.bool_()), ("messages", pa.int32())])


def _root(plan: PartyPlan, rows: list[dict[str, Any]]) -> bytes:
    batches = epoch_snapshot._build(plan, iter([pa.RecordBatch.from_pylist(rows, schema=_ROWS)]))
    (root,) = [row["cid"] for batch in batches for row in batch.to_pylist() if row["root"]]
    return bytes(root)


def in_tables(log: DeltaFolder) -> dict[bytes, tuple[dict[bytes, bytes | None], dict[tuple[bytes, int], str]]]:
    """What tables have of each party: the states of its items, and the blocks that are refused."""
    found: dict[bytes, tuple[dict[bytes, bytes | None], dict[tuple[bytes, int], str]]] = defaultdict(lambda: ({}, {}))
    for row in log.at_last_run().rows_after("items", "messages", -1):
        found[row["party"]][0][row["item"]] = row["data"]
    for row in log.at_last_run().rows_after("quarantine", "seq", -1):
        if row["standing"] == "refused":
            found[row["party"]][1][row["feed"], row["seq"]] = row["reason"]
    return found
