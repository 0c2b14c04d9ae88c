"""`antiphon party`: show its members, export it to a file, import it, and verify its epochs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from typer.core import TyperGroup

from antiphon.cli.common import (
    HERE,
    Home,
    Json,
    PartyKey,
    Passphrase,
    blobs_of,
    err,
    machine_of,
    new_or_open,
    out,
    reading,
    show,
    writing,
)
from antiphon.core.errors import InvalidInput
from antiphon.model.factory import ModelFactory
from antiphon.party.bundle.export import Tick
from antiphon.party.maintenance.verify_epoch import Verifier

_WRITE_DOWN = "Write down its recovery phrase, which is not shown again:"


class PartyGroup(TyperGroup):
    """A group whose default command is `show`: `antiphon party`, and `antiphon party 1f3a`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args.insert(0, "show")
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=PartyGroup, help="The parties of this home: show, export, import, verify; costs, ignore, revoke, leave."
)

Target = Annotated[Path, typer.Argument(help="The file to write.", dir_okay=False)]
Origin = Annotated[Path, typer.Argument(help="A file written by `antiphon party export`.")]


@app.command("export")
def export_(
    party: PartyKey,
    file: Target,
    home: Home = HERE,
    whole: Annotated[bool, typer.Option("--whole", help="Include the messages before the last epoch.")] = False,
    files: Annotated[bool, typer.Option(help="Include the contents of files.")] = True,
    passphrase: Passphrase = None,
    as_json: Json = False,
) -> None:
    """Write a party into a CAR file, which any IPLD tool can read. Locks the home.

    Example: antiphon party export 1f3a household.car
    """
    with writing(home, party, passphrase) as opened, _bytes(as_json) as tick:
        done = opened.export(file, whole=whole, files=files, tick=tick)
    answer = {**asdict(done), "root": str(done.root), "file": str(file)}

    def people() -> None:
        epoch = f"epoch {done.number} and the messages since" if done.number else "all messages"
        out.print(f"{file}: {epoch}, {done.blocks} blocks of {done.feeds} feeds, {done.files} files, {done.size} bytes")
        if done.left_out:
            out.print(f"{done.left_out} files are left out: their contents are not here")

    show(as_json, answer, people)


@app.command("import")
def import_(
    file: Origin,
    home: Home = HERE,
    label: Annotated[str, typer.Option("--label", help="A name for the party in this home.")] = "",
    passphrase: Passphrase = None,
    keyring: Annotated[bool, typer.Option("--keyring", help="Encrypt the keys of a new home by the keyring.")] = False,
    unprotected: Annotated[bool, typer.Option("--unprotected", help="Leave the keys of a new home readable.")] = False,
    as_json: Json = False,
) -> None:
    """Verify a file from `antiphon party export`, and add its party to this home. A missing home is created.

    For a new home, choose how its private keys are kept: --passphrase-file, --keyring or --unprotected.
    """

    if not file.is_file():
        raise InvalidInput(f"{file} is no file, so nothing can be taken from it")
    with new_or_open(home, passphrase, keyring, unprotected) as store, _bytes(as_json, file) as tick:
        try:
            party = store.import_party(file, label, tick=tick)
        except BaseException:
            if store.recovery_phrase:
                err.print(f"A new home was made in {home} before. {_WRITE_DOWN}", markup=False)
                err.print(store.recovery_phrase, markup=False, highlight=False, soft_wrap=True)
            raise
        answer = {
            "party": party.key.hex(),
            "number": party.epochs.number,
            "blocks": sum(record.length - record.start for record in store.manager.feeds.feeds(party.key)),
            "items": party.status().items,
            "recovery_phrase": store.recovery_phrase,
        }

    def people() -> None:
        out.print(f"party {party.key.hex()[:16]}: {answer['items']} items", markup=False)
        if store.recovery_phrase:
            out.print(f"A new identity was made here. {_WRITE_DOWN}", markup=False)
            out.print(store.recovery_phrase, markup=False, highlight=False, soft_wrap=True)

    show(as_json, answer, people)


@app.command()
def verify(
    party: PartyKey,
    number: Annotated[int | None, typer.Argument(help="Number of an epoch. Default: the last one.")] = None,
    home: Home = HERE,
    full: Annotated[bool, typer.Option("--full", help="Recompute from the first message on.")] = False,
    every: Annotated[bool, typer.Option("--every", help="Verify all epochs, one after the other.")] = False,
    as_json: Json = False,
) -> None:
    """Recompute an epoch from its messages, and show what differs. Ends with 1 if anything is wrong."""
    machine = machine_of(home, party)
    count = len(machine.epochs().final)
    if not count:
        raise InvalidInput(f"party {machine.party.hex()[:8]} has no final epoch yet, so there is nothing to verify")
    if every and number is not None:
        raise InvalidInput("name one epoch, or ask for --every, not both")
    numbers = range(1, count + 1) if every else [count if number is None else number]
    with reading(home) as feeds, blobs_of(home) as blobs, _steps(as_json) as tick:
        verifier = Verifier(machine, feeds, blobs, ModelFactory.standard())
        found = [verifier.verify(one, full=full, tick=tick) for one in numbers]

    def people() -> None:
        for line in (line for one in found for line in one.lines()):
            out.print(line, markup=False, highlight=False)

    rows = [one.as_json() for one in found]
    show(as_json, rows if every else rows[0], people)
    if any(one.wrong for one in found):
        raise typer.Exit(1)


# -- inside


@contextmanager
def _bar(as_json: bool, unit: str) -> Iterator[Progress]:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn(f"{{task.completed:,.0f}} {unit}"))
    with Progress(*columns, TimeElapsedColumn(), console=err, transient=True, disable=as_json) as progress:
        yield progress


@contextmanager
def _bytes(as_json: bool, file: Path | None = None) -> Iterator[Tick]:
    """Show one progress bar for each step, in bytes."""
    tasks: dict[str, Any] = {}
    total = file.stat().st_size if file is not None and file.exists() else None
    with _bar(as_json, "bytes") as progress:

        def tick(what: str, done: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total if what == "read" else None)
            progress.update(tasks[what], completed=done)

        yield tick


@contextmanager
def _steps(as_json: bool) -> Iterator[Any]:
    """Show one progress bar for each kind of step, in steps."""
    tasks: dict[str, Any] = {}
    with _bar(as_json, "steps") as progress:

        def tick(what: str) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=None)
            progress.advance(tasks[what])

        yield tick
