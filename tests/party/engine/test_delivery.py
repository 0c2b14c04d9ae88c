"""Causal delivery: nothing before what it has seen, and a feed that waits is woken by the feed it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.core.errors import Equivocation
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Entry, Flag, Kind
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.party.engine.authority import OpenAuthority
from antiphon.party.engine.delivery import Delivery
from antiphon.party.engine.lane import Run
from antiphon.testing.spans import Forged, SpanWriter, joined, key_pair

PARTY = key_pair("party").key
NAMES = ("alice", "bob", "carol", "dave")


class Counting(Delivery):
    """Counts how often each feed is looked at."""

    looks: dict[bytes, int]

    def _advance(self, feed: bytes) -> Iterator[Run]:
        self.looks[feed] = self.looks.get(feed, 0) + 1
        return super()._advance(feed)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FeedStore]:
    with FeedStore.open(tmp_path, durable=False) as opened:
        yield opened


def writer(name: str) -> SpanWriter:
    return SpanWriter(key_pair(name), PARTY)


def delivery_of(store: FeedStore, *names: str) -> Counting:
    delivery = Counting(store, OpenAuthority(store, PARTY))
    delivery.looks = {}
    for name in names:
        delivery.activate(key_pair(name).key)
    return delivery


def pump(delivery: Delivery, store: FeedStore) -> list[tuple[str, int]]:
    """What is delivered now, as (who, seq)."""
    names = {key_pair(name).key: name for name in NAMES}
    for record in store.feeds(PARTY):
        lane = delivery.lanes.get(record.feed)
        delivery.take_branches(record)
        if lane is not None and lane.state.position < record.valid_length:
            delivery.wake(record.feed)
    return [(names[run.feed], seq) for run in delivery.pump() for seq in range(run.start, run.stop)]  # type: ignore[index]


def last(span: Span) -> Entry:
    return span.block(span.count - 1).entry


def test_nothing_comes_before_what_it_has_seen(store: FeedStore) -> None:
    alice, bob = writer("alice"), writer("bob")
    first = alice.write(2)
    reply = bob.write(1, seen=[last(first)])
    again = alice.write(1, seen=[last(reply)])
    delivery = delivery_of(store, "alice", "bob")
    store.ingest(reply)
    assert pump(delivery, store) == []
    store.ingest(joined(first, again))
    assert pump(delivery, store) == [("alice", 0), ("alice", 1), ("bob", 0), ("alice", 2)]
    assert dict(delivery.timeframe()) == {alice.pair.key: 2, bob.pair.key: 0}
    assert delivery.blocked() == []


def test_a_blocked_feed_says_what_it_waits_for(store: FeedStore) -> None:
    alice, bob = writer("alice"), writer("bob")
    seen = last(alice.write(5))
    store.ingest(bob.write(1))
    store.ingest(bob.write(1, seen=[seen]))
    delivery = delivery_of(store, "alice", "bob")
    assert pump(delivery, store) == [("bob", 0)]
    (blocked,) = delivery.blocked()
    assert (blocked.feed, blocked.seq, blocked.waits_for) == (bob.pair.key, 1, seen)
    assert blocked.reason == f"block 4 of feed {alice.pair.key.hex()[:8]} [waits.block]"


def test_a_feed_is_woken_by_the_feed_it_waits_for_and_not_by_scanning(store: FeedStore) -> None:
    alice, bob, carol, dave = map(writer, NAMES)
    a, d = alice.write(3), dave.write(1)
    store.ingest(bob.write(1, seen=[last(a)]))
    store.ingest(carol.write(1, seen=[last(d)]))
    delivery = delivery_of(store, *NAMES)
    assert pump(delivery, store) == []
    delivery.looks.clear()
    for at in range(3):
        delivery.wake(alice.pair.key)
        list(delivery.pump())
        assert delivery.looks.get(carol.pair.key, 0) == 0, at
    store.ingest(a)
    delivery.wake(alice.pair.key)
    assert [run.feed for run in delivery.pump()] == [alice.pair.key, bob.pair.key]
    assert delivery.looks.get(carol.pair.key, 0) == 0
    assert delivery.looks[bob.pair.key] == 1


def test_a_long_chain_of_feeds_is_delivered_with_few_looks(store: FeedStore) -> None:
    """Each of many feeds waits for the one before: every feed is looked at a few times, not once for every other."""
    writers = [writer(f"writer {at}") for at in range(60)]
    spans: list[Span] = []
    for one in writers:
        spans.append(one.write(1, seen=[last(spans[-1])] if spans else []))
    for span in reversed(spans):
        store.ingest(span)
    delivery = delivery_of(store)
    for one in reversed(writers):
        delivery.activate(one.pair.key)
    assert [run.feed for run in delivery.pump()] == [one.pair.key for one in writers]
    assert sum(delivery.looks.values()) <= 3 * len(writers)


def test_only_few_feeds_have_their_blocks_in_memory(store: FeedStore) -> None:
    """A feed that waits does so in its store."""
    waiting = last(writer("alice").write(1))
    delivery = delivery_of(store, "alice")
    for at in range(30):
        one = writer(f"writer {at}")
        store.ingest(one.write(50, size=2000))
        store.ingest(one.write(1, seen=[waiting]))
        delivery.activate(one.pair.key)
    assert sum(run.high - run.low for run in delivery.pump()) == 30 * 50
    assert sum(1 for lane in delivery.lanes.values() if lane.buffer is not None) <= 8


def test_an_entry_with_a_wrong_lamport_ends_the_lane_and_only_that(store: FeedStore) -> None:
    alice, bob, carol = map(writer, NAMES[:3])
    said = alice.write(1)
    lie = last(said)._replace(lamport=500)
    store.ingest(said)
    store.ingest(joined(bob.write(1), bob.write(1, seen=[lie]), bob.write(3)))
    store.ingest(carol.write(1, seen=[last(said)]))
    delivery = delivery_of(store, *NAMES[:3])
    assert sorted(pump(delivery, store)) == [("alice", 0), ("bob", 0), ("carol", 0)]
    (blocked,) = delivery.blocked()
    assert (blocked.feed, blocked.seq) == (bob.pair.key, 1)
    assert "tells a wrong lamport" in blocked.reason
    assert pump(delivery, store) == []


def test_a_lie_about_what_turns_out_to_be_forked_stays_one(store: FeedStore) -> None:
    """The hash fixes the lamport: whoever is shown that branch finds the same lie."""
    alice, bob = writer("alice"), writer("bob")
    begun = alice.write(1)
    forked = alice.fork()
    branch, other = alice.write(2), forked.write(1)
    store.ingest(joined(begun, branch))
    store.ingest(bob.write(1, seen=[last(branch)._replace(lamport=500)]))
    delivery = delivery_of(store, "alice", "bob")
    assert pump(delivery, store) == [("alice", 0), ("alice", 1), ("alice", 2)]
    assert "wrong lamport" in delivery.blocked()[0].reason
    with pytest.raises(Equivocation):
        store.ingest(joined(begun, other))
    assert delivery.end_fork(alice.pair.key, 1) == 2
    delivery.lanes[alice.pair.key].state.position = 1
    assert pump(delivery, store) == []
    assert "wrong lamport" in delivery.blocked()[0].reason
    fresh = delivery_of(store, "alice", "bob")
    fresh.end_fork(alice.pair.key, 1)
    assert pump(fresh, store) == [("alice", 0)]
    assert [blocked.reason for blocked in fresh.blocked()] == [blocked.reason for blocked in delivery.blocked()]


def test_another_branch_than_the_one_held_waits_until_it_is_shown(store: FeedStore) -> None:
    alice, bob = writer("alice"), writer("bob")
    begun = alice.write(2)
    other = alice.fork().write(1)
    store.ingest(joined(begun, alice.write(1)))
    store.ingest(bob.write(1, seen=[last(other)]))
    delivery = delivery_of(store, "alice", "bob")
    assert [who for who, _ in pump(delivery, store)] == ["alice"] * 3
    assert delivery.blocked()[0].reason.startswith("it has seen another block 2 of feed")
    assert delivery.end_fork(alice.pair.key, 2) == 1
    assert pump(delivery, store) == [], "nobody believes the lamport in an entry"
    assert list(delivery.wanted()) == [last(other)]
    store.ingest_branch([other])
    assert pump(delivery, store) == [("bob", 0)]


def test_a_history_that_is_not_delivered_up_to_its_fork_is_waited_for(store: FeedStore) -> None:
    alice, bob = writer("alice"), writer("bob")
    begun = alice.write(3)
    beyond = alice.write(2)
    store.ingest(bob.write(1, seen=[last(beyond)]))
    delivery = delivery_of(store, "alice", "bob")
    delivery.end_fork(alice.pair.key, 3)
    store.ingest_branch([beyond])
    assert pump(delivery, store) == []
    store.ingest(begun)
    assert [who for who, _ in pump(delivery, store)] == ["alice"] * 3 + ["bob"]


def test_a_batch_is_delivered_whole_or_not_at_all(store: FeedStore) -> None:
    alice, bob = writer("alice"), writer("bob")
    seen = alice.write(1)
    store.ingest(joined(bob.write(2), bob.write(4, atomic=True, seen=[last(seen)]), bob.write(1)))
    delivery = delivery_of(store, "alice", "bob")
    assert pump(delivery, store) == [("bob", 0), ("bob", 1)]
    store.ingest(seen)
    assert pump(delivery, store) == [("alice", 0)] + [("bob", seq) for seq in range(2, 7)]


def test_a_cut_inside_a_batch_leaves_all_of_it_out(store: FeedStore) -> None:
    bob = writer("bob")
    store.ingest(joined(bob.write(2), bob.write(4, atomic=True)))
    delivery = delivery_of(store, "bob")
    delivery.end_fork(bob.pair.key, 4)
    assert pump(delivery, store) == [("bob", 0), ("bob", 1)]


def test_it_goes_on_where_it_stood(store: FeedStore) -> None:
    alice = writer("alice")
    store.ingest(alice.write(3))
    delivery = delivery_of(store, "alice")
    pump(delivery, store)
    states = [lane.state for lane in delivery.lanes.values()]
    store.ingest(alice.write(2))
    again = Delivery(store, OpenAuthority(store, PARTY), states)
    assert [seq for _, seq in pump(again, store)] == [3, 4]


def test_a_header_that_breaks_the_rules_ends_the_feed_before_its_batch(store: FeedStore) -> None:
    """Rule 3: a fault in a header ends the feed there, and cuts round down to a batch's end."""
    alice = writer("alice")
    store.ingest(alice.write(2))
    bad = alice.forge(Forged(flags=Flag.MORE), Forged(flags=Flag.CONTINUED, lamport=9))
    store.ingest(bad)
    delivery = delivery_of(store, "alice")
    assert pump(delivery, store) == [("alice", 0), ("alice", 1)]


def test_activating_twice_is_activating_once(store: FeedStore) -> None:
    alice = writer("alice")
    store.ingest_all(alice.extend([Draft(Kind.MUTATION, bytes(16), b"x")]))
    delivery = delivery_of(store, "alice", "alice", "bob")
    assert [lane.state.number for lane in delivery.lanes.values()] == [1, 2]
    assert pump(delivery, store) == [("alice", 0)]


def test_blocks_that_were_just_delivered_are_not_read_again_when_others_name_them(
    store: FeedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = writer("alice"), writer("bob")
    first = alice.write(3)
    delivery = delivery_of(store, "alice", "bob")
    store.ingest(first)
    pump(delivery, store)
    store.ingest(bob.write(1, seen=[first.block(1).entry]))
    monkeypatch.setattr(store, "block", None)
    assert pump(delivery, store) == [("bob", 0)]
    lane = delivery.lanes[first.feed]
    assert lane.known(0) is not None
    delivery.end_fork(first.feed, 2)
    assert lane.known(0) is None  # of a forked feed another branch may be delivered
