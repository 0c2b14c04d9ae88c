"""Progress of the running stage for people: tasks, messages, rate, and the time left.

Spark reports only tasks. The number of messages is an estimate: those of the stage, times the share of tasks done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from time import monotonic
from typing import Protocol

LOOK_EVERY_S = 0.5


class JobInfo(Protocol):
    @property
    def stageIds(self) -> Sequence[int]: ...  # noqa: N802


class StageInfo(Protocol):
    @property
    def numTasks(self) -> int: ...  # noqa: N802

    @property
    def numCompletedTasks(self) -> int: ...  # noqa: N802


class Tracker(Protocol):
    """The methods of Spark's `StatusTracker` that this module calls."""

    def getActiveJobsIds(self) -> Sequence[int]: ...  # noqa: N802

    def getJobInfo(self, jobId: int) -> JobInfo | None: ...  # noqa: N802, N803

    def getStageInfo(self, stageId: int) -> StageInfo | None: ...  # noqa: N802, N803


@dataclass(slots=True)
class Stage:
    """A stage of the pipeline. It may be several stages of Spark."""

    name: str
    messages: int
    begun: float
    jobs: set[int] = field(default_factory=set)


class Watch:
    """Report how far the current stage is. `begin` with the name of the current stage sets its number of messages."""

    def __init__(self, tracker: Tracker, clock: Callable[[], float] = monotonic) -> None:
        self._tracker, self._clock = tracker, clock
        self._stage = Stage("", 0, clock())

    def begin(self, name: str, messages: int = 0) -> None:
        if name != self._stage.name or not messages:
            self._stage = Stage(name, messages, self._clock())
        else:
            self._stage.messages = messages

    def tasks(self) -> tuple[int, int]:
        """The number of tasks done in the stage, and the number of tasks known so far."""
        stage = self._stage
        active = set(self._tracker.getActiveJobsIds())
        stage.jobs |= active
        done = total = 0
        for job in stage.jobs:
            info = self._tracker.getJobInfo(job)
            for one in () if info is None else map(self._tracker.getStageInfo, info.stageIds):
                if one is not None:
                    done += one.numCompletedTasks
                    total += one.numTasks if job in active else one.numCompletedTasks  # the rest was not needed
        return done, total

    def line(self) -> str:
        """One line: the name of the stage and its progress."""
        stage, (done, total) = self._stage, self.tasks()
        if not total:
            return stage.name
        share, seconds = done / total, max(self._clock() - stage.begun, 0.001)
        said = [f"{stage.name}: {done} of {total} tasks"]
        if stage.messages:
            read = share * stage.messages
            said += [f"about {read:,.0f} of {stage.messages:,} messages", f"{read / seconds:,.0f} a second"]
        if 0 < share < 1:
            said.append(f"about {seconds * (1 - share) / share:,.0f} s left")
        return ", ".join(said)


@contextmanager
def watched(watch: Watch, told: Callable[[str], None]) -> Iterator[None]:
    """Call `told` with a progress line every half second, from a thread."""
    ended = Event()

    def follow() -> None:
        while not ended.wait(LOOK_EVERY_S):
            try:
                told(watch.line())
            except Exception:  # Spark has stopped: the thread that runs the stage reports why
                return

    thread = Thread(target=follow, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
