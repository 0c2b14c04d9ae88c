"""The benchmark of the simulator runs to its end, tells where time goes, and ends loudly where a law is broken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.bench.conftest import BENCH, run
from tests.budget import only_in_soak


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run("sim", tmp_path_factory.mktemp("bench"))


@pytest.mark.slow
@only_in_soak
def test_it_answers_with_every_goal_and_leaves_nothing_behind(answer: dict[str, Any]) -> None:
    assert [goal["name"] for goal in answer["goals"]] == [
        "3 peers, 40 messages, 2 epochs, s",
        "time that a part was found for, %",
        "a message delivered to 3 peers, no epochs, × of 2",
        "a message delivered to 3 peers, epochs, × of 2",
        "small runs with all faults, seeds a minute",
    ]
    assert all(goal["value"] for goal in answer["goals"])


@pytest.mark.slow
@only_in_soak
def test_every_part_takes_some_of_the_time_and_all_of_them_take_all_of_it(answer: dict[str, Any]) -> None:
    # A method that is renamed fails by itself; one that is no longer called would leave its part empty.
    timed = answer["figures"]["busy"]["in parts"]
    assert all(timed["parts"].values())
    assert sum(timed["parts"].values()) == pytest.approx(timed["seconds"], rel=0.02)


@pytest.mark.slow
def test_a_run_that_breaks_a_law_ends_it(tmp_path: Path) -> None:
    side = (
        "from antiphon.sim import laws\n"
        "laws.LAWS['nothing is green'] = lambda stage: iter(['grass'])\n"
        "from harness import sim_side\n"
        "sim_side.main()\n"
    )
    program = f"import sim, sys; sim.OURS = (sys.executable, '-c', {side!r}); sim.main(sim.TINY)"
    done = subprocess.run(
        [sys.executable, "-c", program, "--json", "--dir", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(BENCH)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode != 0
    assert "nothing is green: grass" in done.stderr
    assert not done.stdout
