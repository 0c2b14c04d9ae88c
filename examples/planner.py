"""A planner on two devices: a board of lists of tasks, each task with comments and a chat, edited apart and merged.

Every part is an item, embedded in the one above it, down to the texts. The whole is one view with an address that is
valid everywhere. Ada and Bob have a store each, and exchange nothing but blocks of feeds. Keys, ids and times come from
a seed, so that the messages are the same each time.

    .venv/bin/python examples/planner.py              both devices write
    .venv/bin/python examples/planner.py --messages   also print every message, in the total order
    .venv/bin/python examples/planner.py --json       end with a line of JSON
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
from typing import Any, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from examples.session import Names, session, table, words

import antiphon
from antiphon import Fact, List, Object, Party, Query, Store, Text, Thread, prop
from antiphon.api.query.deltas import Delta
from antiphon.api.registry import RegistryEntry
from antiphon.core.ports import SeededRandomness
from antiphon.testing.peers import Ticks

VIEW_CLASS = "org.example:planner"
OPEN_TASKS = Query(Fact.TYPE.is_("task") & prop("done").is_(False))
WIDTH = 118
Kind = TypeVar("Kind")


# -- the application


class Planner:
    """A planner, by its root item: the data and actions of an application."""

    def __init__(self, root: Object) -> None:
        self.root = root
        self.party = root.party

    @classmethod
    def create(cls, party: Party, name: str) -> Planner:
        """Create the root, a view, and in it the board, an array, to which its property `board` refers."""
        with party.batch():
            root = party.create_view(VIEW_CLASS, name=name)
            root["board"] = root.create("antiphon/array")
            return cls(root)

    @classmethod
    def find(cls, party: Party) -> Planner:
        """Return the first planner of a party, by its view class."""
        return cls(party.views(VIEW_CLASS).of(Object)[0])

    @property
    def board(self) -> List:
        return of_kind(self.root["board"], List)

    @property
    def lists(self) -> list[Object]:
        return [of_kind(element, Object) for element in self.board]

    def add_list(self, title: str) -> Object:
        """Create an object in the board, and in it an array for its tasks."""
        with self.party.batch():
            made = self.board.create(type="list")
            made.update(title=title, tasks=made.create("antiphon/array"))
            self.board.append(made)
            return made

    def add_task(self, into: Object, title: str) -> Object:
        """Create an object in the array of a list, and in it a text for comments and a chat."""
        with self.party.batch():
            tasks = tasks_of(into)
            made = tasks.create(type="task")
            comments, chat = made.create("antiphon/text"), made.create("antiphon/messenger")
            made.update(title=title, done=False, comments=comments, chat=chat)
            tasks.append(made)
            return made

    def tasks(self, of: Object) -> list[Object]:
        """Return the tasks of a list. A task in two lists, after concurrent moves, is only in that of its parent."""
        array = tasks_of(of)
        return list(dict.fromkeys(task for task in array if isinstance(task, Object) and task.parent == array))

    def move(self, task: Object, to: Object) -> None:
        """Move a task to the end of another list, in one batch."""
        source, target = of_kind(task.parent, List), tasks_of(to)
        with self.party.batch():
            while task in source:
                del source[source.index(task)]
            target.append(task)
            source.release(task)
            target.embed(task)
            task.move_under(target)

    def find_list(self, title: str) -> Object:
        return next(found for found in self.lists if found["title"] == title)

    def find_task(self, title: str) -> Object:
        return next(task for found in self.lists for task in self.tasks(found) if task["title"] == title)

    # -- reports

    def open_by_list(self) -> list[tuple[str, int]]:
        """Return the number of open tasks in each list, from one query."""
        counts = dict(self.party.aggregate(OPEN_TASKS.count(group=Fact.PARENT)))
        return [(found["title"], counts.get(found.value["tasks"], 0)) for found in self.lists]

    def fingerprint(self) -> str:
        """Return the hash of the bytes of all items of the view."""
        return sha256(b"".join(item.snapshot() for item in self.root.closure())).hexdigest()

    def as_value(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return the board as plain values."""
        return [(found["title"], [_as_value(task) for task in self.tasks(found)]) for found in self.lists]


def of_kind(found: Any, kind: type[Kind]) -> Kind:
    """Check the kind of an item. Another device may have written a reference to anything."""
    if not isinstance(found, kind):
        raise TypeError(f"{found!r} is no {kind.__name__}")
    return found


def tasks_of(found: Object) -> List:
    return of_kind(found["tasks"], List)


def comments_of(task: Object) -> Text:
    return of_kind(task["comments"], Text)


def chat_of(task: Object) -> Thread:
    return of_kind(task["chat"], Thread)


def _as_value(task: Object) -> dict[str, Any]:
    posts = [post["body"] for post in chat_of(task).value]
    return {"title": task["title"], "done": task["done"], "comments": str(comments_of(task)), "chat": posts}


# -- two devices


@dataclass
class Devices:
    """Two stores, and the planner in each."""

    ada: Store
    bob: Store

    @property
    def all(self) -> dict[str, Planner]:
        return {"ada": self.planner(self.ada), "bob": self.planner(self.bob)}

    def planner(self, store: Store) -> Planner:
        (party,) = store
        return Planner.find(party)

    def meet(self) -> int:
        return antiphon.sync(self.ada, self.bob)


@contextmanager
def devices(home: Path) -> Iterator[Devices]:
    """Open Ada's store and Bob's, each with a clock and a seed of its own."""
    with open_store(home, "ada") as ada, open_store(home, "bob") as bob:
        yield Devices(ada, bob)


def open_store(home: Path, name: str) -> Store:
    """Open a store without a background thread, so that equal runs write equal blocks."""
    dice = SeededRandomness(f"the planner of {name}")
    return antiphon.open(home / name, name=name, clock=Ticks(), randomness=dice, unprotected=True, epochs=False)


def build(ada: Store) -> Planner:
    """Ada creates a party, and in it a planner with three lists and three tasks."""
    ada.registry.register(RegistryEntry(VIEW_CLASS, "view class", "Boards with lists of tasks"))
    planner = Planner.create(ada.create_party("Boathouse"), "Spring")
    todo, doing, _ = (planner.add_list(title) for title in ("To do", "Doing", "Done"))
    paint = planner.add_task(todo, "Paint the boat")
    planner.add_task(todo, "Mend the sail")
    planner.add_task(doing, "Order varnish")
    comments_of(paint).append("Two coats.")
    chat_of(paint).post("Who has the brushes?")
    return planner


def invite(both: Devices) -> str:
    """Bob joins with the text of an invitation. Return the locator of the planner."""
    (party,) = both.ada
    both.bob.join(str(party.invite(both.bob.me)))
    both.meet()
    return str(both.planner(both.ada).root.locator)


def edit_apart(both: Devices) -> None:
    """Both edit the same items, without a sync in between."""
    ada, bob = both.all.values()
    ada.move(ada.find_task("Paint the boat"), ada.find_list("Doing"))
    ada.find_list("Doing")["title"] = "This week"
    comments_of(ada.find_task("Paint the boat")).append(" The hull first.")
    ada.find_task("Order varnish")["done"] = True

    paint = bob.find_task("Paint the boat")
    comments_of(paint).insert(0, "White, not red. ")
    (question,) = chat_of(paint).threads()
    chat_of(paint).post("I do, in the shed.", reply_to=question["id"])
    bob.find_task("Order varnish")["title"] = "Order varnish and tape"
    bob.find_list("Doing")["title"] = "Now"
    bob.add_task(bob.find_list("To do"), "Buy a rope")


def names_of(both: Devices) -> Names:
    """Return names for the items: their kind, numbered in the order of creation."""
    root = both.planner(both.ada).root
    found = {bytes(both.ada.me): "ada", bytes(both.bob.me): "bob", bytes(root.id): "planner"}
    found[bytes(root["board"].id)] = "board"
    party = root.party
    for number, made in enumerate(party.query(type="list"), 1):
        found |= {bytes(made.id): f"list {number}", bytes(made.children[0].id): f"tasks {number}"}
    for number, task in enumerate(party.query(type="task").of(Object), 1):
        parts = {bytes(task[key].id): f"{key} {number}" for key in ("comments", "chat")}
        found |= {bytes(task.id): f"task {number}", **parts}
    return found


# -- output


def show_board(planner: Planner, title: str) -> Panel:
    shown = Table(*[escape(found["title"]) for found in planner.lists], box=None)
    cells = [[_cell(task) for task in planner.tasks(found)] for found in planner.lists]
    for row in range(max(map(len, cells), default=0)):
        shown.add_row(*[column[row] if row < len(column) else "" for column in cells])
    return Panel(shown, title=title, expand=False)


def _cell(task: Object) -> str:
    found = _as_value(task)
    parts = [f"{'☑' if found['done'] else '☐'} {escape(found['title'])}"]
    parts += [f"[italic]{escape(found['comments'])}[/]"] if found["comments"] else []
    parts += [f"[dim]» {escape(body)}[/]" for body in found["chat"]]
    return "\n  ".join(parts)


def values(planner: Planner) -> dict[bytes, Any]:
    """Return the value of every item of the view; of a chat, the bodies of its posts."""
    return {
        bytes(item.id): [post["body"] for post in item.value] if isinstance(item, Thread) else item.value
        for item in planner.root.closure()
    }


def show_merge(before: list[dict[bytes, Any]], after: dict[bytes, Any], names: Names) -> Table:
    """A table of the items that differed between the devices, before and after the merge."""
    shown = Table("item", "Ada had", "Bob had", "both have", show_lines=True)
    ada, bob = before
    for item in after:
        if ada.get(item, bob.get(item)) != bob.get(item, ada.get(item)):
            parts = _differing(ada[item], bob[item], after[item])
            shown.add_row(names[item], *(escape(words(part, names)) for part in parts))
    return shown


def _differing(*found: Any) -> list[Any]:
    """Of objects, return only the properties that are not equal in all."""
    if not all(isinstance(value, dict) for value in found):
        return list(found)
    keys = [key for key in found[-1] if any(value.get(key) != found[-1][key] for value in found)]
    return [{key: value[key] for key in keys if key in value} for value in found]


class Watch:
    """A subscription to the open tasks, which prints its deltas."""

    def __init__(self, party: Party, console: Console) -> None:
        self.lines: list[str] = []
        self._party = party
        self._console = console
        self.subscription = party.subscribe(OPEN_TASKS, self._take)

    def _take(self, delta: Delta) -> None:
        gone = [self._party.item(item) for item in sorted(delta.removed)]
        signs = (("+", [*delta.added]), ("~", [*delta.changed]), ("−", gone))
        parts = [f"{sign} {task.value['title']}" for sign, tasks in signs for task in tasks]
        self.lines.append(", ".join(parts))
        self._console.print(f"  [dim]Ada's list of open tasks: {self.lines[-1]}[/]")


def play(both: Devices, console: Console) -> dict[str, Any]:
    """Run the whole example. Return the final state of both devices."""
    planner = build(both.ada)
    locator = invite(both)
    console.print("[bold]A planner[/]: Ada creates a board and invites Bob, who finds it by its class and locator:")
    console.print(f"  {locator}", soft_wrap=True)
    assert both.bob.resolve(locator) == both.all["bob"].root
    console.print(show_board(both.all["bob"], "on both devices"))
    watch = Watch(planner.party, console)
    console.print("\n[bold]Apart[/], both edit the same items:")
    edit_apart(both)
    apart = [values(found) for found in both.all.values()]
    for name, found in both.all.items():
        console.print(show_board(found, f"{name}'s device"))
    moved = both.meet()
    names = names_of(both)
    console.print(f"\n[bold]After a sync[/] of {moved} blocks. The items that differed:")
    console.print(show_merge(apart, values(both.all["ada"]), names))
    (_, shown), (_, other) = both.all["ada"].lists[1].conflicts("title")
    console.print(f"Of the two new titles of list 2, {shown!r} is shown, and {other!r} is kept as a conflict.")
    console.print(show_board(both.all["bob"], "on both devices"))
    by_list = both.all["bob"].open_by_list()
    console.print("Open tasks: " + ", ".join(f"{count} in {title!r}" for title, count in by_list))
    return report(both, locator, watch.lines, console)


def report(both: Devices, locator: str, told: list[str], console: Console) -> dict[str, Any]:
    ended: dict[str, dict[str, Any]] = {
        name: {
            "snapshot": found.fingerprint(),
            "items": len(found.root.closure()),
            "open": found.open_by_list(),
            "board": found.as_value(),
        }
        for name, found in both.all.items()
    }
    agreed = ended["ada"] == ended["bob"]
    for name, device in ended.items():
        console.print(f"  {name}: {device['items']} items of the view, {device['snapshot'][:16]}")
    console.print("[bold green]Both agree.[/]" if agreed else "[bold red]They do not agree.[/]")
    return {"agreed": agreed, "locator": locator, "told": told, "devices": ended}


def show_session(both: Devices, console: Console) -> None:
    (party,) = both.bob
    console.print(table(session(party, names_of(both))))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--home", type=Path, help="keep the stores in this folder; their keys come from a seed")
    parser.add_argument("--messages", action="store_true", help="print all messages")
    parser.add_argument("--json", action="store_true", help="end with a line of JSON")
    options = parser.parse_args()
    if options.home is not None and options.home.exists() and any(options.home.iterdir()):
        raise SystemExit(f"{options.home} is not empty; name another folder")
    console = Console(highlight=False, width=WIDTH)
    with tempfile.TemporaryDirectory() as folder, devices(options.home or Path(folder)) as both:
        found = play(both, console)
        if options.messages:
            show_session(both, console)
    if options.json:
        print(json.dumps(found))
    if not found["agreed"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
