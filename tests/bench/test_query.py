"""The benchmark of queries runs to its end, and both its sides give the same answers."""

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
    # With hardly any data; its own figures mean nothing then. It asserts by itself that answers agree.
    done = subprocess.run(
        [sys.executable, "-c", "import query; query.main(query.TINY)", "--json", "--dir", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(BENCH)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr

    goals: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])["goals"]
    assert [goal["name"] for goal in goals] == [
        "filtered query, the worst, × SQLite",
        "write to subscriber, p99, ms",
        "write to subscriber, 40 standing, p99, ms",
        "matching with 10 × the subscriptions, ×",
        "memory of a subscription with 10 × the subscriptions, ×",
        "matching with 10 × the items, ×",
        "memory of a subscription with 10 × the items, ×",
    ]
    assert all(goal["value"] for goal in goals)
    assert not list(tmp_path.iterdir())
