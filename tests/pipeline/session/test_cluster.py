"""A real cluster: a master and two workers from the installed Spark, on the bundled Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from tests.budget import only_in_soak
from tests.pipeline.session.cluster import WAIT_S, Cluster, kill, until

from antiphon.api.store import Store
from antiphon.core.cid import Cid
from antiphon.generate.home import generate
from antiphon.generate.options import Options
from antiphon.pipeline.fold.digest import states_digest

PARTIES = 4
JOB = Path(__file__).with_name("cluster_job.py")


class Job:
    """A driver on a cluster."""

    def __init__(self, cluster: Cluster, home: Path, folder: Path, root: Path) -> None:
        self._folder = folder
        self._errors = folder / "driver.log"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(JOB), cluster.master, str(home), str(folder)],
                env={**cluster.environment, "PYTHONPATH": str(root)},
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        kill(self._process)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def hear(self) -> dict[str, Any]:
        """What it says next."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._errors.read_text()[-4_000:]
        found: dict[str, Any] = json.loads(line)
        return found

    def table_run(self) -> None:
        (self._folder / "go").touch()


def ask(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
        return json.load(answer)


def running(tasks: str) -> list[dict[str, Any]]:
    """The tasks that run now, by the driver's own list."""
    return [
        task
        for stage in ask(f"{tasks}/stages?status=active")
        for task in ask(f"{tasks}/stages/{stage['stageId']}/{stage['attemptId']}/taskList?status=running")
    ]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    with Cluster(folder) as cluster:
        yield cluster
    until(lambda: not cluster.inside(folder), "that nothing of it is left")


@only_in_soak
@pytest.mark.usefixtures("spark_worker")
def test_a_cluster_comes_to_what_a_peer_comes_to_also_if_a_worker_is_killed_at_work(
    cluster: Cluster, tmp_path: Path, root: Path
) -> None:
    home, folder = tmp_path / "home", cluster.folder / "driver"
    folder.mkdir()
    generate(home, Options(parties=PARTIES, items=60, messages=1_000, epochs=1, bad=0.02))
    with Job(cluster, home, folder, root) as job:
        tasks = job.hear()["tasks"]
        first = job.hear()
        until(lambda: len(list(folder.glob("waits *"))) == 2, "folds on both workers")
        (executor,) = [place.name for place in cluster.work(0).glob("app-*/*")]
        at_work = {task["executorId"] for task in running(tasks)}
        cluster.kill(0)
        until(lambda: not is_active(tasks, executor), "the driver to see that an executor is gone")
        job.table_run()
        second = job.hear()

    assert executor in at_work
    assert len(at_work) == 2
    assert first == second
    assert {row["party"]: row["states"] for row in first["parties"]} == live(home)
    standing = {row["party"]: row["snapshot"] for row in first["parties"] if row["epoch"]}
    assert {party: str(Cid(bytes.fromhex(roots[0]))) for party, roots in first["roots"].items()} == standing
    assert standing
    assert sum(row["lost"] for row in first["parties"]) == 0


@only_in_soak
@pytest.mark.usefixtures("spark_worker")
def test_workers_that_cannot_run_antiphon_are_told_when_the_session_starts(cluster: Cluster, root: Path) -> None:
    """The path of the driver's Python means nothing to other machines, so workers take the `python3` that they have."""
    environment = {key: value for key, value in cluster.environment.items() if key != "PYSPARK_PYTHON"}
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    settings = {**local, "spark.executor.memory": "512m", "spark.driver.memory": "512m"}
    words = f"from antiphon.pipeline import open_session; open_session(master={cluster.master!r}, settings={settings})"
    environment["PYTHONPATH"] = os.pathsep.join([str(root / "src"), str(root)])
    done = subprocess.run(
        [sys.executable, "-c", words],
        env=environment,
        cwd=cluster.folder,
        capture_output=True,
        text=True,
        timeout=2 * WAIT_S,
        check=False,
    )

    assert done.returncode != 0
    told = done.stderr.strip().splitlines()[-1]
    assert "the workers of the cluster cannot run Antiphon with 'python3'" in told
    assert "set PYSPARK_PYTHON to a Python" in told


def is_active(tasks: str, executor: str) -> bool:
    return any(one["id"] == executor and one["isActive"] for one in ask(f"{tasks}/allexecutors"))


def live(home: Path) -> dict[str, str]:
    found = {}
    with Store.open(home, unprotected=True) as store:
        for party in store:
            party.refresh()
            items = party.processor
            digest = states_digest((bytes(item), items.snapshot(item)) for item in items.items())
            found[bytes(party.key).hex()] = digest.hex()
    return found
