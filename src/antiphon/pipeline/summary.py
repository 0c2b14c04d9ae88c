"""What items and refusals come to, in one pass over them: how many, the digests of states, and where messages lie.

Spark's part ends in a row for each party, reason, and first byte of a digest; all else is found from those rows.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from antiphon.core.ids import SYSTEM_ITEM


def combine_groups(groups: Iterable[bytes]) -> bytes:
    """The digest of all items of a party, from those of its groups in order; what a group is, `report` says."""
    return hashlib.sha256(b"".join(groups)).digest()


@dataclass(frozen=True, slots=True)
class Skew:
    """How unevenly messages lie: a hot item is folded by one task."""

    messages: int = 0  # that were folded
    hottest: int = 0  # of them, to the item that has most
    item: bytes = b""

    @property
    def share(self) -> float:
        return self.hottest / self.messages if self.messages else 0.0

    def row(self) -> dict[str, Any]:
        return {"messages": self.messages, "hottest": self.hottest, "item": self.item.hex(), "share": self.share}


@dataclass(frozen=True, slots=True)
class States:
    """The items of a party that are listed, and the digest of their states: `states_digest`, but in the JVM."""

    count: int = 0
    digest: bytes = combine_groups(())


@dataclass(frozen=True, slots=True)
class Summary:
    """By party: what was applied, what was refused and why, and the states of its items."""

    applied: Counter[bytes] = field(default_factory=Counter)
    refused: Counter[tuple[bytes, str]] = field(default_factory=Counter)
    states: dict[bytes, States] = field(default_factory=dict)
    skew: Skew = field(default_factory=Skew)


def summary(folded: DataFrame) -> Summary:
    """Of items and refusals; of items alone, `reason` is null in all rows."""
    groups = sorted(_groups(folded), key=lambda group: group.first)
    applied: Counter[bytes] = Counter()
    refused: Counter[tuple[bytes, str]] = Counter()
    listed: defaultdict[bytes, list[_Group]] = defaultdict(list)
    hottest = (0, b"")
    for group in groups:
        if group.reason is not None:
            refused[group.party, group.reason] += group.count
            continue
        applied[group.party] += group.messages
        hottest = max(hottest, group.hottest)
        if group.first:
            listed[group.party].append(group)
    states = {
        party: States(sum(one.count for one in some), combine_groups(one.digest for one in some))
        for party, some in listed.items()
    }
    return Summary(applied, refused, states, Skew(applied.total(), *hottest))


@dataclass(frozen=True, slots=True)
class _Group:
    party: bytes
    reason: str | None
    first: bytes  # of the digests of items; empty where nothing is listed: for refusals, and for the root
    count: int
    messages: int
    hottest: tuple[int, bytes]
    digest: bytes


def _groups(folded: DataFrame) -> Iterator[_Group]:
    data = f.coalesce("snapshot", f.unhex(f.lit("")))
    digest = f.hex(f.unhex(f.sha2(f.concat("item", f.unhex(f.sha2(data, 256))), 256)))
    is_listed = f.col("reason").isNull() & (f.col("item") != f.lit(bytes(SYSTEM_ITEM)))  # a root is not listed
    rows = folded.select("party", "reason", "item", "messages", f.when(is_listed, digest).alias("digest"))
    joined = f.array_join(f.array_sort(f.collect_list("digest")), "")  # of those that are not null
    found = rows.groupBy("party", "reason", f.substring("digest", 1, 2).alias("first")).agg(
        f.count("*").alias("count"),
        f.sum("messages").alias("messages"),
        f.max(f.struct("messages", "item")).alias("most"),
        f.unhex(f.sha2(f.unhex(joined), 256)).alias("digest"),
    )
    for row in found.collect():
        most = (0, b"") if row["reason"] is not None else (row["most"]["messages"], bytes(row["most"]["item"]))
        first = bytes.fromhex(row["first"] or "")
        yield _Group(
            bytes(row["party"]), row["reason"], first, row["count"], row["messages"] or 0, most, bytes(row["digest"])
        )
