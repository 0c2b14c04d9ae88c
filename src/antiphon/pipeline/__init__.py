"""The data pipeline on Spark: from the feeds of any number of parties to items, snapshots and tables.

Importing it lets the session that runs, if one does, read feeds: `spark.read.format("antiphon").load("laptop")`.
`antiphon.pipeline.jobs.stages` has the stages, `antiphon.pipeline.jobs.batch_run` puts them together. Both are left to
whoever needs them: Spark's Python workers import this package, and should begin soon.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from antiphon.pipeline.session.session import open_session, prepare

__all__ = ["open_session", "prepare"]

_running = SparkSession.getActiveSession()
if _running is not None:
    prepare(_running)
