"""What a hostile member costs: every surface has an attack, and the benchmark measures all of them to its end."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from tests.bench.conftest import BENCH, run
from tests.budget import only_in_soak


def test_every_surface_has_an_attack_and_every_attack_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCH)
    surfaces, attacks = import_module("hostile").SURFACES, import_module("harness.hostile_attacks").ATTACKS
    assert sorted(surfaces) == sorted(attacks)
    assert all(attack.__doc__ for attack in attacks.values())


@only_in_soak
def test_the_hostile_benchmark_runs(tmp_path: Path) -> None:
    answer = run("hostile", tmp_path, seconds=300)
    goals = {goal["name"] for goal in answer["goals"]}
    assert all(goal["value"] is not None for goal in answer["goals"])
    for surface in ("control acts", "narrowings", "branches", "entries", "timeframes", "texts", "queries"):
        assert f"{surface}: memory, × the bytes received" in goals
        assert f"{surface}: memory of opening, × the bytes received" in goals
        assert answer["figures"][surface]["whole"]["bytes"] >= 20_000
