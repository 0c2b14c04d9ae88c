"""docs/api.md names every public name of `antiphon`, and every public member of the classes that applications use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import antiphon
from antiphon.api.epochs import PartyEpochs
from antiphon.api.typed.schemas import Schemas
from antiphon.party.live.undo import UndoStack

#: Members that only `LiveQueries` calls.
INTERNAL = {"Subscription": {"begin", "deliver", "fail", "put", "take"}}
KINDS = [antiphon.Object, antiphon.List, antiphon.Text, antiphon.Thread, antiphon.File]
CLASSES: list[type] = [antiphon.Store, antiphon.Party, antiphon.Handle, *KINDS, antiphon.Results, antiphon.Delta]
CLASSES += [antiphon.Subscription, PartyEpochs, Schemas, UndoStack]


@pytest.fixture(scope="module")
def words() -> set[str]:
    """Every word in back-ticks, or in an example."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text()
    return {
        word for code in re.findall(r"```python.*?```|`[^`\n]+`", page, re.DOTALL) for word in re.findall(r"\w+", code)
    }


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: str(cls.__name__))
def test_the_page_names_every_member(words: set[str], cls: type) -> None:
    public = {name for name in dir(cls) if not name.startswith("_")} - INTERNAL.get(cls.__name__, set())
    assert public
    assert sorted(public - words) == []


def test_the_page_names_everything_public(words: set[str]) -> None:
    assert sorted(set(antiphon.__all__) - words) == []
