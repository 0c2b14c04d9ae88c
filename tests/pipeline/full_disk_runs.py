"""A program that brings tables up to date on a disk that becomes full, at one write after the other.

    python -m tests.pipeline.full_disk_runs HOME GROWN TABLES ARCHIVE COUNT SHARE

HOME is read first, and then GROWN, the same home with more in it. Each attempt ends at another write of the run, or of
the export; SHARE is 1 for all writes, or n for one of n. Each attempt prints what it leaves, as a line of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.full_disk import FullDisk
from tests.pipeline.small import SMALL

from antiphon.core.errors import AntiphonError
from antiphon.pipeline import open_session
from antiphon.pipeline.archive.export import export_archive
from antiphon.pipeline.jobs.table_run import TableRun
from antiphon.pipeline.tables.delta_folder import DeltaFolder
from antiphon.pipeline.tables.run_tables import TABLES

SETTINGS = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", **SMALL}


def files_of(folder: Path) -> list[str]:
    """All files, but those of logs: a commit that is rolled back stays in the log, as another commit."""
    return sorted(str(path) for path in folder.rglob("*") if path.is_file() and path.parent.name != "_delta_log")


def rows_of(log: DeltaFolder) -> dict[str, list[str]]:
    """What readers of the tables see."""
    tables = log.at_last_run()
    return {name: sorted(map(repr, tables.read_small(name))) for name in TABLES}


def attempts(
    disk: FullDisk,
    folder: Path,
    act: Callable[[], object],
    seen: Callable[[], object],
    tidy: Callable[[], object],
    share: int,
) -> None:
    """Try to act with room for n writes, for one n after the other, until there is room enough."""
    at, before, files = 0, seen(), files_of(folder)
    while True:
        disk.fill(at)
        try:
            act()
            error = ""
        except AntiphonError as raised:
            error = f"{type(raised).__name__}: {raised}"
        disk.empty()
        if not error:
            print(json.dumps({"at": at, "error": "", "same": True, "left": []}), flush=True)
            return
        same = seen() == before
        tidy()  # tasks that were still writing when another one failed may leave a file to the next run
        left = sorted(set(files_of(folder)) - set(files))
        print(json.dumps({"at": at, "error": error, "same": same, "left": left}), flush=True)
        at += share


def main(home: str, grown: str, tables: str, archive: str, count: str, share: str) -> None:
    disk = FullDisk(Path(tables).parent, Path(count))
    spark = open_session("a full disk", master="local[2]", memory_mb=512, settings=SETTINGS)
    log, place = DeltaFolder(tables), Path(archive)
    TableRun(spark, log, [home]).run()
    update = TableRun(spark, log, [grown]).run
    attempts(disk, log.folder, update, lambda: rows_of(log), log.recover, int(share))
    export_archive(None, home, place)
    manifest = place / "archive.json"
    export = partial(export_archive, None, grown, place)
    attempts(disk, place, export, manifest.read_bytes, lambda: None, 1 + int(share) // 20)
    print(json.dumps({"runs": log.current().run}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
