"""The security page: its table of limits is that of the code, and what it links to exists."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from tests.docs.test_ledger import exists

from antiphon.feed import limits as feed_limits
from antiphon.halo import limits as halo_limits

ROW = re.compile(r"^\| `([\w.]+)` \| ([\d,]+) \| .+ \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "security.md").read_text()


def test_the_limits_are_those_of_the_code(page: str) -> None:
    rows = ROW.findall(page)
    assert len(rows) > 30
    for name, value in rows:
        module, constant = name.rsplit(".", 1)
        assert getattr(import_module(f"antiphon.{module}"), constant) == int(value.replace(",", "")), name


def test_no_limit_of_feeds_or_parties_is_left_out(page: str) -> None:
    listed = {name for name, _ in ROW.findall(page)}
    for module in (feed_limits, halo_limits):
        names = {
            f"{module.__name__.removeprefix('antiphon.')}.{name}" for name in vars(module) if name.endswith("_MAX")
        }
        own = {name for name in names if "QUARANTINE" in name}  # a peer's own bounds, no part of the format
        assert names - own <= listed


def test_every_adversary_is_told_apart(page: str) -> None:
    for adversary in ("stranger", "former member", "reader", "editor", "owner", "thief", "relay"):
        assert re.search(rf"^### .*{adversary}", page, re.MULTILINE | re.IGNORECASE), adversary
    assert page.count("**Promised**") == page.count("\n### ")
    assert page.count("**Not promised**") == page.count("\n### ")


def test_every_promise_names_tests_that_exist(page: str, root: Path) -> None:
    """Each promise to all, and each adversary, has a row, and each row a test."""
    part = page.split("## Which tests show it")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| ([^`|]+) \| (`tests/.+`) \|$", part, re.MULTILINE))
    wanted = re.findall(r"^\| \*\*(.+?)\*\* \|", page, re.MULTILINE)
    adversaries = re.findall(r"^### (?:An? )?(.+?)(?:,.*)?$", page, re.MULTILINE)
    assert (len(wanted), len(adversaries)) == (5, 9)
    for subject in (*wanted, *(adversary.lower() for adversary in adversaries)):
        assert any(subject in promise for promise in rows), subject
    for test in re.findall(r"`(tests/[^`]+)`", part):
        assert exists(test, root), test
