"""Name the disk that is full: Arrow, delta-rs, Java and Python say so each in their own words, and Spark wraps them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

from pyspark.sql import SparkSession

from antiphon.core.disk_room import is_full, room_of
from antiphon.core.errors import DiskFull


@contextmanager
def full_disk_named(folder: Path, kept: str, spark: SparkSession | None = None) -> Iterator[None]:
    """Raise `DiskFull` instead of an error that says that a disk is full. `kept` says what the folder holds now."""
    try:
        yield
    except DiskFull:
        raise
    except Exception as error:
        if not is_full(error):
            raise
        places = [folder, *scratch_folders(spark)]
        free = ", ".join(f"{room_of(place):,} bytes free in {place}" for place in dict.fromkeys(places))
        raise DiskFull(
            f"no space is left to write {folder} ({free}); {kept}. Free some space, and run again"
        ) from error


def scratch_folders(spark: SparkSession | None) -> list[Path]:
    """Return the folders in which Spark keeps what it shuffles."""
    if spark is None:
        return []
    named = spark.sparkContext.getConf().get("spark.local.dir") or gettempdir()
    return [Path(one) for one in named.split(",")]
