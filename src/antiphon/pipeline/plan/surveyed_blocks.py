"""Stage `blocks`: what a survey has looked at, as rows. Nothing that came since is among them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from antiphon.pipeline.plan.survey import Survey
from antiphon.pipeline.session.session import prepare
from antiphon.pipeline.source.home import write_anchor

#: What the stages after it need.
NEEDED = ("party", "feed", "seq", "lamport", "kind", "created_ms", "item", "message", "fault")


def blocks(spark: SparkSession, survey: Survey, columns: Sequence[str] = NEEDED) -> DataFrame:
    """The blocks of a survey. They were verified then, and are not again: the store's checksums still are."""
    reader = prepare(spark).read.format("antiphon").option("columns", ",".join(columns)).option("verify", "false")
    return reader.option("until", write_anchor(survey.anchor)).load(list(survey.homes))
