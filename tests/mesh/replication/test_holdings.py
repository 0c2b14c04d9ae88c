"""`Holdings`: what a peer announces follows every commit of the feed store, also after a read has failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.core.errors import StoreError
from antiphon.feed.store.feed_store import FeedStore
from antiphon.mesh.replication.holdings import Holdings
from antiphon.testing.spans import SpanWriter, key_pair

PARTY = key_pair("party").key


def test_a_read_that_fails_loses_no_feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The feeds behind the one that could not be read were never announced."""
    with FeedStore.open(tmp_path, durable=False) as store:
        holdings = Holdings(store, PARTY)
        writers = [SpanWriter(key_pair(f"writer {number}"), PARTY) for number in range(8)]
        for writer in writers:
            store.ingest(writer.write(2))
        first_kind, calls = store.first_kind, [0]

        def fail_once(feed: bytes) -> object:
            calls[0] += 1
            if calls[0] == 3:
                raise StoreError("the disk does not answer")
            return first_kind(feed)

        monkeypatch.setattr(store, "first_kind", fail_once)
        with pytest.raises(StoreError):
            holdings.look()
        assert holdings.look()
        assert [holdings.get(bytes(writer.pair.key)) is not None for writer in writers] == [True] * 8
