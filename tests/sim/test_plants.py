"""Each planted bug is found within a few seeds, by a law that is about it; without the bug these seeds pass.

`make soak` tries the seeds from 0 on. Else the search begins at the seed that is likely to catch the bug.
"""

from __future__ import annotations

import pytest
from tests.budget import budget
from tests.sim.plants import PLANTS, Plant

from antiphon.sim import run as running
from antiphon.sim.search import play_safely

pytestmark = pytest.mark.slow

SEEDS_MAX = 200
_QUIET_MS_MAX = 300_000  # what a bug keeps from coming to rest is found as well
_MISFITS = ("TypeError", "AttributeError", "NameError")  # of a patched function that is called otherwise by now


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_planted_bug_is_caught_by_seeds_that_pass_without_it(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant.prepare(monkeypatch)
    monkeypatch.setattr(running, "QUIET_MS_MAX", _QUIET_MS_MAX)
    caught = None
    first = budget(plant.likely_seed, 0)
    for seed in (*range(first, SEEDS_MAX), *range(first)):
        with pytest.MonkeyPatch.context() as patch:
            plant.sow(patch)
            outcome = play_safely(plant.scenario(seed))
        misfits = [broken for broken in outcome.broken if broken.text.startswith(_MISFITS)]
        assert not misfits, f"{plant.name} no longer fits the code that it patches: {misfits[0]}"
        clean = play_safely(plant.scenario(seed))
        assert clean.ok, f"seed {seed} fails without the bug: {clean.broken[0]}"
        if plant.laws & {broken.law for broken in outcome.broken}:
            caught = outcome
            break
    assert caught is not None, f"{plant.name}: not caught by {sorted(plant.laws)} within {SEEDS_MAX} seeds"
    print(f"{plant.name}: seed {caught.scenario.seed} breaks {caught.broken[0]}")
