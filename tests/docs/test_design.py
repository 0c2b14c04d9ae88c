"""What the documents promise about themselves: the first page, the conventions, the schemas."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

#: The modules of `antiphon.model` that make and read generated messages; states are plain values of our own.
ENCODING = frozenset(
    [
        "access_codec",
        "array/codec",
        "heard",
        "item_codec",
        "message",
        "messenger/codec",
        "messenger/model",
        "object/mutation_codec",
        "object/register",
        "object/snapshot_codec",
        "text/absent_feeds",
        "text/codec",
        "text/model",
        "text/snapshot_columns",
        "text/snapshot_marks",
        "text/snapshot_reader",
        "text/snapshot_writer",
        "text/waiting_rows",
        "value",
        "wire",
    ]
)


def test_the_first_page_tells_echo_halo_and_mesh_apart_and_draws_the_stack(root: Path) -> None:
    page = (root / "docs" / "design" / "README.md").read_text()
    for word in ("ECHO is", "HALO is", "MESH is"):
        assert f"**{word}" in page
    drawn = page[page.index("## The stack") : page.index("## The way of a message")]
    for part in ("feed", "HALO", "items", "snapshot", "query", "MESH"):
        assert part in drawn
    assert drawn.count("|") > 20, "a picture, not a sentence"


def test_contributing_says_how_names_are_written_and_decisions_recorded(root: Path) -> None:
    page = (root / "CONTRIBUTING.md").read_text()
    for heading in ("How names and prose are written", "How a design decision is recorded", "Move a row of the ledger"):
        section = page[page.index(f"## {heading}") :].split("\n## ")[0]
        assert len(section) > 200
    assert '"N"' in (root / "pyproject.toml").read_text(), "ruff's rules for names are on"


@pytest.mark.parametrize("name", ["message.proto", "credential.proto", "item.proto"])
def test_every_message_of_a_schema_says_what_it_is_for(root: Path, name: str) -> None:
    lines = (root / "proto" / "antiphon" / "v1" / name).read_text().splitlines()
    found = [at for at, line in enumerate(lines) if re.match(r"(message|enum) ", line)]
    assert len(found) >= 4
    assert [lines[at] for at in found if not lines[at - 1].startswith("//")] == []


def test_every_schema_says_what_it_is_for(root: Path) -> None:
    schemas = sorted((root / "proto" / "antiphon" / "v1").glob("*.proto"))
    assert len(schemas) >= 8
    assert [path.name for path in schemas if not path.read_text().startswith("// ")] == []


def test_the_page_on_the_live_engine_draws_its_stages_and_stores(root: Path) -> None:
    page = (root / "docs" / "design" / "live-engine.md").read_text()
    drawn = page[page.index("```text") :].split("```")[1]
    for part in ("FeedStore", "control feeds", "delivery", "judge", "demuxer", "fold", "ItemStore", "listeners"):
        assert part in drawn
    assert drawn.count("│") > 20, "a picture, not a sentence"
    for heading in ("Causal delivery", "What counts", "From blocks to states", "The item store", "Writing", "Streams"):
        section = page[page.index(f"## {heading}") :].split("\n## ")[0]
        assert len(section) > 400


def test_generated_messages_are_used_only_to_encode_and_decode(root: Path) -> None:
    source = root / "src" / "antiphon"
    users = {str(path.relative_to(source)) for path in source.rglob("*.py") if "core.v1" in path.read_text()}
    users = {user for user in users if not user.startswith("core/v1/")}
    users -= {"mesh/replication/codec.py", "query/codec/protobuf.py"}
    halo = {f"halo/{name}.py" for name in ("acts/act", "credentials/credential", "credentials/epoch_codec")}
    halo |= {"halo/credentials/fields.py"}
    assert {user for user in users if not user.startswith("model/")} == halo
    assert users - halo == {f"model/{name}.py" for name in ENCODING}
