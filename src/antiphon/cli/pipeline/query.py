"""`antiphon pipeline query`: run a query of the API, written as JSON, over the tables that runs have written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from antiphon.cli.common import Json, out, show, table
from antiphon.cli.pipeline.session import Master, Parties, Tables, needed, party_keys, spark_session
from antiphon.core.errors import InvalidInput
from antiphon.query.codec.json_form import from_json, plain
from antiphon.query.packed_json import unpack
from antiphon.query.query import Query

SHOWN = ("party", "item", "type", "name", "state")


def query(
    text: Annotated[str, typer.Argument(help="A query as JSON, a file that holds it, or - for standard input.")],
    tables: Tables = Path("tables"),
    party: Parties = None,
    rows: Annotated[int, typer.Option(help="Maximum number of rows.", min=1)] = 1_000,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Run a query over every party in the tables, with the results that `Party.query` gives in each.

    Example: antiphon pipeline query '{"where": {"has": ["due"]}}'
    """
    asked, parties = read_query(text), party_keys(party)
    with needed():
        from antiphon.pipeline.query.dataframe import found
        from antiphon.pipeline.query.table_sql import open_tables, tables_of
        from antiphon.pipeline.tables.delta_folder import DeltaFolder
    last = tables_of(DeltaFolder(tables))
    with spark_session(master, as_json) as (spark, tell):
        tell("ask")
        seen = open_tables(spark, last, parties)
        answer = [_row(row.asDict()) for row in found(asked, seen).limit(rows).collect()]
    names = list(SHOWN) if asked.aggregate is None else ["party", "group", "value"]
    show(as_json, answer, lambda: out.print(table(names, answer) if answer else "nothing"))


def read_query(text: str) -> Query:
    """Read a query from an argument of the command line: JSON, a file name, or - for standard input."""
    try:
        if not text.lstrip().startswith("{"):
            text = sys.stdin.read() if text == "-" else Path(text).read_text(encoding="utf-8")
        return from_json(json.loads(text))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f'no query: {error}; one is {{}} for all items, or {{"where": …}}') from None


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """Convert a result row for JSON: keys to hex, aggregates to the JSON form of values."""
    found = {name: bytes(one).hex() if isinstance(one, bytes | bytearray) else one for name, one in row.items()}
    for name in {"group", "value"} & found.keys():
        found[name] = None if found[name] is None else plain(unpack(found[name]))
    return found
