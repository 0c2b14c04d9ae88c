"""What docs/design/formats.md says of queries, their index, schemas and names is what the code has."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from tests.docs.test_formats import PARTY, SHOWN, TEXT, bytes_of

from antiphon.api.held_views import HeldViews
from antiphon.api.locator import Locator
from antiphon.api.registry import LocalRegistry
from antiphon.api.typed.schema_items import ITEM, SEAL
from antiphon.core.codec import u32
from antiphon.core.v1 import query_pb2
from antiphon.mesh.transport.address import Address
from antiphon.model.factory import ModelFactory
from antiphon.model.item_codec import restore
from antiphon.party.store.item_store import FORMAT as ITEMS_FORMAT, ItemStore
from antiphon.query.codec import protobuf
from antiphon.query.codec.json_form import from_json
from antiphon.query.filters import Fact, prop
from antiphon.query.index import tables
from antiphon.query.index.index import ItemIndex
from antiphon.query.query import Query
from antiphon.query.value_order import value_of
from antiphon.schema.document import from_document, to_document
from antiphon.testing.parties import pair_of


def section(heading: str) -> str:
    return str(TEXT.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ItemStore]:
    with closing(ItemStore(tmp_path / "items.db", PARTY)) as items:
        items.attach(ItemIndex)
        yield items


def index_of(store: ItemStore) -> ItemIndex:
    assert isinstance(store.index, ItemIndex)
    return store.index


def test_the_schema_of_the_index_is_that_of_the_file(store: ItemStore, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "items.db")) as db:
        schema = [f"{sql};" for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")]
        rows = db.execute("SELECT kind, slot, value FROM parts").fetchall()

    assert "\n".join(schema) == SHOWN["items-schema"] + SHOWN["index-schema"].rstrip("\n")
    assert rows == [("format", 0, tables.FORMAT)]
    assert f"`{tables.FORMAT}`" in section("Index of queries")
    assert f"`{ITEMS_FORMAT}`" in section("Item store")
    names = re.findall(r"CREATE TABLE (\w+)", SHOWN["index-schema"])
    assert len(names) == 7
    assert all(f"| `{name}` |" in section("Index of queries") for name in names)


def test_facts_of_the_page_are_found_by_queries(store: ItemStore, tmp_path: Path) -> None:
    item = bytes_of("item-id")
    index = index_of(store)
    index.put([(item, bytes_of("facts"))])

    assert index.run(Query(Fact.TYPE.is_("task") & (prop("size") == 2))).ids == (item,)
    assert index.run(Query(prop("due") == value_of(bytes_of("column-time")))).ids == (item,)
    with closing(sqlite3.connect(tmp_path / "items.db")) as db:
        assert db.execute("SELECT id, v1 FROM docs").fetchall() == [
            (bytes_of("column-reference"), bytes_of("column-time"))
        ]
        ((data, claims),) = db.execute("SELECT data, claims FROM facts").fetchall()
        assert u32(len(claims)) + claims + data == bytes_of("facts")


def test_both_queries_of_the_page_can_run(store: ItemStore) -> None:
    late = protobuf.decode(bytes_of("query-late"))
    assert index_of(store).run(protobuf.decode(bytes_of("query"))).ids == ()
    assert index_of(store).run(late).groups == ()
    assert from_json(json.loads(SHOWN["query-json"])) == late


@pytest.mark.parametrize("kind", ["fact", "way", "function"])
def test_what_is_numbered_is_named_in_its_order(kind: str) -> None:
    numbers = {
        name.removeprefix(f"QUERY_{kind.upper()}_").lower(): number
        for name, number in getattr(query_pb2, f"Query{kind.title()}").items()
        if number
    }
    assert [*numbers.values()] == [*range(1, 1 + len(numbers))]
    assert f"{', '.join(numbers)}, from 1 on" in " ".join(section("Query").split())


def test_every_field_of_a_query_is_in_the_table() -> None:
    fields = query_pb2.Query.DESCRIPTOR.fields
    assert all(f"| {field.number} | " in section("Query") for field in fields)
    assert all(f"| {field.name} |" in section("Query") for field in fields)
    kinds = query_pb2.Filter.DESCRIPTOR.fields
    assert all(f"{field.name} ({field.number}" in " ".join(section("Query").split()) for field in kinds)


def test_the_schema_of_the_page_is_one() -> None:
    text, digest = bytes_of("schema-text").decode(), bytes_of("schema-digest")
    schema = from_document({"name": "task", "version": 2, "schema": text, "digest": digest, "newer": 1})
    assert all(f"| `{key}` |" in section("Schema") for key in to_document(schema))
    assert sha256(b"antiphon.schema.seal.v1task\x002\0" + digest).digest() == bytes_of("schema-seal")
    assert all(f"`{key}`" in section("Message") and f"`{key}`" in section("Schema") for key in (ITEM, SEAL))


def test_the_locator_is_that_of_the_view_of_the_page() -> None:
    view = restore(bytes_of("item-snapshot-access"), ModelFactory.standard())
    locator = Locator.parse(bytes_of("locator").decode())
    assert view.view is not None
    assert (locator.party, locator.key) == (PARTY, view.view.key)
    assert locator.key == pair_of("a view").key
    assert view.id == bytes_of("item-id-view")


def test_the_address_of_the_page_has_its_parts_in_their_places() -> None:
    device, _, place = bytes_of("address").decode().removeprefix("antiphon://").partition("@")
    address = Address.parse(bytes_of("address").decode())
    assert bytes.fromhex(device) == pair_of("alice laptop").key == address.device
    assert place == f"[{address.host}]:{address.port}" == "[2001:db8::7]:4242"


def test_the_held_views_of_the_page_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "views.json").write_bytes(bytes_of("held-views"))
    views = HeldViews(tmp_path / "views.json", tmp_path)
    assert str(views.locator(PARTY)) == bytes_of("locator").decode()
    assert views.without_id(PARTY) is None
    assert views.wants_whole(PARTY)
    (row,) = json.loads(bytes_of("held-views"))
    assert bytes.fromhex(row["item"]) == bytes_of("item-id-view")
    assert all(f"| `{field}` |" in section("Held views") for field in row)


def test_a_registry_of_what_the_page_shows_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "names.json").write_bytes(bytes_of("registry"))
    planner = LocalRegistry(tmp_path / "names.json").find("org.example:planner")
    assert planner is not None
    assert planner.kind == "view class"
    assert all(f"| `{field}` |" in section("Registry of names") for field in json.loads(bytes_of("registry"))[0])
