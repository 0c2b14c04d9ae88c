"""A disk that becomes full at any write of a run or an export: readers see what was there, and nothing is left."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.budget import budget
from tests.full_disk import FullDisk
from tests.pipeline.helpers import contents

import antiphon
from antiphon.pipeline.archive.check import check_archive
from antiphon.pipeline.jobs.table_run import TableRun
from antiphon.pipeline.tables.delta_folder import DeltaFolder

SHARE = budget(180, 7)  # of the 1,100 writes of a run: one of so many


@pytest.mark.skipif(shutil.which("cc") is None, reason="the disk that becomes full is in C")
def test_a_full_disk_at_any_write_leaves_what_was_there_and_says_so(quick: SparkSession, tmp_path: Path) -> None:
    home, grown, place = tmp_path / "home", tmp_path / "grown", tmp_path / "disk"
    with antiphon.open(home, name="Ada", unprotected=True) as store:
        party = store.create_party("Household")
        wares = [party.object({"price": price}, type="ware") for price in range(40)]
    shutil.copytree(home, grown)
    with antiphon.open(grown, unprotected=True) as store:
        party = store.party("Household")
        for ware in wares[:9]:
            party.item(ware.id, antiphon.Object)["price"] = 7
    place.mkdir()
    disk = FullDisk(place, tmp_path / "count")
    folders = [str(path) for path in (home, grown, place / "tables", place / "archive", tmp_path / "count")]
    command = [sys.executable, "-m", "tests.pipeline.full_disk_runs", *folders, str(SHARE)]
    done = subprocess.run(command, env=disk.environment(tmp_path), capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-4_000:]
    *tries, last = map(json.loads, done.stdout.splitlines())
    failed: list[dict[str, Any]] = [one for one in tries if one["error"]]
    assert len(tries) - len(failed) == 2
    assert len(failed) > 8
    for one in failed:
        assert one["error"].startswith("DiskFull: no space is left to write "), one
        assert "Free some space, and run again" in one["error"]
        assert (one["same"], one["left"]) == (True, []), one
    assert last["runs"] == 2
    log, fresh = DeltaFolder(place / "tables"), DeltaFolder(tmp_path / "fresh")
    TableRun(quick, fresh, [grown]).run()
    assert contents(quick, log) == contents(quick, fresh)
    assert check_archive(quick, place / "archive").right
