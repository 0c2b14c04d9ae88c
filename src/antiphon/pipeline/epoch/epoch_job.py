"""The epoch job: the snapshot of an epoch that a peer is about to declare, computed on Spark.

    party.epochs.declare(maker=EpochJob(spark, "laptop", party.key, store.manager.blobs))

The peer decides what the epoch covers and whether it may declare it. It passes the plan to the job, compares the result
with its own state, and declares. It may keep its stores open: executors read them concurrently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pyspark.sql import Row, SparkSession

from antiphon.core.cid import Cid
from antiphon.core.errors import InvalidInput
from antiphon.model.factory import ModelFactory
from antiphon.party.epochs.snapshot_fold import EpochPlan
from antiphon.pipeline.epoch.epoch_snapshot import changed, plan_epoch, snapshot
from antiphon.pipeline.fold.item_fold import Models
from antiphon.pipeline.session.session import prepare
from antiphon.pipeline.session.worker_errors import raise_worker_errors
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.limits import BATCH_COUNT_MAX

#: Blobs come to the driver in so many parts, one after the other. Each part may have `spark.driver.maxResultSize`
#: bytes, 1 GiB by default, so an epoch may have some 16 GiB of blobs.
PARTS = 16


def _silent(_: str) -> None:
    pass


@dataclass(slots=True)
class EpochJob:
    """Computes snapshots for `Epochs.declare`, and puts their blobs into the blob store of the peer."""

    spark: SparkSession
    home: str | Path
    party: bytes
    blobs: Blobs
    models: Models = ModelFactory.standard
    tell: Callable[[str], None] = _silent
    blob_count: int = 0  # of the last snapshot
    size: int = 0  # in bytes, of these blobs

    def __call__(self, epoch: EpochPlan) -> Cid:
        self.blob_count = self.size = 0
        with raise_worker_errors():
            self.tell("plan the epoch")
            plan = plan_epoch(prepare(self.spark), self.home, self.party, epoch)
            self.tell("fold, and build the trees")
            found = snapshot(changed(self.spark, plan, self.models), plan)
            root = self._keep(found.repartition(PARTS).toLocalIterator())
        if root is None:
            raise InvalidInput(f"epoch {epoch.number} of party {bytes(self.party).hex()[:8]}: Spark gave no root")
        return root

    def _keep(self, rows: Iterator[Row]) -> Cid | None:
        """Store all blobs; `put_all` checks each against its CID. Return the CID of the root."""
        root: Cid | None = None
        while some := list(islice(rows, BATCH_COUNT_MAX)):
            pairs = [(Cid(bytes(row["cid"])), bytes(row["data"])) for row in some]
            self.blobs.put_all(pairs)
            self.blob_count += len(pairs)
            self.size += sum(len(data) for _, data in pairs)
            root = next((cid for row, (cid, _) in zip(some, pairs, strict=True) if row["root"]), root)
        return root
