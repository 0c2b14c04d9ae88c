"""The laws of item stores hold for ours, and are broken by one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.party.engine.ports import Posting
from antiphon.party.store.item_store import ItemStore
from antiphon.testing import run_item_store_tests

PARTY = b"p" * 32


def test_our_item_store_keeps_every_law(tmp_path: Path) -> None:
    assert len(run_item_store_tests(lambda: ItemStore(tmp_path / "items.db", PARTY))) == 6


class ForgetsLater(ItemStore):
    def postings(self, item: bytes) -> list[Posting]:
        forgotten, self._forgotten = self._forgotten, set()
        try:
            return super().postings(item)
        finally:
            self._forgotten = forgotten


class InMemoryOnly(ItemStore):
    def close(self) -> None:
        self.clear()
        super().close()


def test_a_store_that_forgets_too_late_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="Readers no longer find a forgotten item"):
        run_item_store_tests(lambda: ForgetsLater(tmp_path / "items.db", PARTY))


def test_a_store_that_keeps_nothing_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="opened again"):
        run_item_store_tests(lambda: InMemoryOnly(tmp_path / "items.db", PARTY))
