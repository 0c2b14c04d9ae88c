"""Verification and planning run together: a plan made from unverified blocks is used only if there are no faults."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from antiphon.pipeline.plan.survey import verify_and_plan
from antiphon.pipeline.source.ranges import Fault


class Asked(NamedTuple):
    party: bytes
    blocks: int
    noted: str  # a file: so often it was planned
    fails: int  # so often at first
    faults: tuple[Fault, ...] = ()


def plan(asked: Asked) -> int:
    with Path(asked.noted).open("a") as file:
        file.write(".")
    times = len(Path(asked.noted).read_text())
    if times <= asked.fails:
        raise MemoryError("what is not verified may say anything")
    return times


def asked(folder: Path, fails: list[int]) -> list[Asked]:
    return [Asked(bytes([nth]), 0, str(folder / f"{nth}"), one) for nth, one in enumerate(fails)]


def test_a_party_that_could_not_be_planned_early_is_planned_again(spark: SparkSession, tmp_path: Path) -> None:
    assert verify_and_plan(spark, [], plan, asked(tmp_path, [0, 1, 0])) == [1, 2, 1]


def test_what_is_raised_when_all_is_verified_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="may say anything"):
        verify_and_plan(spark, [], plan, asked(tmp_path, [0, 2]))


def test_nothing_is_planned_of_nothing(spark: SparkSession) -> None:
    assert verify_and_plan(spark, [], plan, []) == []
