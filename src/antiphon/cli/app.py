"""The application, and the commands about a whole home.

Most commands only read, and a running peer may write at the same time. `compact`, `gc`, `doctor --repair` and the
commands of `epoch` and `party` that write lock the home: they fail while another process has it open.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from antiphon import __version__
from antiphon.cli import backup_commands, epochs, generate, operator_commands, party_commands, sim
from antiphon.cli.common import (
    HERE,
    Home,
    Json,
    Passphrase,
    busy,
    err,
    feeds_folder,
    has_blobs,
    machine_of,
    need_home,
    out,
    parties_of,
    reading,
    show,
    steps,
    table,
    writing_home,
)
from antiphon.cli.pipeline import commands, query
from antiphon.core.errors import AntiphonError
from antiphon.core.keys import PublicKey
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.store.feed_store import FeedStore
from antiphon.snapshot.blob_store import BlobStore

if TYPE_CHECKING:
    from antiphon.api.health.finding import Finding

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Antiphon: an ECHO database.")
app.add_typer(epochs.app, name="epoch")
party_commands.app.registered_commands += operator_commands.app.registered_commands
app.add_typer(party_commands.app, name="party")
app.add_typer(sim.app, name="sim")
app.add_typer(commands.app, name="pipeline")
commands.app.command("query")(query.query)
app.command("generate")(generate.generate)
app.command("backup")(backup_commands.backup)
app.command("restore")(backup_commands.restore)


@app.command()
def version(as_json: Json = False) -> None:
    """Print the version of Antiphon."""
    show(as_json, {"version": __version__}, lambda: out.print(__version__))


@app.command()
def feeds(home: Home = HERE, as_json: Json = False) -> None:
    """List the feeds of this home: their lengths, where they begin and end, and which are written here."""
    with reading(home) as store:
        rows = [_feed_row(record) for record in store.feeds()]

    def people() -> None:
        shown = Table("feed", "party", "blocks", "from", "ends", "written here")
        for row in rows:
            shown.add_row(
                row["feed"][:16],
                row["party"][:8],
                str(row["length"]),
                str(row["start"]),
                "" if row["end"] is None else f"{row['end']} ({row['why']})",
                "retired" if row["retired"] else "yes" if row["writable"] else "",
            )
        out.print(shown)

    show(as_json, rows, people)


@app.command()
def verify(home: Home = HERE, passphrase: Passphrase = None, as_json: Json = False) -> None:
    """Check the whole home: every block, blob, key, item and setting. Ends with 1 if anything is wrong.

    Each finding says what to do. Nothing is changed, and a running peer may use the home meanwhile.
    """
    from antiphon.api.health.check import check_home

    need_home(home)
    with steps(as_json) as tick:
        report = check_home(home, passphrase, tick)
    answer = {"feeds": report.feeds, "blocks": report.blocks, "wrong": [finding.row() for finding in report.wrong]}
    answer["notes"] = [finding.row() for finding in report.findings if finding.harmless]

    def tell() -> None:
        _tell_findings(report.findings)
        out.print(f"{report.feeds} feeds, {report.blocks} blocks: {'NOT right' if report.wrong else 'all right'}")
        repairable = sum(finding.repairable for finding in report.wrong)
        if repairable:
            command = f"antiphon doctor --repair --home {shlex.quote(str(home))}"
            out.print(f"{repairable} of {len(report.wrong)} can be repaired: {command}", markup=False, soft_wrap=True)

    show(as_json, answer, tell)
    if report.wrong:
        raise typer.Exit(1)


def _tell_findings(findings: Iterable[Finding]) -> None:
    for finding in findings:
        err.print(str(finding), style=None if finding.harmless else "red", markup=False, soft_wrap=True)


@app.command()
def doctor(
    home: Home = HERE,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Rebuild what is derived, drop what is rotten, and nothing else. Locks the home."
        ),
    ] = False,
    passphrase: Passphrase = None,
    as_json: Json = False,
) -> None:
    """Check the whole home, as `verify` does, and repair it. Ends with 1 if anything wrong is left.

    Dropped blocks and blobs come back with the next sync. Example: antiphon doctor --repair --home laptop
    """
    if not repair:
        verify(home, passphrase, as_json)
        return
    from antiphon.api.health.presence import refuse_backup
    from antiphon.api.health.repair import repair_home

    need_home(home)
    refuse_backup(home)
    with steps(as_json) as tick:
        done = repair_home(home, passphrase, tick)
    answer = {name: [finding.row() for finding in getattr(done, name)] for name in ("repaired", "left")}

    def tell() -> None:
        for finding in done.repaired:
            out.print(f"repaired: {finding.file}: {finding.what} [{finding.code}]", markup=False, soft_wrap=True)
        _tell_findings(done.left)
        out.print(f"{len(done.repaired)} repaired, {len(done.wrong)} left")

    show(as_json, answer, tell)
    if done.wrong:
        raise typer.Exit(1)


@app.command()
def quarantine(home: Home = HERE, as_json: Json = False) -> None:
    """List the blocks that this peer refused, with the reasons."""
    with reading(home) as store:
        listed = store.quarantine()
    rows = [
        {
            "feed": refusal.feed.hex(),
            "seq": refusal.seq,
            "count": refusal.count,
            "reason": refusal.reason,
            "code": refusal.code,
            "source": refusal.source.hex(),
        }
        for refusal in listed.refusals
    ]

    def people() -> None:
        shown = Table("feed", "from", "blocks", "given by", "reason")
        for refusal in listed.refusals:
            place = refusal.feed.hex()[:8], str(refusal.seq), str(refusal.count)
            shown.add_row(*place, refusal.source.hex()[:8], escape(refusal.reason))
        out.print(shown)
        if listed.dropped:
            out.print(f"{listed.dropped} older ones are not kept")

    show(as_json, {"refusals": rows, "dropped": listed.dropped}, people)


@party_commands.app.command("show")
def party(
    key: Annotated[str, typer.Argument(help="The party's key in hex, or the beginning of it.")] = "",
    home: Home = HERE,
    as_json: Json = False,
) -> None:
    """Show the members and feeds of a party. Without a key, list the parties of this home.

    Example: antiphon party 1f3a
    """
    if not key:
        rows = [{"party": row.party.hex(), "label": row.label, "state": row.state.value} for row in parties_of(home)]
        show(as_json, rows, lambda: out.print(table(["party", "label", "state"], rows)))
        return
    machine = machine_of(home, key)
    state = machine.state()
    answer = {
        "party": state.party.hex(),
        "digest": state.digest.hex(),
        "members": [
            {"subject": member.subject.hex(), "roles": sorted(role.name.lower() for role in member.roles)}
            for member in state.members
        ],
        "feeds": [
            {"feed": feed.feed.hex(), "kind": feed.kind.name.lower(), "identity": feed.identity.hex(), "end": feed.end}
            for feed in state.feeds
        ],
        "void": [{"stamp": str(void.stamp), "reason": void.reason, "code": void.code} for void in machine.voids()],
        "waiting": [str(waiting.stamp) for waiting in machine.waiting()],
    }

    def tables() -> None:
        out.print(f"party {PublicKey(state.party).short}, state {state.digest.hex()[:16]}")
        for name in ("members", "feeds", "void"):
            rows = answer[name]
            assert isinstance(rows, list)
            if rows:
                out.print(table(list(rows[0]), rows))

    show(as_json, answer, tables)


@app.command()
def compact(home: Home = HERE, as_json: Json = False) -> None:
    """Shrink the files of feeds and blobs: rewrite them without the space of removed data. Locks the home."""
    from antiphon.api.health.presence import refuse_backup

    refuse_backup(home)
    with FeedStore.open(feeds_folder(home)) as feeds, busy(as_json, "rewriting the feeds"):
        sizes = {"feeds": feeds.compact(), "blobs": 0}
    if has_blobs(home):
        with BlobStore.open(home / "blobs") as blobs, busy(as_json, "rewriting the blobs"):
            sizes["blobs"] = blobs.compact()
    size = sum(sizes.values())
    show(as_json, {"bytes": size, **sizes}, lambda: out.print(f"{size} bytes are left"))


@app.command()
def gc(
    home: Home = HERE,
    earlier: Annotated[int, typer.Option(help="Keep this many snapshots more than policy asks for.", min=0)] = 0,
    every: Annotated[bool, typer.Option("--every", help="Keep all older snapshots.")] = False,
    passphrase: Passphrase = None,
    as_json: Json = False,
) -> None:
    """Delete blobs that no party refers to. Locks the home. `compact` then makes the file smaller."""
    with writing_home(home, passphrase) as store, busy(as_json, "looking for blobs that are referred to"):
        done = store.collect_garbage(earlier=None if every else earlier)
    answer = {"blobs": done.count, "bytes": done.size, "stopped": done.stopped}
    told = f"{done.count} blobs deleted, {done.size} bytes" + (f"; stopped: {done.stopped}" if done.stopped else "")
    show(as_json, answer, lambda: out.print(told))


def main() -> None:
    """Run the program. An error of Antiphon or of the system is one line on standard error, and the exit code is 2."""
    try:
        app()
    except AntiphonError as error:
        err.print(f"antiphon: {error}", highlight=False, markup=False, soft_wrap=True)
        sys.exit(2)
    except OSError as error:
        told = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        err.print(f"antiphon: {told}", highlight=False, markup=False, soft_wrap=True)
        sys.exit(2)


# -- inside


def _feed_row(record: FeedRecord) -> dict[str, Any]:
    bounds = record.bounds
    return {
        "feed": record.feed.hex(),
        "party": record.party.hex(),
        "start": bounds.start,
        "length": bounds.length,
        "end": bounds.end,
        "why": record.why.name.lower(),
        "writable": record.writable,
        "retired": record.retired,
    }
