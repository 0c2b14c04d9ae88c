"""`FeedStore`: create, append, batch, prune, erase, retire, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

from antiphon.core.errors import FeedRetired, InvalidInput, MissingBlocks, StoreError, TooLarge, UnknownFeed
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.core.stamp import Stamp
from antiphon.feed.block import BodyState
from antiphon.feed.encoder import Draft
from antiphon.feed.feed_record import Bounds
from antiphon.feed.header import Entry, Kind
from antiphon.feed.store import feed_store as store_module
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.ingest import Outcome
from antiphon.feed.store.tables import checked
from antiphon.testing.spans import SpanWriter, drafts, joined, key_pair

OpenStore = Callable[..., FeedStore]


@pytest.fixture
def own(store: FeedStore, alice: KeyPair, party: PublicKey) -> FeedStore:
    """A store in which Alice writes."""
    store.create(alice.key, party)
    return store


# -- create and append


def test_a_new_feed_is_empty(own: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    assert own.bounds(alice.key) == Bounds(0, 0, None)
    assert own.head(alice.key) is None
    assert list(own.read(alice.key)) == []
    assert [(record.feed, record.party, record.writable) for record in own.feeds()] == [(alice.key, party, True)]


def test_creating_again_changes_nothing(own: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    own.append(alice, party, drafts(2))

    own.create(alice.key, party)

    assert own.bounds(alice.key).length == 2


def test_a_feed_is_created_in_one_party_only(own: FeedStore, alice: KeyPair, bob: KeyPair) -> None:
    with pytest.raises(InvalidInput, match="belongs to party"):
        own.create(alice.key, bob.key)


def test_the_feed_of_another_writer_is_not_created(store: FeedStore, writer: SpanWriter, party: PublicKey) -> None:
    span = writer.write(1)
    store.ingest(span)

    with pytest.raises(InvalidInput, match="another writer's"):
        store.create(span.feed, party)


def test_keys_have_their_size(store: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    for feed, of in [(b"short", party), (alice.key, b"short"), (b"", party)]:
        with pytest.raises(InvalidInput, match="32 bytes"):
            store.create(feed, of)
    assert store.feeds() == ()


def test_an_append_returns_the_stamps_of_what_is_there(own: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    stamps = own.append(alice, party, [Draft(Kind.GENESIS, b"i" * 16, b"one"), Draft(Kind.CHANGE, b"j" * 16, b"two")])

    assert list(stamps) == [Stamp(1, alice.key, 0), Stamp(2, alice.key, 1)]
    assert [(b.stamp, b.kind, b.item, b.message) for b in own.read(alice.key)] == [
        (stamps[0], Kind.GENESIS, b"i" * 16, b"one"),
        (stamps[1], Kind.CHANGE, b"j" * 16, b"two"),
    ]
    assert own.block(alice.key, 1).created_ms == 1_000
    head = own.head(alice.key)
    assert head is not None
    assert head.length == 2
    assert head.signed_by(party, alice.key)


def test_an_append_goes_on_after_the_store_was_closed(
    open_store: OpenStore, alice: KeyPair, bob: KeyPair, party: PublicKey
) -> None:
    seen = SpanWriter(bob, party).write(3).block(2).entry
    with open_store() as first:
        first.create(alice.key, party)
        first.append(alice, party, drafts(2), seen=[seen])

    again = open_store()
    (stamp,) = again.append(alice, party, drafts(1), seen=[seen])

    assert stamp == Stamp(6, alice.key, 2)
    assert again.block(alice.key, 2).advance == ()
    assert again.frontier(alice.key) == {bob.key: seen}
    assert again.verify(alice.key).length == 3


def test_an_unknown_feed_is_named(store: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    for act in (
        lambda: store.append(alice, party, drafts(1)),
        lambda: store.bounds(alice.key),
        lambda: store.block(alice.key, 0),
        lambda: list(store.read(alice.key)),
        lambda: store.prune(alice.key, 1),
        lambda: store.erase(alice.key, 0),
        lambda: store.retire(alice.key),
    ):
        with pytest.raises(UnknownFeed, match=alice.key.hex()):
            act()


def test_a_feed_that_came_from_peers_is_not_written(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    """Rule 6: with the key alone, after losing the store, one does not know how far one had written."""
    store.ingest(writer.write(2))

    with pytest.raises(FeedRetired, match="came from peers"):
        store.append(alice, writer.party, drafts(1))


def test_a_retired_feed_is_read_and_not_written(own: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    own.append(alice, party, drafts(2))

    own.retire(alice.key)

    with pytest.raises(FeedRetired, match="open a new feed"):
        own.append(alice, party, drafts(1))
    assert len(list(own.read(alice.key))) == 2


# -- batch()


def test_a_batch_is_one_commit(own: FeedStore, alice: KeyPair, bob: KeyPair, party: PublicKey) -> None:
    own.create(bob.key, party)
    span = SpanWriter(key_pair("carol"), party).write(2)
    before = own.commits

    with own.batch() as batch:
        batch.append(alice, party, drafts(2))
        batch.append(bob, party, drafts(1), seen=[Entry(alice.key, 1, 2, bytes(32))])
        batch.append(alice, party, drafts(3), atomic=True)
        batch.ingest(span)
        assert own.bounds(alice.key).length == 0

    assert own.commits == before + 1
    assert [[stamp.seq for stamp in stamps] for stamps in batch.results[:3]] == [[0, 1], [0], [2, 3, 4]]
    assert batch.results[3].outcome is Outcome.STORED
    assert own.verify(alice.key).length == 5
    assert own.block(bob.key, 0).lamport == 3


def test_a_batch_that_raises_changes_nothing(own: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    def interrupted() -> None:
        with own.batch() as batch:
            batch.append(alice, party, drafts(2))
            batch.append(alice, party, [])

    with pytest.raises(InvalidInput):
        interrupted()

    assert own.bounds(alice.key).length == 0
    with own.batch():
        pass


def test_a_fork_in_a_batch_is_a_result(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    begun = writer.write(1)
    other = writer.fork()

    with store.batch() as batch:
        batch.ingest(begun)
        batch.ingest(writer.write(1))
        batch.ingest(other.write(1))

    assert [result.outcome for result in batch.results] == [Outcome.STORED, Outcome.STORED, Outcome.FORK]
    assert store.bounds(alice.key).end == 1
    assert store.fork(alice.key) == batch.results[2].evidence


def test_a_batch_has_a_bound(own: FeedStore, alice: KeyPair, party: PublicKey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "BATCH_SIZE_MAX", 100)

    with pytest.raises(TooLarge, match="smaller ones"), own.batch() as batch:
        batch.append(alice, party, drafts(6))

    assert own.bounds(alice.key).length == 0


# -- prune and erase


def test_pruning_forgets_the_beginning(own: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    own.append(alice, party, drafts(5))
    own.append(alice, party, drafts(5, 5000))

    bounds = own.prune(alice.key, 3)

    assert bounds == own.bounds(alice.key) == Bounds(3, 10, None)
    assert [block.seq for block in own.read(alice.key)] == list(range(3, 10))
    with pytest.raises(MissingBlocks, match="blocks 0 to 2 are pruned"):
        list(own.read(alice.key, 0))
    with pytest.raises(MissingBlocks, match="block 2 is not held here; blocks 3 to 9 are"):
        own.block(alice.key, 2)
    assert own.verify(alice.key) == bounds
    assert own.append(alice, party, drafts(1))[0] == Stamp(11, alice.key, 10)


def test_pruning_rounds_down_to_the_end_of_a_batch(own: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    own.append(alice, party, drafts(2))
    own.append(alice, party, drafts(4, 5000), atomic=True)
    own.append(alice, party, drafts(2))

    assert own.prune(alice.key, 5).start == 2
    assert own.prune(alice.key, 6).start == 6
    assert own.prune(alice.key, 1).start == 6
    assert own.verify(alice.key) == Bounds(6, 8, None)


def test_all_of_a_feed_may_be_pruned(own: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    own.append(alice, party, drafts(3))
    head = own.head(alice.key)

    assert own.prune(alice.key, 99) == Bounds(3, 3, None)

    assert own.head(alice.key) == head
    assert list(own.read(alice.key)) == []
    assert own.append(alice, party, drafts(1))[0] == Stamp(4, alice.key, 3)
    assert own.verify(alice.key) == Bounds(3, 4, None)


def test_evidence_past_the_end_is_not_pruned(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    begun = writer.write(4)
    store.ingest(joined(begun, writer.fork().write(2)))
    with pytest.raises(Exception, match="two different blocks"):
        store.ingest(joined(begun, writer.write(1)))

    assert store.prune(alice.key, 6) == Bounds(4, 6, 4)
    assert store.verify(alice.key).length == 6


def test_an_erased_body_is_gone_and_the_chain_stays_whole(
    own: FeedStore, open_store: OpenStore, alice: KeyPair, party: PublicKey
) -> None:
    own.append(alice, party, drafts(4, label="secret "))

    own.erase(alice.key, 2)
    own.erase(alice.key, 2)

    block = own.block(alice.key, 2)
    assert (block.state, block.body) == (BodyState.ERASED, None)
    assert [b.body is None for b in own.read(alice.key)] == [False, False, True, False]
    assert own.verify(alice.key).length == 4
    peer = open_store("peer")
    peer.ingest_all(list(own.spans(alice.key)))
    assert [b.hash for b in peer.read(alice.key)] == [b.hash for b in own.read(alice.key)]
    assert peer.block(alice.key, 2).body is None
    assert own.append(alice, party, drafts(1))[0].seq == 4


def test_an_erased_block_before_the_range_does_not_spoil_it(
    own: FeedStore, open_store: OpenStore, alice: KeyPair, party: PublicKey
) -> None:
    """Once the erased block is pruned, or lies before what a peer asks for, all bodies of the range are here."""
    own.append(alice, party, drafts(4))
    own.erase(alice.key, 1)
    peer = open_store("peer")
    peer.ingest(own_head := next(own.spans(alice.key)))

    assert peer.ingest_bytes(next(own.spans(alice.key, 2)).encode()).outcome is Outcome.KNOWN
    own.prune(alice.key, 2)

    assert own.block(alice.key, 3).body == own_head.body_list()[3]
    assert [block.body for block in own.read(alice.key)] == own_head.body_list()[2:]


def test_only_blocks_that_are_held_are_erased(own: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    own.append(alice, party, drafts(3))
    own.prune(alice.key, 1)

    for seq in (-1, 0, 3):
        with pytest.raises(MissingBlocks):
            own.erase(alice.key, seq)


# -- the store itself


def test_a_store_of_another_format_is_not_opened(open_store: OpenStore, tmp_path: Path) -> None:
    open_store().close()
    with lmdb.open(str(tmp_path / "store"), max_dbs=6) as env:
        table = env.open_db(b"meta")
        with env.begin(write=True) as transaction:
            transaction.put(b"format", checked(b"antiphon.feeds.9"), db=table)

    for readonly in (False, True):
        with pytest.raises(StoreError, match=r"feeds\.9"):
            open_store(readonly=readonly)
