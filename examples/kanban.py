"""A text with a kanban in it, whose cards hold texts: items in items in items, edited apart and then together.

The kanban is an item of a model of its own, which is composed of models (`kanban_model.py`). Bob's device has no code
for it at first: it shows the text, keeps the kanban and passes it on, and folds it once a registry has named the code.

    .venv/bin/python examples/kanban.py              the story
    .venv/bin/python examples/kanban.py --messages   and every message of it, in the order that both agree on
    .venv/bin/python examples/kanban.py --json       and a last line for machines
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
EMBEDDED = "\N{OBJECT REPLACEMENT CHARACTER}"  # what stands in a text where an item is
WIDTH = 118


# -- the document


@dataclass
class Document:
    """A text, and the kanban in it."""

    text: Text

    @classmethod
    def create(cls, party: Party, name: str, words: str) -> Document:
        """The text, a view, with an empty kanban after its words."""
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
        """A card is an object, embedded in the kanban; its field `text` refers to a text, embedded in the card."""
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
        """The hash of the bytes of all that belongs to the document."""
        return sha256(b"".join(item.item.snapshot() for item in self.text.closure())).hexdigest()

    def as_value(self) -> dict[str, Any]:
        columns = [
            (column["title"], [(card["title"], str(card["text"])) for card in self.cards(column)])
            for column in self.kanban.value
        ]
        return {"text": str(self.text).replace(EMBEDDED, "[kanban]"), "kanban": columns}


# -- the story


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
    """Ada's store, which has the model, and Bob's, which has not."""
    models = ModelFactory.standard()
    models.register(KanbanModel)
    with open_store(home, "ada", models) as ada, open_store(home, "bob", ModelFactory.standard()) as bob:
        yield Devices(ada, bob)


def open_store(home: Path, name: str, models: ModelFactory) -> Store:
    dice = SeededRandomness(f"the kanban of {name}")
    return antiphon.open(home / name, name=name, models=models, clock=Ticks(), randomness=dice, unprotected=True)


def write(ada: Store) -> Document:
    """Ada writes a text with a kanban of two columns and two cards."""
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
    """Bob's registry learns where the code is; what was opaque is folded."""
    both.bob.registry.register(CODE)
    loaded = both.bob.load_models()
    for party in both.bob:
        party.refresh()
    return loaded


def edit_apart(both: Devices) -> None:
    """Both move the same card, type into the same texts, and neither hears of the other."""
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


# -- what is shown


def show(document: Document, title: str) -> Panel:
    """The text, with the kanban drawn where it stands in it."""
    parts: list[RenderableType] = []
    for number, words in enumerate(str(document.text).split(EMBEDDED)):
        parts += [show_kanban(document)] if number else []
        parts += [escape(words.strip())] if words.strip() else []
    return Panel(Group(*parts), title=title, expand=False)


def show_kanban(document: Document) -> RenderableType:
    kanban = document.kanban
    if kanban.item.opaque:
        return f"[dim](an item of the model {kanban.model}, which this device has no code for)[/]"
    columns = kanban.value
    shown = Table(*[escape(column["title"]) for column in columns])
    cells = [[_cell(card) for card in document.cards(column)] for column in columns]
    for row in range(max(map(len, cells), default=0)):
        shown.add_row(*[column[row] if row < len(column) else "" for column in cells])
    return shown


def _cell(card: Object) -> str:
    return f"{escape(card['title'])}\n  [italic]{escape(str(card['text']))}[/]"


def tell(both: Devices, console: Console) -> dict[str, Any]:
    write(both.ada)
    invite(both)
    console.print("[bold]A text with a kanban in it[/], written by Ada; Bob's device has no code for kanbans:")
    console.print(show(both.all["ada"], "ada's device"))
    console.print(show(both.all["bob"], "bob's device"))
    console.print(f"Bob's registry names the code, and it is loaded: {', '.join(load_code(both))}\n")
    edit_apart(both)
    console.print("[bold]Apart[/], both type, and both move the card 'Sail':")
    for name, document in both.all.items():
        console.print(show(document, f"{name}'s device"))
    moved = both.meet()
    console.print(f"\n[bold]Together again[/], after {moved} blocks. One of the two moves won; the card is there once:")
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
    parser.add_argument("--messages", action="store_true", help="print the session")
    parser.add_argument("--json", action="store_true", help="end with a line of JSON")
    options = parser.parse_args()
    console = Console(highlight=False, width=WIDTH)
    with tempfile.TemporaryDirectory() as folder, devices(Path(folder)) as both:
        found = tell(both, console)
        if options.messages:
            console.print(table(session(next(iter(both.bob)), names_of(both), KanbanModel())))
    if options.json:
        print(json.dumps(found))
    if not found["agreed"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
