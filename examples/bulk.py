"""The last part of the demo: fold the feeds that `three_devices.py` has written, on Spark.

Each device has stored the hash of every item and the CID of the last snapshot. Spark reads the feeds, verifies every
block, folds them with the same models, computes the snapshot from the blocks, and compares. Then it writes tables and
queries them with SQL.

    make demo
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from antiphon.core.errors import AntiphonError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from antiphon.pipeline.jobs.report import PartyReport

LIVE = "live.json"
NAMES = ("alice", "bob")  # the founder of the party, and the one who revoked a member
COUNTS = ("control", "based", "applied", "refused", "pending", "ended")
#: For few rows, the optimisations of Spark for many rows cost more than they save.
SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
QUESTION = """
SELECT model, count(*) AS items, sum(length(data)) AS bytes, max(get_json_object(state, "$.title")) AS title
FROM items GROUP BY model ORDER BY model
"""


def compare(
    console: Console, spark: SparkSession, home: Path, live: Mapping[str, Any], names: Sequence[str] = NAMES
) -> bool:
    """Print the state of each device as the device and as Spark computed it. True if they are equal."""
    table = Table("device", "engine", "items", "digest of all states", "epoch")
    same = True
    cids = []
    for name in names:
        stored = live[name]
        report, cid = on_spark(spark, home / name, bytes.fromhex(stored["party"]))
        expected = (len(stored["items"]), digest(stored["items"]), stored["number"], stored["snapshot"])
        found = (report.items, report.states.hex(), report.epoch, cid)
        for engine, (count, states, number, snapshot) in (("live", expected), ("Spark", found)):
            table.add_row(name, engine, str(count), states[:32], str(number))
            cids.append(f"  {snapshot}  {name}, {engine}")
        counts = report.row()
        shown = ", ".join(f"{counts[key]} {key}" for key in COUNTS)
        console.print(f"{name}: {counts['held']} blocks are held: {shown}; {counts['lost']} are lost")
        for standing, reasons in report.account.reasons.items():
            for reason, count in reasons.items():
                console.print(f"  {standing}: {count} because {reason}", soft_wrap=True)
        same = same and expected == found and not counts["lost"]
    console.print(table)
    console.print("The CID of the last epoch's snapshot, which Spark computes from the blocks inside its cut:")
    console.print("\n".join(cids), highlight=False, soft_wrap=True)
    return same


def on_spark(spark: SparkSession, home: Path, party: bytes) -> tuple[PartyReport, str]:
    """Run over one home. Return the report, and the CID that Spark computes for the last epoch's snapshot."""
    from antiphon.core.cid import Cid
    from antiphon.pipeline.epoch.epoch_snapshot import changed, plan_epoch, snapshot
    from antiphon.pipeline.jobs.batch_run import Run

    with Run.begin(spark, home, [party]) as run:
        (report,) = run.report().parties
    plan = plan_epoch(spark, home, party, report.epoch)
    roots = snapshot(changed(spark, plan), plan).where("root").select("cid").collect()
    return report, str(Cid(bytes(roots[0]["cid"])))


def digest(items: Mapping[str, str]) -> str:
    """Return the digest of all item states, from the hashes that a device has stored."""
    from antiphon.pipeline.fold.digest import hashes_digest

    return hashes_digest((bytes.fromhex(item), bytes.fromhex(data)) for item, data in items.items()).hex()


def show_tables(console: Console, home: Path) -> None:
    """Run the pipeline into tables and query them: the commands of the command line, in this Spark session."""
    from antiphon.cli.app import app

    tables = home / "tables"
    for arguments in (
        ["run", "--home", str(home / NAMES[0]), "--tables", str(tables)],
        ["sql", " ".join(QUESTION.split()), "--tables", str(tables)],
    ):
        console.print(f"\n$ antiphon pipeline {' '.join(map(shlex.quote, arguments))}", markup=False, soft_wrap=True)
        app(["pipeline", *arguments], standalone_mode=False)


@contextmanager
def stderr_in(file: Path) -> Iterator[None]:
    """Redirect stderr of this process, and of processes that it starts, into a file."""
    kept = os.dup(2)
    try:
        with file.open("wb") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--home", type=Path, default=Path(".demo"), help="the --home of three_devices.py")
    home: Path = parser.parse_args().home
    console = Console()
    if not (home / LIVE).is_file():
        raise SystemExit(f"{home / LIVE} does not exist; run examples/three_devices.py --home {home} first")
    console.print("\n[bold]The same feeds in bulk[/], on Spark, which takes some seconds to start.")
    begun = time.monotonic()
    try:
        from antiphon.pipeline import open_session

        with stderr_in(home / "spark.log"):  # Java prints warnings when it starts
            spark = open_session("antiphon demo", partitions=1, memory_mb=1024, settings=SMALL)
    except (ImportError, AntiphonError) as error:  # the rest of the demo needs neither Spark nor Java
        console.print(f"This part is skipped: {error}", markup=False)
        return
    same = compare(console, spark, home, json.loads((home / LIVE).read_text()))
    shutil.rmtree(home / "tables", ignore_errors=True)  # of an earlier demo
    console.print("[bold green]Live and Spark agree.[/]" if same else "[bold red]Live and Spark differ.[/]")
    show_tables(console, home)
    spark.stop()
    console.print(f"That took {time.monotonic() - begun:.0f} seconds.")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
