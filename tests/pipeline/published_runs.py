"""A program that publishes run after run into a folder of tables, each with its number in every row; no Spark.

    python -m tests.pipeline.published_runs FOLDER

It prints a line when the first run is published, and ends when its standard input is closed.
"""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from antiphon.pipeline.tables.delta_folder import DeltaFolder
from antiphon.pipeline.tables.run_tables import CurrentVersions
from antiphon.pipeline.tables.schemas import SCHEMAS

PARTY = b"p" * 32
NAMES = ("epochs", "standings")


def rows_of(name: str, run: int) -> list[tuple[object, ...]]:
    """Rows of a table that tell which run wrote them, one more with each run."""
    if name == "epochs":
        return [(PARTY, run, None, str(number), "") for number in range(run % 50)]
    return [(PARTY, PARTY, run, number, "delivered", None, None) for number in range(run % 50)]


def publish_run(log: DeltaFolder, names: Sequence[str] = NAMES) -> int:
    """Write the next run into the tables, and publish it; return its number."""
    base = log.recover()
    run = base.run + 1
    versions = {name: log.write_small(name, SCHEMAS[name], rows_of(name, run), base=base) for name in names}
    log.publish(CurrentVersions(run, {**base.current.versions, **versions}))
    return run


@contextmanager
def publisher(folder: Path) -> Iterator[None]:
    """Another process that publishes runs all the time."""
    command = [sys.executable, "-m", "tests.pipeline.published_runs", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "published\n"
        try:
            yield
        finally:
            process.stdin.close()
            assert process.wait() == 0


def main(folder: str) -> None:
    log = DeltaFolder(Path(folder))
    with log.locked():
        publish_run(log)
        print("published", flush=True)
        while not select.select([sys.stdin], [], [], 0)[0]:
            publish_run(log)
            log.vacuum_when_due()


if __name__ == "__main__":
    main(*sys.argv[1:])
