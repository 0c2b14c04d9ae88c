"""`antiphon pipeline verify`: check homes and archives on Spark, without folding items."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from antiphon.cli.common import HERE, Json, out, show, table
from antiphon.cli.pipeline.session import Homes, Master, Parties, check_homes, party_keys, spark_session

SHOWN_MAX = 50


def verify(
    home: Homes = [HERE],  # noqa: B006 - typer copies it
    party: Parties = None,
    strict: Annotated[bool, typer.Option("--strict", help="Count void and pending blocks as wrong, too.")] = False,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Check hash chains, signed heads, bodies, credentials, cuts and clocks of all feeds. No item is folded.

    Ends with 1 if anything is wrong. Void blocks, and blocks that wait for missing ones, are reported but not wrong:
    honest parties have them.
    """
    parties = party_keys(party)
    check_homes(home, master, parties=parties)
    with spark_session(master, as_json, "nothing was written") as (spark, tell):
        from antiphon.pipeline.jobs.verify import verify as check

        tell("verify")
        done = check(spark, list(home), parties)
    answer = done.row()
    show(as_json, answer, lambda: tell_findings(answer))
    if done.faults or (strict and done.findings):
        raise typer.Exit(1)


def tell_findings(answer: dict[str, Any]) -> None:
    """Print the findings for people."""
    rows = answer["findings"]
    if rows:
        out.print(table(["kind", "party", "feed", "seq", "count", "reason"], rows[:SHOWN_MAX]))
    if len(rows) > SHOWN_MAX:
        out.print(f"and {len(rows) - SHOWN_MAX} more; --json has all")
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in answer["kinds"].items())
    told = f"{answer['parties']} parties, {answer['feeds']} feeds, {answer['blocks']:,} blocks"
    out.print(f"{told}: {kinds or 'all right'}")
