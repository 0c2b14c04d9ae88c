"""docs/api.md names every public name of `antiphon` and every public member of its classes, and no others."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import antiphon
from antiphon.api.epochs import PartyEpochs
from antiphon.api.operator import PartyOperator
from antiphon.api.typed.schemas import Schemas
from antiphon.party.live.undo import UndoStack

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
WORDS = set(re.findall(r"\w+", " ".join(re.findall(r"```python.*?```|`[^`\n]+`", PAGE, re.DOTALL))))
TABLES = re.findall(r"^\| member of `(\w+)`.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)

KINDS = [antiphon.Object, antiphon.List, antiphon.Text, antiphon.Thread, antiphon.File]
CLASSES: list[type] = [antiphon.Store, antiphon.Party, antiphon.Handle, *KINDS, antiphon.Results, antiphon.Delta]
CLASSES += [antiphon.Subscription, PartyEpochs, PartyOperator, Schemas, UndoStack]
#: Members that only `LiveQueries` calls.
INTERNAL = {"Subscription": {"begin", "deliver", "fail", "put", "take"}}
#: Members that instances get in `__init__`.
ATTRIBUTES = {
    "Store": {"recovery_phrase", "path", "keys", "manager", "held_views", "registry", "network"},
    "Party": {"store", "schemas", "epochs", "operator", "processor", "member", "queries"},
}
OPERATORS = {"in", "len", "for", "str"}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: str(cls.__name__))
def test_the_page_names_every_member(cls: type) -> None:
    public = {name for name in dir(cls) if not name.startswith("_")} - INTERNAL.get(cls.__name__, set())
    public |= ATTRIBUTES.get(cls.__name__, set())
    assert public
    assert sorted(public - WORDS) == []


def test_the_page_names_everything_public() -> None:
    assert sorted(set(import_module("antiphon").__all__) - WORDS) == []


@pytest.mark.parametrize(("name", "rows"), TABLES)
def test_the_tables_name_only_members(name: str, rows: str) -> None:
    (cls,) = [cls for cls in CLASSES if cls.__name__ == name]
    cells = " ".join(row.split(" | ")[0] for row in rows.splitlines())
    named = set(re.findall(r"`(\w+)(?:\([^`]*\))?`", cells)) - OPERATORS
    assert named
    assert sorted(named - set(dir(cls)) - ATTRIBUTES.get(name, set())) == []


def test_every_class_with_members_has_a_table() -> None:
    assert {name for name, _ in TABLES} >= {"Store", "Party", "Handle", "PartyEpochs", "Schemas"}
