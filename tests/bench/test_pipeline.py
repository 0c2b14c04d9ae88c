"""The benchmark of the pipeline runs to its end, tells where time goes, and Spark and a live peer agree."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.conftest import run
from tests.budget import only_in_soak


@pytest.mark.slow
@only_in_soak
def test_it_answers_with_every_goal_and_leaves_nothing_behind(tmp_path: Path) -> None:
    # It asserts by itself that Spark and a live peer come to the same states, and that no block is lost.
    answer = run("pipeline", tmp_path, seconds=600)

    assert [goal["name"] for goal in answer["goals"]] == [
        "messages/s, feeds to items",
        "a message, dearest size × cheapest",
        "a worker's memory at 900, × 300",
        "time that a part was found for, %",
        "× bare Spark",
        "× a live peer's cold rebuild",
        "a hot item, × the even case",
        "a run after 1 % new, % of the first",
    ]
    assert all(goal["value"] for goal in answer["goals"])
    parts = answer["figures"]["runs"]["900"][-1]["parts"]
    wanted = {"verify: hashes, heads, rules", "plan: delivery, rights", "read blocks, pack chunks", "fold items"}
    assert wanted <= parts.keys()
