"""The benchmark of epochs runs to its end, and a start from an epoch gives the bytes that a replay gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.mark.slow
def test_it_answers_with_every_goal_and_leaves_nothing_behind(tmp_path: Path) -> None:
    # With hardly any data; its own figures mean nothing then. It asserts by itself that both sides agree.
    done = subprocess.run(
        [sys.executable, "-c", "import epoch; epoch.main(epoch.TINY)", "--json", "--dir", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(BENCH)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr

    goals: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])["goals"]
    assert [goal["name"] for goal in goals] == [
        "first item, × less time",
        "everything, × less time",
        "an item opened, p99, ms",
        "1 % changed, scattered: % rewritten",
        "1 % changed, the newest: % rewritten",
        "a writer's longest pause, ms",
    ]
    assert all(goal["value"] for goal in goals)
    assert not list(tmp_path.iterdir())
