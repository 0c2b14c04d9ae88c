"""Attack 2, and what shows a branch: an honest member who saw the branch that the others do not hold (rules 2′, 23)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.attacks.equivocator import Equivocator, meet, waits, works
from tests.party.bundle.test_export import export, newcomer, take
from tests.party.epochs.epoch_acts import member, note

from antiphon.core.errors import RefusedBlocks, StoreError
from antiphon.feed.header import Entry
from antiphon.feed.span import Span
from antiphon.halo.credentials.claims import FeedAdmission, FeedKind, Policy, Role
from antiphon.testing.parties import pair_of
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import SpanWriter


def show_bob_another(peers: Peers) -> None:
    """Mallory shows Bob a branch whose block has seen much, and the others one whose block has seen nothing."""
    mallory = Equivocator(peers)
    alice, bob, carol = peers.all
    much = mallory.pen(mallory.second).write(30)
    low = mallory.pen(seed=1).write(1)
    high = mallory.pen(seed=2).write(1, seen=[much.block(much.count - 1).entry])
    for peer, branch in ((alice, low), (bob, high), (carol, low)):
        peer.take([much, branch])


def test_an_honest_member_is_not_ended_for_what_it_was_shown(peers: Peers) -> None:
    """Bob's entry lies inside the cut with a lamport above the root's: everybody ended his feed for ever."""
    show_bob_another(peers)
    alice, bob, carol = peers.all
    written = note(bob, "I saw the other branch")
    alice.epochs.declare()
    carol.take(alice.ranges(carol.lengths()))
    carol.epochs.step()
    assert alice.epochs.number == carol.epochs.number == 1
    meet(peers)
    for peer in peers.all:
        assert peer.epochs.number == 1
        assert peer.party.item(written.id).value["title"] == "I saw the other branch"
        assert waits(peer) == []
    works(peers)


def test_a_write_that_failed_leaves_no_trace_of_a_branch(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bob's disk is full when he writes after Mallory's branch; then the fork ends her feed before what he had seen."""

    def full(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    bob = peers.all[1]
    note(bob, "early")  # his data feed is open
    show_bob_another(peers)
    with monkeypatch.context() as patch:
        patch.setattr(bob.store, "append", full)
        with pytest.raises(StoreError, match="the disk is full"):
            note(bob, "no room")
    meet(peers)
    stamp = note(bob, "room again").edit("set", "body", "and time")
    blocks = [bob.store.block(stamp.feed, seq) for seq in range(stamp.seq + 1)]
    delivered = bob.party.timeframe
    assert all(entry.seq <= delivered.get(entry.feed, entry.seq) for block in blocks for entry in block.advance)
    works(peers)


def test_control_blocks_that_a_fork_takes_back_keep_nobody_from_writing(peers: Peers) -> None:
    """Bob has delivered twenty acts of Mallory's, and then sees that she forked before them: they do not count now."""
    mallory = Equivocator(peers)
    _, bob, _ = peers.all
    note(bob, "early")
    writer, other = mallory.control(1), mallory.control(2)
    bob.take([mallory.admits(writer, f"guest {count}") for count in range(20)])
    bob.party.process()
    bob.take([mallory.admits(other, "another guest")])
    stamp = note(bob, "late").edit("set", "body", "and no MovedOn")
    blocks = [bob.store.block(stamp.feed, seq) for seq in range(stamp.seq + 1)]
    seen = [entry.seq for block in blocks for entry in block.advance if entry.feed == writer.pair.key]
    assert max(seen) < writer.record.length - 20
    works(peers)


def test_who_was_given_a_branch_gives_it_on(peers: Peers) -> None:
    """Bob refers to b, gives Carol headers and block, and is lost; Dave gets it from Carol."""
    show_bob_another(peers)
    alice, bob, carol = peers.all
    written = note(bob, "last words")
    meet(peers, [("bob", "carol")])
    assert carol.party.item(written.id).value["title"] == "last words"
    peers.all.remove(bob)
    bob.close()
    dave = peers.add("dave", None)
    member(alice).admit(dave.key, [Role.EDITOR])
    meet(peers, [("alice", "carol")])
    carol.restart()  # it keeps what it was shown, on its disk
    meet(peers, [("carol", "dave")])
    dave.join()
    meet(peers, [("carol", "dave"), ("alice", "carol")])
    for peer in (alice, carol, dave):
        assert peer.party.item(written.id).value["title"] == "last words"
        assert waits(peer) == []
    works(peers)


def test_peers_with_two_branches_of_a_control_feed_come_to_one_state(peers: Peers) -> None:
    """Mallory, an owner, sets another policy and admits another member on each branch; both are read by all."""
    mallory = Equivocator(peers)
    alice, bob, _ = peers.all
    member(alice).admit(mallory.peer.key, [Role.OWNER])
    meet(peers)
    branches = []
    for seed, admitted in ((1, "eve"), (2, "frank")):
        writer = mallory.control(seed)
        entries = member(alice).machine.entries()
        policy = mallory.say(writer, Policy(editors_admit=bool(seed % 2), message_count=seed), seen=tuple(entries))
        branches.append([policy, mallory.admits(writer, admitted)])
    alice.take(branches[0])
    bob.take(branches[1])
    said = [note(peer, f"{peer.name} has seen one") for peer in (alice, bob)]
    alice.epochs.declare()
    meet(peers)
    for peer in peers.all:
        assert {peer.party.item(item.id).value["title"] for item in said} == {"alice has seen one", "bob has seen one"}
        assert waits(peer) == []
        assert peer.epochs.number == 1, peer.epochs.waits_for
    assert len({member(peer).state.digest for peer in peers.all}) == 1
    works(peers)


def test_a_data_feed_that_only_one_branch_admits_keeps_nobody_waiting(peers: Peers) -> None:
    mallory = Equivocator(peers)
    alice, bob, carol = peers.all
    third = pair_of("a third data feed")
    word = member(mallory.peer).vouch(mallory.peer.identity)
    claim = FeedAdmission(third.key, FeedKind.DATA, mallory.peer.key, mallory.peer.device.key, word)
    branch = mallory.say(mallory.control(1), claim, pairs=(third,))
    data = SpanWriter(third, mallory.party).write(2)
    other = mallory.admits(mallory.control(2), "nobody")
    bob.take([branch, data])
    for peer in (alice, carol):
        peer.take([other])
    written = note(bob, "it saw the third feed")
    meet(peers)
    for peer in peers.all:
        assert peer.party.item(written.id).value["title"] == "it saw the third feed"
        assert waits(peer) == []
    works(peers)


@pytest.mark.parametrize(("count", "size"), [(40, 100), (1, 1_200)], ids=["many spans", "one long span"])
def test_a_long_branch_comes_whole(peers: Peers, count: int, size: int) -> None:
    """Nothing that is shown is refused for its size: it comes a window at a time.

    A window may begin inside a span. The rest of that span did not come, as its end was here.
    """
    mallory = Equivocator(peers)
    alice, bob, carol = peers.all
    writer = mallory.pen(seed=1)
    branch = [writer.write(size) for _ in range(count)]
    for peer in (alice, carol):  # no range shows them the other branch: theirs is longer
        peer.take([mallory.pen(seed=2).write(count * size + 1)])
    bob.take(branch)
    written = note(bob, "after a long branch")
    meet(peers)
    for peer in peers.all:
        assert peer.party.item(written.id).value["title"] == "after a long branch"
        assert waits(peer) == []


def test_what_does_not_lead_to_the_block_is_refused_by_name(peers: Peers) -> None:
    mallory = Equivocator(peers)
    alice, bob, _ = peers.all
    writer = mallory.pen(seed=1)
    first, second = writer.write(1), writer.write(1)
    wanted = second.block(0)
    for hostile in ([first], [second, first], [mallory.pen(seed=3).write(2)]):
        with pytest.raises(RefusedBlocks, match="do not lead to block"):
            alice.store.ingest_branch(hostile, leads_to=(wanted.seq, wanted.hash))
    alice.take([mallory.pen(seed=2).write(1)])
    assert _kept(alice, first) == []
    alice.store.ingest_branch([first, second], leads_to=(wanted.seq, wanted.hash))
    assert [span.first for span in _kept(alice, first)] == [first.first, second.first]
    bob.take([first, second])
    assert bob.store.trail(first.feed, wanted.seq, wanted.hash, 0, 1 << 20)[-1].hash_at(wanted.seq) == wanted.hash
    assert bob.store.trail(first.feed, wanted.seq, bytes(32), 0, 1 << 20) == []
    for peer in (alice, bob):  # an answer that its taker must refuse ends their session, again and again
        for seq in (wanted.seq - 1, wanted.seq + 1, wanted.seq + 9):
            assert peer.store.trail(first.feed, seq, wanted.hash, 0, 1 << 20) == []


def _kept(peer: Peer, span: Span) -> list[Span]:
    return sorted(peer.store.branches(span.feed), key=lambda kept: kept.first)


def test_a_bundle_carries_what_was_shown(peers: Peers, tmp_path: Path) -> None:
    """Zoe has nothing but the file: it has the branch that Bob's message refers to."""
    show_bob_another(peers)
    alice, bob, carol = peers.all
    written = note(bob, "in the file")
    meet(peers)
    alice.epochs.declare()
    meet(peers)
    after = note(bob, "after the cut")
    meet(peers)
    zoe = newcomer(peers)
    for whole in (False, True):
        export(carol, tmp_path / f"{whole}.car", whole=whole)
    take(tmp_path / "False.car", zoe)
    for item, title in ((written, "in the file"), (after, "after the cut")):
        assert zoe.party.item(item.id).value["title"] == title
    assert waits(zoe) == []
    yann = newcomer(peers, "yann")
    take(tmp_path / "True.car", yann)
    assert yann.party.item(written.id).value["title"] == "in the file"
    assert waits(yann) == []


def test_a_true_hash_at_a_wrong_place_hides_no_branch(peers: Peers) -> None:
    """Peers once asked for a wanted block by its hash alone, and a liar's entry took the place of an honest one."""
    mallory = Equivocator(peers)
    alice, bob, carol = peers.all
    low, high = mallory.pen(seed=1).write(1), mallory.pen(seed=2)
    spans = [high.write(3) for _ in range(6)]
    last = spans[-1].block(spans[-1].count - 1)
    for peer in (alice, carol):
        peer.take([low])
        peer.take([mallory.pen(seed=7).write(2)])
    bob.take(spans)
    written = note(bob, "hi")
    for seq in (last.seq + 1, last.seq + 2):
        pen = mallory.pen(mallory.second, seed=seq)
        lie = pen.write(1, seen=[Entry(bytes(last.feed), seq, last.lamport, last.hash)])
        for peer in peers.all[seq % 2 :]:
            peer.take([lie])
    meet(peers)
    assert [peer.party.item(written.id).value["title"] for peer in peers.all] == ["hi"] * 3


def test_two_branches_that_nobody_holds_as_history_are_a_fork_for_all(peers: Peers) -> None:
    """Carol is shown two first blocks of a control feed, and Bob one: Carol alone ended it, and had no evidence."""
    mallory = Equivocator(peers)
    alice, bob, carol = peers.all
    member(alice).admit(bob.key, [Role.OWNER])
    meet(peers)
    third, word = pair_of("mallory's second control feed"), member(mallory.peer).vouch(mallory.peer.identity)
    claim = FeedAdmission(third.key, FeedKind.CONTROL, mallory.peer.key, mallory.peer.device.key, word)
    pens = [SpanWriter(third, mallory.party, seed) for seed in (1, 2)]
    seen = tuple(member(alice).machine.entries())
    first, second = [mallory.say(pen, claim, pairs=(third,), seen=seen) for pen in pens]
    bob.take([first])
    carol.store.ingest_branch([second])
    carol.store.ingest_branch([first])
    carol.party.process()
    assert member(carol).machine.common(bytes(third.key)) == 0
    for _ in range(2):
        meet(peers)
        for peer in peers.all:
            member(peer).publish_forks()
    assert [member(peer).machine.common(bytes(third.key)) for peer in peers.all] == [0, 0, 0]
    assert len({member(peer).state.digest for peer in peers.all}) == 1
    works(peers)
