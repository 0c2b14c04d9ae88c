"""Stage `seen`: items as queries see them. Whatever names a forked item leads to what it was forked into, and parents
follow from the claims of all items of a party.

Both are no item's own to say, so no table holds them: one that did would have to be written anew where nothing was
written. Forks are few, and go to every task; of claims only those can be in a circle whose item somebody claims to
be under, and which claims so itself: for all others the last claim holds (see `model.hierarchy.settle`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import DataFrame, functions as f

from antiphon.core.stamp import Stamp
from antiphon.model.hierarchy import derive
from antiphon.pipeline.tables.facts_column import asked_of
from antiphon.query.codec.facts import decode_rest
from antiphon.query.forks import Fork, KnownForks

_ABOUT = ("party", "item", "model", "type", "name", "deleted", "created_ms", "state")
_ASKED = ("facts", "value", "keys", "members")  # as `facts.Asked` has them
_PARENTS = "party binary, item binary, above binary"

#: The forks of each party that has any.
Forked = Mapping[bytes, KnownForks]


class Seen:
    """All items of some tables, for any number of queries; to make it takes a look at which items were forked."""

    def __init__(self, items: DataFrame, parties: Iterable[bytes] = ()) -> None:
        """Of the table `items`, those of some parties, or of all."""
        chosen = [bytearray(party) for party in parties]
        self._told = _flat(items.where(f.col("party").isin(chosen)) if chosen else items)
        self._forked = _forks(self._told)
        self._kept: DataFrame | None = None

    def keep(self) -> Self:
        """Keep all of it, with parents, in Spark's memory, or on its disks: for those who ask many queries."""
        self._kept = self.rows(parents=True).persist()
        return self

    def close(self) -> None:
        """Let go of what is kept."""
        if self._kept is not None:
            self._kept.unpersist()
            self._kept = None

    @property
    def parties(self) -> DataFrame:
        return self._told.select("party").distinct()

    def rows(self, *, parents: bool) -> DataFrame:
        """The items; with the column `parent`, if it is asked for: it takes longer."""
        if self._kept is not None:
            return self._kept
        rows = self._told if not self._forked else _led(self._told, self._forked)
        rows = rows.drop("claims", "forked_to")
        if not parents:
            return rows.withColumn("parent", f.lit(None).cast("binary"))
        return rows.join(_parents(self._told, self._forked), ["party", "item"], "left")


def seen(items: DataFrame, *, parents: bool = True) -> DataFrame:
    """The items of the table `items`, as queries see them."""
    return Seen(items).rows(parents=parents)


# -- forks


def _flat(items: DataFrame) -> DataFrame:
    names = ("keys", "members", "claims", "forked_to")
    value = f.coalesce("facts.value", "state").alias("value")
    return items.select(*_ABOUT, f.col("facts.data").alias("facts"), value, *(f"facts.{name}" for name in names))


def _forks(told: DataFrame) -> Forked:
    """All forks. A fork counts if what it leads to is here."""
    key = f.col("keys")["view_key"].alias("key")
    olds = told.where(f.col("forked_to").isNotNull()).select("party", "item", "forked_to", key)
    news = told.select("party", f.col("item").alias("forked_to"), f.lit(True).alias("here"))
    found: dict[bytes, list[Fork]] = {}
    for row in olds.join(news, ["party", "forked_to"], "left").collect():
        fork = Fork(bytes(row["item"]), bytes(row["forked_to"]), bytes(row["key"] or b"")[1:], bool(row["here"]))
        found.setdefault(bytes(row["party"]), []).append(fork)
    return {party: KnownForks(forks) for party, forks in found.items()}


def _led(told: DataFrame, forked: Forked) -> DataFrame:
    """The items with all ends as they lead."""
    known = told.sparkSession.sparkContext.broadcast(forked)

    def act(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in given:
            yield _led_batch(batch, known.value)

    return told.mapInArrow(act, told.schema)


def _led_batch(batch: pa.RecordBatch, forked: Forked) -> pa.RecordBatch:
    parties = batch.column("party").to_pylist()
    if forked.keys().isdisjoint(parties):
        return batch
    others = {name: batch.column(name).to_pylist() for name in _ASKED}
    for at, party in enumerate(parties):
        forks, data = forked.get(party), others["facts"][at]
        if forks is None or data is None:
            continue
        facts = decode_rest(data, others["value"][at])
        led = forks.led(facts)
        if led is not facts:
            for name, value in zip(_ASKED, asked_of(led), strict=True):
                others[name][at] = value
    for name, values in others.items():
        number = batch.schema.get_field_index(name)
        batch = batch.set_column(number, batch.schema.field(number), pa.array(values, batch.schema.field(number).type))
    return batch


# -- parents


def _parents(told: DataFrame, forked: Forked) -> DataFrame:
    """The parent of each item that has one."""
    claims = told.select("party", "item", f.posexplode("claims").alias("number", "claim")).select(
        "party", "item", "number", "claim.lamport", "claim.feed", "claim.seq", f.col("claim.parent").alias("above")
    )
    claims = _claims_led(claims, forked)
    named = claims.where(f.octet_length("above") > 0).select("party", f.col("above").alias("item")).distinct()
    inner = claims.join(named, ["party", "item"], "left_semi")
    settled = inner.groupBy("party").applyInArrow(_settled, _PARENTS)
    last = claims.groupBy("party", "item").agg(f.max_by("above", "number").alias("last"))
    found = last.join(settled, ["party", "item"], "left")
    return found.select("party", "item", f.coalesce("above", "last").alias("parent")).where(
        f.octet_length("parent") > 0
    )


def _claims_led(claims: DataFrame, forked: Forked) -> DataFrame:
    leads = [(party, old, led) for party, forks in forked.items() for old in forks if (led := forks.lead(old)) != old]
    if not leads:
        return claims
    to = claims.sparkSession.createDataFrame(leads, "party binary, above binary, led binary")
    found = claims.join(f.broadcast(to), ["party", "above"], "left")
    return found.withColumn("above", f.coalesce("led", "above")).drop("led")


def _settled(claims: pa.Table) -> pa.Table:
    """The parents that the claims of a party give to those that may be in a circle; empty for none."""
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
