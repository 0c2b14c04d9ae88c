"""The benchmark of the channel runs to its end."""

from __future__ import annotations

from pathlib import Path

from tests.bench.conftest import run


def test_it_answers_with_every_goal(tmp_path: Path) -> None:
    answer = run("channel", tmp_path)
    assert len(answer["goals"]) == 5
    assert all(goal["value"] for goal in answer["goals"])
    assert set(answer["figures"]) == {"ciphers", "records", "pieces", "beginnings"}
