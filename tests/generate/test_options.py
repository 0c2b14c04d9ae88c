"""What is asked of the generator, and how it is divided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import InvalidInput
from antiphon.generate.home import plans
from antiphon.generate.options import Options, zipf


@given(st.integers(0, 10_000), st.integers(1, 100), st.floats(0, 3))
def test_a_zipf_law_divides_without_a_remainder_and_gives_most_to_the_first(total: int, count: int, by: float) -> None:
    shares = zipf(total, count, by)

    assert sum(shares) == total
    assert len(shares) == count
    assert min(shares) >= 0
    assert shares == sorted(shares, reverse=True)


@given(
    st.integers(1, 50), st.integers(0, 500), st.integers(0, 5_000), st.sampled_from([0.0, 0.2, 0.9]), st.integers(0, 3)
)
def test_every_party_has_an_item_and_all_that_was_asked_for_is_planned(
    parties: int, items: int, changes: int, hot: float, epochs: int
) -> None:
    options = Options(parties, parties + items, parties + items + changes, hot=hot, epochs=epochs).check()

    found = plans(options)

    assert sum(plan.items for plan in found) == options.items
    assert sum(plan.messages for plan in found) == options.messages
    assert all(0 < plan.items <= plan.messages for plan in found)
    assert {plan.hot for plan in found[1:]} <= {0}
    assert found[0].hot == min(int(options.messages * hot), changes)
    assert any(plan.epochs for plan in found) == bool(epochs)


@pytest.mark.parametrize(
    "wrong",
    [
        {"parties": 0},
        {"items": 3},
        {"messages": 10},
        {"writers": 0},
        {"epochs": -1},
        {"seed": -1},
        {"hot": 1.0},
        {"bad": -0.1},
        {"hot": float("nan")},
    ],
)
def test_what_cannot_be_made_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        replace(Options(), **wrong).check()
