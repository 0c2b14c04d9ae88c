"""`antiphon pipeline archive`: export a home to Parquet, import it again, and check an archive."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from antiphon.cli.common import Json, busy, err, on_this_machine, out, show
from antiphon.cli.pipeline.session import Master, check_homes, needed, spark_session
from antiphon.cli.pipeline.verify import tell_findings

app = typer.Typer(no_args_is_help=True, help="A home as Parquet, from which it can be rebuilt.")

Archive = Annotated[Path, typer.Argument(help="The folder of the archive.", callback=on_this_machine)]


@app.command("export")
def export_(
    home: Annotated[
        Path, typer.Argument(help="The folder of a peer, which may run at the same time.", callback=on_this_machine)
    ],
    folder: Archive,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Write the feeds and blobs of a home into an archive. To an existing archive, add only what is new.

    Private keys are not in it. Ends with 1 if something could not be read.
    Example: antiphon pipeline archive export home archive
    """
    check_homes([home], master)
    with spark_session(master, as_json, "the archive is unchanged") as (spark, tell):
        from antiphon.pipeline.archive.export import export_archive

        done = export_archive(spark, home, folder, tell=tell)
    faults = [
        {"feed": fault.feed.hex(), "seq": fault.seq, "party": fault.party.hex(), "reason": fault.reason}
        for fault in done.faults
    ]
    answer: dict[str, Any] = {**asdict(done), "faults": faults, "folder": str(folder)}

    def people() -> None:
        for reason in [*(fault.reason for fault in done.faults), *(f"blob {cid} has changed" for cid in done.damaged)]:
            err.print(reason, style="red", markup=False)
        out.print(f"{folder}: {done.blocks} blocks and {done.blobs} blobs more, {done.size} bytes; {done.feeds} feeds")
        if done.erased:
            out.print(f"{done.erased} bodies that were erased are no longer in it")

    show(as_json, answer, people)
    if done.faults or done.damaged:
        raise typer.Exit(1)


@app.command("import")
def import_(
    folder: Archive,
    home: Annotated[Path, typer.Argument(help="The folder of the new home.", callback=on_this_machine)],
    as_json: Json = False,
) -> None:
    """Verify an archive and make a home of it. The home has no keys: opening it creates new ones."""
    with needed():
        from antiphon.pipeline.archive.import_ import import_archive
    with busy(as_json, "verifying and importing the archive"):
        done = import_archive(folder, home)
    told = f"{home}: {done.parties} parties, {done.feeds} feeds, {done.blocks} blocks, {done.blobs} blobs"
    show(as_json, {**asdict(done), "home": str(home)}, lambda: out.print(told))


@app.command()
def check(folder: Archive, master: Master = None, as_json: Json = False) -> None:
    """Verify the digest of every file, and every block, head and blob. Ends with 1 if anything is wrong."""
    with needed():
        from antiphon.pipeline.archive_format.manifest import Manifest
    Manifest.read(folder)
    with spark_session(master, as_json, "the archive is unchanged") as (spark, tell):
        from antiphon.pipeline.archive.check import check_archive

        tell("verify")
        done = check_archive(spark, folder)
    answer = done.row()

    def people() -> None:
        for reason in done.wrong:
            err.print(reason, style="red", markup=False)
        if done.verified is not None:
            tell_findings(done.verified.row())
        out.print(f"{done.files} files, {done.blobs} blobs: {'all right' if done.right else 'NOT right'}")

    show(as_json, answer, people)
    if not done.right:
        raise typer.Exit(1)
