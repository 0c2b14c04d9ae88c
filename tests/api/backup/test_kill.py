"""Programs that are killed while they make a backup, or a home of one: the next attempt finds nothing half-made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.budget import budget
from tests.full_disk import FullDisk

import antiphon
from antiphon.api.backup.restore import check_backup

pytestmark = pytest.mark.slow

PROGRAM = "import sys, antiphon; getattr(antiphon, sys.argv[1])(sys.argv[2], sys.argv[3])"


@pytest.mark.parametrize("act", ["backup", "restore"])
def test_a_killed_program_leaves_nothing_half_made(act: str, home: Path, made: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    disk = FullDisk(place, tmp_path / "count")
    environment, target = disk.environment(tmp_path, kill=True), place / "made"
    command = [sys.executable, "-c", PROGRAM, act, str(home if act == "backup" else made), str(target)]
    disk.empty()
    subprocess.run([*command[:-1], str(place / "first")], env=environment, check=True)
    writes, leftovers = disk.writes, 0
    assert writes > 10
    for number in range(budget(8, writes)):
        after = writes * number // budget(8, writes)
        disk.fill(after)
        done = subprocess.run(command, env=environment, check=False, stderr=subprocess.PIPE)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        leftovers += any(name.endswith(".partial") for name in os.listdir(place))
        if target.exists():
            break  # it was killed after the last rename, or not at all
    assert leftovers, "some were killed in the middle"
    if not target.exists():
        getattr(antiphon, act)(command[-2], target)
    assert sorted(os.listdir(place)) == ["first", "made"], "what the killed programs left is gone"
    if act == "backup":
        check_backup(target)
        target = antiphon.restore(target, place / "home").home
    with antiphon.open(target, epochs=False) as store:
        assert sorted(item.name for item in store.party("Household").query()) == ["letter", "more", "values"]
    with antiphon.open(home, epochs=False) as store:
        store.party("Household").object({}, name="the first home is as it was")
