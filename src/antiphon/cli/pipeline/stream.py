"""`antiphon pipeline stream` and `changes`: keep tables up to date with homes, and list their changes by run."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from antiphon.cli.common import HERE, Json, err, on_this_machine, out, table
from antiphon.cli.pipeline.session import (
    INTERRUPTED,
    Homes,
    Master,
    Parties,
    Tables,
    check_homes,
    needed,
    party_keys,
    spark_session,
)

if TYPE_CHECKING:
    from antiphon.pipeline.jobs.stream_job import BatchResult, StreamJob

Checkpoint = Annotated[
    Path,
    typer.Option(
        "--checkpoint",
        "-c",
        help="Folder from which a restarted stream continues.",
        callback=on_this_machine,
        file_okay=False,
    ),
]
MaxBlocks = Annotated[int, typer.Option(help="Approximate maximum of blocks in a batch.", min=1)]
FOLLOW_EVERY_S = 0.5


def stream(
    home: Homes = [HERE],  # noqa: B006 - typer copies it
    party: Parties = None,
    tables: Tables = Path("tables"),
    checkpoint: Checkpoint = Path("checkpoint"),
    available_now: Annotated[
        bool, typer.Option("--available-now", "--once", help="End when all blocks present at the start are processed.")
    ] = False,
    max_blocks: MaxBlocks = 200_000,
    trigger: Annotated[float, typer.Option(help="Seconds between two looks for new blocks.", min=0.0)] = 1.0,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Follow homes and keep their tables up to date. Each block counts exactly once, even if the stream is killed.

    SIGTERM and Ctrl-C end it after the current batch.
    Example: antiphon pipeline stream --home home --tables tables --checkpoint checkpoint
    """
    told, parties = "the current batch is in the tables", party_keys(party)
    check_homes(home, master, tables, parties)
    with spark_session(master, as_json, told) as (spark, tell):
        from antiphon.pipeline.jobs.stream_job import StreamJob
        from antiphon.pipeline.jobs.table_run import TableRun
        from antiphon.pipeline.tables.delta_folder import DeltaFolder

        follow = TableRun(spark, DeltaFolder(tables), list(home), parties, tell=tell)
        job = StreamJob(follow, checkpoint, max_blocks, trigger, available_now, lambda batch: _tell(batch, as_json))
        with _stopped_by_signals(job) as caught:
            job.run()
    if signal.SIGINT in caught:
        err.print(f"interrupted; {told}")
        raise typer.Exit(INTERRUPTED)


def changes(
    since: Annotated[int, typer.Option(help="Only the changes of runs after this one.", min=0)] = 0,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more changes; Ctrl-C ends it.")] = False,
    tables: Tables = Path("tables"),
    as_json: Json = False,
) -> None:
    """List the items that runs and batches created, changed or removed, by run. With --json, one line of JSON each."""
    with needed():
        from antiphon.pipeline.tables.delta_folder import DeltaFolder
    log = DeltaFolder(tables)
    try:
        while True:
            rows = sorted(
                (_readable(row) for row in log.at_last_run().rows_after("changes", "run", since)),
                key=lambda row: (row["run"], row["party"], row["item"]),
            )
            if as_json:
                for row in rows:
                    typer.echo(json.dumps(row))
            elif rows:
                out.print(table(["run", "change", "model", "party", "item"], rows))
            since = max([since, *(row["run"] for row in rows)])
            if not follow:
                return
            threading.Event().wait(FOLLOW_EVERY_S)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


# -- inside


@contextmanager
def _stopped_by_signals(job: StreamJob) -> Iterator[set[int]]:
    """Stop the stream on SIGTERM or Ctrl-C. Yields the set of signals received."""
    caught: set[int] = set()

    def stop(number: int, _: object) -> None:
        caught.add(number)
        job.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell(batch: BatchResult, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(batch.row()))
        return
    err.print(
        f"batch {batch.number}: {batch.blocks:,} blocks of {batch.parties} parties in {batch.seconds:.1f} s, "
        f"{batch.rate:,.0f} a second; in the tables {batch.latency:.1f} s after they were found (run {batch.run})"
    )
    for reason, count in batch.full.items():
        err.print(f"  {count} read in full: {reason}")
    account = ", ".join(f"{count:,} {name}" for name, count in batch.account.items() if count or name == "lost")
    err.print(f"  in all: {account}")


def _readable(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()}
