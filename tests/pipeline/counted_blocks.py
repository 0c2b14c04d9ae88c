"""Blocks counted row by row in the stage `judged`, to compare with the ranges that plans have."""

from __future__ import annotations

from collections import Counter

from pyspark.sql import DataFrame

from antiphon.pipeline.plan.standings import ENDED, standings
from antiphon.pipeline.plan.survey import Survey

Counts = Counter[tuple[bytes, bytes, str, str | None]]  # of blocks, by party, feed, standing and reason


def by_rows(judged: DataFrame) -> Counts:
    """Count the rows of judged blocks. Ended ones are left out, because not all of them are read."""
    rows = judged.groupBy("party", "feed", "standing", "reason").count().collect()
    found = {(bytes(row.party), bytes(row.feed), row.standing, row.reason): row["count"] for row in rows}
    return Counter({key: count for key, count in found.items() if key[2] != ENDED})


def by_plans(survey: Survey) -> Counts:
    """Count the same blocks by the ranges of plans."""
    found: Counts = Counter()
    for plan in survey.plans:
        for party, feed, start, stop, standing, reason in standings(plan):
            if standing != ENDED:
                found[party, feed, standing, reason] += stop - start
        for feed, count in plan.beyond.items():  # which the stage does not read, or has as ended
            (key,) = [key for key in found if key[:2] == (plan.party, feed)]
            found[key] -= count
    return +found
