"""The benchmark of epochs runs to its end, and a start from an epoch gives the bytes that a replay gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.conftest import run


@pytest.mark.slow
def test_it_answers_with_every_goal_and_leaves_nothing_behind(tmp_path: Path) -> None:
    # It asserts by itself that both sides agree.
    goals = run("epoch", tmp_path)["goals"]
    assert [goal["name"] for goal in goals] == [
        "first item, × less time",
        "everything, × less time",
        "an item opened, p99, ms",
        "1 % changed, scattered: % rewritten",
        "1 % changed, the newest: % rewritten",
        "a writer's longest pause, ms",
    ]
    assert all(goal["value"] for goal in goals)
