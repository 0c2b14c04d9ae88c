"""Aggregates of a query on Spark. Sums and means are exact, and rounded once, whatever the partitions are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, functions as f

from antiphon.model.value import Value
from antiphon.pipeline.query.filters import in_arrow, is_float, key, whole_key
from antiphon.pipeline.tables.sort_key import NUMBER, value_of
from antiphon.query.evaluate import Result
from antiphon.query.packed_json import pack, unpack
from antiphon.query.query import Aggregate
from antiphon.query.sums import Sum

_PARTS = "party binary, group binary, whole binary, count long, floats long, up long, down long"
_COUNTS = dict.fromkeys(("count", "floats", "up", "down"), pa.int64())
_SCHEMA = pa.schema(dict.fromkeys(("party", "group", "whole"), pa.binary()) | _COUNTS)
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
        least = aggregate.function == "min"
        keys = chosen.withColumn("key", whole_key(aggregate.path)).where(f.col("key").isNotNull())
        last = is_float(aggregate.path, f.col("key")) == f.lit(least)  # of an int and an equal float the int is taken
        best = (f.min if least else f.max)(f.struct("key", last.alias("last")))
        value = _packed("best.key", f.col("best.last") == f.lit(least))
        found = keys.groupBy("party", "group").agg(best.alias("best")).withColumn("value", value)
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


def _packed(name: str, floats: Column | None = None) -> Any:
    """Return the packed JSON of a column of sort keys; `floats` is true where a key is that of a float."""

    def act(keys: pa.Array, floats: pa.Array) -> pa.Array:
        rows = zip(keys.to_pylist(), floats.to_pylist(), strict=True)
        return pa.array([None if key is None else pack(_number(key, real)) for key, real in rows], pa.string())

    return in_arrow(act, "string")(f.col(name), f.lit(False) if floats is None else floats)


def _number(key: bytes, real: bool) -> Value:
    return float(value_of(key)) if real else value_of(key)


def _sums(aggregate: Aggregate, rows: DataFrame) -> DataFrame:
    """Sum by group: count equal numbers first, add up within each task, then add up the tasks of each group."""
    number = key(aggregate.path)
    is_number = (number >= f.lit(bytes([NUMBER]))) & (number < f.lit(bytes([NUMBER + 1])))
    numbers = rows.where(is_number).withColumn("number", number).withColumn("real", is_float(aggregate.path, number))
    counted = numbers.groupBy("party", "group", "number", "real").count()
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
            found.add(_number(row["number"], row["real"]), row["count"])
    if sums:
        yield pa.RecordBatch.from_pylist([_written(*at, one) for at, one in sums.items()], schema=_SCHEMA)


def _written(party: bytes, group: bytes | None, one: Sum) -> dict[str, Any]:
    whole = one.whole.to_bytes(one.whole.bit_length() // 8 + 1, "little", signed=True)
    return {"party": party, "group": group, **asdict(one), "whole": whole}


def _read(part: dict[str, Any]) -> Sum:
    whole = int.from_bytes(part["whole"], "little", signed=True)
    return Sum(whole, part["count"], part["floats"], part["up"], part["down"])
