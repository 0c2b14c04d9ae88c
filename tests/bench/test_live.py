"""The benchmark of the live pipeline runs to its end, and what all its sides make of the same edits agrees."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.conftest import run


@pytest.mark.slow
def test_it_answers_with_every_goal_and_leaves_nothing_behind(tmp_path: Path) -> None:
    # Without the trace, which has to be said.
    answer = run("live", tmp_path, ANTIPHON_TEST_DATA=str(tmp_path / "nowhere"))

    goals = answer["goals"]
    assert isinstance(goals, list)
    assert [goal["name"] for goal in goals] == [
        "object mutations/s, durable, batches of 100",
        "received trace, × pycrdt",
        "cold open, messages/s",
        "warm open and first item, ms",
        "warm open with 10 × the history, ×",
        "warm open with 10 × the items, ×",
        "memory with 10 × the history, ×",
        "memory with 10 × the items, ×",
    ]
    assert {goal["name"] for goal in goals if goal["value"] is None} == {"received trace, × pycrdt"}
    notes = answer["notes"]
    assert isinstance(notes, list)
    assert any("NO TRACE" in note for note in notes)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_it_receives_the_trace(tmp_path: Path, data: Path) -> None:
    answer = run("live", tmp_path, ANTIPHON_TEST_DATA=str(data))

    figures = answer["figures"]
    assert isinstance(figures, dict)
    assert figures["trace, received"]["ours"] > 0
