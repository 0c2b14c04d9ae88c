"""What replication costs: a block passes to each peer about once, and what is quiet costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.mesh.replication.wire import Wire
from tests.party.epochs.epoch_acts import member, note

from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.credentials.claims import Role
from antiphon.mesh.replication import limits
from antiphon.mesh.replication.codec import decode
from antiphon.mesh.replication.message import Announcement, Ranges, Want
from antiphon.testing.peers import Peers

NAMES = ("alice", "bob", "carol", "dave", "erin")


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path) as made:
        for name in NAMES:
            made.add(name)
        yield made


class Ledger:
    """What was asked for and given on a wire."""

    def __init__(self, wire: Wire) -> None:
        self.given = 0
        self.pushed = 0
        self.bytes = 0  # of spans, in answers and with announcements
        self.asked: list[tuple[str, bytes, int]] = []
        wire.watch = self._note

    def _note(self, giver: str, taker: str, data: bytes) -> bool:
        body = decode(data).body
        if isinstance(body, Ranges):
            self.given += len(body.spans)
            self.bytes += body.size
        if isinstance(body, Announcement):
            self.pushed += len(body.spans)
            self.bytes += sum(map(len, body.spans))
        if isinstance(body, Want):
            self.asked += [(giver, feed, first) for feed, first in body.ranges]
        return True


def test_each_block_passes_to_each_peer_once_though_all_are_neighbours(peers: Peers) -> None:
    wire = Wire(peers)
    wire.run()
    ledger = Ledger(wire)
    wire.blocks, before = 0, sum(peers.all[0].lengths().values())
    for number in range(10):
        note(peers.all[number % 5], f"{number}")
        for node in wire.nodes.values():
            node.replica.refresh()
        wire.run()

    assert all(peer.snapshots() == peers.all[0].snapshots() for peer in peers.all)
    assert wire.blocks == (sum(peers.all[0].lengths().values()) - before) * 4 > 0
    assert len(ledger.asked) == len(set(ledger.asked))  # nobody was asked for what another was giving
    assert ledger.given <= len(ledger.asked)


def test_what_is_written_live_arrives_in_half_a_round_trip(peers: Peers) -> None:
    wire = Wire(peers)
    item = note(peers.all[0])
    wire.run()
    for text in ("one", "two"):
        item.edit("set", "title", text)
        wire.nodes["alice"].replica.refresh()
        wire.run(wire.now_ms + 6)  # a message takes 5 ms
        for peer in peers.all[1:]:
            assert peer.party.item(item.id).value["title"] == text
        wire.run()


def test_live_blocks_reach_each_peer_about_once_in_whichever_net(peers: Peers) -> None:
    """After the first blocks, which show who gets what from whom, next to nothing comes twice."""
    wire = Wire(peers)
    items = [note(peer) for peer in peers.all]
    wire.run()
    for item in items:
        item.edit("set", "title", "first")
        for node in wire.nodes.values():
            node.replica.refresh()
        wire.run()
    ledger = Ledger(wire)
    wire.blocks = 0
    for number in range(40):
        items[number % 5].edit("set", "title", f"{number}")
        for node in wire.nodes.values():
            node.replica.refresh()
        wire.run(wire.now_ms + 100)
    wire.run()

    assert all(peer.snapshots() == peers.all[0].snapshots() for peer in peers.all)
    assert wire.blocks == 40 * 4
    assert 40 * 4 <= ledger.pushed + ledger.given <= 1.1 * 40 * 4


def test_blocks_are_pushed_along_a_chain(peers: Peers) -> None:
    wire = Wire(peers, [*pairwise(NAMES)])
    item = note(peers.all[0])
    wire.run()
    ledger = Ledger(wire)
    item.edit("set", "title", "along")
    wire.nodes["alice"].replica.refresh()
    wire.run(wire.now_ms + 21)  # four messages
    assert peers.all[4].party.item(item.id).value["title"] == "along"
    assert not ledger.asked
    wire.run()
    assert ledger.pushed == 4


def test_a_push_that_is_lost_or_too_large_is_asked_for(peers: Peers) -> None:
    del peers.all[2:]
    wire = Wire(peers)
    text = peers.all[0].party.create("antiphon/text")
    wire.run()
    wire.watch = lambda giver, taker, data: not isinstance(decode(data).body, Announcement)
    text.edit("insert", 0, "lost")
    wire.nodes["alice"].replica.refresh()
    wire.run(wire.now_ms + 100)
    ledger = Ledger(wire)
    text.edit("insert", 0, "x" * (limits.PUSH_SIZE_MAX + 1))
    wire.nodes["alice"].replica.refresh()
    wire.run()
    assert peers.all[0].snapshots() == peers.all[1].snapshots()
    assert ledger.asked
    assert not ledger.pushed


def test_a_block_that_is_written_during_a_push_goes_with_it(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The application writes in another thread than sessions speak in."""
    del peers.all[2:]
    wire = Wire(peers)
    item = note(peers.all[0])
    wire.run()
    ledger, replica = Ledger(wire), wire.nodes["alice"].replica
    read = replica.read_range

    def read_later(feed: bytes, first: int, size: int) -> Span | None:
        monkeypatch.undo()
        item.edit("set", "title", "second")
        return read(feed, first, size)

    monkeypatch.setattr(replica, "read_range", read_later)
    item.edit("set", "title", "first")
    replica.refresh()
    wire.run(wire.now_ms + 6)
    assert peers.all[1].party.item(item.id).value["title"] == "second"
    replica.refresh()
    wire.run()
    assert peers.all[0].snapshots() == peers.all[1].snapshots()
    assert ledger.pushed == 1
    assert not ledger.asked


def test_who_holds_the_same_lists_nothing_when_it_reconnects(peers: Peers) -> None:
    for number in range(3):
        note(peers.all[0], f"{number}")
    del peers.all[2:]
    Wire(peers).run()
    again = Wire(peers)
    bodies = []

    def listen(giver: str, taker: str, data: bytes) -> bool:
        bodies.append(decode(data).body)
        return True

    again.watch = listen
    again.run()
    assert not any(isinstance(body, Announcement) and body.holdings for body in bodies)
    assert again.bytes < 2_000, "two greetings with credentials, and their answers"
    note(peers.all[1])
    again.nodes["bob"].replica.refresh()
    again.run()
    assert peers.all[0].snapshots() == peers.all[1].snapshots()


def test_a_peer_that_lacks_much_takes_it_in_pieces(peers: Peers) -> None:
    alice, bob, *_ = peers.all
    text = alice.party.create("antiphon/text")
    for _ in range(40):
        text.edit("insert", 0, "x" * 100_000)
    del peers.all[2:]
    wire = Wire(peers)
    ledger = Ledger(wire)
    wire.run()

    assert bob.snapshots() == alice.snapshots()
    assert wire.peak < 2 * limits.ANSWER_SIZE
    assert 8 <= ledger.given <= 24
    assert wire.bytes < 1.1 * 40 * 100_000


def test_control_feeds_come_first(peers: Peers) -> None:
    alice = peers.all[0]
    for number in range(3):
        note(alice, f"{number}")
    del peers.all[2:]
    fresh = peers.add("fresh", None)
    member(peers.all[0]).admit(fresh.key, [Role.READER])
    wire = Wire(peers, [("alice", "fresh")])
    ledger = Ledger(wire)
    wire.run()

    assert fresh.snapshots() == alice.snapshots()
    kinds = [wire.nodes["alice"].replica.holdings.get(feed) for _, feed, _ in ledger.asked]
    control = [held is not None and held.control for held in kinds]
    assert control == sorted(control, reverse=True)
    assert not all(control)


def test_who_is_late_is_not_waited_for_where_another_neighbour_has_the_same(peers: Peers) -> None:
    del peers.all[3:]
    note(peers.all[0])
    peers.pass_on(peers.all[0], peers.all[1])
    wire = Wire(peers, [("alice", "carol"), ("bob", "carol")])
    wire.watch = lambda giver, taker, data: not (giver == "alice" and isinstance(decode(data).body, Ranges))
    wire.run(limits.TIMEOUT_MIN_MS * 6)  # the control feed, which names the data feed, and then that

    assert peers.all[2].snapshots() == peers.all[1].snapshots()


def test_a_quiet_tick_reads_nothing(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Wire(peers)
    wire.run()

    def read(*_: object) -> None:
        raise AssertionError("it looked at the feeds")

    for name in ("feeds", "record", "spans", "block"):
        monkeypatch.setattr(FeedStore, name, read)
    for session in wire.nodes["alice"].sessions.values():
        assert session.tick(wire.now_ms) is None
        assert session.outgoing() == []


def test_nothing_leaves_before_it_is_synced(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    del peers.all[2:]
    wire = Wire(peers)
    wire.run()
    flush = FeedStore._flush_for_others

    def noted(store: FeedStore) -> None:
        order.append("sync")
        flush(store)

    monkeypatch.setattr(FeedStore, "_flush_for_others", noted)

    def listen(giver: str, taker: str, data: bytes) -> bool:
        body = decode(data).body
        if isinstance(body, Ranges) or (isinstance(body, Announcement) and body.spans):
            order.append("leaves")
        return True

    wire.watch = listen
    note(peers.all[0])
    wire.nodes["alice"].replica.refresh()
    wire.run()

    assert order[0] == "sync"
    assert "leaves" in order


def test_writes_for_an_end_that_takes_nothing_wait_in_the_store_and_not_in_memory(peers: Peers) -> None:
    """It reads slowly, or not at all, while this end writes: what it is to get is read when it can leave."""
    del peers.all[2:]
    wire = Wire(peers)
    wire.run()
    session, text = wire.nodes["alice"].sessions["bob"], peers.all[0].party.create("antiphon/text")
    for _ in range(40):
        text.edit("insert", 0, "x" * 50_000)
        wire.nodes["alice"].replica.refresh()
        wire.now_ms += 50
        session.tick(wire.now_ms)
    waits = session.outgoing()
    assert sum(map(len, waits)) <= limits.PUSH_SIZE_MAX + 10_000
    for data in waits:
        wire.send("alice", "bob", data)
    wire.run()
    assert peers.all[0].snapshots() == peers.all[1].snapshots()
