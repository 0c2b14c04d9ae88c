"""Stage `seen`: items as queries see them. References to a forked item lead to the item it was forked into, and parents
are derived from the claims of all items of a party.

Both depend on other items, so no table stores them: a write to one item would change the rows of others. Forks are few,
and are broadcast to every task. A claim can be part of a cycle only if its item has a parent claim, and is itself
claimed as a parent; for all other items the last claim holds (see `model.hierarchy.settle`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import DataFrame, functions as f

from antiphon.core.stamp import Stamp
from antiphon.model.hierarchy import derive
from antiphon.pipeline.tables.facts_column import fact_columns
from antiphon.query.codec.facts import decode_rest
from antiphon.query.forks import Fork, KnownForks

_ABOUT = ("party", "item", "model", "type", "name", "deleted", "created_ms", "state")
_FACT_COLUMNS = ("facts", "value", "keys", "members")  # in the order of `facts_column.FactColumns`
_PARENTS = "party binary, item binary, above binary"

#: The forks of each party that has any.
Forked = Mapping[bytes, KnownForks]


class Seen:
    """The resolved items of some tables, for any number of queries. Creating it collects the forks, in a Spark job."""

    def __init__(self, items: DataFrame, parties: Iterable[bytes] = ()) -> None:
        """Resolve the rows of the table `items`, of some parties or of all."""
        chosen = [bytearray(party) for party in parties]
        self._items = _flat(items.where(f.col("party").isin(chosen)) if chosen else items)
        self._forked = _forks(self._items)
        self._cached: DataFrame | None = None

    def keep(self) -> Self:
        """Cache all items, with parents, in Spark's memory or on its disks: worth it for many queries."""
        self._cached = self.rows(parents=True).persist()
        return self

    def close(self) -> None:
        """Release the cache."""
        if self._cached is not None:
            self._cached.unpersist()
            self._cached = None

    @property
    def parties(self) -> DataFrame:
        """The keys of all parties with items."""
        return self._items.select("party").distinct()

    def rows(self, *, parents: bool) -> DataFrame:
        """Return the items; with `parents` the column `parent` is filled, which takes longer."""
        if self._cached is not None:
            return self._cached
        rows = self._items if not self._forked else _follow_forks(self._items, self._forked)
        rows = rows.drop("claims", "forked_to")
        if not parents:
            return rows.withColumn("parent", f.lit(None).cast("binary"))
        return rows.join(_parents(self._items, self._forked), ["party", "item"], "left")


def seen(items: DataFrame, *, parents: bool = True) -> DataFrame:
    """Resolve the table `items`: follow forks, and settle parents."""
    return Seen(items).rows(parents=parents)


# -- forks


def _flat(items: DataFrame) -> DataFrame:
    names = ("keys", "members", "claims", "forked_to")
    value = f.coalesce("facts.value", "state").alias("value")
    return items.select(*_ABOUT, f.col("facts.data").alias("facts"), value, *(f"facts.{name}" for name in names))


def _forks(items: DataFrame) -> Forked:
    """Collect all forks. A fork counts if the item it leads to is in the tables."""
    key = f.col("keys")["view_key"].alias("key")
    olds = items.where(f.col("forked_to").isNotNull()).select("party", "item", "forked_to", key)
    news = items.select("party", f.col("item").alias("forked_to"), f.lit(True).alias("here"))
    found: dict[bytes, list[Fork]] = {}
    for row in olds.join(news, ["party", "forked_to"], "left").collect():
        fork = Fork(bytes(row["item"]), bytes(row["forked_to"]), bytes(row["key"] or b"")[1:], bool(row["here"]))
        found.setdefault(bytes(row["party"]), []).append(fork)
    return {party: KnownForks(forks) for party, forks in found.items()}


def _follow_forks(items: DataFrame, forked: Forked) -> DataFrame:
    """Return the items with all references led through forks."""
    known = items.sparkSession.sparkContext.broadcast(forked)

    def act(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in given:
            yield _follow_forks_in(batch, known.value)

    return items.mapInArrow(act, items.schema)


def _follow_forks_in(batch: pa.RecordBatch, forked: Forked) -> pa.RecordBatch:
    parties = batch.column("party").to_pylist()
    if forked.keys().isdisjoint(parties):
        return batch
    others = {name: batch.column(name).to_pylist() for name in _FACT_COLUMNS}
    for at, party in enumerate(parties):
        forks, data = forked.get(party), others["facts"][at]
        if forks is None or data is None:
            continue
        facts = decode_rest(data, others["value"][at])
        led = forks.led(facts)
        if led is not facts:
            for name, value in zip(_FACT_COLUMNS, fact_columns(led), strict=True):
                others[name][at] = value
    for name, values in others.items():
        number = batch.schema.get_field_index(name)
        batch = batch.set_column(number, batch.schema.field(number), pa.array(values, batch.schema.field(number).type))
    return batch


# -- parents


def _parents(items: DataFrame, forked: Forked) -> DataFrame:
    """Return the parent of each item that has one."""
    claims = items.select("party", "item", f.posexplode("claims").alias("number", "claim")).select(
        "party", "item", "number", "claim.lamport", "claim.feed", "claim.seq", f.col("claim.parent").alias("above")
    )
    claims = _claims_through_forks(claims, forked)
    named = claims.where(f.octet_length("above") > 0).select("party", f.col("above").alias("item")).distinct()
    inner = claims.join(named, ["party", "item"], "left_semi")
    settled = inner.groupBy("party").applyInArrow(_settled, _PARENTS)
    last = claims.groupBy("party", "item").agg(f.max_by("above", "number").alias("last"))
    found = last.join(settled, ["party", "item"], "left")
    return found.select("party", "item", f.coalesce("above", "last").alias("parent")).where(
        f.octet_length("parent") > 0
    )


def _claims_through_forks(claims: DataFrame, forked: Forked) -> DataFrame:
    leads = [(party, old, led) for party, forks in forked.items() for old in forks if (led := forks.lead(old)) != old]
    if not leads:
        return claims
    to = claims.sparkSession.createDataFrame(leads, "party binary, above binary, led binary")
    found = claims.join(f.broadcast(to), ["party", "above"], "left")
    return found.withColumn("above", f.coalesce("led", "above")).drop("led")


def _settled(claims: pa.Table) -> pa.Table:
    """Settle the parents of the items of a party that may be in a cycle; an empty parent means none."""
    columns: list[list[Any]] = [claims.column(name).to_pylist() for name in ("lamport", "feed", "seq", "item", "above")]
    rows = [(Stamp(lamport, feed, seq), item, above) for lamport, feed, seq, item, above in zip(*columns, strict=True)]
    parents, items = derive(rows), list(dict.fromkeys(columns[3]))
    party = claims.column("party")[0].as_py()
    return pa.table(
        [
            pa.array([party] * len(items), pa.binary()),
            pa.array(items, pa.binary()),
            pa.array([parents.get(item, b"") for item in items], pa.binary()),
        ],
        names=["party", "item", "above"],
    )
