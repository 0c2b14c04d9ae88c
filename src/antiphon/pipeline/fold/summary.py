"""Counts of a fold: messages applied and refused, the digest of states, and the skew of messages over items.

Each task of a fold makes the tally of its partition; `combine_tallies` adds them up.
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
from antiphon.pipeline.fold.digest import Digest, digest_of, hash_of, item_hash, join_digests
from antiphon.pipeline.fold.item_fold import MESSAGES, REASON, STATE
from antiphon.pipeline.order.shuffle_chunk import joined_values

_TALLIED = ("party", "item", "messages", "reason")


@dataclass(frozen=True, slots=True)
class Skew:
    """How unevenly messages are spread over items. A hot item is folded by one task."""

    messages: int = 0  # messages that were folded
    hottest: int = 0  # messages to the item with the most
    item: bytes = b""  # that item

    @property
    def share(self) -> float:
        """The share of messages that belong to the hottest item."""
        return self.hottest / self.messages if self.messages else 0.0

    def row(self) -> dict[str, Any]:
        """Return the skew as a JSON object."""
        return {"messages": self.messages, "hottest": self.hottest, "item": self.item.hex(), "share": self.share}


@dataclass(frozen=True, slots=True)
class States:
    """The number of listed items of a party, and the digest of their states."""

    count: int = 0
    digest: bytes = Digest().value


@dataclass(frozen=True, slots=True)
class Summary:
    """By party: messages applied, messages refused by reason, and the states of its items."""

    applied: Counter[bytes] = field(default_factory=Counter)
    refused: Counter[tuple[bytes, str]] = field(default_factory=Counter)
    states: dict[bytes, States] = field(default_factory=dict)
    skew: Skew = field(default_factory=Skew)


@dataclass(slots=True)
class Tally:
    """The summary of one partition, while it is built."""

    applied: Counter[bytes] = field(default_factory=Counter)
    refused: Counter[tuple[bytes, str]] = field(default_factory=Counter)
    hottest: tuple[int, bytes] = (0, b"")
    digests: dict[bytes, Digest] = field(default_factory=dict)
    _listed: dict[bytes, tuple[list[bytes], list[bytes]]] = field(default_factory=lambda: defaultdict(lambda: ([], [])))

    def add_item(self, party: bytes, item: bytes, messages: int, hashed: bytes) -> None:
        """Add an item, by the number of messages that count in it, and its hash."""
        self.applied[party] += messages
        self.hottest = max(self.hottest, (messages, item))
        if item != SYSTEM_ITEM:  # the system item is not listed
            items, hashes = self._listed[party]
            items.append(item)
            hashes.append(hashed)

    def add_rows(self, batch: pa.RecordBatch) -> None:
        """Add rows of the table `items`, by their columns party, item, messages and hash."""
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
            listed = mine[ids[mine].any(axis=1)]  # the id of the system item is all zeros
            if len(listed):
                self._listed[party][0].append(ids[listed].tobytes())
                self._listed[party][1].append(hashes[listed].tobytes())

    def add_folded(self, row: Sequence[Any]) -> None:
        """Add a row of `item_fold.SCHEMA`: an item, or a refusal."""
        reason = row[REASON]
        if reason is None:
            self.add_item(row[0], row[1], row[MESSAGES], item_hash(row[1], row[STATE]))
        else:
            self.refused[row[0], reason] += 1

    def finish(self, bits: int = 0) -> Tally:
        """Return the tally with digests in place of item hashes; the placement hashes share `bits` bits."""
        digests = {party: digest_of(*listed, bits) for party, listed in self._listed.items()}
        return Tally(self.applied, self.refused, self.hottest, digests, {})


def combine_tallies(tallies: Sequence[Tally]) -> Summary:
    """Add up the tallies of all partitions, in order; their number is a power of two."""
    applied: Counter[bytes] = Counter()
    refused: Counter[tuple[bytes, str]] = Counter()
    for tally in tallies:
        applied.update(tally.applied)
        refused.update(tally.refused)
    states = {}
    for party in {party for tally in tallies for party in tally.digests}:
        found = join_digests([tally.digests.get(party, Digest()) for tally in tallies])
        states[party] = States(found.count, found.value)
    hottest = max((tally.hottest for tally in tallies), default=(0, b""))
    return Summary(applied, refused, states, Skew(applied.total(), *hottest))


def summary(folded: DataFrame) -> Summary:
    """Summarise rows of stage `folded`. The driver collects a hash of each item."""
    hashed = f.unhex(f.sha2(f.coalesce("snapshot", f.unhex(f.lit(""))), 256))
    tally = Tally()
    for batch in folded.select(*_TALLIED, hashed).toArrow().to_batches():
        for party, item, messages, reason, found in zip(*(column.to_pylist() for column in batch), strict=True):
            if reason is None:
                tally.add_item(party, item, messages, hash_of(item, found))
            else:
                tally.refused[party, reason] += 1
    return combine_tallies([tally.finish()])
