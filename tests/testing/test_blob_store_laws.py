"""The laws of blob stores hold for ours, and are broken by one that is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from antiphon.core.cid import Cid
from antiphon.snapshot.blob_store import BlobStore
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.testing import run_blob_store_tests


def test_our_blob_stores_keep_every_law(tmp_path: Path) -> None:
    assert len(run_blob_store_tests(MemoryBlobs)) == 7
    with BlobStore.open(tmp_path) as store:
        assert len(run_blob_store_tests(lambda: store)) == 7


class Trusting(MemoryBlobs):
    def put_all(self, pairs: Iterable[tuple[Cid, bytes]]) -> None:
        self._held.update(pairs)


class Sorting(MemoryBlobs):
    def missing(self, cids: Iterable[Cid]) -> list[Cid]:
        return sorted(super().missing(cids))


@pytest.mark.parametrize(("wrong", "law"), [(Trusting, "refused"), (Sorting, "order of the question")])
def test_a_wrong_store_is_found_out(wrong: type[MemoryBlobs], law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        run_blob_store_tests(wrong)
