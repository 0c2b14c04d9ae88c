"""Examples of queries and their index, of schemas, and of keys and invitations as text."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from tools.example import ALICE, BOB_DATA, CONTROL, DATA, ITEM, LAPTOP, NOW_MS, PARTY, Example
from tools.examples_models import VIEW

from antiphon.api.backup.manifest import (
    FILES as BACKUP_FILES,
    BackupFile,
    Counts,
    Manifest,
    decode_manifest,
    encode_manifest,
)
from antiphon.api.held_views import HeldViews
from antiphon.api.invitation import Invitation
from antiphon.api.key_text import from_text, to_text
from antiphon.api.locator import Locator
from antiphon.api.registry import LocalRegistry, RegistryEntry
from antiphon.api.typed.schema_items import seal_of
from antiphon.core.home_version import decode_version, encode_version
from antiphon.core.ids import ItemId
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import value_pb2
from antiphon.mesh.transport.address import Address
from antiphon.model.value import Reference, read_value, to_proto
from antiphon.party.store.item_store import ItemStore
from antiphon.query.codec import protobuf
from antiphon.query.codec.facts import decode_facts, encode_facts
from antiphon.query.codec.json_form import from_json, to_json
from antiphon.query.facts import Facts
from antiphon.query.filters import Fact, Match, prop
from antiphon.query.index.index import ItemIndex
from antiphon.query.query import Query
from antiphon.query.value_order import Column, column, value_of
from antiphon.schema.canonical_json import digest_of
from antiphon.schema.definition import Schema
from antiphon.schema.document import from_document, to_document

OTHER = ItemId.derive(3, party=PARTY.key, feed=BOB_DATA.key, genesis=bytes(16))
DUE = datetime(2023, 11, 14, tzinfo=UTC)

#: The ten tasks under the item of the other examples that are due first, without those that are done.
TASKS = Query(Fact.TYPE.is_("task") & Fact.PARENT.is_(ITEM) & ~prop("done").exists()).order_by("due").take(10)
#: How many items of each model are boards that hold something late, deleted or not.
LATE = (
    Query((prop("due") < DUE) | Match("late") | prop("tags").has("late"))
    .parent(Fact.TYPE.is_("board"))
    .count(group=Fact.MODEL)
    .with_deleted()
)
SCHEMA = Schema.of(
    {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}, name="task", version=2
)
RECORDS = (
    RegistryEntry("org.example:kanban", "model", "A board of cards", 1, "example.kanban:Kanban", "example-kanban"),
    RegistryEntry("org.example:planner", "view class", "Boards with lists of tasks"),
)


def facts() -> Facts:
    """A task in the view of the other examples, which Alice has put under Bob's item."""
    return Facts(
        id=bytes(ITEM),
        model="antiphon/object",
        version=1,
        value={"due": DUE, "size": 2.0, "see": Reference(bytes(OTHER))},
        type="task",
        name="Plan",
        created_ms=NOW_MS,
        claims=((Stamp(4, bytes(DATA.key), 2), bytes(OTHER)),),
        references=(Reference(bytes(OTHER)),),
    )


def query_examples() -> dict[str, Example]:
    def again(data: bytes) -> bytes:
        return protobuf.encode(protobuf.decode(data))

    return {
        "query": Example(protobuf.encode(TASKS), again),
        "query-late": Example(protobuf.encode(LATE), again),
        "query-json": Example(
            query_text(LATE),
            lambda data: query_text(protobuf.decode(protobuf.encode(from_json(json.loads(data))))),
            text=True,
        ),
    }


def query_text(query: Query) -> bytes:
    return json.dumps(to_json(query)).encode()


# -- the index

#: A query that lets the index grow all that it can: two columns, elements of lists, words, and an order.
ASKED = Query((prop("size") > 1) & prop("tags").has("late") & Match("plan")).order_by("due", descending=True).take(1)
_OF_SQLITE = ("CREATE TABLE sqlite_", "CREATE TABLE 'words_", "CREATE TABLE docs ")


def index_examples() -> dict[str, Example]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.db"
        with closing(ItemStore(path, bytes(PARTY.key))) as store:
            items = schema_of(path)
            store.attach(ItemIndex)
            assert isinstance(store.index, ItemIndex)
            new = schema_of(path)
            store.index.run(ASKED)
            asked = schema_of(path)
    lines = [line for line in asked if line not in new and not line.startswith(_OF_SQLITE)]
    return {
        "index-schema": Example("\n".join(new[len(items) :]).encode(), lambda data: data, text=True),
        "index-asked": Example("\n".join(lines).encode(), lambda data: data, text=True),
        "facts": Example(encode_facts(facts()), lambda data: encode_facts(decode_facts(data))),
        **{name: Example(stored, column_again) for name, stored in columns().items()},
    }


def schema_of(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [f"{sql};" for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")]


def columns() -> dict[str, bytes]:
    """The content of a column for values that are neither numbers nor text."""
    found: dict[str, Column] = {
        "column-time": column(DUE),
        "column-reference": column(Reference(bytes(ITEM))),
        "column-list": column([1, 1.0, "a", {"b": None}]),
    }
    return {name: stored for name, stored in found.items() if isinstance(stored, bytes)}


def column_again(data: bytes) -> bytes:
    found = column(value_of(data))
    assert isinstance(found, bytes)
    return found


# -- schemas


def schema_examples() -> dict[str, Example]:
    return {
        "schema-text": Example(
            SCHEMA.text.encode(), lambda data: Schema("task", 2, data.decode()).text.encode(), text=True
        ),
        "schema-digest": Example(SCHEMA.digest, lambda _: digest_of(SCHEMA.text)),
        "schema-seal": Example(seal_of(SCHEMA), lambda _: seal_of(read_document(document_bytes(SCHEMA)))),
        "schema-document": Example(document_bytes(SCHEMA), lambda data: document_bytes(read_document(data))),
    }


def document_bytes(schema: Schema[dict[str, object]]) -> bytes:
    """The value of a schema's item."""
    return to_proto(to_document(schema)).SerializeToString(deterministic=True)


def read_document(data: bytes) -> Schema[dict[str, object]]:
    return from_document(read_value(value_pb2.Value.FromString(data)))


# -- what people pass on


def text_examples() -> dict[str, Example]:
    locator = Locator(PARTY.key, VIEW.key)
    invitation = Invitation(PARTY.key, CONTROL.key, "Book club, 2nd")
    with tempfile.TemporaryDirectory() as folder:
        names = registry_bytes(Path(folder), RECORDS)
        views = HeldViews(Path(folder) / "views.json", Path(folder))
        views.add(locator, ItemId.of_view(2, party=PARTY.key, key=VIEW.key))
        held = left_bytes(views, Path(folder))
    return {
        "key-text": Example(
            to_text(ALICE.key).encode(), lambda data: to_text(from_text(data.decode(), "Alice")).encode(), text=True
        ),
        "locator": Example(str(locator).encode(), lambda data: str(Locator.parse(data.decode())).encode(), text=True),
        "invitation": Example(
            str(invitation).encode(), lambda data: str(Invitation.parse(data.decode())).encode(), text=True
        ),
        "address": Example(
            str(Address(LAPTOP.key, "2001:db8::7", 4242)).encode(),
            lambda data: str(Address.parse(data.decode())).encode(),
            text=True,
        ),
        "item-id-view": Example(
            bytes(ItemId.of_view(2, party=PARTY.key, key=VIEW.key)),
            lambda data: bytes(ItemId.of_view(ItemId(data).lamport, party=PARTY.key, key=VIEW.key)),
        ),
        "registry": Example(names, registry_again, text=True),
        "held-views": Example(held, read_held_views, text=True),
        "home-version": Example(encode_version(2), lambda data: encode_version(decode_version(data)), text=True),
        "backup-manifest": Example(
            encode_manifest(BACKUP), lambda data: encode_manifest(decode_manifest(data)), text=True
        ),
    }


#: The backup of a home with one party, whose files each have their own name as content.
BACKUP = Manifest(
    NOW_MS,
    "passphrase",
    Counts(parties=1, feeds=2, blocks=9, blobs=4, wrong=0),
    tuple(BackupFile(name, len(name), sha256(name.encode()).digest()) for name in BACKUP_FILES),
)


def registry_bytes(folder: Path, records: Iterable[RegistryEntry]) -> bytes:
    """The file of a registry with these records."""
    registry = LocalRegistry(folder / "names.json")
    for record in records:
        registry.register(record)
    return (folder / "names.json").read_bytes()


def registry_again(data: bytes) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "read.json").write_bytes(data)
        return registry_bytes(Path(folder), LocalRegistry(Path(folder) / "read.json").records())


def left_bytes(views: HeldViews, folder: Path) -> bytes:
    """The file of a store that holds the view and is to hold the whole party again."""
    views.want_whole(PARTY.key)
    return (folder / "views.json").read_bytes()


def read_held_views(data: bytes) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "views.json").write_bytes(data)
        return left_bytes(HeldViews(Path(folder) / "views.json", Path(folder)), Path(folder))


def other_examples() -> dict[str, Example]:
    """All examples of this module, by their names on the page."""
    return {**query_examples(), **index_examples(), **schema_examples(), **text_examples()}
