"""How far Spark is in the stage that runs, for people: tasks, messages, rate, and when it may be done.

Spark tells of tasks alone. Messages are those of the stage, by the share of its tasks that are done: about so many.
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
    """What is asked of Spark's `StatusTracker`."""

    def getActiveJobsIds(self) -> Sequence[int]: ...  # noqa: N802

    def getJobInfo(self, jobId: int) -> JobInfo | None: ...  # noqa: N802, N803

    def getStageInfo(self, stageId: int) -> StageInfo | None: ...  # noqa: N802, N803


@dataclass(slots=True)
class Stage:
    """One of the pipeline's, which may be several of Spark's."""

    name: str
    messages: int
    begun: float
    jobs: set[int] = field(default_factory=set)


class Watch:
    """Asks how far the stage is that was told last. A stage that is told again has learnt how many messages it has."""

    def __init__(self, tracker: Tracker, clock: Callable[[], float] = monotonic) -> None:
        self._tracker, self._clock = tracker, clock
        self._stage = Stage("", 0, clock())

    def begin(self, name: str, messages: int = 0) -> None:
        if name != self._stage.name or not messages:
            self._stage = Stage(name, messages, self._clock())
        else:
            self._stage.messages = messages

    def tasks(self) -> tuple[int, int]:
        """How many tasks of the stage are done, of how many that are known by now."""
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
        """The stage, and how far it is."""
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
    """Tell how far a stage is, again and again, from a thread of its own."""
    ended = Event()

    def follow() -> None:
        while not ended.wait(LOOK_EVERY_S):
            try:
                told(watch.line())
            except Exception:  # Spark is gone, or going: whoever runs the stage tells why
                return

    thread = Thread(target=follow, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
