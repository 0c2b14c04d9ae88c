"""Whole parties under every fault that is known, from seeds: the laws hold, and a seed is a run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from antiphon.sim.run import run
from antiphon.sim.scenario import Fault, make
from antiphon.sim.search import play_safely
from antiphon.sim.trace import Kind

SOAK = os.environ.get("ANTIPHON_SOAK") == "1"
SEEDS = 4_000 if SOAK else 200
PARTS = 20  # so that both cores have something to do
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("part", range(PARTS))
def test_the_laws_hold_under_all_faults(part: int) -> None:
    met: Counter[Kind] = Counter()
    for seed in range(part, SEEDS, PARTS):
        outcome = play_safely(make(seed, peers=3 + seed % 3, messages=30 + seed % 20, epochs=1 + seed % 2))
        assert outcome.ok, f"seed {seed}: {outcome.broken[0]}"
        met += outcome.trace.counts()
    for kind in (Kind.WRITE, Kind.TAKE, Kind.STAND, Kind.CRASH, Kind.LIE, Kind.QUIET):
        assert met[kind], f"no run of this part has a {kind.value}"


@pytest.mark.parametrize("fault", Fault)
def test_the_laws_hold_under_each_fault_alone(fault: Fault) -> None:
    for seed in range(40 if SOAK else 2):
        outcome = run(make(seed, faults=[fault], messages=30))
        assert outcome.ok, f"seed {seed}: {outcome.broken[0]}"


@pytest.mark.parametrize("seed", range(3))
def test_larger_parties_keep_them_too(seed: int) -> None:
    outcome = run(make(1_000 + seed, peers=9, messages=120, epochs=3))
    assert outcome.ok, outcome.broken[0]
    assert outcome.epochs >= 1


def test_a_seed_gives_the_same_trace_in_any_process() -> None:
    """Byte for byte, with every message of the protocol, whatever the order of sets."""
    program = (
        "import sys\n"
        "from antiphon.sim.run import run\n"
        "from antiphon.sim.scenario import make\n"
        "for seed in (3, 11):\n"
        "    print(run(make(seed, messages=40), keep_all=True).trace.digest())\n"
    )
    answers = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hashing},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hashing in ("1", "2")
    ]
    here = [run(make(seed, messages=40), keep_all=True).trace.digest() for seed in (3, 11)]
    assert answers[0].split() == answers[1].split() == here
    assert here[0] != here[1]
