"""Stage `changes`: items that changed between two runs."""

from __future__ import annotations

from pyspark.sql import DataFrame, functions as f
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

SCHEMA = StructType(
    [
        StructField("party", BinaryType()),
        StructField("item", BinaryType()),
        StructField("change", StringType()),
        StructField("model", StringType()),
        StructField("messages", IntegerType()),
    ]
)


def changes(before: DataFrame, now: DataFrame) -> DataFrame:
    """Return a row for each item that was created, changed, deleted, restored or removed between two `shown` tables.

    Removed means that the item does not exist any more: the blocks that made it are void now, or missing.
    """
    old = before.select(
        "party", "item", f.col("data").alias("was"), f.col("deleted").alias("dead"), f.col("model").alias("old_model")
    )
    both = now.join(old, ["party", "item"], "full_outer")
    change = (
        f.when(f.col("dead").isNull() & f.col("deleted").isNotNull(), "created")
        .when(f.col("deleted").isNull(), "removed")
        .when(f.col("deleted") & ~f.col("dead"), "deleted")
        .when(~f.col("deleted") & f.col("dead"), "restored")
        .when(~f.col("data").eqNullSafe(f.col("was")), "changed")
    )
    model = f.coalesce("model", "old_model").alias("model")
    found = both.select("party", "item", change.alias("change"), model, "messages")
    return found.where(f.col("change").isNotNull())


def change_of(before: tuple[bool, bytes] | None, after: tuple[bool, bytes] | None) -> str | None:
    """Return the change of one item between two pairs (deleted, hash of the state); None if nothing changed."""
    if before is None or after is None:
        return "created" if before is None else "removed"
    (was_deleted, was), (is_deleted, state) = before, after
    if is_deleted != was_deleted:
        return "deleted" if is_deleted else "restored"
    return None if state == was else "changed"
