"""A mark of a party at rest: any change of a feed of the party deletes it, and nothing else does."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from antiphon.core.errors import MissingBlocks
from antiphon.feed.store.feed_store import FeedStore
from antiphon.testing.spans import drafts, key_pair

ALICE, PARTY, OTHER = key_pair("alice"), key_pair("party").key, key_pair("other party").key


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FeedStore]:
    found = FeedStore.open(tmp_path / "feeds")
    found.create(ALICE.key, PARTY)
    found.append(ALICE, PARTY, drafts(4))
    yield found
    found.close()


def rest(store: FeedStore) -> bytes:
    mark = store.put_rest(PARTY, store.transaction)
    assert mark is not None
    assert store.rest(PARTY) == mark
    return mark


def take_headers(store: FeedStore) -> None:
    with FeedStore.open(store._env.path.parent / "bob") as bob:
        bob.create(key_pair("bob").key, PARTY)
        bob.append(key_pair("bob"), PARTY, drafts(2))
        for span in bob.spans(key_pair("bob").key, bodies=False):
            store.ingest(span)


def fill(store: FeedStore) -> None:
    take_headers(store)
    rest(store)
    with FeedStore.open(store._env.path.parent / "bob", readonly=True) as bob:
        bodies = {block.seq: block.body for block in bob.read(key_pair("bob").key) if block.body is not None}
    assert store.fill(key_pair("bob").key, bodies) == 2


def ignore(store: FeedStore) -> None:
    take_headers(store)
    rest(store)
    store.ignore(key_pair("bob").key)


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.append(ALICE, PARTY, drafts(1)),
        lambda store: store.erase(ALICE.key, 1),
        lambda store: store.prune(ALICE.key, 2),
        lambda store: store.retire(ALICE.key),
        lambda store: store.create(key_pair("another").key, PARTY),
        take_headers,
        fill,
        ignore,
    ],
)
def test_each_change_of_a_feed_deletes_the_mark_of_its_party(
    store: FeedStore, change: Callable[[FeedStore], object]
) -> None:
    rest(store)
    change(store)
    assert store.rest(PARTY) is None


def test_a_mark_stays_while_other_parties_grow_and_the_store_is_opened_again(store: FeedStore) -> None:
    mark = rest(store)
    store.create(key_pair("other").key, OTHER)
    store.append(key_pair("other"), OTHER, drafts(2))
    store.close()
    again = FeedStore.open(store._env.path)
    assert again.rest(PARTY) == mark
    again.append(ALICE, PARTY, drafts(1))
    assert again.rest(PARTY) is None


def test_no_mark_is_put_if_anything_was_written_since(store: FeedStore) -> None:
    before = store.transaction
    store.append(ALICE, PARTY, drafts(1))
    assert store.put_rest(PARTY, before) is None
    assert store.rest(PARTY) is None


def test_a_copy_that_has_changed_never_gets_the_same_mark(store: FeedStore, tmp_path: Path) -> None:
    mark = rest(store)
    store.close()
    shutil.copytree(store._env.path, tmp_path / "copy")
    with FeedStore.open(tmp_path / "copy") as copy:
        assert copy.rest(PARTY) is None, "its feeds are retired"
        assert rest(copy) != mark


def test_a_change_that_fails_leaves_the_mark(store: FeedStore) -> None:
    mark = rest(store)
    with pytest.raises(MissingBlocks, match="block 99"):
        store.erase(ALICE.key, 99)
    assert store.rest(PARTY) == mark
