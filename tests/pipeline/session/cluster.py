"""A standalone cluster on loopback, from the Spark that pip installed: a master and workers, each a process of its own.

Whatever happens, nothing of it is left: each has a process group of its own, which is killed, and what executors have
started is found by the folder that it runs in.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import pyspark

from antiphon.pipeline.session.java import use_java

WAIT_S = 90  # for anything to happen; two cores may be busy
_SPARK = Path(pyspark.__file__).parent
_PROGRAMS = ("bash", "sh", "env", "dirname", "ps", "cat", "uname", "sleep", "id")  # what Spark's scripts need
Found = TypeVar("Found")


def until(find: Callable[[], Found | None], what: str) -> Found:
    """Look again and again until there is something, or the time is up."""
    end, never = time.monotonic() + WAIT_S, threading.Event()
    while time.monotonic() < end:
        found = find()
        if found:
            return found
        never.wait(0.05)
    raise AssertionError(f"{what}: not within {WAIT_S} s")


def without_java(folder: Path) -> dict[str, str]:
    """An environment in which there is no Java of the machine, so that the bundled one is used."""
    folder.mkdir()
    for name in _PROGRAMS:
        program = shutil.which(name)
        if program is not None:
            (folder / name).symlink_to(program)
    known = {key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", "ANTIPHON_JAVA", "PATH")}
    environment = {**known, "PATH": str(folder), "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(_SPARK)}
    assert use_java(environment).bundled
    return environment


class Cluster:
    """A master and some workers with one core each."""

    def __init__(self, folder: Path, workers: int = 2, memory_mb: int = 700) -> None:
        self.folder = folder
        self.environment = without_java(folder / "bin")
        self.master = ""
        self.workers: list[subprocess.Popen[bytes]] = []
        self._all: list[subprocess.Popen[bytes]] = []
        self._count = workers
        self._memory_mb = memory_mb

    def __enter__(self) -> Self:
        try:
            self._start("master", "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
            self.master = until(lambda: self._said("master", r"Starting Spark master at (spark://\S+)"), "the master")
            for nth in range(self._count):
                size = ("--cores", "1", "--memory", f"{self._memory_mb}m", "--webui-port", "0")
                place = ("--host", "127.0.0.1", "--work-dir", str(self.work(nth)))
                self.workers.append(self._start(f"worker{nth}", "worker.Worker", *place, *size, self.master))
            for nth in range(self._count):
                until(partial(self._said, f"worker{nth}", r"(Successfully registered)"), f"worker {nth}")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def work(self, nth: int) -> Path:
        """Where a worker's executors run."""
        return self.folder / f"work{nth}"

    def kill(self, nth: int) -> None:
        """A worker goes, with its executors, as when its machine does."""
        kill(self.workers[nth])
        for pid in self.inside(self.work(nth)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def inside(self, folder: Path) -> list[int]:
        """The processes that run in a folder."""
        found = []
        for place in Path("/proc").glob("[0-9]*/cwd"):
            with suppress(OSError):
                if place.readlink().is_relative_to(folder):
                    found.append(int(place.parent.name))
        return found

    def close(self) -> None:
        for process in self._all:
            kill(process)
        for pid in self.inside(self.folder):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _start(self, name: str, program: str, *words: str) -> subprocess.Popen[bytes]:
        command = [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}", *words]
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                env={**self.environment, "SPARK_DAEMON_MEMORY": "256m"},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._all.append(process)
        return process

    def _said(self, name: str, words: str) -> str | None:
        found = re.search(words, (self.folder / f"{name}.log").read_text(errors="replace"))
        return None if found is None else found[1]


def kill(process: subprocess.Popen[bytes]) -> None:
    """A process and its group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
