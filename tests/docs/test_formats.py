"""docs/design/formats.md shows what the encoders make, byte for byte, and the decoders take what it shows."""

from __future__ import annotations

import importlib.util
import re
import sqlite3
import sys
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import lmdb
import pytest
from tests.party.store.forged_sums import forge_sums

from antiphon.feed.block import BodyState
from antiphon.feed.header import ENTRY, HEADER
from antiphon.feed.span import FIXED_SIZE
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.tables import TABLES, checked
from antiphon.halo.credentials.claims import Claim
from antiphon.model import item_codec
from antiphon.model.array.model import ArrayModel
from antiphon.model.factory import ModelFactory
from antiphon.model.messenger.model import MessengerModel
from antiphon.model.object.model import ObjectModel
from antiphon.model.text.model import TextModel
from antiphon.party.store.item_store import ItemStore
from antiphon.party.store.meta_store import MetaStore
from antiphon.testing.parties import pair_of

ROOT = Path(__file__).resolve().parents[2]
PARTY = bytes(pair_of("party").key)


def load(name: str) -> Any:
    """A module of tools/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"antiphon_tools_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


formats = load("formats")
TEXT = formats.PAGE.read_text()
SHOWN: dict[str, str] = formats.on_page(TEXT)
EXAMPLES: dict[str, Any] = formats.examples()
each_example = pytest.mark.parametrize("name", sorted(SHOWN.keys() & EXAMPLES.keys()))


def bytes_of(name: str) -> bytes:
    """What the page shows."""
    data: bytes = formats.read(SHOWN[name], EXAMPLES[name])
    return data


def test_every_example_is_shown_and_every_one_shown_is_made() -> None:
    assert sorted(SHOWN) == sorted(EXAMPLES)


@each_example
def test_the_page_shows_what_the_encoder_makes(name: str) -> None:
    assert bytes_of(name) == EXAMPLES[name].data, "if the format was meant to change, run tools/formats.py"


@each_example
def test_the_example_is_laid_out_as_the_page_says(name: str) -> None:
    assert SHOWN[name] == formats.shown(EXAMPLES[name])
    lines = SHOWN[name].splitlines()
    assert EXAMPLES[name].text or {len(line) for line in lines[:-1]} <= {64}


@each_example
def test_the_decoder_takes_what_the_page_shows(name: str) -> None:
    assert EXAMPLES[name].again(bytes_of(name)) == bytes_of(name)


def test_every_kind_of_claim_has_an_example() -> None:
    claims = load("examples").claims()
    assert {type(claim) for claim, _, _ in claims.values()} == set(get_args(Claim))
    assert claims.keys() <= SHOWN.keys()


# -- the stores


def test_a_store_made_of_what_the_page_shows_can_be_read(tmp_path: Path) -> None:
    alice, bob = pair_of("alice laptop data").key, pair_of("bob laptop data").key
    entries = [
        ("records", alice, "record"),
        ("records", bob, "record-ended"),
        ("spans", bytes_of("spans-key"), "span-stored"),
        ("frontiers", bytes_of("frontiers-key"), "frontier"),
        ("forks", bob, "fork"),
        ("branches", bytes_of("branches-key"), "branch-stored"),
        ("branch_blocks", bytes_of("branch-blocks-key"), "branch-block"),
        ("quarantine", bytes_of("quarantine-key"), "refusal"),
        ("quarantine", bytes_of("quarantine-digest-key"), "quarantine-digest"),
        ("quarantine", bytes_of("quarantine-source-key"), "quarantine-source"),
        ("meta", b"format", "meta-format"),
        ("meta", b"quarantine.next", "meta-next"),
    ]
    with lmdb.open(str(tmp_path), max_dbs=len(TABLES)) as env:
        tables = {name: env.open_db(name.encode()) for name in TABLES}
        with env.begin(write=True) as txn:
            for table, key, name in entries:
                value = bytes_of(name)
                txn.put(key, checked(value) if table == "forks" else value, db=tables[table])

    with FeedStore.open(tmp_path) as store:
        first, second = store.read(alice)
        assert (first.hash, first.body) == (bytes_of("block-hash"), bytes_of("body"))
        assert (second.seq, second.message, second.state) == (1, bytes_of("message-mutation"), BodyState.PRESENT)
        assert store.block(alice, 0) == first
        head = store.head(alice)
        assert head is not None
        assert head.encode() == bytes_of("head")
        (span,) = store.spans(alice)
        assert span.encode() == bytes_of("span")
        assert [entry.encode() for entry in store.frontier(alice).values()] == [bytes_of("entry")]
        assert (store.bounds(bob).end, store.fork(bob)) == (1, bytes_of("fork"))
        (branch,) = store.branches(bob)
        assert (branch.first, branch.hash_at(2)) == (1, bytes_of("branches-key")[32:])
        assert store.branch_with(bob, 1, bytes_of("branch-blocks-key")[32:]) == branch
        (refusal,) = store.quarantine().refusals
        assert refusal.feed == bob


def test_the_tables_are_those_of_the_store() -> None:
    assert load("examples").TABLES == TABLES
    assert all(f"| `{table}` |" in TEXT for table in TABLES)


def test_the_schema_is_that_of_the_file(tmp_path: Path) -> None:
    MetaStore.open(tmp_path / "meta.db").close()
    with closing(sqlite3.connect(tmp_path / "meta.db")) as db:
        schema = [f"{sql};" for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")]
        kind, version = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))

    assert SHOWN["meta-schema"].splitlines()[2:] == schema
    assert SHOWN["meta-schema"].splitlines()[:2] == [
        f"PRAGMA application_id = {kind};",
        f"PRAGMA user_version = {version};",
    ]


def test_the_schema_of_items_is_that_of_the_file(tmp_path: Path) -> None:
    ItemStore(tmp_path / "items.db", PARTY).close()
    with closing(sqlite3.connect(tmp_path / "items.db")) as db:
        schema = [f"{sql};" for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")]
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]

    assert SHOWN["items-schema"].rstrip("\n") == "\n".join(schema)
    assert all(f"| `{table}` |" in TEXT.split("\n## Item store\n", 1)[1] for table in tables)


def test_an_item_store_made_of_what_the_page_shows_can_be_read(tmp_path: Path) -> None:
    item, alice = bytes_of("item-id"), pair_of("alice laptop data").key
    record = bytes_of("item-record")
    ItemStore(tmp_path / "items.db", PARTY).close()
    with closing(sqlite3.connect(tmp_path / "items.db")) as db:
        db.execute("INSERT INTO feeds VALUES (1, ?, ?)", (alice, bytes_of("lane-state")))
        db.execute("INSERT INTO postings VALUES (?, 1, ?)", (item, bytes_of("postings")))
        crc = zlib.crc32(item + b"antiphon/text|1||000" + record).to_bytes(4, "little")
        db.execute("INSERT INTO items VALUES (?, 'antiphon/text', 1, x'', 0, 0, 0, ?)", (item, record + crc))
        db.commit()
    forge_sums(tmp_path / "items.db")

    store = ItemStore(tmp_path / "items.db", PARTY)
    try:
        assert store.why_rebuilt == ""
        (lane,) = store.lanes()
        assert (lane.feed, lane.number, lane.position, lane.lamport) == (alice, 1, 3, 4)
        assert store.postings(item) == [(1, 0, 2), (2, 0, 300)]
        loaded = item_codec.decode(store.load([item])[item], ModelFactory.standard())
        assert (loaded.id, loaded.value, loaded.metadata) == (item, "hello", {"title": "Plan"})
        assert item_codec.snapshot(loaded) == bytes_of("item-snapshot")
    finally:
        store.close()


def test_every_model_of_the_collection_has_its_mutations_and_its_state_on_the_page() -> None:
    factory = ModelFactory(ObjectModel, ArrayModel, TextModel, MessengerModel)
    for name in ("object", "array", "text", "messenger"):
        model = factory.get(f"antiphon/{name}")
        state = model.restore(bytes_of(f"{name}-snapshot"))
        assert model.snapshot(state) == bytes_of(f"{name}-snapshot")
        assert len([example for example in SHOWN if example.startswith(f"{name}-")]) >= 4


# -- tables of fields


def fields(heading: str) -> list[tuple[int, int, str]]:
    """The fields at fixed places in the first table under a heading."""
    section = TEXT.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (\d+) \| (\d+) \| ([\w ]+) \|", section, re.MULTILINE)
    return [(int(offset), int(size), name) for offset, size, name in rows]


@pytest.mark.parametrize("layout", [("Block header", HEADER), ("Advance entry", ENTRY)], ids=lambda pair: str(pair[0]))
def test_the_fields_are_those_of_the_layout(layout: tuple[str, Any]) -> None:
    heading, dtype = layout
    assert fields(heading) == [(dtype.fields[name][1], dtype.fields[name][0].itemsize, name) for name in dtype.names]


@pytest.mark.parametrize(
    ("heading", "size"),
    [
        ("Item id", 16),
        ("Stamp", 48),
        ("CID", 36),
        ("Block header", 82),
        ("Advance entry", 80),
        ("Block hash", 242),
        ("Span", FIXED_SIZE),
        ("Fork evidence", 108),
        ("Feed record", 211),
        ("Refusal", 88),
    ],
)
def test_fields_follow_each_other_without_a_gap(heading: str, size: int) -> None:
    at = 0
    for offset, length, name in fields(heading):
        if offset == 0 and at == size:
            break  # another table
        assert offset == at, name
        at += length
    assert at == size


# -- the tool


def test_the_tool_says_that_the_page_is_current() -> None:
    assert formats.main(["--check"]) == 0


def test_the_tool_mends_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "formats.md"
    page.write_text(TEXT.replace(SHOWN["stamp"], "00\n").replace(SHOWN["header"], ""))
    monkeypatch.setattr(formats, "PAGE", page)

    assert formats.main(["--check"]) == 1
    assert formats.main([]) == 0
    assert page.read_text() == TEXT


def test_the_tool_says_what_is_missing_or_nobodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "formats.md"
    page.write_text(TEXT.replace("<!-- example: stamp -->", "<!-- example: stump -->"))
    monkeypatch.setattr(formats, "PAGE", page)

    assert formats.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert "stamp: not on the page" in said
    assert "stump: nobody makes it" in said


def test_a_marker_without_a_fence_is_an_error() -> None:
    with pytest.raises(SystemExit):
        formats.on_page("<!-- example: stamp -->\n\n00\n")
    with pytest.raises(SystemExit):
        formats.on_page("<!-- example: stamp -->\n```text\n00\n```\n" * 2)
