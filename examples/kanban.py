"""A text with an embedded kanban whose cards hold texts: items in items in items, edited apart and then merged.

The kanban has its own model, which is composed of other models (`kanban_model.py`). Bob's device has no code for it at
first: it shows the text, stores the kanban and passes it on, and folds it once its registry names the code.

    .venv/bin/python examples/kanban.py              both devices write
    .venv/bin/python examples/kanban.py --messages   also print every message, in the total order
    .venv/bin/python examples/kanban.py --json       end with a line of JSON
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from examples.kanban_model import KanbanModel
from examples.session import Names, session, table

import antiphon
from antiphon import Handle, Object, Party, Store, Text
from antiphon.api.registry import RegistryEntry
from antiphon.core.ports import SeededRandomness
from antiphon.model import ModelFactory
from antiphon.testing.peers import Ticks

VIEW_CLASS = "org.example:document"
CODE = RegistryEntry(KanbanModel.name, "model", "Columns of cards", entry="examples.kanban_model:KanbanModel")
EMBEDDED = "\N{OBJECT REPLACEMENT CHARACTER}"  # the character of an embedded item in a text
WIDTH = 118


# -- the document


@dataclass
class Document:
    """A text with an embedded kanban."""

    text: Text

    @classmethod
    def create(cls, party: Party, name: str, words: str) -> Document:
        """Create the text, a view, with an empty kanban at its end."""
        with party.batch():
            text = party.create_view(VIEW_CLASS, name=name, model="antiphon/text")
            assert isinstance(text, Text)
            text.append(words)
            text.insert_item(len(text), party.create(KanbanModel.name, parent=text))
            return cls(text)

    @classmethod
    def find(cls, party: Party) -> Document:
        text = party.views(VIEW_CLASS)[0]
        assert isinstance(text, Text)
        return cls(text)

    @property
    def kanban(self) -> Handle:
        return self.text.items()[0][1]

    def add_card(self, column: str, title: str, words: str) -> Object:
        """Create a card: an object in the kanban, whose property `text` refers to a text in the card."""
        with self.text.party.batch():
            kanban = self.kanban
            card = kanban.create(type="card")
            text = card.create("antiphon/text")
            text.append(words)
            card.update(title=title, text=text)
            kanban.edit("add_card", column, card)
            return card

    def cards(self, column: dict[str, Any]) -> list[Object]:
        found = [self.text.party.item(card.item) for card in column["cards"]]
        return [card for card in found if isinstance(card, Object)]

    def card(self, title: str) -> Object:
        return next(card for column in self.kanban.value for card in self.cards(column) if card["title"] == title)

    def move(self, title: str, column: str, index: int | None = None) -> None:
        self.kanban.edit("move_card", self.card(title), column, index)

    def fingerprint(self) -> str:
        """Return the hash of the bytes of all items of the document."""
        return sha256(b"".join(item.snapshot() for item in self.text.closure())).hexdigest()

    def as_value(self) -> dict[str, Any]:
        columns = [
            (column["title"], [(card["title"], str(card["text"])) for card in self.cards(column)])
            for column in self.kanban.value
        ]
        return {"text": str(self.text).replace(EMBEDDED, "[kanban]"), "kanban": columns}


# -- two devices


@dataclass
class Devices:
    ada: Store
    bob: Store

    @property
    def all(self) -> dict[str, Document]:
        return {name: Document.find(next(iter(store))) for name, store in (("ada", self.ada), ("bob", self.bob))}

    def meet(self) -> int:
        return antiphon.sync(self.ada, self.bob)


@contextmanager
def devices(home: Path) -> Iterator[Devices]:
    """Open Ada's store, with the model, and Bob's, without it."""
    models = ModelFactory.standard()
    models.register(KanbanModel)
    with open_store(home, "ada", models) as ada, open_store(home, "bob", ModelFactory.standard()) as bob:
        yield Devices(ada, bob)


def open_store(home: Path, name: str, models: ModelFactory) -> Store:
    """Open a store without a background thread, so that equal runs write equal blocks."""
    dice = SeededRandomness(f"the kanban of {name}")
    return antiphon.open(
        home / name, name=name, models=models, clock=Ticks(), randomness=dice, unprotected=True, epochs=False
    )


def write(ada: Store) -> Document:
    """Ada writes a text with a kanban of three columns and two cards."""
    document = Document.create(ada.create_party("Boathouse"), "The season", "The plan so far:\n")
    with document.text.party.batch():
        for key, title in (("todo", "To do"), ("doing", "Doing"), ("done", "Done")):
            document.kanban.edit("add_column", key, title)
    document.add_card("todo", "Sail", "Mend the tear.")
    document.add_card("todo", "Hull", "Scrape, then paint.")
    document.text.append("\nWe launch in May.")
    return document


def invite(both: Devices) -> None:
    (party,) = both.ada
    both.bob.join(str(party.invite(both.bob.me)))
    both.meet()


def load_code(both: Devices) -> list[str]:
    """Name the code in Bob's registry, load it, and fold the opaque items."""
    both.bob.registry.register(CODE)
    loaded = both.bob.load_models()
    for party in both.bob:
        party.refresh()
    return loaded


def edit_apart(both: Devices) -> None:
    """Both move the same card and edit the same texts, without a sync in between."""
    ada, bob = both.all.values()
    ada.text.insert(0, "Spring. ")
    ada.move("Sail", "doing")
    ada.card("Sail")["text"].append(" Use the strong thread.")

    may = str(bob.text).index("May")
    bob.text.replace(may, may + 3, "June")
    bob.move("Sail", "done")
    bob.kanban.edit("rename", "done", "Finished")
    bob.card("Sail")["text"].insert(0, "Mine. ")
    bob.add_card("todo", "Oars", "Two are missing.")


# -- output


def show(document: Document, title: str) -> Panel:
    """Draw the text, with the kanban at its place."""
    parts: list[RenderableType] = []
    for number, words in enumerate(str(document.text).split(EMBEDDED)):
        parts += [show_kanban(document)] if number else []
        parts += [escape(words.strip())] if words.strip() else []
    return Panel(Group(*parts), title=title, expand=False)


def show_kanban(document: Document) -> RenderableType:
    kanban = document.kanban
    if kanban.opaque:
        return f"[dim](an item of the model {kanban.model}, for which this device has no code)[/]"
    columns = kanban.value
    shown = Table(*[escape(column["title"]) for column in columns])
    cells = [[_cell(card) for card in document.cards(column)] for column in columns]
    for row in range(max(map(len, cells), default=0)):
        shown.add_row(*[column[row] if row < len(column) else "" for column in cells])
    return shown


def _cell(card: Object) -> str:
    return f"{escape(card['title'])}\n  [italic]{escape(str(card['text']))}[/]"


def play(both: Devices, console: Console) -> dict[str, Any]:
    write(both.ada)
    invite(both)
    console.print("[bold]A text with a kanban[/], written by Ada; Bob's device has no code for kanbans:")
    console.print(show(both.all["ada"], "ada's device"))
    console.print(show(both.all["bob"], "bob's device"))
    console.print(f"Bob's registry names the code, and Bob loads it: {', '.join(load_code(both))}\n")
    edit_apart(both)
    console.print("[bold]Apart[/], both edit the texts, and both move the card 'Sail':")
    for name, document in both.all.items():
        console.print(show(document, f"{name}'s device"))
    moved = both.meet()
    console.print(f"\n[bold]After a sync[/] of {moved} blocks: one of the two moves wins, and the card is there once:")
    console.print(show(both.all["bob"], "on both devices"))
    return report(both, console)


def report(both: Devices, console: Console) -> dict[str, Any]:
    ended: dict[str, dict[str, Any]] = {
        name: {"snapshot": found.fingerprint(), "items": len(found.text.closure()), **found.as_value()}
        for name, found in both.all.items()
    }
    agreed = ended["ada"] == ended["bob"]
    for name, device in ended.items():
        console.print(f"  {name}: {device['items']} items of the view, {device['snapshot'][:16]}")
    console.print("[bold green]Both agree.[/]" if agreed else "[bold red]They do not agree.[/]")
    return {"agreed": agreed, "devices": ended}


def names_of(both: Devices) -> Names:
    document = both.all["ada"]
    party = document.text.party
    found = {bytes(both.ada.me): "ada", bytes(both.bob.me): "bob"}
    found |= {bytes(document.text.id): "document", bytes(document.kanban.id): "kanban"}
    for number, card in enumerate(party.query(type="card"), 1):
        found |= {bytes(card.id): f"card {number}", bytes(card.children[0].id): f"text {number}"}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--messages", action="store_true", help="print all messages")
    parser.add_argument("--json", action="store_true", help="end with a line of JSON")
    options = parser.parse_args()
    console = Console(highlight=False, width=WIDTH)
    with tempfile.TemporaryDirectory() as folder, devices(Path(folder)) as both:
        found = play(both, console)
        if options.messages:
            console.print(table(session(next(iter(both.bob)), names_of(both), KanbanModel())))
    if options.json:
        print(json.dumps(found))
    if not found["agreed"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
