"""Search many seeds for one that breaks a law, and shrink its scenario to a small part that still breaks it."""

from __future__ import annotations

import signal
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

from antiphon.sim.network import CALM
from antiphon.sim.run import BrokenLaw, Outcome, run
from antiphon.sim.scenario import Scenario
from antiphon.sim.trace import Trace
from antiphon.sim.world import Endless, interrupted_after

RUNS_MAX = 400  # to shrink one scenario
_GRACE_S = 30  # beyond the limit of a run, which is checked between two events

Play = Callable[[Scenario], Outcome]


@dataclass(frozen=True, slots=True)
class Failure:
    """A scenario that breaks a law, as it was found and shrunk."""

    outcome: Outcome
    shrunk: Outcome
    runs: int  # used to shrink it

    @property
    def seed(self) -> int:
        return self.outcome.scenario.seed


def play_safely(scenario: Scenario) -> Outcome:
    """Play a scenario. An unexpected exception counts as a broken law, *no errors*; the trace up to it is kept.

    A run that takes many times as long as one of its size breaks the law *quiet*.
    """
    trace, limits = Trace(), scenario.limits
    try:
        with interrupted_after(limits.seconds + _GRACE_S):
            return run(scenario, trace=trace, limits=limits)
    except Endless as error:
        return Outcome(scenario, trace, [BrokenLaw("quiet", str(error))])
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__} in {where.name}: {error}"
        return Outcome(scenario, trace, [BrokenLaw("no errors", text)])


def search(scenarios: Iterable[Scenario], *, jobs: int = 1, play: Play = play_safely) -> Generator[Outcome]:
    """Yield the outcome of each scenario, in order, played by this process or by several others."""
    if jobs == 1:
        yield from map(play, scenarios)
        return
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _ignore_interrupts)  # forking would copy open stores
    waiting: deque[tuple[Scenario, Future[Outcome]]] = deque()
    try:
        for scenario in scenarios:
            waiting.append((scenario, pool.submit(play, scenario)))
            if len(waiting) >= 2 * jobs:
                yield _result(*waiting.popleft())
        while waiting:
            yield _result(*waiting.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


def _result(scenario: Scenario, played: Future[Outcome]) -> Outcome:
    try:
        return played.result()
    except BrokenExecutor as error:
        return Outcome(scenario, Trace(), [BrokenLaw("no errors", f"the process that played it ended: {error}")])


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that searches."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def shrink(
    outcome: Outcome, *, play: Play = play_safely, tried: Callable[[int, int], None] = lambda _runs, _acts: None
) -> Failure:
    """Shrink a failing scenario: leave out acts, and then bad weather, as long as the same law breaks.

    `tried` is called after each run with the number of runs, and the number of acts of the smallest scenario.
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
    return Failure(outcome, best, runs)
