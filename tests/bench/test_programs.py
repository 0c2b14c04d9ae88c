"""Every benchmark without a run of it: it can be called, its sides load, and it has goals for `--quick`.

`test_epoch.py` runs one benchmark to its end; the others do so in `make soak`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.bench.conftest import BENCH

NAMES = sorted(path.stem for path in BENCH.glob("*.py"))
each_program = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def program(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark as a module; it and its harness are found in bench/."""
    monkeypatch.syspath_prepend(BENCH)
    return import_module(name)


@each_program
def test_it_takes_the_options_of_all(
    program: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--help"])
    with pytest.raises(SystemExit, match="0"):
        program.main()
    said = capsys.readouterr().out
    assert all(option in said for option in ("--quick", "--json", "--dir"))


@each_program
def test_it_has_a_quick_goal_for_each_full_one(program: Any) -> None:
    full, quick = program.FULL.goals, program.QUICK.goals
    assert (full, quick) == (program.FULL_GOALS, program.QUICK_GOALS)
    assert type(full) is type(quick)
    assert "QUICK_GOALS" in (program.__doc__ or ""), "the docstring says why they differ"
    for part in full._fields:
        one, other = getattr(full, part), getattr(quick, part)
        if isinstance(one, dict):
            assert one.keys() == other.keys(), part
        assert one, part
        assert other, part


@pytest.mark.slow
@pytest.mark.parametrize("side", sorted(path.stem for path in (BENCH / "harness").glob("*_side.py")))
def test_its_side_loads_and_ends_with_its_input(side: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"harness.{side}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(BENCH), os.environ.get("PYTHONPATH", "")])},
        input="",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_the_methods_that_the_simulator_times_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCH)
    parts = import_module("harness.sim_side").PARTS
    assert [(owner, name) for some in parts.values() for owner, name in some if not hasattr(owner, name)] == []


@pytest.mark.slow
def test_the_methods_that_the_pipeline_times_are_there(tmp_path: Path) -> None:
    """They are wrapped in a process of their own, for it stays so."""
    done = subprocess.run(
        [sys.executable, "-c", "from harness import pipeline_parts; pipeline_parts.wrap()"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(BENCH), os.environ.get("PYTHONPATH", "")])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
