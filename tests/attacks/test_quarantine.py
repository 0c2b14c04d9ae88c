"""A liar cannot flush the quarantine: what it hands in displaces its own entries, and nobody else's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.attacks.survival import replica_of, sync
from tests.mesh.replication.wire import Wire
from tests.party.bundle.test_export import export, rewrite, take
from tests.party.epochs.epoch_acts import note

from antiphon.core.cid import DAG_CBOR
from antiphon.core.errors import AntiphonError, BadSignature, Equivocation, RefusedBlocks
from antiphon.feed.limits import QUARANTINE_ENTRIES_MAX, QUARANTINE_FEED_MAX, QUARANTINE_SOURCE_MAX
from antiphon.feed.span import Span
from antiphon.feed.store import quarantine
from antiphon.feed.store.feed_store import FeedStore
from antiphon.mesh.replication.replica import Replica
from antiphon.party.bundle.nodes import BundleRoot, decode_list, encode_list
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.testing.parties import pair_of
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import SpanWriter, key_pair

PARTY = key_pair("party").key
LIAR, HONEST = bytes(key_pair("liar").key), bytes(key_pair("honest").key)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FeedStore]:
    with FeedStore.open(tmp_path / "feeds", durable=False) as made:
        yield made


def invalid(store: FeedStore, source: bytes, feed: str, first: int = 0) -> None:
    """Hand in a range whose head nobody signed."""
    span = SpanWriter(key_pair(feed), PARTY).write()
    with pytest.raises(BadSignature):
        store.ingest_bytes(replace(span, first=first, signature=bytes(64)).encode(), source=source)


def fork(store: FeedStore, name: str) -> bytes:
    """Let a writer be caught with two histories."""
    writer = SpanWriter(key_pair(name), PARTY)
    other = writer.fork()
    store.ingest(writer.write())
    with pytest.raises(Equivocation):
        store.ingest(other.write(size=21), source=HONEST)
    return bytes(writer.pair.key)


def test_a_flood_of_invalid_blocks_displaces_only_entries_of_who_sent_it(store: FeedStore) -> None:
    forked = fork(store, "equivocator")
    invalid(store, HONEST, "damaged on the way")
    for number in range(QUARANTINE_ENTRIES_MAX + 100):
        invalid(store, LIAR, f"invented {number}")

    listed = store.quarantine()
    count = Counter(refusal.source for refusal in listed.refusals)
    assert count == {LIAR: QUARANTINE_SOURCE_MAX, HONEST: 1, forked: 1}
    assert listed.dropped == QUARANTINE_ENTRIES_MAX + 100 - QUARANTINE_SOURCE_MAX


def test_a_flood_about_one_feed_leaves_room_for_what_the_same_peer_gave_of_others(store: FeedStore) -> None:
    invalid(store, LIAR, "another")
    for first in range(QUARANTINE_FEED_MAX + 10):
        invalid(store, LIAR, "one", first)

    listed = store.quarantine()
    assert Counter(refusal.feed for refusal in listed.refusals) == {
        bytes(key_pair("another").key): 1,
        bytes(key_pair("one").key): QUARANTINE_FEED_MAX,
    }
    assert listed.dropped == 10


def test_many_liars_together_displace_nobody_who_has_few(store: FeedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.feed.store.quarantine.QUARANTINE_ENTRIES_MAX", 40)
    forked = fork(store, "equivocator")
    for number in range(5):
        invalid(store, HONEST, f"damaged {number}")
    for number in range(20):
        for liar in range(6):
            invalid(store, bytes(key_pair(f"liar {liar}").key), f"invented {liar} {number}")

    count = Counter(refusal.source for refusal in store.quarantine().refusals)
    assert (count[forked], count[HONEST], count.total()) == (1, 5, 40)
    assert {count[bytes(key_pair(f"liar {liar}").key)] for liar in range(6)} <= {5, 6}


def test_forks_of_any_number_of_feeds_displace_nothing_that_was_handed_in(
    store: FeedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each feed is a source, and a member opens as many as it likes."""
    monkeypatch.setattr(quarantine, "QUARANTINE_ENTRIES_MAX", 20)
    sources = [bytes(key_pair(f"peer {number}").key) for number in range(10)]
    for source in sources:
        invalid(store, source, "damaged on the way", sources.index(source))
    forked = [fork(store, f"equivocator {number}") for number in range(40)]
    count = Counter(refusal.source for refusal in store.quarantine().refusals)
    assert count.total() == 20
    assert set(sources) <= set(count)
    for number in range(20):
        invalid(store, LIAR, f"invented {number}")
    assert sum(feed in forked for feed in (refusal.source for refusal in store.quarantine().refusals)) == 10


# -- by peers

ROUNDS = 12


def damaging(replica: Replica, chosen: bytes, monkeypatch: pytest.MonkeyPatch) -> Replica:
    """Let the device behind a replica give blocks of one feed whose head nobody signed."""
    read = replica.read_range

    def damaged(feed: bytes, first: int, size: int) -> Span | None:
        span = read(feed, first, size)
        return span if span is None or feed != chosen else replace(span, signature=bytes(64))

    monkeypatch.setattr(replica, "read_range", damaged)
    return replica


Way = Callable[[Peer, Peer, bytes, pytest.MonkeyPatch], None]


def by_session(alice: Peer, mallory: Peer, chosen: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Wire(Two(alice, mallory))
    damaging(wire.nodes["mallory"].replica, chosen, monkeypatch)
    with pytest.raises(RefusedBlocks):
        wire.run()


def by_sync(alice: Peer, mallory: Peer, chosen: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    sync(alice, mallory, damaging(replica_of(mallory), chosen, monkeypatch))


def by_file(alice: Peer, mallory: Peer, chosen: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = mallory.folder

    def damage(root: BundleRoot, blobs: MemoryBlobs) -> BundleRoot:
        feeds = []
        for feed in root.feeds:
            if feed.feed == chosen:
                links = [link for found in feed.lists for link in decode_list(blobs.get(found))]
                worse = [blobs.put(blobs.get(link)[:-1] + b"?") for link in links]
                feed = replace(feed, lists=(blobs.put(encode_list(worse), DAG_CBOR),))
            feeds.append(feed)
        return replace(root, feeds=tuple(feeds))

    export(mallory, folder / "good.car", whole=True)
    rewrite(folder / "good.car", folder / "damaged.car", damage)
    with pytest.raises(AntiphonError):
        take(folder / "damaged.car", alice)


class Two(Peers):
    """Two peers of a larger party, who meet alone."""

    def __init__(self, *peers: Peer) -> None:
        self.all = [*peers]


@pytest.mark.parametrize("way", [by_session, by_sync, by_file])
def test_a_member_that_gives_invalid_blocks_again_and_again_displaces_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Way
) -> None:
    monkeypatch.setattr(quarantine, "QUARANTINE_SOURCE_MAX", ROUNDS // 2)
    with Peers(tmp_path / "peers") as peers:
        alice, bob, mallory = (peers.add(name) for name in ("alice", "bob", "mallory"))
        peers.sync()
        invalid(alice.store, bytes(bob.device.key), "damaged on the way")
        forked = fork(alice.store, "equivocator")
        for number in range(ROUNDS):
            pair = pair_of(f"data feed {number}")
            mallory.admit_feed(pair)
            mallory.store.ingest(SpanWriter(pair, alice.party.key).write())
            way(alice, mallory, bytes(pair.key), monkeypatch)
        listed = alice.store.quarantine()
        count = Counter(refusal.source for refusal in listed.refusals)
        handed = 0 if way is by_file else ROUNDS // 2  # a file is checked before anything of it is taken
        assert count == {bytes(bob.device.key): 1, forked: 1} | ({bytes(mallory.device.key): handed} if handed else {})
        assert listed.dropped == handed
        note(bob, "goes on")
        sync(alice, bob)
        assert alice.snapshots() == bob.snapshots()
