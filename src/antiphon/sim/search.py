"""Many seeds, until one fails; then the smallest part of its scenario that still does."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from antiphon.sim.network import CALM
from antiphon.sim.run import Broken, Outcome, run
from antiphon.sim.scenario import Scenario
from antiphon.sim.trace import Trace

RUNS_MAX = 400  # of one scenario, while it is shrunk

Play = Callable[[Scenario], Outcome]


@dataclass(frozen=True, slots=True)
class Found:
    """A scenario that breaks a law."""

    outcome: Outcome
    shrunk: Outcome
    runs: int  # that it took to shrink

    @property
    def seed(self) -> int:
        return self.outcome.scenario.seed


def play_safely(scenario: Scenario) -> Outcome:
    """Play a scenario; an error that nobody foresaw breaks a law too, and the trace has what came before it."""
    trace = Trace()
    try:
        return run(scenario, trace=trace)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__} in {where.name}: {error}"
        return Outcome(scenario, trace, [Broken("no errors", text)])


def search(scenarios: Iterable[Scenario], *, play: Play = play_safely) -> Iterator[Outcome]:
    """The outcome of each scenario, in their order."""
    for scenario in scenarios:
        yield play(scenario)


def shrink(
    outcome: Outcome, *, play: Play = play_safely, tried: Callable[[int, int], None] = lambda _runs, _acts: None
) -> Found:
    """Leave out acts, and then bad weather, as long as the same law breaks.

    `tried` is told after each run how many there were, and how many acts the smallest scenario has.
    """
    wanted = {broken.law for broken in outcome.broken}
    best, runs = outcome, 0

    def attempt(scenario: Scenario) -> bool:
        nonlocal best, runs
        runs += 1
        found = play(scenario)
        fails = bool(wanted & {broken.law for broken in found.broken})
        if fails:
            best = found
        tried(runs, len(best.scenario.acts))
        return fails

    size = max(1, len(outcome.scenario.acts) // 2)
    while runs < RUNS_MAX:
        start, removed = 0, False
        while start < len(best.scenario.acts) and runs < RUNS_MAX:
            gone = range(start, min(start + size, len(best.scenario.acts)))
            if attempt(best.scenario.without(gone)):
                removed = True
            else:
                start += size
        if size > 1:
            size //= 2
        elif not removed:
            break
    if best.scenario.weather != CALM and runs < RUNS_MAX:
        attempt(replace(best.scenario, weather=CALM))
    return Found(outcome, best, runs)
