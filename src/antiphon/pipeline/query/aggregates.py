"""Aggregates of a query on Spark. Sums and means are exact, and rounded once, whatever the partitions are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, functions as f

from antiphon.model.value import Value
from antiphon.pipeline.query.filters import in_arrow, key, whole_key
from antiphon.pipeline.tables.sort_key import NUMBER, value_of
from antiphon.query.evaluate import Result
from antiphon.query.packed_json import pack, unpack
from antiphon.query.query import Aggregate
from antiphon.query.sums import Sum

_PARTS = "party binary, group binary, ints boolean, whole binary, count long, up boolean, down boolean"
_TOTALS = "party binary, group binary, value string"


def aggregated(aggregate: Aggregate, rows: DataFrame, parties: DataFrame) -> DataFrame:
    """Return `party`, `group` and `value`, both as packed JSON, by ascending group; without groups, a row per party."""
    group = f.lit(None).cast("binary") if aggregate.group is None else whole_key(aggregate.group)
    chosen = rows.withColumn("group", group)
    if aggregate.group is not None:
        chosen = chosen.where(f.col("group").isNotNull())
    if aggregate.function in ("sum", "mean"):
        found = _sums(aggregate, chosen)
    elif aggregate.function == "count":
        found = chosen.groupBy("party", "group").agg(f.count("*").cast("string").alias("value"))
    else:
        best = f.min("key") if aggregate.function == "min" else f.max("key")
        keys = chosen.withColumn("key", whole_key(aggregate.path)).where(f.col("key").isNotNull())
        found = keys.groupBy("party", "group").agg(best.alias("value")).withColumn("value", _packed("value"))
    if aggregate.group is None:
        nothing = f.lit("0" if aggregate.function in ("count", "sum") else "null")
        found = parties.join(found, "party", "left").withColumn("value", f.coalesce("value", nothing))
    return found.orderBy("party", "group").select("party", _packed("group").alias("group"), "value")


def read_groups(aggregate: Aggregate, rows: Iterable[Row]) -> dict[bytes, Result]:
    """Return the result of each party, from the rows of `aggregated`."""
    found: dict[bytes, list[tuple[Value, Value]]] = {}
    for row in rows:
        group = None if row["group"] is None else unpack(row["group"])
        found.setdefault(bytes(row["party"]), []).append((group, unpack(row["value"])))
    if aggregate.group is None:
        return {party: Result(value=values[0][1]) for party, values in found.items()}
    return {party: Result(groups=tuple(values)) for party, values in found.items()}


# -- inside


def _packed(name: str) -> Any:
    """Return the packed JSON of a column of sort keys."""

    def act(keys: pa.Array) -> pa.Array:
        return pa.array([None if one is None else pack(value_of(one)) for one in keys.to_pylist()], pa.string())

    return in_arrow(act, "string")(f.col(name))


def _sums(aggregate: Aggregate, rows: DataFrame) -> DataFrame:
    """Sum by group: count equal numbers first, add up within each task, then add up the tasks of each group."""
    number = key(aggregate.path)
    is_number = (number >= f.lit(bytes([NUMBER]))) & (number < f.lit(bytes([NUMBER + 1])))
    counted = rows.where(is_number).groupBy("party", "group", number.alias("number")).count()
    mean = aggregate.function == "mean"

    def finish(parts: pa.Table) -> pa.Table:
        first = parts.slice(0, 1).to_pylist()[0]
        whole = Sum()
        for part in parts.to_pylist():
            whole.add_all(_read(part))
        value = pack(whole.mean() if mean else whole.value())
        return pa.table({"party": [first["party"]], "group": pa.array([first["group"]], pa.binary()), "value": [value]})

    return counted.mapInArrow(_add, _PARTS).groupBy("party", "group").applyInArrow(finish, _TOTALS)


def _add(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    sums: dict[tuple[bytes, bytes | None], Sum] = {}
    for batch in given:
        for row in batch.to_pylist():
            found = sums.setdefault((row["party"], row["group"]), Sum())
            found.add(value_of(row["number"]), row["count"])
    if sums:
        yield pa.RecordBatch.from_pylist([_written(*at, one) for at, one in sums.items()], schema=_SCHEMA)


_SCHEMA = pa.schema(
    [
        ("party", pa.binary()),
        ("group", pa.binary()),
        ("ints", pa.bool_()),
        ("whole", pa.binary()),
        ("count", pa.int64()),
        ("up", pa.bool_()),
        ("down", pa.bool_()),
    ]
)


def _written(party: bytes, group: bytes | None, one: Sum) -> dict[str, Any]:
    whole = one.whole.to_bytes(one.whole.bit_length() // 8 + 1, "little", signed=True)
    about = {"ints": one.ints, "whole": whole, "count": one.count, "up": one.up, "down": one.down}
    return {"party": party, "group": group, **about}


def _read(part: dict[str, Any]) -> Sum:
    whole = int.from_bytes(part["whole"], "little", signed=True)
    return Sum(part["ints"], whole, part["count"], part["up"], part["down"])
