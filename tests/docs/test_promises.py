"""What the ledger's rows on items, views, schemas, queries and examples promise, where no other test says just that."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from examples.chess_model import ChessModel
from examples.planner import Planner, build, open_store
from pydantic import BaseModel

import antiphon
from antiphon import Handle, InvalidMutation, Object, Party, Schema, SchemaViolation, Store, Text, prop, sync
from antiphon.api.registry import Kind, LocalRegistry, RegistryEntry
from antiphon.core import ItemId
from antiphon.schema import Migrations

pytestmark = pytest.mark.slow


# -- the system item, the tree and the DAG


def test_every_party_has_a_system_item_that_nobody_made(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    for where in (ada.create_party().root, party.root, theirs.root):
        assert bytes(where.id) == bytes(16)
        assert (where.model, where.parent) == ("antiphon/object", None)
        with pytest.raises(InvalidMutation):
            where.delete()
    note = party.object()
    with pytest.raises(antiphon.AntiphonError):
        party.root.move_under(note)
    note.move_under(party.root)
    assert note.parent is None, "to hang under the root is to be at the top"


def test_items_form_a_tree_and_a_dag(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    """One parent each; but one item may be a part of several, and all are reached from each."""
    shelf, album, song = party.object(), party.object(), party.text("la")
    song.move_under(shelf)
    for whole in (shelf, album):
        whole.embed(song)
    part = song.create("antiphon/array")
    sync(ada, bob)
    for where in (party, theirs):
        both = [where.item(whole.id) for whole in (shelf, album)]
        assert {bytes(item.id) for whole in both for item in whole.embedded} == {bytes(song.id)}
        assert all({bytes(part.id), bytes(song.id)} < {bytes(item.id) for item in whole.closure()} for whole in both)
        assert where.item(song.id).parent == both[0]


# -- views and embedding


def test_a_view_is_embedded_like_any_other_item(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    """A canvas inside a document: the same set, the same place in the text; only its address is its own."""
    document = party.text("Look: ")
    canvas = party.create_view("org.example:canvas", name="Sketch")
    document.insert_item(len(document), canvas)
    sync(ada, bob)
    there = theirs.item(document.id, Text)
    assert [bytes(item.id) for item in there.embedded] == [bytes(canvas.id)]
    assert there.items() == [(6, bob.resolve(str(canvas.locator)))]
    assert {bytes(item.id) for item in there.closure()} == {bytes(document.id), bytes(canvas.id)}


def test_the_id_of_a_view_is_of_party_key_and_time_and_the_key_is_not_kept(ada: Store, party: Party) -> None:
    board = party.create_view("org.example:board", name="Board")
    assert board.id == ItemId.of_view(board.id.lamport, party=party.key, key=board.locator.key)
    assert {"view_class", "display_name", "id_proof", "view_key"} <= board.metadata.keys()
    assert board.locator.key not in {record.key for record in ada.keys.keys()}  # noqa: SIM118 - a store, not a dict


def test_a_game_of_chess_embeds_a_text_for_notes(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    for store in (ada, bob):
        store.models.register(ChessModel)
    game = party.create(ChessModel.name)
    notes = game.create("antiphon/text")
    game.edit("sit", "white")
    notes.append("A quiet game.")
    sync(ada, bob)
    (there,) = theirs.item(game.id).embedded
    assert there.value == "A quiet game."
    assert there.parent == theirs.item(game.id)


# -- names


def test_names_stand_in_a_file_or_in_a_registry_of_ones_own(tmp_path: Path) -> None:
    record = RegistryEntry(ChessModel.name, "model", "Games", entry="examples.chess_model:ChessModel")
    with antiphon.open(tmp_path / "ada", unprotected=True) as store:
        store.registry.register(record)
        assert isinstance(store.registry, LocalRegistry)
    with antiphon.open(tmp_path / "ada", unprotected=True) as store:
        assert list(store.registry.records("model")) == [record]
        assert store.load_models() == [ChessModel.name]
        assert store.create_party().create(ChessModel.name).value["turn"] == "white"

    class Elsewhere:
        """A registry that is no file."""

        def find(self, name: str, version: int | None = None) -> RegistryEntry | None:
            return record if name == record.name and version in (None, record.version) else None

        def records(self, kind: Kind | None = None) -> Iterable[RegistryEntry]:
            return [record]

        def register(self, record: RegistryEntry) -> None:
            raise NotImplementedError

    with antiphon.open(tmp_path / "bob", registry=Elsewhere(), unprotected=True) as store:
        assert store.load_models() == [ChessModel.name]


# -- schemas


@antiphon.typed("task")
@dataclass
class Task:
    title: str
    done: bool = False


class Person(BaseModel):
    name: str
    age: int


TOWN = {
    "title": "town",
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}


def test_a_schema_is_an_item_that_checks_writes_also_where_the_class_is_not(
    ada: Store, bob: Store, party: Party, theirs: Party
) -> None:
    """From a dataclass, a pydantic model and JSON Schema; Bob's device uses none of the classes."""
    task, person = party.object(Task("Plan")), party.object(Person(name="Ada", age=36))
    town = party.object({"name": "Ulm"})
    party.schemas.assign(town, Schema.of(TOWN))
    sync(ada, bob)

    names = {schema.name for schema in theirs.schemas.all()}
    assert {"task", "town"} < names
    assert len(names) == len(theirs.query(type="antiphon/schema")) == 3, "they are items"
    for item, key, wrong in ((task, "done", "soon"), (person, "age", "old"), (town, "name", 5)):
        there = theirs.item(item.id, Object)
        before = there.value
        with pytest.raises(SchemaViolation, match=f"at {key}: expected"):
            there[key] = wrong
        assert there.value == before
    theirs.item(task.id, Object)["done"] = True
    sync(ada, bob)
    assert task.read_as(Task).object == Task("Plan", done=True)
    assert [bytes(item.id) for item in theirs.query(type="task")] == [bytes(task.id)]


def test_what_others_wrote_is_not_refused_by_a_schema_and_read_with_tolerance(
    ada: Store, bob: Store, party: Party, theirs: Party
) -> None:
    item = party.object({"title": "Plan", "done": False})
    sync(ada, bob)
    theirs.item(item.id, Object)["done"] = "soon"  # at the same time, Ada says that it is a task:
    party.schemas.assign(item, Task)
    sync(ada, bob)
    for where in (party, theirs):
        assert where.refused() == []
        read = where.item(item.id, Object).read_as(Task)
        assert read.object == Task("Plan")
        assert [problem.path for problem in read.problems] == [("done",)]
        where.item(item.id, Object)["title"] = "Plan it"  # only what is touched is checked


def test_objects_of_an_older_version_are_brought_to_the_new_one(party: Party) -> None:
    old: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}
    new: dict[str, Any] = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    item = party.object({"name": "Plan"})
    party.schemas.assign(item, Schema.of(old, "job", 1))
    migrations = Migrations(Schema.of(new, "job", 2))

    @migrations.step(1)
    def name_to_title(value: dict[str, Any]) -> dict[str, Any]:
        return {"title": value["name"]}

    assert party.schemas.migrate(migrations) == 1
    assert item.value == {"title": "Plan"}
    found = party.schemas.of(item)
    assert found is not None
    assert found.version == 2
    assert party.schemas.migrate(migrations) == 0


# -- queries


def test_a_query_opens_only_what_is_looked_at(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "ada", unprotected=True) as store:
        party = store.create_party("Household")
        with party.batch():
            for number in range(200):
                party.object({"n": number})
        assert len(party.query(prop("n") >= 0)) == 200
    with antiphon.open(tmp_path / "ada", unprotected=True) as store:
        party = store.party("Household")
        before = party.status().items_open
        found = party.query(prop("n") >= 50, order="-n")
        assert len(found) == 150
        assert party.status().items_open == before
        assert found[0].value == {"n": 199}
        assert party.status().items_open == before + 1


def test_the_index_is_kept_in_the_item_store_over_restarts(tmp_path: Path) -> None:
    def columns() -> list[set[str]]:
        found = []
        for path in (tmp_path / "ada" / "items").rglob("*"):
            if path.is_file() and path.read_bytes()[:6] == b"SQLite":
                with sqlite3.connect(path) as db:
                    found.append({row[1] for row in db.execute("PRAGMA table_info(docs)")})
                db.close()
        return found

    with antiphon.open(tmp_path / "ada", unprotected=True) as store:
        party = store.create_party("Household")
        party.object({"n": 1})
    (begun,) = columns()
    assert "parent" in begun, "it is kept from the start"
    assert "v0" not in begun, "but a property that is never asked for has no column"
    with antiphon.open(tmp_path / "ada", unprotected=True) as store:
        assert len(store.party("Household").query(prop("n") == 1)) == 1
    (made,) = columns()
    assert "v0" in made
    with antiphon.open(tmp_path / "ada", unprotected=True) as store:
        party = store.party("Household")
        party.object({"n": 1})
        assert len(party.query(prop("n") == 1)) == 2
    assert columns() == [made]


# -- pictures


def test_the_page_of_the_planner_draws_what_is_in_what(root: Path, tmp_path: Path) -> None:
    """Each line of the drawing is a kind of item with its model, under the one that embeds it; and the other way."""
    page = (root / "docs" / "examples" / "planner.md").read_text(encoding="utf-8")
    drawn = re.findall(r"^([ │├└─]*)(\w+) +(\w+) ", page.split("```text\n")[2].split("```")[0], re.MULTILINE)
    above: list[str] = []
    edges: set[tuple[str, str]] = set()
    for indent, name, model in drawn:
        del above[len(indent) // 3 :]
        edges.add((above[-1] if above else "", f"{name} {model}"))
        above.append(f"{name} {model}")
    assert len(edges) == 7

    with open_store(tmp_path, "ada") as store:
        planner = build(store)
        assert edges == {("", "planner object"), *nested(planner)}


def nested(planner: Planner) -> set[tuple[str, str]]:
    """What is embedded in what, by the names that the page uses."""
    by_type = {"list": "list", "task": "task"}
    names = {planner.root: "planner", planner.board: "board"}

    def called(item: Handle, value: Any) -> str:
        keys = [key for key, one in value.items() if one == item] if isinstance(value, Object) else []
        return f"{names.get(item) or by_type.get(item.type) or keys[0]} {item.model.removeprefix('antiphon/')}"

    return {
        (called(whole, whole.parent), called(part, whole))
        for whole in planner.root.closure()
        for part in whole.embedded
    }
