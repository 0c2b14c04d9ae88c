"""Shared by the commands of `antiphon pipeline`: a Spark session, its progress, and the end of an interrupted one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from antiphon.cli.common import err, on_this_machine
from antiphon.cli.pipeline.progress import Watch, watched
from antiphon.core.errors import InvalidInput
from antiphon.core.local_path import refuse_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERRUPTED = 130

#: PySpark logs each refused query here, with 100 lines of Java. The command says in three lines what is wrong.
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class Tell(Protocol):
    """Report that a stage begins, and its number of messages; 0 if unknown."""

    def __call__(self, name: str, messages: int = 0, /) -> None: ...


Homes = Annotated[
    list[Path],
    typer.Option(
        "--home",
        "-H",
        envvar="ANTIPHON_HOME",
        help="The folder of a peer, or an archive. Repeatable.",
        callback=on_this_machine,
    ),
]
Tables = Annotated[
    Path, typer.Option("--tables", "-t", help="The folder of the tables.", callback=on_this_machine, file_okay=False)
]
Parties = Annotated[list[str] | None, typer.Option("--party", help="Only this party, by its key in hex. Repeatable.")]
Master = Annotated[str | None, typer.Option(help="URL of a Spark cluster. Default: all cores of this machine.")]


def check_homes(
    homes: list[Path], master: str | None, tables: Path | None = None, parties: tuple[bytes, ...] = ()
) -> None:
    """Raise `InvalidInput` before Spark starts: a home is none, or two hold one party, or the tables' folder is a home.

    Homes of a cluster may be on its machines alone.
    """
    if tables is not None:
        refuse_home(tables)
    with needed():
        from antiphon.pipeline.source.home import check_home
        from antiphon.pipeline.source.inventory import absolute_paths, take_inventory
        from antiphon.pipeline.source.ranges import Limits
    if master is not None and not master.startswith("local"):
        return
    for home in homes:
        check_home(home)
    if len(homes) > 1:
        take_inventory((absolute_paths(homes), Limits(frozenset(parties))))


def party_keys(parties: list[str] | None) -> tuple[bytes, ...]:
    """Parse the keys of parties."""
    with needed():
        from antiphon.pipeline.source.home import read_parties
    return read_parties(",".join(parties or ()))


@contextmanager
def needed() -> Iterator[None]:
    """Turn an ImportError into an error that names the extra `spark`."""
    try:
        yield
    except ImportError as error:
        raise InvalidInput(f"{error}; install the extra: pip install 'antiphon[spark]'") from None


@contextmanager
def spark_session(
    master: str | None, as_json: bool, kept: str = "the tables are unchanged"
) -> Iterator[tuple[SparkSession, Tell]]:
    """Open a Spark session, and a function that reports each stage as it begins; a terminal shows the progress.

    An active session is reused and left running. `kept` is printed if the command is interrupted.
    """
    with needed():
        from pyspark.logger import PySparkLogger
        from pyspark.sql import SparkSession

        from antiphon.pipeline.session.session import open_session
        from antiphon.pipeline.session.worker_errors import raise_worker_errors
    for name in _QUERY_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    ran = SparkSession.getActiveSession() is not None
    session = None
    try:
        with Progress(*columns, console=err, transient=True, disable=as_json) as progress, raise_worker_errors():
            task = progress.add_task("start Spark", total=None)
            session = open_session(master=master)
            watch = Watch(session.sparkContext.statusTracker())

            def tell(name: str, messages: int = 0, /) -> None:
                watch.begin(name, messages)
                progress.update(task, description=name)

            live = err.is_terminal and not as_json
            with watched(watch, lambda line: progress.update(task, description=line)) if live else nullcontext():
                yield session, tell
    except KeyboardInterrupt:
        if session is not None:
            session.sparkContext.cancelAllJobs()
        err.print(f"interrupted; {kept}")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        if session is not None and not ran:
            session.stop()
