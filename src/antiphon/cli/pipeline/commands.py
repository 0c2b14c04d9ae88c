"""`antiphon pipeline`: the group of commands, and `run`, `sql` and `tables`. An interrupted run changes no table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from antiphon.cli.common import HERE, Json, on_this_machine, out, show, table
from antiphon.cli.pipeline import archive, epoch, stream, verify
from antiphon.cli.pipeline.session import (
    Homes,
    Master,
    Parties,
    Tables,
    check_homes,
    needed,
    party_keys,
    spark_session,
)
from antiphon.core.errors import InvalidInput

app = typer.Typer(no_args_is_help=True, help="Verify, fold and query feeds in bulk, on Spark.")
app.command("epoch")(epoch.epoch)
app.command("verify")(verify.verify)
app.command("stream")(stream.stream)
app.command("changes")(stream.changes)
app.add_typer(archive.app, name="archive")

SHOWN_MAX = 20  # parties, and reasons of each standing
TABLES = "blocks, changes, epochs, items, links, progress, quarantine, standings"


@app.command()
def run(
    home: Homes = [HERE],  # noqa: B006 - typer copies it
    party: Parties = None,
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables", "-t", help="Write tables into this folder.", callback=on_this_machine, file_okay=False
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Read and verify all again; ignore the tables' state.")] = False,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Verify and fold the feeds of homes, and account for every block. Ends with 1 if a block is lost.

    With --tables, the results are written, and a later run verifies and folds only what is new.
    Example: antiphon pipeline run --home home --tables tables
    """
    if full and tables is None:
        raise InvalidInput("without tables every run is from nothing: leave out --full, or name --tables")
    parties = party_keys(party)
    check_homes(home, master, tables, parties)
    with spark_session(master, as_json) as (spark, tell):
        from antiphon.pipeline.jobs.batch_run import Run
        from antiphon.pipeline.jobs.table_run import TableRun
        from antiphon.pipeline.tables.delta_folder import DeltaFolder

        if tables is None:
            with Run.begin(spark, list(home), parties, tell=tell) as made:
                report = made.report()
        else:
            report = TableRun(spark, DeltaFolder(tables), list(home), parties, tell=tell).run(full=full)
    answer = report.row()
    show(as_json, answer, lambda: _tell(answer))
    if answer["blocks"]["lost"]:
        raise typer.Exit(1)


@app.command()
def sql(
    text: Annotated[str, typer.Argument(help=f"A Spark SQL statement over {TABLES}.")],
    tables: Tables = Path("tables"),
    limit: Annotated[int, typer.Option(help="Maximum number of rows.", min=1)] = 1_000,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Run a SQL statement over the tables that runs have written.

    Example: antiphon pipeline sql "SELECT type, count(*) FROM items GROUP BY type"
    """
    with needed():
        from antiphon.pipeline.query.table_sql import ask, tables_of
        from antiphon.pipeline.tables.delta_folder import DeltaFolder
    found = tables_of(DeltaFolder(tables))
    with spark_session(master, as_json) as (spark, tell):
        tell("ask")
        rows = [_readable(row) for row in ask(spark, found, text, limit)]
    show(as_json, rows, lambda: out.print(table(list(rows[0]), rows) if rows else "no rows"))


@app.command("tables")
def list_tables(
    tables: Tables = Path("tables"),
    compact: Annotated[bool, typer.Option("--compact", help="Merge small files first.")] = False,
    as_json: Json = False,
) -> None:
    """List the tables of a folder: versions, sizes and columns."""
    with needed():
        from antiphon.pipeline.tables.delta_folder import DeltaFolder

    log = DeltaFolder(tables)
    if compact:
        with log.locked():
            log.compact()
    rows = list(log.at_last_run().describe())
    names = ["table", "version", "rows", "files", "bytes"]
    show(as_json, rows, lambda: out.print(table(names, rows) if rows else f"there are no tables in {log.folder}"))


# -- inside


def _readable(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.hex() if isinstance(value, bytes | bytearray) else value for name, value in row.items()}


def _tell(answer: dict[str, Any]) -> None:
    out.print(table(["blocks", " "], [{"blocks": name, " ": f"{n:,}"} for name, n in answer["blocks"].items()]))
    rows = [
        {"standing": standing, "blocks": f"{n:,}", "reason": reason}
        for standing, reasons in answer["reasons"].items()
        for reason, n in list(reasons.items())[:SHOWN_MAX]
    ]
    if rows:
        out.print(table(["standing", "blocks", "reason"], rows))
    for one in [one for one in answer["parties"] if one["error"]][:SHOWN_MAX]:
        out.print(f"nothing can be said of party {one['party']}: {one['error']}", soft_wrap=True, markup=False)
    names = ["party", "held", "applied", "refused", "pending", "items", "epoch", "snapshot", "states"]
    out.print(table(names, answer["parties"][:SHOWN_MAX]))
    if len(answer["parties"]) > SHOWN_MAX:
        out.print(f"and {len(answer['parties']) - SHOWN_MAX} parties more; --json has all")
    skew, seconds = answer["skew"], ", ".join(f"{name} {value:.1f} s" for name, value in answer["seconds"].items())
    for reason, count in answer["full"].items():
        out.print(f"{count} parties were read in full: {reason}")
    out.print(f"{answer['items']:,} items; the hottest has {skew['share']:.1%} of all messages; {seconds}")
