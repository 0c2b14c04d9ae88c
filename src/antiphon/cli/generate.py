"""`antiphon generate`: write a home of test data from a seed."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from antiphon.cli.common import HERE, Home, Json, err, out, show, table

INTERRUPTED = 130
SHOWN_MAX = 20  # parties


def generate(
    home: Home = HERE,
    parties: Annotated[int, typer.Option(help="Number of parties. Their sizes follow a Zipf law.")] = 10,
    items: Annotated[int, typer.Option(help="Number of items in all parties together.")] = 1_000,
    messages: Annotated[int, typer.Option(help="Number of messages, with the genesis of each item.")] = 20_000,
    writers: Annotated[int, typer.Option(help="Number of devices that write to each party.")] = 5,
    seed: Annotated[int, typer.Option(help="Equal seeds and options give equal feeds, byte for byte.")] = 1,
    epochs: Annotated[int, typer.Option(help="Number of epochs of every fourth party among the smaller half.")] = 1,
    hot: Annotated[float, typer.Option(help="Share of all messages that goes to one item, from 0 to 1.")] = 0.0,
    bad: Annotated[
        float, typer.Option(help="Share of messages that are refused. With 0, nobody is revoked and nobody forges.")
    ] = 0.001,
    plain: Annotated[bool, typer.Option("--plain", help="Make only objects with flat properties.")] = False,
    as_json: Json = False,
) -> None:
    """Write a home of test data into an empty folder: parties of several writers, as after replication.

    Example: antiphon generate --home town --parties 20 --messages 100000
    """
    from antiphon.generate.home import generate as write  # loads numpy and the pipeline
    from antiphon.generate.options import Options

    options = Options(parties, items, messages, writers, seed, epochs, hot, bad, plain)
    try:
        with _progress(as_json) as progress:
            task = progress.add_task("messages", total=messages)
            made = write(home, options, lambda count: progress.advance(task, count))
    except KeyboardInterrupt:
        err.print("interrupted; nothing was kept")
        raise typer.Exit(INTERRUPTED) from None
    answer = made.row()
    show(as_json, answer, lambda: _tell(answer))


def _tell(answer: dict[str, Any]) -> None:
    rows = answer.pop("parties")
    seconds, count = answer.pop("seconds"), answer["messages"]
    shown = [{"made": name.replace("_", " "), " ": _said(value)} for name, value in answer.items()]
    shown.append({"made": "time", " ": f"{seconds:,} s, {seconds / count * 1e6:.1f} µs a message"})
    out.print(table(["made", " "], shown))
    names = ["label", "party", "messages", "items", "members", "writers", "epochs", "refused"]
    out.print(table(names, rows[:SHOWN_MAX]))
    if len(rows) > SHOWN_MAX:
        out.print(f"and {len(rows) - SHOWN_MAX} parties more; --json has all")


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number:,}" for name, number in value.items()) or "none"
    return f"{value:,}"


def _progress(as_json: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TimeRemainingColumn(), console=err, transient=True, disable=as_json)
