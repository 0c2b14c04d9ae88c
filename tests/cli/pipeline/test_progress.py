"""How far a stage is, as people see it."""

from __future__ import annotations

from typing import NamedTuple

from antiphon.cli.pipeline.progress import Watch


class Job(NamedTuple):
    stageIds: list[int]  # noqa: N815 - Spark's word


class Tasks(NamedTuple):
    numTasks: int  # noqa: N815
    numCompletedTasks: int  # noqa: N815


class Spark:
    """Status of Spark: jobs, of which some run, and their stages."""

    def __init__(self) -> None:
        self.jobs, self.stages, self.active = dict[int, Job](), dict[int, Tasks](), list[int]()
        self.now = 100.0

    def getActiveJobsIds(self) -> list[int]:  # noqa: N802
        return self.active

    def getJobInfo(self, jobId: int) -> Job | None:  # noqa: N802, N803
        return self.jobs.get(jobId)

    def getStageInfo(self, stageId: int) -> Tasks | None:  # noqa: N802, N803
        return self.stages.get(stageId)


def test_a_stage_shows_its_tasks_its_messages_its_rate_and_when_it_may_be_done() -> None:
    spark = Spark()
    watch = Watch(spark, lambda: spark.now)
    watch.begin("verify and plan")
    assert watch.line() == "verify and plan"

    spark.jobs, spark.stages, spark.active = {1: Job([1]), 2: Job([2, 3, 9])}, {1: Tasks(2, 2)}, [1]
    watch.line()
    spark.stages |= {2: Tasks(10, 3), 3: Tasks(8, 0)}
    spark.active, spark.now = [2], 110.0
    watch.begin("verify and plan", 4_000)  # by now it is known how many

    wanted = "5 of 20 tasks, about 1,000 of 4,000 messages, 100 a second, about 30 s left"
    assert watch.line() == f"verify and plan: {wanted}"

    spark.active = []  # what was not done was not needed
    assert watch.line() == "verify and plan: 5 of 5 tasks, about 4,000 of 4,000 messages, 400 a second"


def test_the_next_stage_begins_with_nothing() -> None:
    spark = Spark()
    watch = Watch(spark, lambda: spark.now)
    watch.begin("fold", 10)
    spark.jobs, spark.stages, spark.active = {1: Job([1])}, {1: Tasks(2, 1)}, [1]
    watch.line()
    spark.jobs[2], spark.stages[2], spark.active = Job([2]), Tasks(7, 0), [2]
    watch.begin("write items")

    assert watch.line() == "write items: 0 of 7 tasks"
