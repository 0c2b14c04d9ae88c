"""Stage `found`: runs a `Query`, the same value that peers run and subscribe to, over the tables of many parties.

    tables = open_tables(spark, DeltaFolder("tables"))
    found(Query(Fact.TYPE.is_("task") & prop("done").is_(False)).order_by("due"), tables).show()

Each party is queried by itself: steps stay inside the party, and limits and aggregates apply to each party. The meaning
of a query is defined by `antiphon.query.evaluate`; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window, functions as f

from antiphon.pipeline.query.aggregates import aggregated, read_groups
from antiphon.pipeline.query.filters import condition, needs_parents, whole_key
from antiphon.pipeline.query.resolved_items import Seen
from antiphon.pipeline.tables.sort_key import REFERENCE_KIND
from antiphon.query.evaluate import Result
from antiphon.query.filters import Fact
from antiphon.query.query import Deleted, Query, Step, Way
from antiphon.query.validate import check, wheres

#: Columns of an item in the result.
COLUMNS = ("party", "item", "model", "type", "name", "deleted", "created_ms", "state")
_ITEM = ("party", "item")
_OWN = 17  # bytes of the sort key of a reference inside the party
_LIMIT_MAX = (1 << 31) - 1

_FORWARD = {Way.PARENT, Way.SOURCE, Way.TARGET, Way.EMBEDS, Way.REFERENCES}
_INVERSE = {
    Way.CHILDREN: Way.PARENT,
    Way.LINKS: Way.SOURCE,
    Way.BACKLINKS: Way.TARGET,
    Way.EMBEDDERS: Way.EMBEDS,
    Way.REFERRERS: Way.REFERENCES,
}
_SHOWN: dict[Deleted, Callable[[], Column]] = {
    Deleted.HIDDEN: lambda: ~f.col("deleted"),
    Deleted.ONLY: lambda: f.col("deleted"),
    Deleted.SHOWN: lambda: f.lit(True),
}


def found(query: Query, tables: Seen) -> DataFrame:
    """Return items by party, in order; or, for an aggregate, `party`, `group` and `value`, both as packed JSON."""
    check(query)
    seen = tables.rows(parents=_needs_parents(query)).where(_SHOWN[query.deleted]())
    rows = seen.where(condition(query.where))
    for step in query.steps:
        rows = _follow(step, rows, seen)
    if query.aggregate is not None:
        return aggregated(query.aggregate, rows, tables.parties)
    orders = [f"order{number}" for number in range(len(query.order))]
    for name, order in zip(orders, query.order, strict=True):
        rows = rows.withColumn(name, whole_key(order.path))
    ranks = [
        f.col(name).desc_nulls_last() if order.descending else f.col(name).asc_nulls_last()
        for name, order in zip(orders, query.order, strict=True)
    ]
    if query.limit is not None and query.limit <= _LIMIT_MAX:
        place = f.row_number().over(Window.partitionBy("party").orderBy(*ranks, "item"))
        rows = rows.withColumn("place", place).where(f.col("place") <= query.limit)
    return rows.orderBy("party", *ranks, "item").select(*COLUMNS)


def results(query: Query, tables: Seen) -> dict[bytes, Result]:
    """Return the result of a query in each party, as a live peer returns it. Parties without results may be missing."""
    if query.aggregate is not None:
        return read_groups(query.aggregate, found(query, tables).collect())
    ids: dict[bytes, list[bytes]] = {}
    for row in found(query, tables).select(*_ITEM).collect():
        ids.setdefault(bytes(row["party"]), []).append(bytes(row["item"]))
    return {party: Result(tuple(each)) for party, each in ids.items()}


# -- steps


def _needs_parents(query: Query) -> bool:
    aggregate = query.aggregate
    paths = [order.path for order in query.order]
    paths += [] if aggregate is None else [aggregate.path, () if aggregate.group is None else aggregate.group]
    ways = {step.way for step in query.steps}
    return (
        any(needs_parents(where) for where in wheres(query))
        or Fact.PARENT in paths
        or not ways.isdisjoint({Way.PARENT, Way.CHILDREN})
    )


def _follow(step: Step, origins: DataFrame, seen: DataFrame) -> DataFrame:
    """Return the items of `seen` that a step reaches from any of the origins."""
    passing = seen.where(condition(step.where))
    if step.way in _FORWARD:
        ends = _ends(step.way, origins).select("party", f.col("end").alias("item")).distinct()
        return passing.join(ends, [*_ITEM], "left_semi")
    edges = _ends(_INVERSE[step.way], seen)
    starts = origins.select("party", f.col("item").alias("end"))
    froms = edges.join(starts, ["party", "end"], "left_semi").select(*_ITEM).distinct()
    return passing.join(froms, [*_ITEM], "left_semi")


def _ends(way: Way, rows: DataFrame) -> DataFrame:
    """Return the edges of items in one way: `party`, `item`, `end`."""
    if way is Way.PARENT:
        return rows.where(f.col("parent").isNotNull()).select(*_ITEM, f.col("parent").alias("end"))
    is_one = way is Way.SOURCE or way is Way.TARGET
    key = f.col("keys")[way.value] if is_one else f.explode(f.col("members")[way.value])
    keys = rows.select(*_ITEM, key.alias("key"))
    own = (f.octet_length("key") == _OWN) & (f.substring("key", 1, 1) == f.lit(bytes([REFERENCE_KIND])))
    return keys.where(own).select(*_ITEM, f.substring("key", 2, _OWN - 1).alias("end"))
