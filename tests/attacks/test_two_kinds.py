"""A feed of two kinds: a control feed on one branch, a data feed on the other (rule 23)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.attacks.equivocator import Equivocator, meet, waits, works
from tests.party.bundle.test_export import export, newcomer, take
from tests.party.epochs.epoch_acts import member, note

from antiphon.feed.span import Span
from antiphon.halo.credentials.claims import FeedAdmission, FeedKind, Role
from antiphon.party.live.item import Item
from antiphon.testing.parties import pair_of
from antiphon.testing.peers import Peers
from antiphon.testing.spans import SpanWriter

THIRD = pair_of("a feed of two kinds")


class TwoKinds:
    """Mallory signs two first blocks of a feed. Bob has seen the one of control, Alice and Carol the one of data."""

    def __init__(self, peers: Peers) -> None:
        self.peers = peers
        mallory = Equivocator(peers)
        alice, bob, carol = peers.all
        member(alice).admit(bob.key, [Role.OWNER])
        meet(peers)
        word = member(mallory.peer).vouch(mallory.peer.identity)
        owner = mallory.peer.key, mallory.peer.device.key, word
        seen = tuple(member(alice).machine.entries())
        self.admission = mallory.say(
            mallory.control(1), FeedAdmission(THIRD.key, FeedKind.DATA, *owner), pairs=(THIRD,)
        )
        pen = SpanWriter(THIRD, mallory.party, 1)
        opening = mallory.say(pen, FeedAdmission(THIRD.key, FeedKind.CONTROL, *owner), pairs=(THIRD,), seen=seen)
        guest = mallory.admits(pen, "a guest of one branch")
        self.control: list[Span] = [opening, guest]
        self.data = SpanWriter(THIRD, mallory.party, 2).write(2)
        self.said: list[Item] = []
        bob.take(self.control)
        assert member(bob).machine.is_control(bytes(THIRD.key))
        member(bob).admit(pair_of("guest").key, [Role.READER])
        self.said.append(note(bob, "bob has seen the branch of control"))
        for peer in (alice, carol):
            peer.take([self.admission, self.data])
            self.said.append(note(peer, f"{peer.name} has seen the branch of data"))

    def check(self) -> None:
        """Everybody has everything, nothing waits, and the party works on."""
        for peer in self.peers.all:
            assert waits(peer) == [], peer.name
            titles = {peer.party.item(item.id).value["title"] for item in self.said}
            assert len(titles) == len(self.said)
        works(self.peers)


def test_a_feed_of_two_kinds_mutes_nobody(peers: Peers) -> None:
    """Peers with the branch of data kept the headers of the other alone, and waited for its acts without end."""
    kinds = TwoKinds(peers)
    meet(peers)
    kinds.check()


def test_nor_if_all_have_restarted(peers: Peers) -> None:
    """They read the feeds of their stores again, when the fork is known."""
    kinds = TwoKinds(peers)
    meet(peers)
    for peer in peers.all:
        peer.restart()
        peer.party.process()
    meet(peers)
    kinds.check()


def test_nor_if_a_newcomer_has_it_from_one_of_them(peers: Peers) -> None:
    kinds = TwoKinds(peers)
    meet(peers)
    peers.all[1].restart()  # Bob
    dora = peers.add("dora", None)
    member(peers.all[0]).admit(dora.key, [Role.EDITOR])
    meet(peers)
    dora.restart()
    dora.join()
    meet(peers)
    kinds.check()


@pytest.mark.parametrize("giver", ["alice", "bob"])
@pytest.mark.parametrize("late", [False, True])
def test_nor_if_it_comes_in_a_file(peers: Peers, tmp_path: Path, giver: str, late: bool) -> None:
    """Of somebody who has seen one branch, or both and has restarted; then the taker writes, and all hear it."""
    kinds = TwoKinds(peers)
    if late:
        meet(peers)
    source = next(peer for peer in peers.all if peer.name == giver)
    if late:
        source.restart()
        source.party.process()
    taker = newcomer(peers, "zoe")
    peers.all.remove(taker)
    meet(peers)
    peers.all.append(taker)
    export(source, tmp_path / "party.car", whole=True)
    take(tmp_path / "party.car", taker)
    taker.join()
    taker.party.process()
    assert waits(taker) == []
    kinds.said.append(note(taker, "read from a file"))
    meet(peers)
    kinds.check()


def test_nor_if_the_epoch_holds_the_data(peers: Peers) -> None:
    """Alice and Carol declare before they hear of Bob; his acts and messages come on top of their epoch."""
    kinds = TwoKinds(peers)
    alice, bob, carol = peers.all
    peers.all[:] = [alice, carol]
    meet(peers)
    alice.epochs.declare()
    meet(peers)
    assert carol.epochs.number == 1
    peers.all[:] = [alice, bob, carol]
    meet(peers)
    kinds.check()
