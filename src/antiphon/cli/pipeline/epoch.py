"""`antiphon pipeline epoch`: compute the next epoch of a party on Spark, and declare it with the keys of a home."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from antiphon.cli.common import HERE, Home, Json, PartyKey, Passphrase, out, show, writing
from antiphon.cli.epochs import epoch_row
from antiphon.cli.pipeline.session import Master, needed, spark_session

if TYPE_CHECKING:
    from antiphon.core.cid import Cid
    from antiphon.party.epochs.snapshot_fold import EpochPlan


def epoch(
    party: PartyKey,
    home: Home = HERE,
    raw: Annotated[bool, typer.Option("--raw", help="Keep messages of items whose model has no code here.")] = False,
    passphrase: Passphrase = None,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Compute the next epoch of a party on Spark, and declare it. Locks the home.

    Fails at once if it is not this device's turn. Attesters recompute the epoch, live or on Spark.
    """
    with needed():
        from antiphon.pipeline.epoch.epoch_job import EpochJob
    with ExitStack() as stack, writing(home, party, passphrase) as opened:
        jobs: list[EpochJob] = []

        def make(plan: EpochPlan) -> Cid:
            if not jobs:  # Spark starts only once the epoch may be declared
                spark, tell = stack.enter_context(spark_session(master, as_json, "nothing was declared"))
                blobs = opened.processor.blobs
                jobs.append(EpochJob(spark, home.absolute(), bytes(opened.key), blobs, tell=tell))
            return jobs[0](plan)

        record = opened.epochs.declare(raw=raw, maker=make)
    blobs, size = sum(job.blob_count for job in jobs), sum(job.size for job in jobs)

    def people() -> None:
        count = f"{len(record.attested)} of {record.needed} attestations are here"
        out.print(f"epoch {record.number} is {'final' if record.final else 'proposed: ' + count}")
        out.print(f"{record.snapshot}, {blobs} blobs, {size} bytes", soft_wrap=True)

    show(as_json, epoch_row(record) | {"blobs": blobs, "bytes": size}, people)
