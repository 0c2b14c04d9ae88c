"""Rule 10 in large: five to nine attesters, long random schedules with partitions, loss, crashes, and liars.

Whatever anybody takes for final at any time is the same for all, and once all hear each other the honest go on.
"""

from __future__ import annotations

import itertools

import pytest
from tests.budget import budget
from tests.halo.finality.finality import Case
from tests.halo.finality.finality_run import Run, Split

from antiphon.halo.finality.ballot import Ballot, Claimed, Demand

pytestmark = pytest.mark.slow

SEEDS = budget(30, 250)  # of one test
FIRST = range(0, SEEDS * budget(1, 6), SEEDS)
TERMS = (5, 5, 5)
CASES = [
    Case(5, TERMS),
    Case(7, TERMS, witnesses=True),
    Case(9, TERMS),
    Case(6, TERMS, shrinks=True),
    Case(5, TERMS, outsider=True),
    Case(5, TERMS, liars=2),
    Case(7, TERMS, liars=2),
]


def play(seed: int, case: Case) -> Run:
    run = Run(seed, case)
    run.play(25 * case.honest)
    run.heal()
    return run


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_random_elections_split_nobody_and_come_to_an_end(case: Case, first: int) -> None:
    runs = [play(seed, case) for seed in range(first, first + SEEDS)]
    numbers = [len(run.final) for run in runs]
    taken = sum(any(word.kind == "declare" and word.term for word in itertools.chain(*run.history)) for run in runs)
    words, crashes = sum(run.words for run in runs), sum(run.crashes for run in runs)
    print(f"{case}: {SEEDS} runs, {words} words, {crashes} crashes, takeovers in {taken}, {sum(numbers)} epochs final")
    assert min(numbers) > 0
    assert sum(numbers) > SEEDS  # some come further while the network is bad
    assert taken


def nothing_is_extended(patch: pytest.MonkeyPatch) -> None:
    def demand(ballot: Ballot, endorsers: Claimed) -> Demand:
        return Demand(b"", "" if len(endorsers) >= ballot.config.quorum else "too few")

    patch.setattr(Ballot, "demand", demand)


def test_a_planted_fault_splits_a_random_election(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_is_extended(monkeypatch)
    with pytest.raises(Split, match=r"two geneses|two snapshots"):
        any(play(seed, Case(3, TERMS)) is None for seed in range(1_000))
