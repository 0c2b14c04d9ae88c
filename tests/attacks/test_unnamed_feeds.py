"""A feed that only acts beyond a fork name: who has not taken these acts finds them on branches that others hold."""

from __future__ import annotations

import pytest
from tests.attacks.equivocator import Equivocator, meet, waits, works
from tests.mesh.replication.wire import Links, Wire, admits_of
from tests.party.epochs.epoch_acts import member, note

from antiphon.core.errors import BadEncoding
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.keys import KeyPair
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.span import Span
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import FeedAdmission, FeedKind, Role
from antiphon.halo.keys.identity import Device, Identity
from antiphon.halo.member.device_proof import vouch
from antiphon.mesh.replication import limits, replica, responses, wanted_branches
from antiphon.mesh.replication.codec import decode, encode
from antiphon.mesh.replication.message import (
    Announcement,
    Body,
    Branch,
    Holding,
    Message,
    Tip,
    Tips,
    WantBranch,
    WantTips,
)
from antiphon.mesh.replication.replica import Replica
from antiphon.mesh.replication.session import Session
from antiphon.party.live.item import Item
from antiphon.testing.parties import pair_of
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import SpanWriter


class Namer(Equivocator):
    """Mallory admits a third data feed on one of two branches of her control feed, and writes to it."""

    def __init__(self, peers: Peers, *, before: int = 1) -> None:
        super().__init__(peers)
        self.third = pair_of("a third data feed")
        word = member(self.peer).vouch(self.peer.identity)
        claim = FeedAdmission(self.third.key, FeedKind.DATA, self.peer.key, self.peer.device.key, word)
        self.writer = self.control(1)
        self.branch = [self.admits(self.writer, f"guest {count}") for count in range(before)]
        self.branch.append(self.say(self.writer, claim, pairs=(self.third,)))
        self.data = SpanWriter(self.third, self.party).write(2)
        self.other = self.admits(self.control(2), "nobody")

    def mislead(self, taker: Peer) -> Item:
        """Let a member take the branch as history, hear of the fork, and then write: it has seen the third feed."""
        taker.take([*self.branch, self.data])
        taker.take([self.other])
        written = note(taker, "it saw the third feed")
        stamp = written.edit("set", "body", "and no act of Mallory's beyond the fork")
        blocks = [taker.store.block(stamp.feed, seq) for seq in range(stamp.seq + 1)]
        seen = {entry.feed: entry.seq for block in blocks for entry in block.advance}
        assert bytes(self.third.key) in seen
        assert seen[bytes(self.writer.pair.key)] < self.other.first
        return written

    def warn(self, *others: Peer) -> None:
        """Show others both branches up to the fork, so that they take no more of the control feed."""
        for peer in others:
            peer.take([self.other])
            peer.take(self.branch[:1])
            assert not member(peer).machine.knows(bytes(self.third.key))


@pytest.mark.parametrize("links", [None, [("alice", "bob"), ("bob", "carol")]], ids=["all", "in a row"])
def test_who_knew_of_a_fork_finds_the_act_that_names_a_feed(peers: Peers, links: Links | None) -> None:
    """In a row, Carol gets the act from Bob, who keeps it as a branch and does not announce its blocks."""
    mallory = Namer(peers)
    alice, bob, carol = peers.all
    written = mallory.mislead(alice)
    mallory.warn(bob, carol)
    meet(peers, links)
    for peer in peers.all:
        assert peer.party.item(written.id).value["title"] == "it saw the third feed"
        assert waits(peer) == []
    works(peers)


def test_a_chain_of_names_is_followed_to_its_beginning(peers: Peers) -> None:
    """Beyond the fork is a grant to Eve, whose control feed has an act that Alice has seen."""
    mallory = Equivocator(peers)
    alice, bob, carol = peers.all
    member(alice).admit(mallory.peer.key, [Role.OWNER])
    meet(peers)
    eve, phone = Identity(pair_of("eve")), Device(pair_of("eve's phone"), pair_of("eve").key)
    feed, writer = pair_of("eve's control feed"), mallory.control(1)
    first, grant = mallory.admits(writer, "somebody"), mallory.admits(writer, "eve")
    claim = FeedAdmission(feed.key, FeedKind.CONTROL, eve.key, phone.key, vouch(mallory.party, eve, phone))
    signed = credential.sign(mallory.party, claim, [phone.pair, feed])
    draft = Draft(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(signed))
    (opening,) = SpanWriter(feed, mallory.party).extend([draft], seen=[grant.block(0).entry])
    other = mallory.admits(mallory.control(2), "nobody")
    alice.take([first, grant, opening])
    assert member(alice).machine.knows(bytes(feed.key))
    alice.take([other])
    member(alice).admit(pair_of("guest of alice").key, [Role.READER])
    for peer in (bob, carol):
        peer.take([other])
        peer.take([first])
        assert not member(peer).machine.names(bytes(eve.key))
    meet(peers)
    assert [waits(peer) for peer in peers.all] == [[], [], []]
    assert len({member(peer).state.digest for peer in peers.all}) == 1
    works(peers)


@pytest.mark.parametrize("links", [None, [("alice", "bob"), ("bob", "carol")]], ids=["all", "in a row"])
def test_the_act_is_found_in_a_feed_whose_other_branch_is_one_of_data(peers: Peers, links: Links | None) -> None:
    """Mallory has signed two first blocks. Bob holds the one of data as history, and announces a data feed to Carol."""
    mallory = Equivocator(peers)
    alice, bob, carol = peers.all
    both, third, word = pair_of("both"), pair_of("third"), member(mallory.peer).vouch(mallory.peer.identity)

    def admits(writer: SpanWriter, pair: KeyPair, kind: FeedKind) -> Span:
        claim = FeedAdmission(pair.key, kind, mallory.peer.key, mallory.peer.device.key, word)
        return mallory.say(writer, claim, pairs=(pair,))

    as_data = admits(mallory.control(), both, FeedKind.DATA)
    for peer in peers.all:
        peer.take([as_data])
    writer = SpanWriter(both, mallory.party)
    opening, act = admits(writer, both, FeedKind.CONTROL), admits(writer, third, FeedKind.DATA)
    data = SpanWriter(both, mallory.party, 1).write(2)
    alice.take([opening, act, SpanWriter(third, mallory.party).write(2)])
    alice.take([data])
    written = note(alice, "it saw the third feed")
    for peer in (bob, carol):
        peer.take([data])
        peer.take([opening])
        assert not member(peer).machine.knows(bytes(third.key))
    meet(peers, links)
    for peer in peers.all:
        assert peer.party.item(written.id).value["title"] == "it saw the third feed"
        assert waits(peer) == []


@pytest.mark.parametrize("most", [1, 3, 1024])
def test_many_branches_are_told_in_pages(peers: Peers, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Mallory has signed twenty branches, and one of them names the feed."""
    monkeypatch.setattr(responses, "TIPS_MAX", most)
    monkeypatch.setattr(replica, "TIPS_MAX", most)
    mallory = Namer(peers)
    alice, bob, carol = peers.all
    written = mallory.mislead(alice)
    alice.store.ingest_branch([mallory.admits(mallory.control(seed), f"guest {seed}") for seed in range(3, 23)])
    mallory.warn(bob, carol)
    meet(peers)
    for peer in peers.all:
        assert peer.party.item(written.id).value["title"] == "it saw the third feed"
        assert waits(peer) == []


def test_a_branch_of_many_blocks_comes_in_parts(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wanted_branches, "BRANCH_BACK_MAX", 4)
    mallory = Namer(peers, before=30)
    alice, bob, carol = peers.all
    written = mallory.mislead(alice)
    mallory.warn(bob, carol)
    meet(peers)
    assert [peer.party.item(written.id).value["title"] for peer in peers.all] == ["it saw the third feed"] * 3
    assert [waits(peer) for peer in peers.all] == [[], [], []]


class LiarAboutBranches:
    """A member at the other end of a session with Bob, whose blocks refer to a feed that no act names."""

    def __init__(self, peers: Peers, mallory: Namer) -> None:
        alice, bob, _ = peers.all
        self.forked = mallory.writer.pair.key
        mallory.mislead(alice)
        mallory.warn(bob)
        peers.pass_on(alice, bob)
        self.session = Session(Replica(bob.party, bob.epochs, admits_of(bob)), alice.device.key)
        self.party, self.now_ms, self.upto = mallory.party, 0, 0
        self.theirs = self.listen()[0].sender
        self.say(None)

    def listen(self) -> list[Message]:
        self.session.tick(self.now_ms)
        return [decode(data) for data in self.session.outgoing()]

    def say(self, body: Body | None) -> list[Body | None]:
        """Send, and what comes back."""
        self.session.receive(encode(Message(self.party, b"the liar", self.theirs, 0, body)), self.now_ms)
        return [message.body for message in self.listen()]

    def announce(self, branches: int, feed: bytes = b"") -> list[WantTips]:
        """Announce a forked feed with so many branches, wait, and return what is asked about branches."""
        self.upto += 1
        holding = Holding(feed or self.forked, 0, 1, bytes(32), control=True, fork=1, branches=branches)
        answers = self.say(Announcement(self.upto - 1, self.upto, (holding,)))
        self.now_ms += limits.BRANCH_WAIT_MS + limits.TIMEOUT_MIN_MS
        answers += [message.body for message in self.listen()]
        return [body for body in answers if isinstance(body, WantTips)]


def test_a_peer_that_makes_branches_up_is_asked_for_them_once(peers: Peers) -> None:
    """It would tell of a thousand blocks more each time; it lacks the first, and is asked for no more of them."""
    liar = LiarAboutBranches(peers, Namer(peers))
    (asked,) = liar.announce(branches=7)
    assert (asked.feed, asked.after) == (liar.forked, b"")
    tips = tuple(Tip(5, bytes([number]) * 32) for number in range(3))
    wanted = [body for body in liar.say(Tips(asked.request, tips, more=True)) if isinstance(body, WantBranch)]
    assert [(body.feed, body.seq, body.hash) for body in wanted] == [(liar.forked, *tip) for tip in tips]
    answers = [body for want in wanted for body in liar.say(Branch(want.request, ()))]
    assert not [body for body in answers if isinstance(body, WantBranch | WantTips)]
    assert not liar.announce(branches=7)
    (again,) = liar.announce(branches=8)
    assert again.after == b""


def test_nobody_is_asked_for_branches_of_feeds_that_are_not_here(peers: Peers) -> None:
    """Eve is a stranger (rule 22): a member announced her control feed as forked, and gave a branch, which was kept."""
    liar = LiarAboutBranches(peers, Namer(peers))
    liar.announce(branches=7)
    assert liar.announce(branches=7, feed=bytes(pair_of("eve's control feed").key)) == []


def test_what_has_come_from_others_is_not_requested_again(peers: Peers) -> None:
    liar = LiarAboutBranches(peers, mallory := Namer(peers))
    tips = [mallory.admits(mallory.control(seed), f"guest {seed}") for seed in range(3, 13)]
    (asked,) = liar.announce(branches=7)
    told = Tips(asked.request, tuple(Tip(span.first, span.hash_at(span.first)) for span in tips))
    first = [body for body in liar.say(told) if isinstance(body, WantBranch)]
    assert len(first) == limits.REQUESTS_MAX
    peers.all[1].store.ingest_branch(tips)
    answers = [body for want in first for body in liar.say(Branch(want.request, ()))]
    assert not [body for body in answers if isinstance(body, WantBranch)]


def test_an_answer_about_branches_that_was_not_requested_is_refused(peers: Peers) -> None:
    liar = LiarAboutBranches(peers, Namer(peers))
    with pytest.raises(BadEncoding, match="never made"):
        liar.say(Tips(99, ()))
    (asked,) = liar.announce(branches=7)
    with pytest.raises(BadEncoding, match="another kind"):
        liar.say(Branch(asked.request, ()))


def test_nobody_is_asked_for_branches_while_all_feeds_are_named(peers: Peers) -> None:
    """A fork alone costs nothing: Bob's blocks refer to known feeds."""
    mallory = Namer(peers)
    _, bob, _ = peers.all
    mallory.warn(*peers.all)
    note(bob, "after the fork")
    wire, sent = Wire(peers), list[Body | None]()

    def watch(giver: str, taker: str, data: bytes) -> bool:
        sent.append(decode(data).body)
        return True

    wire.watch = watch
    wire.run()
    assert sent
    assert not [body for body in sent if isinstance(body, WantTips)]
    assert [waits(peer) for peer in peers.all] == [[], [], []]
