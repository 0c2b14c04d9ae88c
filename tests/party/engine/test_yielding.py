"""A computation rests while somebody writes, and not otherwise."""

from __future__ import annotations

import pytest

from antiphon.party.engine.yielding import YieldPoint


class Store:
    """As much of a feed store as is asked for."""

    transaction = 1


def rests(monkeypatch: pytest.MonkeyPatch, writes: bool) -> int:
    """How often a computation of a tenth of a second, asked every millisecond, rests."""
    at = [0.0]
    rested: list[float] = []
    monkeypatch.setattr("antiphon.party.engine.yielding.time.perf_counter", lambda: at[0])
    store = Store()
    step = YieldPoint(lambda: False, store, rested.append)  # type: ignore[arg-type]
    for number in range(100):
        at[0] += 0.001
        if writes and number % 10 == 0:
            store.transaction += 1
        assert step() is False
    return len(rested)


def test_it_rests_every_few_milliseconds_while_somebody_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 30 <= rests(monkeypatch, writes=True) <= 60


def test_it_does_not_where_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rests(monkeypatch, writes=False) == 0


def test_it_says_when_to_stop() -> None:
    assert YieldPoint(lambda: True, Store(), lambda _: None)()  # type: ignore[arg-type]
