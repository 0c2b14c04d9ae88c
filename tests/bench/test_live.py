"""The benchmark of the live pipeline runs to its end, and what all its sides make of the same edits agrees."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.bench.conftest import run
from tests.budget import only_in_soak

TRACE = "received trace, × pycrdt"


@pytest.mark.slow
@only_in_soak
def test_it_answers_with_every_goal_and_leaves_nothing_behind(tmp_path: Path, root: Path) -> None:
    data = Path(os.environ.get("ANTIPHON_TEST_DATA", root.parent / "shared" / "data"))
    answer = run("live", tmp_path, ANTIPHON_TEST_DATA=str(data))

    goals = {goal["name"]: goal["value"] for goal in answer["goals"]}
    assert list(goals) == [
        "object mutations/s, durable, batches of 100",
        TRACE,
        "cold open, messages/s",
        "warm open and first item, ms",
        "warm open with 10 × the history, ×",
        "warm open with 10 × the items, ×",
        "memory with 10 × the history, ×",
        "memory with 10 × the items, ×",
        "catching up with 8 writers, × of 5",
        "writing with 8 writers, × of 5",
        "receiving with 8 writers, × of 5",
        "opening with 8 writers, × of 5",
    ]
    without = not data.is_dir()  # then there is no trace, which has to be said
    assert any("NO TRACE" in note for note in answer["notes"]) == without
    assert {name for name, value in goals.items() if value is None} == ({TRACE} if without else set())
    assert without or answer["figures"]["trace, received"]["ours"] > 0
