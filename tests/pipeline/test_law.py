"""Law 1 on all engines: for the same blocks, Spark and a live peer have the same items, byte for byte, the same
snapshots, and refuse the same blocks for the same reasons.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.lawhomes import Live, generated, models, simulated, told, unsynced

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.model import itemcodec
from antiphon.model.item import system_item
from antiphon.pipeline.items import refused
from antiphon.pipeline.judged import quarantine
from antiphon.pipeline.plan import PartyPlan
from antiphon.pipeline.report import PartyReport, states_digest
from antiphon.pipeline.run import Run

TIMES = 10 if os.environ.get("ANTIPHON_SOAK") == "1" else 1
SIMULATIONS, TOWNS, GENERATED = 24 * TIMES, 26 * TIMES, 5 * TIMES


@dataclass
class Bulk:
    """A party as Spark has it."""

    plan: PartyPlan
    report: PartyReport
    states: dict[bytes, bytes | None] = field(default_factory=dict)
    refused: dict[tuple[bytes, int], str] = field(default_factory=dict)
    waiting: dict[bytes, tuple[int, str]] = field(default_factory=dict)  # by feed: the first block, and for what


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> list[Live]:
    """Worlds, each with dice of its own, as live peers have them."""
    folder = tmp_path_factory.mktemp("law")
    with unsynced():
        return list(_homes(folder))


def _homes(folder: Path) -> Iterator[Live]:
    for seed in range(SIMULATIONS):
        place = folder / f"simulation {seed}"
        place.mkdir()
        yield simulated(place, seed)
    for seed in range(TOWNS):
        yield told(folder / f"town {seed}", seed)
    for seed in range(GENERATED):
        yield from generated(folder / f"generated {seed}", seed)


@pytest.fixture(scope="module")
def found(spark: SparkSession, homes: list[Live]) -> dict[bytes, Bulk]:
    """All of them in one run."""
    with Run.begin(spark, sorted({live.home for live in homes}), models=models) as run:
        reports = {party.account.party: party for party in run.report().parties}
        bulk = {plan.party: Bulk(plan, reports[plan.party]) for plan in run.survey.plans}
        for row in run.items.collect():
            data = row.snapshot
            bulk[bytes(row.party)].states[bytes(row.item)] = None if data is None else bytes(data)
        for row in refused(run.folded).collect():
            bulk[bytes(row.party)].refused[bytes(row.feed), row.seq] = row.reason
        for row in quarantine(run.judged).where("standing = 'pending'").orderBy("seq").collect():
            bulk[bytes(row.party)].waiting.setdefault(bytes(row.feed), (row.seq, row.reason))
    return bulk


def differences(live: Live, bulk: Bulk) -> Iterator[str]:
    """What Spark has otherwise than a live peer."""
    plan, counts = bulk.plan, bulk.report.account
    if plan.error or live.lacks:
        if not live.lacks or f"blob {live.lacks}" not in plan.error:
            yield f"no plan: {plan.error}, and live {live.lacks} is not here"
        return
    if (plan.number, plan.base) != (live.number, live.base):
        yield f"it stands on epoch {plan.number}, and not on {live.number}"
    frame = {lane.feed: lane.position - 1 for lane in plan.lanes if lane.position}
    if frame != live.frame:
        yield f"delivered: {_few(frame, live.frame)}"
    untouched = itemcodec.snapshot(system_item(models()))
    if bulk.states.pop(SYSTEM_ITEM, untouched) != live.system:
        yield "the system item is another"
    if bulk.states != live.states:
        yield f"items: {_few(bulk.states, live.states)}"
    if bulk.refused != live.refused:
        yield f"refused: {_few(bulk.refused, live.refused)}"
    held = {feed: place for feed, place in live.blocked.items() if place[0] < _length(plan, feed)}
    waiting = {feed: place for feed, place in bulk.waiting.items() if plan.lane(feed) is not None}
    if waiting != held:
        yield f"waiting: {_few(waiting, held)}"
    digest = states_digest((item, data or b"") for item, data in live.states.items())
    if (bulk.report.items, bulk.report.states) != (len(live.states), digest):
        yield f"{bulk.report.items} items with digest {bulk.report.states.hex()}, and not {digest.hex()}"
    if counts.held != live.held or counts.lost:
        yield f"{counts.held} blocks are held, {live.held} in the store; {counts.lost} are lost"


def _length(plan: PartyPlan, feed: bytes) -> int:
    lane = plan.lane(feed)
    return 0 if lane is None else lane.length


def _few(here: dict[object, object] | object, there: dict[object, object] | object) -> str:
    assert isinstance(here, dict)
    assert isinstance(there, dict)
    keys = sorted((key for key in here.keys() | there.keys() if here.get(key) != there.get(key)), key=str)
    return f"{len(keys)}, as {keys[0]}: {here.get(keys[0])!r}, and live {there.get(keys[0])!r}"


def test_spark_comes_to_what_live_peers_come_to(homes: list[Live], found: dict[bytes, Bulk]) -> None:
    wrong: dict[str, list[str]] = defaultdict(list)
    for live in homes:
        wrong[live.name] = list(differences(live, found[live.party]))

    assert {name: texts for name, texts in wrong.items() if texts} == {}
    assert len(homes) >= 100
