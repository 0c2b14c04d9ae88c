"""Shared by all commands: options, opening a home, and output for people or as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table

from antiphon.core.errors import InvalidInput
from antiphon.core.home_version import need_version
from antiphon.core.keys import PublicKey
from antiphon.core.local_path import local_path
from antiphon.core.plain_text import is_plain, plain_text
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.control.control_feeds import fold_control_feeds
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.keys.key_store import KeyStore
from antiphon.party.store.meta_store import MetaStore, Subscription
from antiphon.snapshot.blob_store import BlobStore

if TYPE_CHECKING:
    from antiphon.api.party import Party
    from antiphon.api.store import Store

PASSPHRASE_SIZE_MAX = 1024
_Paths = TypeVar("_Paths")


class PlainConsole(Console):
    """A console that shows control characters as text (`\\x1b`): names and bodies that peers wrote go to a terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Render as usual, with every control character of a text in its written form."""
        for segment in super().render(renderable, options):
            if segment.control is None and not is_plain(segment.text):
                yield Segment(plain_text(segment.text), segment.style)
            else:
                yield segment


out, err = PlainConsole(), PlainConsole(stderr=True)


def read_passphrase(file: str | None) -> str | None:
    """Return the first line of a file, or of standard input (`-`); without a file, ANTIPHON_PASSPHRASE.

    There is no option for the passphrase itself: every user of a machine can read the arguments of its programs.
    """
    if file is None:
        return os.environ.get("ANTIPHON_PASSPHRASE")
    try:
        with nullcontext(sys.stdin.buffer) if file == "-" else open(file, "rb") as stream:
            line = stream.readline(PASSPHRASE_SIZE_MAX + 1)
    except OSError as error:
        raise InvalidInput(f"--passphrase-file {file} cannot be read: {error.strerror}; name another file") from None
    if len(line) > PASSPHRASE_SIZE_MAX:
        raise InvalidInput(f"--passphrase-file {file}: its first line has more than {PASSPHRASE_SIZE_MAX} bytes")
    try:
        return line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise InvalidInput(f"--passphrase-file {file}: its first line is no text in UTF-8") from None


def on_this_machine(value: _Paths) -> _Paths:
    """Refuse an option or argument that names a file or folder by a URI; for `typer`, as a callback."""
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, Path):
            local_path(one)
    return value


Home = Annotated[
    Path,
    typer.Option("--home", "-H", envvar="ANTIPHON_HOME", help="The folder of the peer.", callback=on_this_machine),
]
Json = Annotated[bool, typer.Option("--json", help="Write one JSON value to standard output.")]
PartyKey = Annotated[str, typer.Argument(help="The key of the party in hex, or its first digits.")]
Passphrase = Annotated[
    str | None,
    typer.Option(
        "--passphrase-file",
        metavar="FILE",
        callback=read_passphrase,
        help="A file with the passphrase of the private keys as its first line; - is standard input. Without it, the "
        "variable ANTIPHON_PASSPHRASE, or a question at a terminal.",
    ),
]
HERE = Path()


def feeds_folder(home: Path) -> Path:
    folder = home / "feeds"
    if not (folder / "data.mdb").exists():
        need_home(home)
        _need_files(home)
    need_version(home)
    return folder


def need_home(home: Path) -> None:
    """Refuse a folder that has no file of a home."""
    if not any((home / name).exists() for name in ("keys", "feeds/data.mdb", "meta.db")):
        raise InvalidInput(f"there is no peer in {home}; name its folder with --home")


def _need_files(home: Path) -> None:
    """Raise an error that names the file that a home has lost, and the ways back."""
    from antiphon.api.health.presence import need_files  # loads the whole API

    need_files(home)


@contextmanager
def reading(home: Path) -> Iterator[FeedStore]:
    """Open the feed store of a home to read. Another process may write to it at the same time."""
    with FeedStore.open(feeds_folder(home), readonly=True) as store:
        yield store


def parties_of(home: Path, key: str = "") -> list[Subscription]:
    """The parties of a home whose keys begin with `key`, in hex."""
    need_home(home)
    if not (home / "meta.db").exists():
        _need_files(home)
    need_version(home)
    with MetaStore.open(home / "meta.db") as meta:
        return [row for row in meta.parties() if row.party.hex().startswith(key)]


def one_party(home: Path, key: str) -> PublicKey:
    known = parties_of(home, key)
    if len(known) != 1:
        raise InvalidInput(f"{len(known)} parties of this home begin with {key!r}; `antiphon party` lists them")
    return known[0].party


def machine_of(home: Path, key: str) -> PartyMachine:
    """Read the control feeds of a party, as far as this home has them."""
    party = one_party(home, key)
    genesis = next(row.genesis_feed for row in parties_of(home, party.hex()))
    if genesis is None:
        raise InvalidInput(f"the first feed of party {party.short} is not known here yet")
    machine = PartyMachine(party, genesis)
    with reading(home) as store:
        fold_control_feeds(machine, store)
    return machine


@contextmanager
def writing_home(home: Path, passphrase: str | None) -> Iterator[Store]:
    """Open the store of a home to write. No other process may have it open."""
    need_home(home)
    if not (home / "keys").exists():
        _need_files(home)
        raise InvalidInput(
            f"there are no keys in {home}, so nothing can be written for this device; `antiphon verify` says more"
        )
    from antiphon.api.store import Store  # loads the whole API, which commands that only read do not need

    if passphrase is None and sys.stdin.isatty() and KeyStore.needs_passphrase(home / "keys"):
        passphrase = typer.prompt("Passphrase of the private keys", hide_input=True)
    with Store.open(home, passphrase=passphrase, epochs=False) as store:
        yield store


def new_or_open(home: Path, passphrase: str | None, keyring: bool, unprotected: bool) -> Store:
    """Open the store of a home. For a new one, ask at a terminal how its private keys are to be kept."""
    from antiphon.api.store import Store  # loads the whole API, which commands that only read do not need

    if not (home / "keys").exists() and passphrase is None and not keyring and not unprotected:
        if not sys.stdin.isatty():
            raise InvalidInput(
                f"{home} is new; choose how its keys are kept: --passphrase-file, --keyring or --unprotected"
            )
        question = "Passphrase for the private keys of this new home (empty: leave them unprotected)"
        passphrase = typer.prompt(question, "", hide_input=True, confirmation_prompt=True, show_default=False) or None
        unprotected = passphrase is None
    return Store.open(home, passphrase=passphrase, keyring=keyring, unprotected=unprotected, epochs=False)


@contextmanager
def writing(home: Path, key: str, passphrase: str | None) -> Iterator[Party]:
    """Open one party of a home to write, as `writing_home` does."""
    party = one_party(home, key)
    with writing_home(home, passphrase) as store:
        yield store.party(bytes(party))


def table(names: list[str], rows: list[dict[str, Any]]) -> Table:
    shown = Table(*names)
    for row in rows:
        shown.add_row(*(_short(row[name]) for name in names))
    return shown


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_short, value))
    text = "" if value is None else plain_text(str(value))
    return escape(text[:16] if len(text) == 64 else text)


def has_blobs(home: Path) -> bool:
    return (home / "blobs" / "data.mdb").exists()


def blobs_of(home: Path) -> BlobStore:
    """Open the blobs of a home to read. Another process may write to them at the same time."""
    if not has_blobs(home):
        raise InvalidInput(f"there are no blobs in {home}, so no snapshot can be read; name the peer's folder")
    return BlobStore.open(home / "blobs", readonly=True)


@contextmanager
def busy(as_json: bool, what: str) -> Iterator[None]:
    """Show a spinner with the elapsed time during a step that may take long."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=as_json) as progress:
        progress.add_task(what, total=None)
        yield


@contextmanager
def steps(as_json: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar for each step of a check; yield a function that takes a step, how much is done, and of how much."""
    with _progress(as_json) as progress:
        tasks: dict[str, TaskID] = {}

        def tick(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = progress.add_task(step, total=total)
            progress.update(tasks[step], completed=done)

        yield tick


def _progress(as_json: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=as_json,
    )


def show(as_json: bool, answer: Any, people: Callable[[], None]) -> None:
    """Write the answer as JSON, or call `people` to print it as text."""
    if as_json:
        sys.stdout.write(json.dumps(answer, default=_plain) + "\n")
    else:
        people()


def _plain(value: Any) -> Any:
    """Convert a value that JSON cannot hold: bytes to hex, sets to sorted lists, others to text."""
    if isinstance(value, bytes):
        return value.hex()
    return sorted(value, key=str) if isinstance(value, set | frozenset) else str(value)
