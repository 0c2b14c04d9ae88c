"""Law: whatever branches liars sign, and whomever they show them, honest members come to the same epochs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget
from tests.halo.finality.branch_run import BranchRun


@pytest.mark.slow
@settings(max_examples=budget(20, 3_000), deadline=None)
@given(st.integers(0, 2**32), st.integers(60, 240))
def test_honest_members_agree_on_epochs_whatever_branches_they_were_shown(seed: int, steps: int) -> None:
    run = BranchRun(seed)
    number = run.play(steps)
    assert all(len(witness.final) == number for witness in run.witnesses)


def test_the_histories_have_final_epochs_and_forks() -> None:
    """Else the law above would say nothing."""
    runs = [BranchRun(seed) for seed in range(12)]
    assert sum(run.play(150) for run in runs)
    assert any(len(branches) > 1 for run in runs for branches in run.branches.values())
