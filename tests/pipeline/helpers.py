"""Helpers of the pipeline tests: what live peers hold, what tables hold, and damage to files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb
from pyspark.sql import DataFrame, SparkSession

from antiphon.pipeline.fold.item_fold import items, refused
from antiphon.pipeline.plan.survey import Survey
from antiphon.pipeline.tables.delta_folder import DeltaFolder
from antiphon.testing.peers import Peer

COMPARED = ("items", "links", "quarantine", "epochs", "standings", "blocks")

States = dict[bytes, bytes]
Refusals = dict[tuple[bytes, int], str]


def collect(looked: Survey, rows: DataFrame) -> dict[bytes, tuple[States, Refusals]]:
    """Collect items and refusals from rows of stage `folded`, by party."""
    made = rows.cache()
    found: dict[bytes, tuple[States, Refusals]] = {plan.party: ({}, {}) for plan in looked.plans}
    for row in items(made).collect():
        found[bytes(row.party)][0][bytes(row.item)] = bytes(row.snapshot)
    for row in refused(made).collect():
        found[bytes(row.party)][1][bytes(row.feed), row.seq] = row.reason
    made.unpersist()
    return found


def live(peer: Peer) -> tuple[States, Refusals]:
    """Return the snapshots and the refusals of a live peer."""
    peer.party.save()
    with peer.party.locked() as engine:
        listed = engine.items.refused(100_000)
    return peer.snapshots(), {(row.feed, row.seq): row.reason for row in listed}


def contents(spark: SparkSession, log: DeltaFolder) -> dict[str, list[Any]]:
    """All rows of the tables that must equal those of a full run."""
    tables = log.at_last_run()
    return {name: sorted(map(repr, tables.read(spark, name).collect())) for name in COMPARED}


def flip(path: Path, part: bytes) -> None:
    """Change a byte of this part of a file, wherever it stands."""
    data, at = path.read_bytes(), -1
    handle = os.open(path, os.O_RDWR)
    while (at := data.find(part, at + 1)) >= 0:
        os.pwrite(handle, bytes([data[at] ^ 1]), at)
    os.close(handle)


def damage(peer: Peer, feed: bytes, seq: int) -> None:
    """Some bytes of a block change on the disk."""
    body = peer.store.block(feed, seq).body
    assert body is not None
    flip(peer.folder / "feeds" / "data.mdb", body[-24:])


@contextmanager
def stored(home: Path, feed: bytes) -> Iterator[tuple[Any, Any, list[bytes]]]:
    """The ranges of a feed, as they lie in the file: a transaction, its table, and the keys."""
    with lmdb.open(str(home / "feeds"), max_dbs=6, map_size=64 << 20) as env:
        table = env.open_db(b"spans")
        with env.begin(write=True) as txn:
            with txn.cursor(table) as cursor:
                keys = [key for key, _ in cursor if key[:32] == feed]
            yield txn, table, sorted(keys)
