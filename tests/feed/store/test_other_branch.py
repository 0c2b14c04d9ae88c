"""A feed of which a final epoch holds another branch than the store: what proves that branch, and how it is taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.core.errors import BadEncoding, FeedRetired, TooLarge
from antiphon.feed.chain import Head
from antiphon.feed.encoder import Draft
from antiphon.feed.head_proof import HeadProof
from antiphon.feed.header import Entry, Kind
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.ingest import Base
from antiphon.testing.spans import SpanWriter, key_pair

PARTY, PAIR, OTHER = key_pair("party").key, key_pair("mallory"), bytes(key_pair("bob").key)
FEED = bytes(PAIR.key)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FeedStore]:
    with FeedStore.open(tmp_path / "one", durable=False) as opened:
        yield opened


@pytest.fixture
def pruned(tmp_path: Path) -> Iterator[FeedStore]:
    with FeedStore.open(tmp_path / "other", durable=False) as opened:
        yield opened


class Case:
    """Two histories that have one block in common: five blocks on one branch, six on the other."""

    def __init__(self) -> None:
        self.writer = SpanWriter(PAIR, PARTY)
        self.common = self.writer.write()
        self.twin = self.writer.fork(seed=2)
        self.one = self.writer.write(4)
        far = Entry(OTHER, 3, 40, bytes(32))
        self.other = self.twin.write(5, seen=[far])  # with a high lamport
        self.base = Base(4, self.one.hash_at(4), int(self.one.columns["lamport"][-1]))

    def give(self, store: FeedStore) -> None:
        for span in (self.common, self.other):
            store.ingest(span)


@pytest.mark.parametrize("tail", [0, 3])
def test_what_is_left_of_a_pruned_feed_proves_its_last_block(pruned: FeedStore, store: FeedStore, tail: int) -> None:
    case = Case()
    for span in (case.common, case.one, *([case.writer.write(tail)] if tail else [])):
        pruned.ingest(span)
    assert pruned.proof(FEED, 4, case.base.hash) is None, "it is here as history"
    pruned.prune(FEED, 5)
    proof = pruned.proof(FEED, 4, case.base.hash)
    assert proof is not None
    assert HeadProof.decode(proof.encode()) == proof
    assert len(proof.headers) == tail
    assert proof.proves(PARTY, FEED, 4, case.base.hash)
    assert not proof.proves(PARTY, FEED, 3, case.base.hash)
    assert not proof.proves(PARTY, FEED, 4, case.other.hash_at(4))
    assert not proof.proves(key_pair("another party").key, FEED, 4, case.base.hash)
    assert not replace(proof, head=replace(proof.head, signature=bytes(64))).proves(PARTY, FEED, 4, case.base.hash)
    assert pruned.proof(FEED, 4, bytes(32)) is None
    assert pruned.proof(FEED, 3, case.one.hash_at(3)) is None
    assert store.proof(FEED, 4, case.base.hash) is None


@pytest.mark.parametrize("tail", [0, 3])
def test_a_store_takes_the_branch_of_an_epoch_and_keeps_its_own(store: FeedStore, tail: int) -> None:
    case = Case()
    case.give(store)
    more = case.writer.write(tail) if tail else None
    proof = HeadProof.after(case.one if more is None else more, 4)
    assert store.frontier(FEED)
    assert store.change_branch(FEED, case.base, proof)

    record = store.record(FEED)
    assert (record.start, record.length, record.hash, record.lamport) == (5, 5, case.base.hash, case.base.lamport)
    assert store.frontier(FEED) == {}, "the other branch had seen more"
    kept = store.branch_with(FEED, 5, case.other.hash_at(5))
    assert kept is not None
    assert store.trail(FEED, 5, case.other.hash_at(5), 0, 1 << 20)[0].first == 0
    assert store.damages(FEED) == []
    assert not store.change_branch(FEED, case.base, proof), "once"
    if more is not None:  # its lamport is below those of the other branch
        assert store.ingest(more).added == tail
        assert store.record(FEED).end > store.record(FEED).length
    store.verify(FEED)
    assert store.proof(FEED, 4, case.base.hash) is not None, "it proves it to others"


def test_nothing_changes_without_a_proof_or_where_the_branch_is_the_same(store: FeedStore, pruned: FeedStore) -> None:
    case = Case()
    case.give(store)
    before = store.record(FEED)
    wrong = HeadProof((), Head(5, case.base.hash, bytes(64)))
    assert not store.change_branch(FEED, case.base, wrong)
    assert not store.change_branch(FEED, case.base, HeadProof.after(case.other, 4))
    assert store.record(FEED) == before
    for span in (case.common, case.one):
        pruned.ingest(span)
    assert not pruned.change_branch(FEED, case.base, HeadProof.after(case.one, 4))
    assert pruned.record(FEED).start == 0


def test_a_branch_of_control_stays_history(store: FeedStore) -> None:
    """The acts in it were read as such."""
    case, twin = Case(), SpanWriter(PAIR, PARTY, seed=3)
    for span in twin.extend([Draft(Kind.CREDENTIAL, bytes(16), b"an act")] * 6):
        store.ingest(span)
    assert not store.change_branch(FEED, case.base, HeadProof.after(case.one, 4))
    assert store.record(FEED).bounds.start == 0


def test_a_feed_of_this_device_is_retired(store: FeedStore) -> None:
    """Its store was restored from a backup, and has written the same seqs again."""
    case = Case()
    store.create(PAIR.key, PARTY)
    for _ in range(6):
        store.append(PAIR, PARTY, [Draft(Kind.MUTATION, bytes(16), b"again")])
    assert store.change_branch(FEED, case.base, HeadProof.after(case.one, 4))
    with pytest.raises(FeedRetired):
        store.append(PAIR, PARTY, [Draft(Kind.MUTATION, bytes(16), b"a third history")])


def test_a_proof_is_bounded() -> None:
    head = Head(1, bytes(32), bytes(64)).encode()
    for data in (bytes(1 << 20), b"\xff\xff\0\0" + head):
        with pytest.raises(TooLarge):
            HeadProof.decode(data)
    with pytest.raises(BadEncoding):
        HeadProof.decode(bytes(4) + head[1:])
