"""The sample application: two people share a cookbook, and agree."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples.recipes import cook


def test_two_people_share_a_cookbook(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hers, his = cook(tmp_path)
    assert hers.news == ["new: Pancakes", "changed: Pancakes", "new: Tomato soup"]
    assert his.news == ["new: Pancakes", "new: Tomato soup", "changed: Pancakes"]
    assert "shopping: ['flour', 'milk', 'eggs', 'tomatoes', 'milk']" in capsys.readouterr().out
