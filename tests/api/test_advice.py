"""Advice in error texts: every call that an error recommends exists, and helps."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import antiphon
from antiphon import InvalidInput, NotAuthorised, Party, Store

SOURCES = sorted(path for path in Path(antiphon.__file__).parent.rglob("*.py") if "v1" not in path.parts)


def texts(path: Path) -> Iterator[str]:
    """The strings of a module, without its docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_every_advised_member_exists(ada: Store, party: Party) -> None:
    """Names such as `store.me` in error texts lead from a store, a party or its epochs to something that exists."""
    advised = {
        name
        for path in SOURCES
        for text in texts(path)
        for name in re.findall(r"`((?:antiphon|store|party|epochs)\.[\w.]+)", text)
    }
    starts = {"antiphon": antiphon, "store": ada, "party": party, "epochs": party.epochs}
    assert {"store.me", "party.epochs.recover", "store.manager.resume"} <= advised
    for name in sorted(advised):
        start, *members = name.split(".")
        found = starts[start]
        for member in members:
            assert hasattr(found, member), f"an error advises `{name}`, which does not exist"
            found = getattr(found, member)


def test_a_number_becomes_a_counter_as_advised(party: Party) -> None:
    task = party.object({"votes": 2})
    with pytest.raises(InvalidInput, match=r'make it a counter: `edit\("counter", path\)`'):
        task.increment("votes")
    task.edit("counter", "votes")
    task.increment("votes")
    assert task["votes"] == 1


def test_a_restored_device_declares_epochs_again_as_advised(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "ada", unprotected=True) as ada:
        key = ada.create_party().key
    shutil.copytree(tmp_path / "ada", tmp_path / "twin")
    with antiphon.open(tmp_path / "twin", unprotected=True) as twin:
        party = twin.party(key)
        with pytest.raises(NotAuthorised, match=r"then call `party\.epochs\.recover\(\)`"):
            party.epochs.declare()
        party.epochs.recover()
        assert party.epochs.declare().final
