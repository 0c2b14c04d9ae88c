"""The last part of the demo: the feeds that `three_devices.py` has left, once more, on Spark.

The devices have written down what they hold: each item by the hash of its bytes, and the CID of the last snapshot.
Spark reads their feeds, verifies every block, folds them with the same models, and computes that snapshot from the
blocks that it was made of. Then it writes tables, and answers a question about them.

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
NAMES = ("alice", "carol")  # who founded the party, and who was revoked
COUNTS = ("control", "based", "applied", "refused", "pending", "ended")
#: For so few rows, what makes Spark fast with many only takes time.
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
    """Each device by its own words and by Spark's; whether they are the same."""
    table = Table("device", "engine", "items", "digest of all states", "epoch")
    same = True
    cids = []
    for name in names:
        told = live[name]
        report, cid = on_spark(spark, home / name, bytes.fromhex(told["party"]))
        said = (len(told["items"]), digest(told["items"]), told["number"], told["snapshot"])
        found = (report.items, report.states.hex(), report.epoch, cid)
        for engine, (count, states, number, snapshot) in (("live", said), ("Spark", found)):
            table.add_row(name, engine, str(count), states[:32], str(number))
            cids.append(f"  {snapshot}  {name}, {engine}")
        counts = report.row()
        shown = ", ".join(f"{counts[key]} {key}" for key in COUNTS)
        console.print(f"{name}: {counts['held']} blocks are held: {shown}; {counts['lost']} are lost")
        for standing, reasons in report.account.reasons.items():
            for reason, count in reasons.items():
                console.print(f"  {standing}: {count} because {reason}", soft_wrap=True)
        same = same and said == found and not counts["lost"]
    console.print(table)
    console.print("The CID of the last epoch's snapshot, which Spark computes from the blocks that are in it:")
    console.print("\n".join(cids), highlight=False, soft_wrap=True)
    return same


def on_spark(spark: SparkSession, home: Path, party: bytes) -> tuple[PartyReport, str]:
    """The report of a run over one home, and the CID that Spark computes for the last epoch's snapshot."""
    from antiphon.core.cid import Cid
    from antiphon.pipeline.epoch.epoch_snapshot import changed, plan_epoch, snapshot
    from antiphon.pipeline.jobs.batch_run import Run

    with Run.begin(spark, home, [party]) as run:
        (report,) = run.report().parties
    plan = plan_epoch(spark, home, party, report.epoch)
    roots = snapshot(changed(spark, plan), plan).where("root").select("cid").collect()
    return report, str(Cid(bytes(roots[0]["cid"])))


def digest(items: Mapping[str, str]) -> str:
    """The digest of all states, of the hashes that a device has told."""
    from antiphon.pipeline.fold.digest import hashes_digest

    return hashes_digest((bytes.fromhex(item), bytes.fromhex(data)) for item, data in items.items()).hex()


def tell(console: Console, home: Path) -> None:
    """A run with its report and tables, and a question about these: as on the command line, but in this session."""
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
    """What processes that begin meanwhile tell of errors goes into a file."""
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
    parser.add_argument("--home", type=Path, default=Path(".demo"), help="what three_devices.py was given")
    home: Path = parser.parse_args().home
    console = Console()
    if not (home / LIVE).is_file():
        raise SystemExit(f"{home / LIVE} is not there; run examples/three_devices.py --home {home} first")
    console.print("\n[bold]The same feeds in bulk[/], on Spark, which takes some seconds to start.")
    begun = time.monotonic()
    try:
        from antiphon.pipeline import open_session

        with stderr_in(home / "spark.log"):  # Java says much when it starts
            spark = open_session("antiphon demo", partitions=1, memory_mb=1024, settings=SMALL)
    except (ImportError, AntiphonError) as error:  # neither Spark nor Java is needed for anything else
        console.print(f"This part is left out: {error}", markup=False)
        return
    same = compare(console, spark, home, json.loads((home / LIVE).read_text()))
    shutil.rmtree(home / "tables", ignore_errors=True)  # of a demo before
    console.print("[bold green]Live and Spark agree.[/]" if same else "[bold red]Live and Spark differ.[/]")
    tell(console, home)
    spark.stop()
    console.print(f"That took {time.monotonic() - begun:.0f} seconds.")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
