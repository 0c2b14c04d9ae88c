"""The streaming job: tables that follow homes in micro-batches are those of one run, however often it is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from threading import Timer

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.budget import budget, only_in_soak
from tests.cli.conftest import call, told
from tests.pipeline.helpers import contents

from antiphon.core.errors import StoreLocked
from antiphon.generate.home import generate
from antiphon.generate.options import Options
from antiphon.pipeline.jobs.stream_job import BatchResult, StreamJob
from antiphon.pipeline.jobs.table_run import TableRun
from antiphon.pipeline.tables.delta_folder import DeltaFolder

OPTIONS = Options(parties=2, items=40, messages=600, epochs=1, bad=0.03)
#: Before anything is committed, between two tables, with all committed and nothing published, and with the tables
#: published, but not yet in Spark's checkpoint; in the first batch of a program, or in the second. "-" is a kill from
#: outside. Each kill takes the start of a Spark: all but one are left to `make soak`.
POINTS = ["before commit:1", "after commit:3", "after publish:1", "-"]
USUAL_POINT = "before publish:2"
ROUNDS = budget(1, 10)  # of five kills each
HANGS_S = 200  # with all cores busy elsewhere a kill was seen to take 154 s, else some 25; pytest gives up at 240
TOLD_S = 10  # for all threads to be written down
LOG = "stderr"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stream") / "home"
    generate(folder, OPTIONS)
    return folder


@pytest.fixture(scope="module")
def whole(spark: SparkSession, home: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The tables of one run."""
    log = DeltaFolder(tmp_path_factory.mktemp("whole") / "tables")
    assert TableRun(spark, log, [home]).run().counts["lost"] == 0
    return contents(spark, log)


def check_changes(log: DeltaFolder) -> None:
    """Each run tells of an item once, and every item was created once more often than it was removed."""
    rows = list(log.at_last_run().rows_after("changes", "run", 0))
    assert max(Counter((row["run"], row["party"], row["item"]) for row in rows).values()) == 1
    left = Counter((row["party"], row["item"]) for row in rows if row["change"] == "created")
    left.subtract(Counter((row["party"], row["item"]) for row in rows if row["change"] == "removed"))
    items = Counter((row["party"], row["item"]) for row in log.at_last_run().rows_after("items", "messages", -1))
    assert +left == items


def test_micro_batches_with_restarts_come_to_the_tables_of_one_run(
    quick: SparkSession, home: Path, whole: dict[str, list[str]], tmp_path: Path
) -> None:
    log, checkpoint, chance = DeltaFolder(tmp_path / "tables"), tmp_path / "checkpoint", random.Random(7)
    seen: list[BatchResult] = []
    for wanted in (1, 2, 1_000):  # so many batches, and then it is stopped
        job = StreamJob(TableRun(quick, log, [home]), checkpoint, chance.randrange(130, 180), available_now=True)
        first = len(seen)

        def told_of(batch: BatchResult, job: StreamJob = job, last: int = first + wanted) -> None:
            seen.append(batch)
            if len(seen) >= last:
                job.stop()

        job.on_batch = told_of
        job.run()
        if wanted < 1_000:
            assert len(seen) == first + wanted

    assert [batch.number for batch in seen] == list(range(len(seen)))  # none left out, none twice
    assert len(seen) > 3
    assert contents(quick, log) == whole
    check_changes(log)


def start(home: Path, folder: Path, blocks: int, point: str) -> subprocess.Popen[str]:
    places = [str(home), str(folder / "tables"), str(folder / "checkpoint"), str(blocks)]
    program = [sys.executable, "-m", "tests.pipeline.streamed", *places, point]
    heard = subprocess.PIPE if point == "-" else subprocess.DEVNULL
    with (folder / LOG).open("w") as log:
        return subprocess.Popen(program, stdout=heard, stderr=log, text=True, start_new_session=True)


def give_up(program: subprocess.Popen[str]) -> None:
    """Have Python and Java write down what all their threads do, and end what should have died long ago."""
    os.killpg(program.pid, signal.SIGQUIT)
    with suppress(subprocess.TimeoutExpired):
        program.wait(TOLD_S)
    program.terminate()


def kill_when_it_writes(program: subprocess.Popen[str], chance: random.Random) -> None:
    """From outside, while a batch is in flight: some stage of it has begun, and Spark is at work."""
    assert program.stdout is not None
    stage = chance.choice(["fold", "commit"])
    if any(line.strip() == stage for line in program.stdout):  # else it has ended before it came to that
        program.kill()


def in_flight(folder: Path) -> bool:
    """Whether a batch was planned, and is not in the tables."""
    planned = max(int(file.name) for file in (folder / "checkpoint" / "offsets").iterdir() if file.name.isdecimal())
    return planned > max(DeltaFolder(folder / "tables").current().streams.values(), default=-1)


@pytest.fixture(scope="module", params=range(ROUNDS))
def killed(spark_worker: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where streams write that are killed, one after another: each goes on from what the one before it has left."""
    return tmp_path_factory.mktemp("killed")


@pytest.mark.parametrize("point", [USUAL_POINT, *(pytest.param(point, marks=only_in_soak) for point in POINTS)])
def test_a_stream_dies_in_the_middle_of_a_batch(home: Path, killed: Path, point: str) -> None:
    program = start(home, killed, 130, point)
    watch = Timer(HANGS_S, give_up, [program])
    watch.start()
    with program:
        if point == "-":
            kill_when_it_writes(program, random.Random(killed.name))
    watch.cancel()
    assert program.returncode == -signal.SIGKILL, (killed / LOG).read_text()
    assert in_flight(killed) or point.startswith("after publish")


def test_after_all_that_every_batch_was_counted_once(
    spark: SparkSession, home: Path, whole: dict[str, list[str]], killed: Path
) -> None:
    log, batches = DeltaFolder(killed / "tables"), list[BatchResult]()
    StreamJob(TableRun(spark, log, [home]), killed / "checkpoint", 10_000, 1.0, True, batches.append).run()

    assert contents(spark, log) == whole
    check_changes(log)
    ((stream, batch),) = log.current().streams.items()
    assert batch == batches[-1].number
    assert DeltaTable(str(log.folder / "progress")).transaction_version(stream) == batch


@pytest.mark.usefixtures("spark")
def test_the_command_line_follows_a_home_and_tells_what_changed(home: Path, tmp_path: Path) -> None:
    tables = ("--tables", tmp_path / "tables")
    done = call("pipeline", "stream", "--home", home, *tables, "--checkpoint", tmp_path / "c", "--once", "--json")
    (batch,) = [json.loads(line) for line in done.stdout.splitlines()]
    lines = call("pipeline", "changes", *tables, "--json").stdout.splitlines()
    again = told("pipeline", "run", "--home", home, *tables)

    assert (batch["batch"], batch["run"]) == (0, 1)
    assert batch["account"] == again["blocks"]
    assert batch["account"]["held"] == batch["blocks"]
    listed = [line for line in lines if json.loads(line)["item"] != bytes(16).hex()]  # the root item is in no list
    assert len(listed) == again["items"]
    assert {json.loads(line)["change"] for line in lines} == {"created"}
    assert again["unchanged"] == OPTIONS.parties
    assert not call("pipeline", "changes", "--since", 1, *tables, "--json").stdout


def test_two_that_write_into_one_folder_are_told_of_each_other(tmp_path: Path) -> None:
    log = DeltaFolder(tmp_path / "tables")
    with log.locked(), pytest.raises(StoreLocked, match=f"process {os.getpid()} on"), log.locked():
        pass
    with log.locked():
        pass
