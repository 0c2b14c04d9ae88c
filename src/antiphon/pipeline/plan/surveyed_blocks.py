"""Stage `blocks`: the blocks of a survey as a DataFrame. Blocks that came after the survey are not in it."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from antiphon.pipeline.plan.survey import Survey
from antiphon.pipeline.session.session import prepare
from antiphon.pipeline.source.home import write_anchor

#: Columns that the later stages need.
NEEDED = ("party", "feed", "seq", "lamport", "kind", "created_ms", "item", "message", "fault")


def blocks(spark: SparkSession, survey: Survey, columns: Sequence[str] = NEEDED) -> DataFrame:
    """The blocks of a survey. The survey has verified them; reading them again checks only the store's checksums."""
    reader = prepare(spark).read.format("antiphon").option("columns", ",".join(columns)).option("verify", "false")
    return reader.option("until", write_anchor(survey.anchor)).load(list(survey.homes))
