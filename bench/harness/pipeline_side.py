"""Our side of bench/pipeline.py, with one Spark for all of it; it takes one JSON object a line.

generate   folder, messages, items, hot, plain   → messages, seconds; a home
run        folder                                → seconds, cpu, memory, parts; feeds to items with digests, on Spark
rows       folder, to                            → messages; the same messages as Parquet
bare       rows                                  → seconds; scan, repartition and sort, no Python
live       folder                                → messages, seconds; a live peer's cold rebuild, and its digests
grow       folder, tables, share, rounds         → first and more (seconds); tables, and again after so much is new
stream     folder, tables, checkpoint, blocks    → rows of all micro-batches
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from antiphon.api.store import Store
from antiphon.core.timeframe import Timeframe
from antiphon.generate.home import generate as write_home
from antiphon.generate.options import Options
from antiphon.pipeline import open_session
from antiphon.pipeline.fold.digest import states_digest
from antiphon.pipeline.fold.fold_job import lane_tasks
from antiphon.pipeline.jobs.batch_run import Run
from antiphon.pipeline.plan.party_plan import Planner
from antiphon.pipeline.plan.survey import survey
from antiphon.pipeline.source.block_columns import arrow_schema, batches
from antiphon.pipeline.source.home import open_blobs, open_feeds
from antiphon.pipeline.source.ranges import Limits, find_ranges, read_ranges
from harness.pipeline_parts import FOLDER
from harness.processes import WORKERS, cpu_seconds, jvm_seconds, peaks

PARTIES = 10
MEMORY_MB = 4096
SORTED = ("party", "item", "lamport", "feed", "seq")
ROWS = ("party", "item", "lamport", "feed", "seq", "kind", "created_ms", "message")

now = time.perf_counter


@cache
def spark() -> SparkSession:
    """Open Spark on two cores, however many the machine has: the goals are for two."""
    scratch = os.environ["ANTIPHON_BENCH_SCRATCH"]
    settings = {
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        "spark.python.daemon.module": "harness.pipeline_parts",
    }
    Path(os.environ[FOLDER]).mkdir(exist_ok=True)
    return open_session("bench", master="local[2]", memory_mb=MEMORY_MB, settings=settings)


def generate(folder: str, messages: int, items: int, hot: float, plain: bool) -> dict[str, Any]:
    start = now()
    made = write_home(folder, Options(PARTIES, items, messages, epochs=0, hot=hot, bad=0.0, plain=plain))
    return {"messages": made.messages, "seconds": now() - start}


def run(folder: str) -> dict[str, Any]:
    """Feeds → verified → judged → folded, with the digest of all states; every block is accounted for."""
    session = spark()
    before, parts, virtual = cpu_seconds(), _parts(), _jvm()
    start = now()
    with Run.begin(session, folder) as made:
        report = made.report()
    seconds = now() - start
    used, after = cpu_seconds(), _parts()
    assert report.counts["lost"] == 0, report.counts
    return {
        "messages": report.counts["applied"] + report.counts["refused"],
        "seconds": seconds,
        "stages": report.seconds,
        "cpu": {name: used[name] - before[name] for name in used},
        "parts": {name: value - parts.get(name, 0.0) for name, value in after.items()},
        "jvm": {name: max(0.0, value - virtual[name]) for name, value in _jvm().items()},
        "memory": {**peaks(), WORKERS: max(told["peak"] for told in _told())},
        "states": {one.account.party.hex(): one.states.hex() for one in report.parties},
    }


def _jvm() -> dict[str, float]:
    """CPU seconds of the JVM so far, as far as they can be attributed."""
    context = spark().sparkContext
    assert context._gateway is not None
    store, jvm = context._jsc.sc().statusStore(), context._gateway.jvm
    none = jvm.java.util.ArrayList()
    stages = store.stageList(none, False, False, context._gateway.new_array(jvm.double, 0), none)
    tasks = sum(stages.apply(at).executorCpuTime() for at in range(stages.size()))
    return {"tasks": tasks / 1e9, **jvm_seconds()}


def _parts() -> dict[str, float]:
    """CPU seconds of all workers so far, by part."""
    found: dict[str, float] = {}
    for told in _told():
        for name, seconds in told["parts"].items():
            found[name] = found.get(name, 0.0) + seconds
    return found


def _told() -> Iterator[dict[str, Any]]:
    """Peak memory of each worker so far."""
    for file in Path(os.environ[FOLDER]).glob("*.json"):
        yield json.loads(file.read_text())


def rows(folder: str, to: str) -> dict[str, Any]:
    """Write all messages to items as Parquet for Spark, in files of about one partition each."""
    Path(to).mkdir()
    count = 0
    for number, task in enumerate(_tasks(folder)):
        with pq.ParquetWriter(Path(to, f"{number}.parquet"), arrow_schema(ROWS), compression="zstd") as file:
            for spans in read_ranges([one.range for one in task], _refuse, verify=False):
                for batch in batches(spans, ROWS):
                    file.write_batch(batch)
                    count += batch.num_rows
    return {"messages": count}


def _tasks(folder: str) -> list[Any]:
    parties = sorted({one.party for one in find_ranges([folder], Limits())})
    with open_feeds(folder) as store, open_blobs(folder) as blobs:
        return lane_tasks([Planner(folder, store, blobs, party).plan() for party in parties], 1)


def _refuse(fault: Any) -> None:
    raise AssertionError(fault.reason)


def bare(rows: str) -> dict[str, Any]:
    start = now()
    found = spark().read.parquet(rows).repartition("party", "item").sortWithinPartitions(*SORTED)
    found.write.format("noop").mode("overwrite").save()
    return {"seconds": now() - start}


def live(folder: str) -> dict[str, Any]:
    """Rebuild the items of all parties from the feeds. Run in a process without Spark, which may fork."""
    keys = _parties(folder)
    states, count, start = {}, 0, now()
    with Store.open(folder, unprotected=True) as store:
        opened = {key: store.party(key) for key in keys}
        for party in opened.values():
            party.refresh()
            count += sum(seq + 1 for seq in party.processor.timeframe.values())
        seconds = now() - start
        for key, party in opened.items():
            known = party.processor
            found = ((bytes(item), known.snapshot(item)) for item in known.items())
            states[key.hex()] = states_digest(found).hex()
    for file in Path(folder).glob("items*"):
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    return {"messages": count, "seconds": seconds, "states": states}


def _parties(folder: str) -> list[bytes]:
    with open_feeds(folder) as store:
        return sorted({record.party for record in store.feeds()})


def grow(folder: str, tables: str, share: float, rounds: int) -> dict[str, Any]:
    """Make tables of all but a share of each feed; then add the rest, several times, to copies of these tables.

    Of those runs the first is not counted: Java compiles what it needs, as for all that is measured here.
    """
    from antiphon.pipeline.jobs.table_account import report_tables
    from antiphon.pipeline.jobs.table_run import TableRun
    from antiphon.pipeline.tables.delta_folder import DeltaFolder

    whole = survey(spark(), folder, verify=False).anchor
    most = Timeframe({feed: int((seq + 1) * (1 - share)) - 1 for feed, seq in whole.items() if seq * (1 - share) > 1})
    log, start = DeltaFolder(tables), now()
    with log.locked():
        begun = TableRun(spark(), log, [folder])
        begun.update(until=most)
        report_tables(spark(), log.at_last_run(), begun.home_paths, begun.steps)
    first, took = now() - start, []
    for number in range(rounds + 1):
        copy = f"{tables}-{number}"
        shutil.copytree(tables, copy, copy_function=os.link)  # no file of a table is ever changed
        start = now()
        report = TableRun(spark(), DeltaFolder(copy), [folder]).run()
        took.append(now() - start)
        assert report.counts["lost"] == 0, report.counts
        shutil.rmtree(copy)
    return {"first": first, "more": median(took[1:]), "runs": took}


def stream(folder: str, tables: str, checkpoint: str, blocks: int) -> dict[str, Any]:
    from antiphon.pipeline.jobs.stream_job import BatchResult, StreamJob
    from antiphon.pipeline.jobs.table_run import TableRun
    from antiphon.pipeline.tables.delta_folder import DeltaFolder

    told: list[BatchResult] = []
    start = now()
    going = TableRun(spark(), DeltaFolder(tables), [folder])
    StreamJob(going, Path(checkpoint), max_blocks=blocks, available_now=True, on_batch=told.append).run()
    return {"seconds": now() - start, "batches": [batch.row() for batch in told]}


COMMANDS: dict[str, Callable[..., dict[str, Any]]] = {
    "generate": generate,
    "run": run,
    "rows": rows,
    "bare": bare,
    "live": live,
    "grow": grow,
    "stream": stream,
}


def answer(line: str) -> dict[str, Any]:
    command = json.loads(line)
    try:
        with redirect_stdout(sys.stderr):
            return COMMANDS[command.pop("do")](**command)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:2000]}


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(answer(line)), flush=True)
    if spark.cache_info().currsize:
        spark().stop()


if __name__ == "__main__":
    main()
