"""`FeedWriter`: callers say what they have seen, and it stands in the next block, once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from antiphon.core.errors import FeedRetired, InvalidInput, TooLarge
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Entry, Flag, Kind
from antiphon.feed.limits import ADVANCE_MAX, BODY_SIZE_MAX
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.writer import FeedWriter
from antiphon.testing.spans import drafts

ITEM = b"i" * 16


@pytest.fixture
def mine(store: FeedStore, alice: KeyPair, party: PublicKey) -> FeedWriter:
    return FeedWriter.open(store, alice, party)


@pytest.fixture
def theirs(store: FeedStore, bob: KeyPair, party: PublicKey) -> FeedWriter:
    return FeedWriter.open(store, bob, party)


def entry(at: int, seq: int = 0) -> Entry:
    return Entry(at.to_bytes(32, "big"), seq, 1 + seq, bytes(32))


def seen_in(store: FeedStore, stamp: Stamp) -> tuple[Entry, ...]:
    return store.block(stamp.feed, stamp.seq).advance


def test_what_is_seen_stands_in_the_next_block_once(store: FeedStore, mine: FeedWriter, theirs: FeedWriter) -> None:
    heard = theirs.extend(drafts(4))[-1]
    entry = store.block(heard.feed, heard.seq).entry

    mine.see(entry)
    first, second = mine.append(Kind.MUTATION, ITEM, b"a"), mine.append(Kind.MUTATION, ITEM, b"b")

    assert (first.lamport, second.lamport) == (5, 6)
    assert (seen_in(store, first), seen_in(store, second)) == ((entry,), ())
    assert store.frontier(mine.feed) == {theirs.feed: entry}


def test_two_writers_that_see_each_other_climb_together(store: FeedStore, mine: FeedWriter, theirs: FeedWriter) -> None:
    stamps = []
    for _ in range(3):
        for one, other in ((mine, theirs), (theirs, mine)):
            stamps.append(one.append(Kind.MUTATION, ITEM, b"x"))
            other.see(store.block(one.feed, stamps[-1].seq).entry)

    assert [stamp.lamport for stamp in stamps] == [1, 2, 3, 4, 5, 6]
    assert sorted(stamps) == stamps


def test_seeing_anew_forgets_what_was_not_written(store: FeedStore, mine: FeedWriter) -> None:
    mine.see(entry(7, 5), entry(8, 5))
    mine.see_only([entry(7, 3)])  # the feed was cut since then
    assert mine.unwritten == {entry(7, 3).feed}
    assert seen_in(store, mine.append(Kind.MUTATION, ITEM, b"a")) == (entry(7, 3),)
    assert mine.unwritten == set()


def test_seeing_less_or_oneself_changes_nothing(store: FeedStore, mine: FeedWriter) -> None:
    own = mine.append(Kind.MUTATION, ITEM, b"own")
    mine.see(entry(7, 5), entry(7, 3), store.block(own.feed, own.seq).entry)

    assert seen_in(store, mine.append(Kind.MUTATION, ITEM, b"a")) == (entry(7, 5),)
    mine.see(entry(7, 4))
    assert seen_in(store, mine.append(Kind.MUTATION, ITEM, b"b")) == ()


def test_an_atomic_extension_is_a_batch(store: FeedStore, mine: FeedWriter) -> None:
    mine.see(entry(7, 9))

    stamps = mine.extend(drafts(3), atomic=True)

    assert [stamp.lamport for stamp in stamps] == [11, 11, 11]
    assert [store.block(mine.feed, at).flags for at in range(3)] == [
        Flag.MORE,
        Flag.MORE | Flag.CONTINUED,
        Flag.CONTINUED,
    ]
    assert [len(seen_in(store, stamp)) for stamp in stamps] == [1, 0, 0]


def test_what_was_seen_waits_when_an_append_fails(store: FeedStore, mine: FeedWriter) -> None:
    mine.see(entry(7, 5))

    with pytest.raises(TooLarge):
        mine.append(Kind.MUTATION, ITEM, bytes(BODY_SIZE_MAX))
    with pytest.raises(InvalidInput):
        mine.extend([])

    assert seen_in(store, mine.append(Kind.MUTATION, ITEM, b"a")) == (entry(7, 5),)


def test_what_does_not_fit_into_one_header_waits_for_the_next(store: FeedStore, mine: FeedWriter) -> None:
    mine.see(*(entry(at) for at in range(ADVANCE_MAX + 3)))

    first, second, third = (mine.append(Kind.MUTATION, ITEM, b"x") for _ in range(3))

    assert len(seen_in(store, first)) == ADVANCE_MAX
    assert len(seen_in(store, second)) == 3
    assert seen_in(store, third) == ()
    assert len(store.frontier(mine.feed)) == ADVANCE_MAX + 3


def test_threads_share_a_writer(store: FeedStore, mine: FeedWriter) -> None:
    def work(name: int) -> list[Stamp]:
        stamps = []
        for at in range(10):
            mine.see(entry(name, at))
            stamps.append(mine.append(Kind.MUTATION, ITEM, b"x"))
        return stamps

    with ThreadPoolExecutor(6) as pool:
        stamps = [stamp for result in pool.map(work, range(6)) for stamp in result]

    assert sorted(stamp.seq for stamp in stamps) == list(range(60))
    assert store.frontier(mine.feed) == {entry(name).feed: entry(name, 9) for name in range(6)}
    blocks = list(store.read(mine.feed))
    assert [block.lamport for block in blocks] == sorted({block.lamport for block in blocks})
    assert store.bounds(mine.feed).end is None


def test_a_writer_opens_its_feed_again(store: FeedStore, mine: FeedWriter, alice: KeyPair, party: PublicKey) -> None:
    mine.append(Kind.MUTATION, ITEM, b"a")

    again = FeedWriter.open(store, alice, party)

    assert again.append(Kind.MUTATION, ITEM, b"b") == Stamp(2, alice.key, 1)
    assert (again.feed, again.party) == (alice.key, party)
    store.retire(alice.key)
    with pytest.raises(FeedRetired):
        again.append(Kind.MUTATION, ITEM, b"c")
