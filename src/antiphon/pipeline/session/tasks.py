"""Work for Spark's Python workers: something is done with each of some values, and what comes of it is given back."""

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
TASK_BLOCKS = 300_000  # to verify fewer, tasks more than there are cores take longer than they gain

Given = TypeVar("Given")
Result = TypeVar("Result")


def tasks_for(spark: SparkSession, blocks: int) -> int:
    """How many tasks so many blocks are worth: each core gets as many, so that all end at once."""
    cores = spark.sparkContext.defaultParallelism
    return cores * max(1, round(blocks / TASK_BLOCKS / cores))


def in_workers(
    spark: SparkSession,
    act: Callable[[Given], Result],
    given: Sequence[Given],
    tasks: int = sys.maxsize,
    weights: Sequence[int] | None = None,
) -> list[Result]:
    """Do something with each value, in Spark's Python workers, in so many tasks at most; the results in the same order.

    `weights` say how long each will take, so that all tasks take as long.
    """
    if not given:
        return []
    return Work.deal(spark, act, given, tasks, weights).done()


@dataclass(frozen=True, slots=True)
class Work(Generic[Result]):
    """What is to be done with values, in tasks of Spark's, that have been dealt."""

    rdd: RDD[list[Result]]  # a list for each task
    dealt: Sequence[Sequence[int]]  # the places of its values

    @classmethod
    def deal(
        cls,
        spark: SparkSession,
        act: Callable[[Given], Result],
        given: Sequence[Given],
        tasks: int = sys.maxsize,
        weights: Sequence[int] | None = None,
    ) -> Work[Result]:
        """As `in_workers` does it; there is at least one value."""
        count = min(len(given), tasks, TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
        dealt = _dealt(weights or [1] * len(given), count)
        each = [[given[at] for at in some] for some in dealt]
        return cls(spark.sparkContext.parallelize(each, count).map(partial(_each, act)), dealt)

    def done(self) -> list[Result]:
        """Do it, in a job of its own."""
        return self.results(self.rdd.collect())

    def results(self, done: Sequence[Sequence[Result]]) -> list[Result]:
        """What came of each value, in order, of what came of each task."""
        pairs = zip(self.dealt, done, strict=True)
        found = {at: made for some, told in pairs for at, made in zip(some, told, strict=True)}
        return [found[at] for at in range(len(found))]


def _dealt(weights: Sequence[int], count: int) -> list[list[int]]:
    """Places divided among so many tasks: the heaviest first, each to the task that has least."""
    tasks: list[list[int]] = [[] for _ in range(count)]
    least = [(0, number) for number in range(count)]
    for at in sorted(range(len(weights)), key=lambda at: -weights[at]):
        load, number = heappop(least)
        tasks[number].append(at)
        heappush(least, (load + weights[at], number))
    return tasks


def _each(act: Callable[[Given], Result], given: Iterable[Given]) -> list[Result]:
    return [act(one) for one in given]
