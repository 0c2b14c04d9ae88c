"""The security page: its table of limits is that of the code, and what it links to exists."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

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
