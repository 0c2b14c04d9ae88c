"""Items with access lists, folded: in any causal order, any split, with restarts, one state and one verdict on each."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget
from tests.model.access_histories import MODELS, NAMES, PARTY, History, author_of, live, shown, whole

from antiphon.model.access import NOT_NAMED, NOT_THEIRS
from antiphon.model.fold import fold

pytestmark = pytest.mark.slow


@settings(max_examples=budget(120, 5_000))
@given(seed=st.integers(0, 1 << 32), model=st.sampled_from((*NAMES, "system")), steps=st.integers(1, 40))
def test_any_causal_order_and_any_split_give_the_fold_of_the_total_order(seed: int, model: str, steps: int) -> None:
    history = History(seed, steps, model)
    if not history.notes:
        return
    wanted, refused = whole(history, history.notes)
    for _ in range(2):
        item, verdicts = live(history, history.causal_order())
        assert shown(item) == shown(wanted)
        assert verdicts == refused


def test_these_histories_are_of_all_kinds() -> None:
    """The law would be empty if lists were never installed, or never decided about what was folded before."""
    reasons: Counter[str] = Counter()
    late = 0
    for seed in range(60):
        history = History(seed, 30, NAMES[seed % 5])
        reasons.update(whole(history, history.notes)[1].values())
        item = None
        for note in history.causal_order():
            folded = fold(PARTY, history.item, item, [note], MODELS, author_of)
            item = folded.item
            if folded.late:
                late += 1
                break
    assert min(reasons[NOT_NAMED], reasons[NOT_THEIRS]) > 40
    assert late > 20
