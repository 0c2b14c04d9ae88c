"""Run a function over values in Spark's Python workers, and return the results in order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import Generic, TypeVar

from pyspark import RDD
from pyspark.sql import SparkSession

TASKS_PER_CORE = 8
TASK_BLOCKS = 300_000  # with fewer blocks per task, more tasks than cores cost more time than they gain

Given = TypeVar("Given")
Result = TypeVar("Result")


def tasks_for(spark: SparkSession, blocks: int) -> int:
    """The number of tasks for so many blocks: a multiple of the cores, so that all cores finish together."""
    cores = spark.sparkContext.defaultParallelism
    return cores * max(1, round(blocks / TASK_BLOCKS / cores))


def in_workers(
    spark: SparkSession,
    act: Callable[[Given], Result],
    given: Sequence[Given],
    tasks: int = sys.maxsize,
    weights: Sequence[int] | None = None,
) -> list[Result]:
    """Call `act` with each value in Spark's Python workers, in at most `tasks` tasks. Return the results in order.

    `weights` estimate how long each call takes. Values are dealt so that all tasks have about the same weight.
    """
    if not given:
        return []
    return DealtTasks.deal(spark, act, given, tasks, weights).done()


@dataclass(frozen=True, slots=True)
class DealtTasks(Generic[Result]):
    """Calls that are dealt to Spark tasks, and not run yet."""

    rdd: RDD[list[Result]]  # a list for each task
    dealt: Sequence[Sequence[int]]  # the indexes of its values

    @classmethod
    def deal(
        cls,
        spark: SparkSession,
        act: Callable[[Given], Result],
        given: Sequence[Given],
        tasks: int = sys.maxsize,
        weights: Sequence[int] | None = None,
    ) -> DealtTasks[Result]:
        """Deal the values to tasks, as `in_workers` does. There must be at least one value."""
        count = min(len(given), tasks, TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
        dealt = _dealt(weights or [1] * len(given), count)
        each = [[given[at] for at in some] for some in dealt]
        return cls(spark.sparkContext.parallelize(each, count).map(partial(_each, act)), dealt)

    def done(self) -> list[Result]:
        """Run the tasks in a Spark job of their own, and return the results in order."""
        return self.results(self.rdd.collect())

    def results(self, done: Sequence[Sequence[Result]]) -> list[Result]:
        """Put the results of the tasks into the order of the values."""
        pairs = zip(self.dealt, done, strict=True)
        found = {at: made for some, told in pairs for at, made in zip(some, told, strict=True)}
        return [found[at] for at in range(len(found))]


def _dealt(weights: Sequence[int], count: int) -> list[list[int]]:
    """Deal the indexes of values to `count` tasks: the heaviest first, each to the task with the least weight."""
    tasks: list[list[int]] = [[] for _ in range(count)]
    least = [(0, number) for number in range(count)]
    for at in sorted(range(len(weights)), key=lambda at: -weights[at]):
        load, number = heappop(least)
        tasks[number].append(at)
        heappush(least, (load + weights[at], number))
    return tasks


def _each(act: Callable[[Given], Result], given: Iterable[Given]) -> list[Result]:
    return [act(one) for one in given]
