"""The benchmark of queries runs to its end, and both its sides give the same answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.conftest import run
from tests.budget import only_in_soak


@pytest.mark.slow
@only_in_soak
def test_it_answers_with_every_goal_and_leaves_nothing_behind(tmp_path: Path) -> None:
    # It asserts by itself that answers agree.
    goals = run("query", tmp_path)["goals"]
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
