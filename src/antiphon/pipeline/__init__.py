"""The data pipeline on Spark: from the feeds of any number of parties to items, snapshots and tables.

Rooms, low to high; each may import those above it in this list:

    archive_format   the Parquet archive as files: manifest, rows, and a reader that serves them as a feed store
    source           `spark.read.format("antiphon")`: blocks of feeds as DataFrames and streams, in ranges
    session          Spark sessions, Java, Python workers and their tasks and errors
    plan             survey: verify feeds, and plan each party: how far feeds count, what is void, who wrote what
    order            messages in chunks of columns: shuffled by item, and sorted into the total order
    columnar         the fold of flat objects in columns
    fold             the fold of a survey: items, refused messages, counts and digests
    epoch            the snapshot of an epoch, computed by Spark
    tables           Delta tables: their rows, files and commits, and how an incremental run changes them
    query            queries and SQL over the tables
    jobs             batch run, table run, stream, verification; and all stages under their names
    archive          export to, import from and checks of Parquet archives

In: homes (folders of feed stores) or archives. Out: DataFrames, Delta tables, epoch snapshots, archives, reports.
Start reading at `jobs.stages`, which lists the stages in order; `jobs.table_run` is what `antiphon pipeline run` runs.

Importing this package registers the data source with the running session, if there is one. It imports nothing else:
every Spark Python worker imports it, and should start quickly.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from antiphon.pipeline.session.session import open_session, prepare

__all__ = ["open_session", "prepare"]

_running = SparkSession.getActiveSession()
if _running is not None:
    prepare(_running)
