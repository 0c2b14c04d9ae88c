"""`antiphon pipeline query`: a query of the API, in its form as JSON, over the tables that runs have written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from antiphon.cli.common import Json, out, show, table
from antiphon.cli.pipeline.session import Master, spark_session
from antiphon.core.errors import InvalidInput
from antiphon.query.codec.json_form import from_json, plain
from antiphon.query.packed_json import unpack
from antiphon.query.query import Query

SHOWN = ("party", "item", "type", "name", "state")


def query(
    text: Annotated[str, typer.Argument(help="A query as JSON; or the name of a file that holds it, - for the input.")],
    tables: Annotated[Path, typer.Option("--tables", "-t", help="The folder of the tables.")] = Path("tables"),
    party: Annotated[list[str] | None, typer.Option(help="The key of a party in hex; may be repeated.")] = None,
    rows: Annotated[int, typer.Option(help="Show at most so many rows.", min=1)] = 1_000,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Ask each party in the tables what `Party.query` would ask it: by type, properties, words, links, and in sum."""
    asked = read_query(text)
    with spark_session(master, as_json) as (spark, tell):
        from antiphon.pipeline.query.compile import found
        from antiphon.pipeline.query.sql import open_tables
        from antiphon.pipeline.source.home import read_parties
        from antiphon.pipeline.tables.delta_folder import DeltaFolder

        tell("ask")
        seen = open_tables(spark, DeltaFolder(tables), read_parties(",".join(party or ())))
        answer = [_row(row.asDict()) for row in found(asked, seen).limit(rows).collect()]
    names = list(SHOWN) if asked.aggregate is None else ["party", "group", "value"]
    show(as_json, answer, lambda: out.print(table(names, answer) if answer else "nothing"))


def read_query(text: str) -> Query:
    """A query of what was given on the command line."""
    try:
        if not text.lstrip().startswith("{"):
            text = sys.stdin.read() if text == "-" else Path(text).read_text(encoding="utf-8")
        return from_json(json.loads(text))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f'no query: {error}; one is {{}} for all items, or {{"where": …}}') from None


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """Keys in hex; aggregates as JSON has them, with tags for what it lacks."""
    found = {name: bytes(one).hex() if isinstance(one, bytes | bytearray) else one for name, one in row.items()}
    for name in {"group", "value"} & found.keys():
        found[name] = None if found[name] is None else plain(unpack(found[name]))
    return found
