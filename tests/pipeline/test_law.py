"""Law 1 on all engines: for the same blocks, Spark and a live peer have the same items, byte for byte, the same
snapshots, and refuse the same blocks for the same reasons.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.budget import budget, only_in_soak
from tests.pipeline.lawbulk import Bulk, computed_again, differences, in_bulk, in_tables
from tests.pipeline.lawhomes import Live, generated, models, simulated, told, unsynced

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.reasons import Reason, code_of
from antiphon.generate.options import Options
from antiphon.model.fold import HIDDEN
from antiphon.pipeline.jobs.stream_job import BatchResult, StreamJob
from antiphon.pipeline.jobs.table_run import TableRun
from antiphon.pipeline.plan.party_plan import FORKED
from antiphon.pipeline.tables.delta_folder import DeltaFolder

TIMES = budget(1, 10)
SIMULATIONS, TOWNS, GENERATED = 28 * TIMES, 28 * TIMES, 5 * TIMES


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> list[Live]:
    """Worlds, each with dice of its own, as live peers have them."""
    folder = tmp_path_factory.mktemp("law")
    with unsynced():
        return [live for live in _homes(folder) if live.held]  # a newcomer may hold nothing yet


def _homes(folder: Path) -> Iterator[Live]:
    for seed in range(SIMULATIONS):
        place = folder / f"simulation {seed}"
        place.mkdir()
        yield simulated(place, seed)
    for seed in range(TOWNS):
        yield told(folder / f"town {seed}", seed)
    for seed in range(GENERATED):
        options = Options(parties=10, items=120, messages=1_300, writers=4, seed=seed, epochs=2, bad=0.03)
        yield from generated(folder / f"generated {seed}", options)


@pytest.fixture(scope="module")
def found(spark: SparkSession, homes: list[Live]) -> dict[bytes, Bulk]:
    return in_bulk(spark, homes)


def test_spark_comes_to_what_live_peers_come_to(homes: list[Live], found: dict[bytes, Bulk]) -> None:
    wrong = {live.name: list(differences(live, found[live.party])) for live in homes}

    assert {name: texts for name, texts in wrong.items() if texts} == {}
    assert len(homes) >= 100


def test_the_homes_have_all_that_can_go_wrong(homes: list[Live], found: dict[bytes, Bulk]) -> None:
    """Else the law says little."""
    seen: Counter[str] = Counter()
    for live in homes:
        lanes = found[live.party].plan.lanes
        seen["an epoch"] += live.number > 0
        seen["two epochs"] += live.number > 1
        seen["items without code"] += None in live.states.values()
        seen["feeds that wait"] += bool(found[live.party].waiting)
        seen["forks"] += any(lane.ended == FORKED for lane in lanes)
        seen["batches that are cut"] += live.cuts > 0
        seen["late messages"] += any(lane.base < lane.position and lane.base for lane in lanes)
        seen["pruned feeds"] += any(lane.start for lane in lanes)
        seen["revoked writers"] += "it stands past the cut of its feed [rights.past-cut]" in live.refused.values()
        seen["erased messages"] += "it was erased [rights.erased]" in live.refused.values()
        seen["items beyond a fork that others built on"] += live.beyond_forks > 0
        seen["feeds beyond a budget"] += any(code_of(why) is Reason.BUDGET for why in live.refused.values())
        seen["hidden items"] += HIDDEN in live.refused.values()
        seen["items with a void genesis that others built on"] += live.built_on > 0
        seen["access lists"] += any("access list" in reason for reason in live.refused.values())
        seen["an order that decides"] += any("moves this one is not allowed" in why for why in live.refused.values())
        seen["rubbish"] += any("no mutation" in why or "no message" in why for why in live.refused.values())

    assert [name for name, count in seen.items() if not count] == []


def test_spark_makes_the_snapshots_that_live_peers_stand_on(spark: SparkSession, homes: list[Live]) -> None:
    roots = computed_again(spark, homes)

    assert len(roots) >= 10
    assert roots == {live.party: live.base for live in homes if live.party in roots}


def test_a_stream_in_micro_batches_with_restarts_comes_to_the_same(
    quick: SparkSession, homes: list[Live], tmp_path: Path
) -> None:
    places = sorted({live.home for live in homes})[:: budget(3, 1)]
    chosen = [live for live in homes if live.home in places]
    log, total = DeltaFolder(tmp_path / "tables"), sum(live.held for live in chosen)
    chance, seen = random.Random(5), list[BatchResult]()
    for _ in range(10):  # each a new program, which is stopped after a batch
        job = StreamJob(TableRun(quick, log, places, models=models), tmp_path / "checkpoint", available_now=True)
        job.max_blocks = chance.randrange(total // 4, total // 2)

        def told_of(batch: BatchResult, job: StreamJob = job) -> None:
            seen.append(batch)
            job.stop()

        job.on_batch, before = told_of, len(seen)
        job.run()
        if len(seen) == before:
            break
    tables = in_tables(log)

    assert len(seen) > 2
    assert [batch.number for batch in seen] == list(range(len(seen)))
    for live in chosen:
        states, refused = tables[live.party]
        system = states.pop(bytes(SYSTEM_ITEM), live.system)
        assert (states, refused, system) == (live.states, live.refused, live.system), live.name


@only_in_soak
def test_a_million_messages_come_to_what_a_live_peer_makes_of_them(spark: SparkSession, tmp_path: Path) -> None:
    options = Options(parties=8, items=30_000, messages=1_000_000, writers=8, seed=7, epochs=2, bad=0.001)
    homes = list(generated(tmp_path / "home", options))
    found = in_bulk(spark, homes)

    assert {live.name: list(differences(live, found[live.party])) for live in homes} == {
        live.name: [] for live in homes
    }
    assert sum(live.held for live in homes) > 1_000_000
    assert computed_again(spark, homes) == {live.party: live.base for live in homes if live.number}
