"""What items and refusals come to: how many, the digests of states, and where messages lie.

Each task of a fold makes a tally of its own partition; `total` is what all of them come to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, functions as f

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.pipeline.fold.digest import Digest, digest_of, hash_of, item_hash, joined
from antiphon.pipeline.fold.item_fold import MESSAGES, REASON, STATE
from antiphon.pipeline.order.shuffle_chunk import joined_values

_TALLIED = ("party", "item", "messages", "reason")


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
    """The items of a party that are listed, and the digest of their states."""

    count: int = 0
    digest: bytes = Digest().value


@dataclass(frozen=True, slots=True)
class Summary:
    """By party: what was applied, what was refused and why, and the states of its items."""

    applied: Counter[bytes] = field(default_factory=Counter)
    refused: Counter[tuple[bytes, str]] = field(default_factory=Counter)
    states: dict[bytes, States] = field(default_factory=dict)
    skew: Skew = field(default_factory=Skew)


@dataclass(slots=True)
class Tally:
    """The same of one partition, while it is made."""

    applied: Counter[bytes] = field(default_factory=Counter)
    refused: Counter[tuple[bytes, str]] = field(default_factory=Counter)
    hottest: tuple[int, bytes] = (0, b"")
    digests: dict[bytes, Digest] = field(default_factory=dict)
    _listed: dict[bytes, tuple[list[bytes], list[bytes]]] = field(default_factory=lambda: defaultdict(lambda: ([], [])))

    def item(self, party: bytes, item: bytes, messages: int, hashed: bytes) -> None:
        """An item, how many messages count in it, and its hash."""
        self.applied[party] += messages
        self.hottest = max(self.hottest, (messages, item))
        if item != SYSTEM_ITEM:  # a root is not listed
            items, hashes = self._listed[party]
            items.append(item)
            hashes.append(hashed)

    def rows(self, batch: pa.RecordBatch) -> None:
        """Rows of the table of items: party, item, messages and hash."""
        parties = batch.column("party").dictionary_encode()
        codes = parties.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(parties.dictionary) + 1)).tolist()
        ids, hashes = (joined_values(batch.column(name)) for name in ("item", "hash"))
        counts = batch.column("messages").to_numpy()
        for code, party in enumerate(parties.dictionary.to_pylist()):
            mine = order[bounds[code] : bounds[code + 1]]
            self.applied[party] += int(counts[mine].sum())
            most = int(counts[mine].max())
            tops = mine[counts[mine] == most]
            self.hottest = max(self.hottest, *((most, ids[at].tobytes()) for at in tops.tolist()))
            listed = mine[ids[mine].any(axis=1)]  # a root is not
            if len(listed):
                self._listed[party][0].append(ids[listed].tobytes())
                self._listed[party][1].append(hashes[listed].tobytes())

    def folded(self, row: Sequence[Any]) -> None:
        """A row of `items.SCHEMA`: an item, or a refusal."""
        reason = row[REASON]
        if reason is None:
            self.item(row[0], row[1], row[MESSAGES], item_hash(row[1], row[STATE]))
        else:
            self.refused[row[0], reason] += 1

    def done(self, bits: int = 0) -> Tally:
        """To be sent: of a partition of items whose places begin with so many bits."""
        digests = {party: digest_of(*listed, bits) for party, listed in self._listed.items()}
        return Tally(self.applied, self.refused, self.hottest, digests, {})


def total(tallies: Sequence[Tally]) -> Summary:
    """What the tallies of all partitions come to; they are a power of two, and in order."""
    applied: Counter[bytes] = Counter()
    refused: Counter[tuple[bytes, str]] = Counter()
    for tally in tallies:
        applied.update(tally.applied)
        refused.update(tally.refused)
    states = {}
    for party in {party for tally in tallies for party in tally.digests}:
        found = joined([tally.digests.get(party, Digest()) for tally in tallies])
        states[party] = States(found.count, found.value)
    hottest = max((tally.hottest for tally in tallies), default=(0, b""))
    return Summary(applied, refused, states, Skew(applied.total(), *hottest))


def summary(folded: DataFrame) -> Summary:
    """Of items and refusals that are rows already. A hash of each item is held here."""
    hashed = f.unhex(f.sha2(f.coalesce("snapshot", f.unhex(f.lit(""))), 256))
    tally = Tally()
    for batch in folded.select(*_TALLIED, hashed).toArrow().to_batches():
        for party, item, messages, reason, found in zip(*(column.to_pylist() for column in batch), strict=True):
            if reason is None:
                tally.item(party, item, messages, hash_of(item, found))
            else:
                tally.refused[party, reason] += 1
    return total([tally.done()])
