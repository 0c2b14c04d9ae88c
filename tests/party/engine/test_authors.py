"""Whose messages are: remembered by control timeframe, and asked again, where it matters, when the authority moves."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.party.helpers import all_of, equal, guarding, sent

from antiphon.core.keys import KeyPair
from antiphon.core.sightings import Marks, Seen, Sightings
from antiphon.feed.header import Kind
from antiphon.halo.credentials.claims import Role
from antiphon.halo.rights import authorship
from antiphon.model.access import AccessLog, Author
from antiphon.model.epoch_fold import EpochItem, fold_on
from antiphon.model.item_state import ItemState
from antiphon.party.engine.authority import OpenAuthority
from antiphon.party.engine.authors import NOBODY, Authors, author_at, touched
from antiphon.party.engine.cache import Entry
from antiphon.party.engine.engine import Engine
from antiphon.party.engine.lane import Lane
from antiphon.party.engine.ports import AuthorRun, LaneState, Posting
from antiphon.testing.peers import Peer, Peers

FEED, GROUP, CONTROL = b"f" * 32, b"g" * 32, b"c" * 32


class Cutting(OpenAuthority):
    """In a group and an owner at first; the one ends at seq 5, the other at 9, but for who has seen a control block."""

    def __init__(self) -> None:
        self.asked = 0
        self.shift = 0

    def author(self, feed: bytes, seq: int, seen: Seen) -> Author:
        self.asked += 1
        ended = seq - self.shift if CONTROL not in seen else 0
        return Author(feed, (GROUP,) if ended < 5 else (), ended < 9)

    def acts_about(self, feed: bytes, *, untaken: bool = False) -> Marks | None:
        return None


def lane(*segments: int, number: int = 1, position: int = 30) -> Lane:
    found = Sightings((start, {CONTROL: 1 + at}) for at, start in enumerate(segments))
    return Lane(LaneState(feed=FEED, number=number, position=position, segments=found))


def test_each_step_is_found() -> None:
    cutting = Cutting()
    authors = Authors(cutting)
    told = [authors.of(lane(20), seq) for seq in range(30)]
    assert told == [cutting.author(FEED, seq, {CONTROL: 1} if seq >= 20 else {}) for seq in range(30)]
    asked = cutting.asked
    assert [authors.of(lane(20), seq) for seq in range(30)] == told
    assert cutting.asked == asked


def test_steps_of_a_place_further_on() -> None:
    steps = Authors(Cutting()).find(FEED, 7, {})
    assert [author_at(steps, seq).owner for seq in (7, 8, 9, 100)] == [True, True, False, False]


def test_what_changed_is_what_is_answered_otherwise_or_was_never_asked() -> None:
    cutting = Cutting()
    authors = Authors(cutting)
    one = lane(20)
    assert authors.changed([one]) == [(1, 0, 30)]
    assert authors.changed([one]) == []
    cutting.shift = 1
    assert authors.changed([one]) == [(1, 5, 6), (1, 9, 10)]
    assert authors.of(one, 5).groups == (GROUP,)


def test_what_is_recorded_is_known_to_the_next_process() -> None:
    cutting = Cutting()
    authors = Authors(cutting)
    one = lane(20, position=25)
    authors.record(one)
    assert one.state.authors == []  # nobody has asked
    authors.of(one, 0)
    authors.record(one)
    one.state.position = 30
    authors.record(one)
    assert [(run.start, run.stop) for run in one.state.authors] == [(0, 5), (5, 9), (9, 20), (20, 30)]
    later = Authors(cutting)
    assert later.changed([one]) == []
    cutting.shift = -1
    assert later.changed([one]) == [(1, 4, 5), (1, 8, 9)]
    later.forget([one])
    assert one.state.authors == []


def test_own_messages_that_were_folded_by_other_authors_are_asked_again() -> None:
    cutting = Cutting()
    authors = Authors(cutting)
    one = lane(position=8)
    own = authors.own(FEED, 3, {})
    cutting.shift = 1
    authors.record(one, 3, own)
    assert one.state.authors == [AuthorRun(0, 8, NOBODY)]
    assert authors.changed([one]) == [(1, 0, 8)]
    authors.record(one, 3, authors.own(FEED, 3, {}))
    assert authors.changed([one]) == []


def test_items_that_have_messages_in_parts_of_feeds() -> None:
    posted = [
        (b"before", [Posting(1, 0, 5)]),
        (b"inside", [Posting(2, 0, 1), Posting(1, 6, 7)]),
        (b"across", [Posting(1, 0, 99)]),
        (b"after", [Posting(1, 9, 12)]),
        (b"elsewhere", [Posting(2, 5, 9)]),
    ]
    assert touched([(1, 5, 9)], posted) == {b"inside", b"across"}
    assert touched([], posted) == set()


# -- on whole peers


def test_nobody_is_pushed_out_of_groups_by_being_taken_into_many(
    peers: Peers, alice: Peer, bob: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mallory has the keys of more groups than count, and takes Bob in; those that owners named come first."""
    monkeypatch.setattr(authorship, "GROUPS_MAX", 8)
    mallory = peers.add("mallory")
    assert alice.member is not None
    assert mallory.member is not None
    pairs = [KeyPair.from_seed(bytes([number]) * 32) for number in range(12)]
    for pair in pairs:
        alice.member.admit(pair.key, [Role.READER], is_group=True)
    peers.sync()
    for pair in pairs:
        mallory.member.admit_to_group(pair.key, bob.key, pair)
    alice.member.admit_to_group(b"\xff" * 32, b"\xee" * 32)
    alice.member.admit_to_group(b"\xee" * 32, bob.key)
    note = alice.party.create("antiphon/object")
    note.restrict_writers(b"\xff" * 32)
    peers.sync()
    stamp = bob.party.item(note.id).edit("set", "by", "bob")
    peers.sync()
    groups = alice.party.engine.author(stamp.feed, stamp.seq).groups
    assert {b"\xff" * 32, b"\xee" * 32} < set(groups)
    assert len(groups) == 8
    equal(peers)
    assert note.value == {"by": "bob"}


@pytest.fixture
def refolds(monkeypatch: pytest.MonkeyPatch) -> Counter[bytes]:
    """Which items were folded afresh, and how often."""
    found: Counter[bytes] = Counter()
    refold = Engine.refold

    def counted(engine: Engine, entry: Entry) -> object:
        found[entry.id] += 1
        return refold(engine, entry)

    monkeypatch.setattr(Engine, "refold", counted)
    return found


def test_control_news_fold_no_item_afresh_whose_authors_are_as_before(
    peers: Peers, alice: Peer, bob: Peer, refolds: Counter[bytes]
) -> None:
    assert alice.member is not None
    note, other = alice.party.create("antiphon/object"), alice.party.create("antiphon/object")
    note.restrict_writers(GROUP)
    other.restrict_writers(bob.key)
    peers.sync()
    bob.party.item(other.id).edit("set", "a", 1)
    peers.sync()
    alice.member.admit_to_group(b"h" * 32, alice.key)
    peers.sync()
    refolds.clear()
    for _ in range(3):
        alice.member.admit_to_group(b"h" * 32, alice.key)
        peers.sync()
    assert refolds == Counter()
    alice.member.admit_to_group(GROUP, bob.key)
    peers.sync()
    bob.party.item(note.id).edit("set", "by", "bob")
    peers.sync()
    refolds.clear()
    alice.member.remove_from_group(GROUP, bob.key)
    bob.party.item(note.id).edit("set", "late", True)  # folded as one of the group, and beyond the cut
    sent(bob, note, (Kind.CHANGE, guarding([bob.key])))
    peers.sync()
    assert refolds[note.id] > 0
    equal(peers)
    assert note.value == {"by": "bob"}


def test_a_hostile_change_costs_no_more_than_any_message(
    peers: Peers, alice: Peer, bob: Peer, refolds: Counter[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However low its lamport: lists are not settled anew for it, and nothing is folded afresh."""
    settled = 0
    settle = AccessLog._settle

    def counted(log: AccessLog) -> None:
        nonlocal settled
        settled += 1
        settle(log)

    note = alice.party.create("antiphon/object")
    note.restrict_writers()
    peers.sync()
    sent(bob, note, (Kind.CHANGE, guarding([bob.key])), seen=all_of(bob)[:1])
    peers.sync()
    alice.party.item(note.id).edit("set", "a", 1)
    monkeypatch.setattr(AccessLog, "_settle", counted)
    refolds.clear()
    for _ in range(20):
        sent(bob, note, (Kind.CHANGE, guarding([bob.key], [alice.key])))
        alice.take(bob.ranges(alice.lengths()))
    assert (settled, refolds) == (0, Counter())
    assert len(alice.party.refused()) == 21


def test_neither_an_opening_nor_an_epoch_folds_an_item_afresh_whose_authors_are_as_before(
    peers: Peers, alice: Peer, bob: Peer, refolds: Counter[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert alice.member is not None
    note = alice.party.create("antiphon/object")
    note.restrict_writers(bob.key)
    peers.sync()
    bob.party.item(note.id).edit("set", "by", "bob")
    peers.sync()
    alice.party.create("antiphon/object").edit("set", "of", "others")  # recorded beside, though nobody asks for it
    note.edit("set", "own", True)
    refolds.clear()
    alice.member.admit(KeyPair.from_seed(b"x" * 32).key, [Role.READER])
    alice.party.process()
    alice.restart()
    again: list[bytes] = []

    def counted(known: ItemState | None, party: bytes, item: bytes, *rest: Any) -> EpochItem:
        again.append(item)
        return fold_on(known, party, item, *rest)

    monkeypatch.setattr("antiphon.party.epochs.snapshot_fold.fold_on", counted)
    alice.epochs.declare()
    alice.restart()
    assert (alice.epochs.number, refolds, again) == (1, Counter(), [])
    assert alice.party.item(note.id).value == {"by": "bob", "own": True}
    peers.sync()
    for peer in (alice, bob):
        peer.epochs.step()
    assert bob.epochs.number == 1
    assert bob.epochs.disagreement is None
    equal(peers)


def test_an_item_whose_authors_change_before_the_epoch_is_final_is_folded_on_it(
    peers: Peers, alice: Peer, bob: Peer, refolds: Counter[bytes]
) -> None:
    """Bob writes as one of a group, Alice declares without knowing it, and learns it only then."""
    assert alice.member is not None
    note = alice.party.create("antiphon/object")
    note.restrict_writers(GROUP)
    alice.member.admit_to_group(GROUP, bob.key)
    peers.sync()
    bob.party.item(note.id).edit("set", "by", "bob")
    peers.sync()
    alice.member.remove_from_group(GROUP, bob.key)
    bob.party.item(note.id).edit("set", "late", True)
    peers.pass_on(bob, alice)
    alice.epochs.declare()
    peers.sync()
    for peer in (alice, bob):
        peer.epochs.step()
    assert [peer.epochs.number for peer in (alice, bob)] == [1, 1]
    assert alice.snapshots() == bob.snapshots()
    assert [peer.party.item(note.id).value for peer in (alice, bob)] == [{"by": "bob"}] * 2
