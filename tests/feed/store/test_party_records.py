"""`PartyRecords`: the records in memory are those in the store, whichever process or transaction wrote them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.attacks.work import calls

from antiphon.core.errors import FeedRetired
from antiphon.core.keys import KeyPair
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.store import env
from antiphon.feed.store.feed_store import FeedStore

PARTY, OTHER = (KeyPair.from_seed(seed * 32).key for seed in (b"p", b"q"))
PAIRS = [KeyPair.from_seed(bytes([n]) * 32) for n in range(40)]
DRAFT = Draft(Kind.MUTATION, bytes(16), b"message")


def filled(path: Path, count: int) -> FeedStore:
    store = FeedStore.open(path, durable=False)
    for pair in PAIRS[:count]:
        store.create(pair.key, PARTY)
    return store


def append_both(store: FeedStore) -> None:
    with store.batch() as batch:
        batch.append(PAIRS[1], PARTY, [DRAFT])
        batch.append(PAIRS[0], PARTY, [DRAFT])


def test_a_cursor_tells_all_feeds_first_and_then_those_that_changed(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as store:
        changed = store.changed_feeds(PARTY)
        assert [record.feed for record in changed.take()] == sorted(bytes(pair.key) for pair in PAIRS[:3])
        assert changed.take() == []
        for _ in range(2):
            store.append(PAIRS[1], PARTY, [DRAFT])
        store.create(PAIRS[5].key, OTHER)
        (record,) = changed.take()
        assert (record.feed, record.length) == (PAIRS[1].key, 2)
        assert changed.get(PAIRS[1].key) is record is store.record(PAIRS[1].key)
        assert store.feeds(PARTY) == tuple(r for r in store.feeds() if r.party == PARTY)


def test_cursors_do_not_take_from_each_other(tmp_path: Path) -> None:
    with filled(tmp_path, 2) as store:
        one, other = store.changed_feeds(PARTY), store.changed_feeds(PARTY)
        one.take()
        store.append(PAIRS[0], PARTY, [DRAFT])
        assert [record.length for record in one.take()] == [1]
        assert [record.length for record in other.take() if record.length] == [1]


def test_a_failed_change_changes_no_record(tmp_path: Path) -> None:
    with filled(tmp_path, 2) as store:
        changed = store.changed_feeds(PARTY)
        store.retire(PAIRS[0].key)
        changed.take()
        with pytest.raises(FeedRetired):
            append_both(store)
        assert changed.take() == []
        assert store.record(PAIRS[1].key).length == 0


APPEND = """
import sys
from tests.feed.store.test_party_records import DRAFT, PAIRS, PARTY, FeedStore
with FeedStore.open(sys.argv[1], durable=False) as store:
    store.append(PAIRS[2], PARTY, [DRAFT])
"""


def test_a_commit_of_another_process_is_found(tmp_path: Path) -> None:
    filled(tmp_path, 3).close()
    with FeedStore.open(tmp_path, readonly=True) as reader:
        changed = reader.changed_feeds(PARTY)
        assert len(changed.take()) == 3
        subprocess.run([sys.executable, "-c", APPEND, str(tmp_path)], check=True)
        assert [record.feed for record in changed.take()] == [PAIRS[2].key]


def test_a_compacted_file_has_the_same_records(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as store:
        changed, before = store.changed_feeds(PARTY), store.feeds(PARTY)
        changed.take()
        store.compact()
        assert changed.take() == []
        assert store.feeds(PARTY) == before
        store.append(PAIRS[0], PARTY, [DRAFT])
        assert [record.feed for record in changed.take()] == [PAIRS[0].key]


def test_a_cursor_that_was_not_asked_for_long_misses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "TOUCHED_MAX", 4)
    with filled(tmp_path, 3) as store:
        changed = store.changed_feeds(PARTY)
        changed.take()
        for _ in range(9):
            store.append(PAIRS[1], PARTY, [DRAFT])
        assert [(record.feed, record.length) for record in changed.take()] == [(PAIRS[1].key, 9)]


def test_a_change_costs_the_same_among_many_feeds(tmp_path: Path) -> None:
    costs = []
    for count in (4, 40):
        with filled(tmp_path / str(count), count) as store, store.watch() as watch:
            changed = store.changed_feeds(PARTY)
            changed.take()
            store.append(PAIRS[0], PARTY, [DRAFT])
            costs.append(calls(changed.take) + calls(watch.poll) + calls(lambda: store.record(PAIRS[0].key)))
    assert costs[0] == costs[1]


def test_the_records_of_all_parties_can_be_read_at_once(tmp_path: Path) -> None:
    with filled(tmp_path, 3) as store:
        expected = {bytes(record.party): store.feeds(record.party) for record in store.feeds()}
    with FeedStore.open(tmp_path) as store:
        primed = store.records_of_all()
        assert {bytes(party): store.feeds(party) for party in expected} == expected
        assert {one.at for one in primed} == {store.transaction}
