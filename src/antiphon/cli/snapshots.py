"""`antiphon epoch show` and `save`: the snapshot of an epoch. A running peer may write at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from antiphon.cli.common import HERE, Home, Json, PartyKey, blobs_of, busy, machine_of, out, reading, show, table
from antiphon.core.cid import Cid
from antiphon.core.errors import AntiphonError, InvalidInput, MissingBlob, UnknownItem
from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.core.output_file import output_file
from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.views.source import ViewSource
from antiphon.snapshot import tree
from antiphon.snapshot.car import write_car

app = typer.Typer()
Number = Annotated[int | None, typer.Argument(help="Number of an epoch. Default: the last one.")]


@app.command("show")
def show_(
    party: PartyKey,
    number: Number = None,
    home: Home = HERE,
    item: Annotated[str, typer.Option("--item", help="Id of an item in hex: show that item as of the epoch.")] = "",
    as_json: Json = False,
) -> None:
    """Show the snapshot of an epoch: its CID, items, feeds and models. With --item, show one item as of the epoch."""
    with _opened(home, party, number) as base:
        answer = _root(base) if not item else _item(base, _id(item))

    def people() -> None:
        rows = [{"name": name, "value": value} for name, value in answer.items()]
        out.print(table(["name", "value"], rows))

    show(as_json, answer, people)


@app.command()
def save(
    party: PartyKey,
    number: Annotated[int, typer.Argument(help="Number of an epoch.")],
    file: Annotated[Path, typer.Argument(help="The CAR file to write.", dir_okay=False)],
    home: Home = HERE,
    view: Annotated[str, typer.Option("--view", help="Id of an item in hex: save only its view.")] = "",
    as_json: Json = False,
) -> None:
    """Write the snapshot of an epoch, or of one view in it, into a CAR file, which any IPLD tool can read."""
    with _opened(home, party, number) as base, reading(home) as feeds, busy(as_json, "writing the snapshot"):
        root, blobs = base.cid, base.blobs
        if view:
            part = ViewSource(base.root.party, feeds, blobs).snapshot_of(root, _id(view))
            wanted, items = part.blobs(), len(part.items)
        else:
            wanted, items = tree.walk(root, blobs), base.root.item_count
        with output_file(file, replace=True) as stream:
            count = write_car(stream, [root], wanted, blobs)
    answer = {"epoch": base.number, "root": str(root), "items": items, "blobs": count, "size": file.stat().st_size}
    told = f"{file}: epoch {base.number}, {items} items, {count} blobs, {answer['size']} bytes"
    show(as_json, answer, lambda: out.print(told, markup=False))


# -- inside


@contextmanager
def _opened(home: Path, party: str, number: int | None) -> Iterator[EpochBase]:
    machine = machine_of(home, party)
    final = machine.epochs().final
    at = len(final) if number is None else number
    if not 0 < at <= len(final):
        has = f"its epochs are 1 to {len(final)}" if final else "it has none yet: `antiphon epoch declare` makes one"
        raise InvalidInput(f"party {machine.party.hex()[:8]} has no final epoch{f' {at}' if at else ''}; {has}")
    with blobs_of(home) as blobs:
        try:
            yield EpochBase.load(Cid(final[at - 1].snapshot), blobs, party=machine.party, number=at)
        except MissingBlob as error:
            raise MissingBlob(
                f"the snapshot of epoch {at} is not in {home}, or not whole: {error}; a peer that has it can `save` it",
                cid=error.cid,
            ) from None


def _root(base: EpochBase) -> dict[str, Any]:
    root = base.root
    return {
        "epoch": base.number,
        "snapshot": str(base.cid),
        "previous": None if root.previous is None else str(root.previous),
        "created_ms": root.created_ms,
        "items": root.item_count,
        "feeds": root.feed_count,
        "models": [f"{name} {version}" for name, version, _ in root.models],
    }


def _item(base: EpochBase, item: bytes) -> dict[str, Any]:
    data = base.item(item)
    if data is None:
        raise UnknownItem(f"epoch {base.number} has no item {item.hex()}")
    state = item_codec.restore(data, ModelFactory.standard())
    try:
        value = state.value
    except AntiphonError as error:  # no code for its model is here
        value = f"({error})"
    return {
        "item": item.hex(),
        "epoch": base.number,
        "model": state.name,
        "name": state.display_name,
        "type": state.type,
        "parent": state.parent.hex(),
        "deleted": state.is_deleted,
        "value": value,
    }


def _id(text: str) -> bytes:
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != ITEM_ID_SIZE:
        raise InvalidInput(f"{text!r:.80} is no id of an item: that is {2 * ITEM_ID_SIZE} digits in hex")
    return found
