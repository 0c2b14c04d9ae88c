"""`antiphon backup` and `antiphon restore`: copy a home while it is in use, and make a home of the copy."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from antiphon.cli.common import HERE, Home, Json, err, need_home, on_this_machine, out, show, steps
from antiphon.core.errors import InvalidInput

_KEYS = {
    "": "The home has no private keys.",
    "passphrase": "Its private keys are under the passphrase of the home.",
    "keyring": "Its private keys open with the keyring of this machine only: elsewhere, use the recovery phrase.",
    "UNPROTECTED": "Its private keys are UNPROTECTED: whoever reads the backup can act as you. Keep it safe.",
}


def backup(
    to: Annotated[Path, typer.Option("--to", help="The new folder of the backup.", callback=on_this_machine)],
    home: Home = HERE,
    as_json: Json = False,
) -> None:
    """Copy a home into a new folder. A running peer may write meanwhile. Ends with 1 if the copy has damage.

    The copy is checked. It has the private keys, as they are protected. Items are left out: they are built again.
    Example: antiphon backup --home laptop --to /media/disk/laptop-monday
    """
    from antiphon.api.backup.backup import backup as make_backup

    need_home(home)
    with steps(as_json) as tick:
        made = make_backup(home, to, tick=tick)
    answer = asdict(made) | {"wrong": [finding.row() for finding in made.wrong]}

    def tell() -> None:
        for finding in made.wrong:
            err.print(str(finding), style="red", markup=False, soft_wrap=True)
        counts = f"{made.parties} parties, {made.feeds} feeds, {made.blocks} blocks, {made.blobs} blobs"
        _print(f"{made.path}: {counts}, {made.size} bytes{'; NOT all right' if made.wrong else ''}")
        if made.left_out:
            _print(f"Left out: {', '.join(made.left_out)}")
        _print(_KEYS[made.protection])

    show(as_json, answer, tell)
    if made.wrong:
        raise typer.Exit(1)


def restore(
    source: Annotated[Path, typer.Option("--from", help="The folder of the backup.", callback=on_this_machine)],
    home: Annotated[
        Path | None,
        typer.Option("--home", "-H", help="The folder of the new home.", callback=on_this_machine),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare all checksums, and make no home.")] = False,
    as_json: Json = False,
) -> None:
    """Make a new home of a backup, after every file was compared with its checksum. This device opens new feeds.

    Use the old home no more. Example: antiphon restore --from /media/disk/laptop-monday --home laptop
    """
    from antiphon.api.backup.restore import check_backup, restore as make_home

    if check:
        with steps(as_json) as tick:
            found = check_backup(source, tick=tick)
        told = f"{source}: {len(found.files)} files, {found.size} bytes, of {_date(found.created_ms)}: "
        wrong = found.counts.wrong
        told += f"as it was made, of a home with {wrong} faults" if wrong else "all right"
        answer = {"created_ms": found.created_ms, "size": found.size, "files": [file.name for file in found.files]}
        show(as_json, answer | asdict(found.counts), lambda: _print(told))
        return
    if home is None:
        raise InvalidInput("name the folder of the new home with --home")
    with steps(as_json) as tick:
        made = make_home(source, home, tick=tick)

    def tell() -> None:
        counts = f"{made.parties} parties, {made.feeds} feeds, {made.blocks} blocks, {made.blobs} blobs"
        _print(f"{made.home}: {counts}, as of {_date(made.created_ms)}")
        if made.wrong:
            _print(f"The backup was made of a home with {made.wrong} faults: `antiphon verify` lists them.")
        _print(
            f"{made.retired} feeds of this device are retired: it writes into new ones. Sync before you write. Use the "
            "old home no more: both are the same device."
        )

    show(as_json, asdict(made), tell)


def _print(text: str) -> None:
    out.print(text, highlight=False, markup=False, soft_wrap=True)


def _date(created_ms: int) -> str:
    try:
        return datetime.fromtimestamp(created_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return f"{created_ms} ms"
