"""`antiphon pipeline verify`: homes and archives, verified and not folded."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from antiphon.cli.common import HERE, Json, out, show, table
from antiphon.cli.pipeline.session import Homes, Master, spark_session

SHOWN_MAX = 50


def verify(
    home: Homes = [HERE],  # noqa: B006 - typer copies it
    party: Annotated[list[str] | None, typer.Option(help="The key of a party in hex; may be repeated.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="What is void or waits counts as wrong, too.")] = False,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Check chains, heads, bodies, credentials, cuts, lamports, and that what was seen is here. Nothing is folded.

    Ends with 1 if anything is wrong. What is void, or waits for what is not here, is told; honest parties have it.
    """
    with spark_session(master, as_json, "nothing was written") as (spark, tell):
        from antiphon.pipeline.jobs.verify import verify as check
        from antiphon.pipeline.source.home import read_parties

        tell("verify")
        done = check(spark, list(home), read_parties(",".join(party or ())))
    answer = done.row()
    show(as_json, answer, lambda: tell_findings(answer))
    if done.faults or (strict and done.findings):
        raise typer.Exit(1)


def tell_findings(answer: dict[str, Any]) -> None:
    """What was found, for people."""
    rows = answer["findings"]
    if rows:
        out.print(table(["kind", "party", "feed", "seq", "count", "reason"], rows[:SHOWN_MAX]))
    if len(rows) > SHOWN_MAX:
        out.print(f"and {len(rows) - SHOWN_MAX} more; --json has all")
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in answer["kinds"].items())
    told = f"{answer['parties']} parties, {answer['feeds']} feeds, {answer['blocks']:,} blocks"
    out.print(f"{told}: {kinds or 'all right'}")
