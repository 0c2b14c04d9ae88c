"""Group commit: callers that arrive during a commit share the next one, its signatures and its sync.

The first caller leads: it writes all waiting changes in one transaction, and wakes the others.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import lmdb

from antiphon.core.errors import StoreError
from antiphon.feed.encoder import Append, Written, build
from antiphon.feed.store.env import Env
from antiphon.feed.store.single_append import append_single
from antiphon.feed.store.tables import Tables

GROUP_MAX = 1024

#: A change to the tables; it returns its result.
Change = Callable[[Tables], Any]


@dataclass(slots=True, eq=False)
class _Job:
    """The changes of one caller: one append, which may be merged with others, or changes that are made all or none."""

    changes: Sequence[Append | Change]
    results: list[Any] = field(default_factory=list)
    error: BaseException | None = None
    done: bool = False

    @property
    def lone_append(self) -> Append | None:
        only = self.changes[0]
        return only if len(self.changes) == 1 and isinstance(only, Append) else None


class Committer:
    """Runs changes in transactions; `submit` returns when they are durable."""

    def __init__(self, env: Env, committed: Callable[[], None]) -> None:
        self._env = env
        self._committed = committed
        self._condition = threading.Condition()
        self._waiting: list[_Job] = []
        self._leading = False
        self.commits = 0

    def submit(self, changes: Sequence[Append | Change]) -> list[Any]:
        """Make changes in one transaction, and return their results; if one fails, none is made."""
        alone = changes[0] if len(changes) == 1 else None
        if isinstance(alone, Append) and self._take_lead():
            return [self._commit_alone(alone)]
        job = _Job(changes)
        with self._condition:
            self._waiting.append(job)
            while not job.done and self._leading:
                self._condition.wait()
            if job.done:
                return _outcome(job)
            self._leading = True
        group: list[_Job] = []
        try:
            while not job.done:
                with self._condition:
                    group = self._waiting[:GROUP_MAX]
                    del self._waiting[:GROUP_MAX]
                self._commit(group)
        finally:
            with self._condition:
                for taken in group:  # also after an interrupt between taking and committing them
                    if not taken.done:
                        taken.error, taken.done = StoreError("interrupted before it was committed; try again"), True
                self._leading = False
                self._condition.notify_all()
        return _outcome(job)

    def _take_lead(self) -> bool:
        """Become the leader if no one else commits or waits."""
        with self._condition:
            free = not self._leading and not self._waiting
            self._leading = self._leading or free
            return free

    def _commit_alone(self, append: Append) -> Written:
        try:
            written = self._env.write(lambda tables, _: write(tables, [append]))[0]
            written.alone = True
            self.commits += 1
        finally:
            with self._condition:
                self._leading = False
                if self._waiting:
                    self._condition.notify_all()
        self._committed()
        return written

    def _commit(self, group: list[_Job]) -> None:
        try:
            self._env.write(lambda tables, part: _run(group, tables, part))
            self.commits += 1
        except BaseException as error:
            for job in group:
                job.error = job.error or error
            if not isinstance(error, Exception):
                raise
        finally:
            for job in group:
                job.done = True
        self._committed()


def _run(group: list[_Job], tables: Tables, part: Callable[[Change], Any]) -> None:
    """Make the changes of a group. It may run again from the start, so it first resets the jobs."""
    lone: dict[bytes, list[_Job]] = defaultdict(list)
    if len(group) == 1 and group[0].lone_append is None:  # all or none anyway: no nested one is needed
        group[0].error, group[0].results = None, [_apply(tables, change) for change in group[0].changes]
        return
    for job in group:
        job.error, job.results = None, []
        append = job.lone_append
        if append is not None:
            lone[append.pair.key].append(job)
            continue
        try:
            job.results = part(lambda nested, job=job: [_apply(nested, change) for change in job.changes])  # type: ignore[misc]
        except lmdb.Error:
            raise
        except Exception as error:
            job.error = error
    for jobs in lone.values():
        if not _merge(tables, jobs) and len(jobs) > 1:  # one of them fails: write each alone
            for job in jobs:
                _merge(tables, [job])


def _merge(tables: Tables, jobs: list[_Job]) -> bool:
    """Write the appends of several jobs to one feed. An append that fails does so before anything is written."""
    try:
        written = write(tables, [append for job in jobs if (append := job.lone_append)])
    except lmdb.Error:
        raise
    except Exception as error:
        for job in jobs:
            job.error = error
        return False
    for job, stamps in zip(jobs, written, strict=True):
        job.error, job.results = None, [stamps]
    return True


def _apply(tables: Tables, change: Append | Change) -> Any:
    return write(tables, [change])[0] if isinstance(change, Append) else change(tables)


def write(tables: Tables, appends: list[Append]) -> list[Written]:
    """Write appends to one feed inside a transaction, and return their stamps."""
    single = append_single(tables, appends[0]) if len(appends) == 1 else None
    if single is not None:
        return [single]
    record = tables.record(appends[0].pair.key)
    built = build(record, appends, lambda other: tables.frontier(record.feed, other))
    at = record
    for span in built.spans:
        tables.append_span(at, span)
        at = built.record
    tables.put_record(built.record)
    for entry in built.moved.values():
        tables.move_frontier(record.feed, entry)
    return built.written


def _outcome(job: _Job) -> list[Any]:
    if job.error is not None:
        raise job.error
    return job.results
