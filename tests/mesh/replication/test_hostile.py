"""A peer that lies or is broken: what it sends is bounded and refused with a reason, and nothing of it is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tests.mesh.replication.wire import Wire, admits_of
from tests.party.epochs.epoch_acts import member, note

from antiphon.core.cid import Cid
from antiphon.core.errors import AntiphonError, BadEncoding, InvalidInput, RefusedBlocks, TooLarge
from antiphon.core.keys import KeyPair
from antiphon.feed.block import BodyState
from antiphon.feed.header import Kind
from antiphon.halo.credentials.claims import Position, Role
from antiphon.mesh.replication import limits
from antiphon.mesh.replication.codec import decode, encode
from antiphon.mesh.replication.message import (
    Announcement,
    Blobs,
    Body,
    Holding,
    Message,
    More,
    Ranges,
    Tip,
    Tips,
    Want,
    WantBlobs,
)
from antiphon.mesh.replication.replica import ControlReplica, Replica
from antiphon.mesh.replication.session import Session
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import SpanWriter


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path) as made:
        made.add("alice")
        yield made


class Liar:
    """The other end of a session with one honest peer, written by hand. It has a member's device."""

    def __init__(self, peer: Peer, replica: Replica | None = None) -> None:
        self.replica = replica or Replica(peer.party, peer.epochs, admits_of(peer))
        self.session = Session(self.replica, peer.device.key)
        self.party = self.replica.key
        self.now_ms = 0
        self.heard: list[Body | None] = []
        (greeting,) = self._listen()
        self.theirs = greeting.sender
        self.say(None)
        self._listen()

    def say(self, body: Body | None, *, heard: int = 0) -> list[Body | None]:
        """Send, and what comes back."""
        message = Message(self.party, b"the liar", self.theirs, heard, body)
        self.session.receive(encode(message), self.now_ms)
        return [message.body for message in self._listen()]

    def _listen(self) -> list[Message]:
        self.session.tick(self.now_ms)
        heard = [decode(data) for data in self.session.outgoing()]
        self.heard += [message.body for message in heard]
        return heard

    def offer(
        self, feed: bytes, length: int = 1, *, start: int = 0, control: bool = False, upto: int = 1
    ) -> Want | None:
        """Announce a feed; what the honest peer asks for then."""
        holding = Holding(feed, start, length, bytes(32), control)
        answers = self.say(Announcement(0, upto, (holding,)))
        return next((body for body in answers if isinstance(body, Want)), None)


@pytest.fixture
def alice(peers: Peers) -> Peer:
    return peers.all[0]


@pytest.fixture
def liar(alice: Peer) -> Liar:
    return Liar(alice)


def feed_of(alice: Peer, name: str = "somebody") -> SpanWriter:
    """A data feed that Alice has admitted, so that its blocks are wanted."""
    pair = KeyPair.from_seed(sha256(name.encode()).digest())
    if not alice.party.authority.knows(pair.key):
        alice.admit_feed(pair)
    return SpanWriter(pair, alice.party.key)


@given(st.binary(max_size=300))
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    try:
        message = decode(data)
    except InvalidInput:
        return
    assert decode(encode(message)) == message


def test_fields_and_bodies_of_later_versions_are_skipped(liar: Liar) -> None:
    later = bytes.fromhex("d20f03616263")  # field 250: three bytes
    message = encode(Message(b"", b"the liar", liar.theirs, 0))
    assert decode(message + later) == decode(message)
    announced = encode(Message(b"", b"the liar", liar.theirs, 0, Announcement(0, 1, ())))
    liar.session.receive(announced + later, 0)
    assert liar.session._heard == 1


def test_a_message_that_is_too_large_is_refused_unread(liar: Liar) -> None:
    with pytest.raises(TooLarge):
        liar.session.receive(bytes(limits.MESSAGE_SIZE_MAX + 1), 0)


@pytest.mark.parametrize(
    "body",
    [
        Announcement(0, 1, (Holding(bytes(32), 0, 1, bytes(32)),) * (limits.HOLDINGS_MAX + 1)),
        Want(1, 1, ((bytes(32), 0),) * (limits.RANGES_MAX + 1)),
        Ranges(1, (b"",) * (limits.RANGES_MAX + 1)),
        WantBlobs(1, (Cid.of(b""),) * (limits.CIDS_MAX + 1)),
        Blobs(1, (), (Cid.of(b""),) * (limits.CIDS_MAX + 1)),
        Tips(1, (Tip(0, bytes(32)),) * (limits.TIPS_MAX + 1)),
    ],
    ids=lambda body: type(body).__name__,
)
def test_lists_that_are_too_long_are_refused(liar: Liar, body: Body) -> None:
    with pytest.raises(TooLarge):
        liar.say(body)


def test_a_message_about_another_party_is_refused(liar: Liar) -> None:
    message = Message(bytes(32), b"the liar", liar.theirs, 0)
    with pytest.raises(BadEncoding, match="party"):
        liar.session.receive(encode(message), 0)


def test_an_answer_that_nobody_asked_for_is_refused(liar: Liar, alice: Peer) -> None:
    span = feed_of(alice).write()
    with pytest.raises(BadEncoding, match="never made"):
        liar.say(Ranges(1, (span.encode(),)))
    with pytest.raises(BadEncoding, match="never made"):
        liar.say(Blobs(1, ((Cid.of(b"a"), b"a"),)))
    assert bytes(span.feed) not in alice.lengths()


def test_an_answer_with_another_feed_is_refused(liar: Liar, alice: Peer) -> None:
    asked, other = feed_of(alice), feed_of(alice, "another")
    want = liar.offer(asked.pair.key)
    assert want is not None
    with pytest.raises(BadEncoding, match="not requested"):
        liar.say(Ranges(want.request, (other.write().encode(),)))
    assert bytes(other.pair.key) not in alice.lengths()


def test_a_late_answer_with_a_feed_that_was_never_announced_is_refused(liar: Liar, alice: Peer) -> None:
    asked, other = feed_of(alice), feed_of(alice, "another")
    want = liar.offer(asked.pair.key)
    assert want is not None
    liar.say(Ranges(want.request, (asked.write().encode(),)))
    liar.say(Ranges(want.request, (asked.write().encode(),)))  # the same request again: late, and harmless
    with pytest.raises(BadEncoding, match="not requested"):
        liar.say(Ranges(want.request, (other.write().encode(),)))


def test_blocks_that_do_not_verify_are_refused_and_listed(liar: Liar, alice: Peer) -> None:
    writer = feed_of(alice)
    want = liar.offer(writer.pair.key)
    assert want is not None
    span = replace(writer.write(), signature=bytes(64))
    with pytest.raises(RefusedBlocks):
        liar.say(Ranges(want.request, (span.encode(),)))
    (refusal,) = alice.store.quarantine().refusals
    assert refusal.source == alice.device.key  # of the other end
    assert bytes(writer.pair.key) not in alice.lengths()


def test_blocks_of_another_party_are_refused(liar: Liar, alice: Peer) -> None:
    pair = feed_of(alice).pair
    want = liar.offer(pair.key)
    assert want is not None
    with pytest.raises(BadEncoding, match="party"):
        liar.say(Ranges(want.request, (SpanWriter(pair, pair.key).write().encode(),)))


def test_two_ranges_of_one_feed_in_an_answer_are_refused(liar: Liar, alice: Peer) -> None:
    writer = feed_of(alice)
    want = liar.offer(writer.pair.key, 2)
    assert want is not None
    with pytest.raises(BadEncoding, match="two ranges"):
        liar.say(Ranges(want.request, (writer.write().encode(), writer.write().encode())))


def test_a_range_that_does_not_follow_is_not_taken_and_no_fault_of_the_giver(liar: Liar, alice: Peer) -> None:
    writer = feed_of(alice)
    want = liar.offer(writer.pair.key, 9)
    assert want is not None
    writer.write(3)
    liar.say(Ranges(want.request, (writer.write().encode(),)))
    assert bytes(writer.pair.key) not in alice.lengths()
    assert not alice.store.quarantine().refusals


def test_blobs_that_are_not_wanted_are_not_kept(liar: Liar, alice: Peer) -> None:
    want = liar.offer(feed_of(alice).pair.key)
    assert want is not None
    liar.say(Ranges(want.request, (), ((feed_of(alice).pair.key, 0),)))
    liar.say(Blobs(want.request, ((Cid.of(b"junk"), b"junk"),)))
    assert not alice.blobs.has(Cid.of(b"junk"))


def test_blobs_that_do_not_hash_are_refused(liar: Liar, alice: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = Cid.of(b"wanted")
    monkeypatch.setattr(liar.replica, "_wanted", {wanted: None})
    monkeypatch.setattr(liar.replica, "_stale", False)
    (want,) = [body for body in liar.say(None) if isinstance(body, WantBlobs)]
    with pytest.raises(BadEncoding, match="not what that CID names"):
        liar.say(Blobs(want.request, ((wanted, b"other"),)))
    with pytest.raises(BadEncoding, match="never made"):
        liar.say(Blobs(want.request + 9, ((wanted, b"wanted"),)))


def test_endless_announcements_are_bounded(liar: Liar) -> None:
    def some(at: int) -> tuple[Holding, ...]:
        numbers = range(at * limits.HOLDINGS_MAX, (at + 1) * limits.HOLDINGS_MAX)
        return tuple(Holding(number.to_bytes(32, "big"), 0, 1, bytes(32)) for number in numbers)

    most = limits.FEEDS_MAX // limits.HOLDINGS_MAX
    for at in range(most + 2):
        liar.say(Announcement(at, at + 1, some(at)))
    requester = liar.session._requester
    assert liar.session._heard == most, "what is not remembered is not acknowledged"
    assert len(requester.theirs) <= limits.FEEDS_MAX + len(liar.replica.store.feeds())
    liar.session.tick(0)
    assert len(liar.replica.in_flight) <= limits.REQUESTS_MAX * limits.RANGES_MAX


def test_what_is_announced_and_never_given_is_asked_for_ever_more_rarely(liar: Liar, alice: Peer) -> None:
    assert liar.offer(feed_of(alice).pair.key) is not None
    asked = []
    while liar.now_ms < 3_600_000:
        wake_ms = liar.session.tick(liar.now_ms)
        if any(isinstance(decode(data).body, Want) for data in liar.session.outgoing()):
            asked.append(liar.now_ms)
        assert wake_ms is not None
        assert wake_ms > liar.now_ms
        liar.now_ms = wake_ms
    assert 30 < len(asked) < 100


def test_an_acknowledgement_of_what_was_never_announced_is_refused(liar: Liar) -> None:
    with pytest.raises(BadEncoding, match="were made"):
        liar.say(None, heard=1_000_000)


def test_a_request_that_comes_twice_is_answered_once(liar: Liar, alice: Peer) -> None:
    note(alice)
    liar.replica.refresh()
    feed = next(iter(alice.lengths()))
    first = liar.say(Want(7, limits.ANSWER_SIZE, ((feed, 0),)))
    again = liar.say(Want(7, limits.ANSWER_SIZE, ((feed, 0),)))
    assert [type(body) for body in first if isinstance(body, Ranges)] == [Ranges]
    assert not [body for body in again if isinstance(body, Ranges)]


def test_requests_that_pile_up_are_forgotten_and_read_nothing(
    alice: Peer, liar: Liar, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(9):
        alice.party.create("antiphon/text").edit("insert", 0, "long " * 150_000)
    liar.replica.refresh()
    feed = max(alice.lengths(), key=lambda feed: alice.store.record(feed).lamport)
    reads: list[bytes] = []
    monkeypatch.setattr(Replica, "read_range", lambda self, feed, first, size: reads.append(feed))
    for number in range(1, 200):
        want = Want(number, 1 << 40, ((feed, number % 9),))
        liar.session.receive(encode(Message(liar.party, b"the liar", liar.theirs, 0, want)), 0)
    assert not reads
    monkeypatch.undo()
    assert len(liar.session._responder) == limits.REQUESTS_MAX
    assert sum(map(len, liar.session.outgoing(1 << 20))) < (1 << 20) + limits.MESSAGE_SIZE_MAX
    assert sum(map(len, liar.session.outgoing())) < limits.OUTGOING_SIZE + limits.MESSAGE_SIZE_MAX


def test_parts_that_come_together_are_stored_in_one_commit(liar: Liar, alice: Peer) -> None:
    writer = feed_of(alice)
    want = liar.offer(writer.pair.key, 9)
    assert want is not None
    parts = [Ranges(want.request, (writer.write(3).encode(),), part=at, last=at == 2) for at in range(3)]
    messages = [encode(Message(b"", b"the liar", liar.theirs, 0, part)) for part in parts]
    before = alice.store.commits
    liar.session.receive_all(messages, 0)
    assert alice.store.commits == before + 1
    assert alice.lengths()[bytes(writer.pair.key)] == liar.session.taken == 9
    assert len([*alice.store.spans(writer.pair.key)]) == 1, "joined under the last head"


def test_what_came_before_a_message_that_is_refused_is_kept(liar: Liar, alice: Peer) -> None:
    writer = feed_of(alice)
    want = liar.offer(writer.pair.key, 3)
    assert want is not None
    part = Ranges(want.request, (writer.write(3).encode(),))
    with pytest.raises(BadEncoding):
        liar.session.receive_all([encode(Message(b"", b"the liar", liar.theirs, 0, part)), b"rubbish"], 0)
    assert alice.lengths()[bytes(writer.pair.key)] == 3


def test_blocks_that_are_pushed_must_be_announced_and_verify(liar: Liar, alice: Peer) -> None:
    writer, other = feed_of(alice), feed_of(alice, "another")
    span = writer.write(2)
    held = Holding(writer.pair.key, 0, 2, span.hash_at(1))
    with pytest.raises(BadEncoding, match="does not name"):
        liar.say(Announcement(0, 1, (held,), (other.write().encode(),)))
    with pytest.raises(BadEncoding, match="two ranges"):
        liar.say(Announcement(0, 1, (held,), (span.encode(), span.encode())))
    with pytest.raises(RefusedBlocks):
        liar.say(Announcement(0, 1, (held,), (replace(span, signature=bytes(64)).encode(),)))
    with pytest.raises(TooLarge):
        liar.say(Announcement(0, 1, (held,), (bytes(limits.PUSH_SIZE_MAX + 1),)))
    assert bytes(writer.pair.key) not in alice.lengths()


def test_pushed_blocks_of_strangers_are_not_taken(liar: Liar, alice: Peer) -> None:
    pair = KeyPair.from_seed(sha256(b"a stranger").digest())
    span = SpanWriter(pair, alice.party.key).write(2)
    liar.say(Announcement(0, 1, (Holding(pair.key, 0, 2, span.hash_at(1)),), (span.encode(),)))
    assert bytes(pair.key) not in alice.lengths()
    assert not alice.store.quarantine().refusals


def test_what_leaves_at_once_keeps_to_a_budget(alice: Peer, liar: Liar) -> None:
    text = alice.party.create("antiphon/text")
    for _ in range(30):
        text.edit("insert", 0, "x" * 10_000)
    liar.replica.refresh()
    feed = max(alice.lengths(), key=lambda feed: alice.store.record(feed).lamport)
    want = Want(1, 200_000, ((feed, 0),))
    session = liar.session
    session.receive(encode(Message(liar.party, b"the liar", liar.theirs, 0, want)), 0)
    assert session.outgoing(0) == []
    assert session.has_outgoing
    assert 30_000 < sum(map(len, session.outgoing(50_000))) < 70_000
    assert session.has_outgoing
    assert 100_000 < sum(map(len, session.outgoing())) < 170_000, "no more than was asked for"
    assert not session.has_outgoing
    more = More(1, 400_000)
    for _ in range(2):  # what comes twice allows nothing more
        session.receive(encode(Message(liar.party, b"the liar", liar.theirs, 0, more)), 0)
    assert 90_000 < sum(map(len, session.outgoing())) < 150_000
    assert not session.has_outgoing


def test_an_answer_that_drips_is_not_waited_for_for_ever(liar: Liar, alice: Peer) -> None:
    """A part with nothing in it each half second, or any other bytes, put off the time-out a minute and no longer."""
    want = liar.offer(feed_of(alice).pair.key)
    assert want is not None
    part = 0
    while not any(isinstance(body, More) and not body.size_max for body in liar.heard):
        liar.now_ms += 500
        liar.session.arriving(liar.now_ms)
        liar.say(Ranges(want.request, (), part=part, last=False))
        part += 1
        assert liar.now_ms < 2 * limits.TIMEOUT_MAX_MS
    assert liar.now_ms >= limits.TIMEOUT_MAX_MS


def test_evidence_that_is_false_is_refused(liar: Liar, alice: Peer) -> None:
    feed = next(iter(alice.lengths()))
    liar.say(Announcement(0, 1, (Holding(feed, 0, 1, bytes(32), True, 0),)))
    want = next(body for body in liar.heard if isinstance(body, Want))
    assert want.forks == (feed,)
    with pytest.raises(AntiphonError):
        liar.say(Ranges(want.request, (), (), (b"APf1" + bytes(300),)))
    assert alice.store.fork(feed) is None


def test_a_data_feed_is_not_taken_where_only_control_feeds_are_asked_for(alice: Peer) -> None:
    writer, other = feed_of(alice), feed_of(alice, "another")
    liar = Liar(alice, ControlReplica(alice.store, alice.party.key, admits_of(alice), randomness=alice.dice))
    assert liar.offer(writer.pair.key) is None
    want = liar.say(Announcement(1, 2, (Holding(other.pair.key, 0, 1, bytes(32), True),)))[0]
    assert isinstance(want, Want)
    assert int(other.fork().write().columns["kind"][0]) == Kind.MUTATION
    with pytest.raises(BadEncoding, match="no control feed"):
        liar.say(Ranges(want.request, (other.write().encode(),)))


def test_a_peer_that_was_lied_to_goes_on_with_honest_ones(peers: Peers, alice: Peer) -> None:
    bob = peers.add("bob")
    note(bob)
    wire = Wire(peers)
    session = wire.nodes["alice"].sessions["bob"]
    with pytest.raises(InvalidInput):
        session.receive(b"rubbish", 0)
    wire.run()
    assert alice.snapshots() == bob.snapshots()


@pytest.mark.parametrize("state", [BodyState.LEFT_OUT, BodyState.ERASED])
def test_blocks_without_their_bodies_are_not_taken(liar: Liar, alice: Peer, state: BodyState) -> None:
    """Blocks that are held are not asked for again, so whoever gave them hollow would keep the bodies away for ever."""
    writer = feed_of(alice)
    want = liar.offer(writer.pair.key, 3)
    assert want is not None
    span = writer.write(3)
    liar.say(Ranges(want.request, (span.with_bodies([], bytes((state,)) * 3).encode(),)))
    assert bytes(writer.pair.key) not in alice.lengths()
    liar.now_ms += limits.TIMEOUT_MAX_MS
    again = liar.offer(writer.pair.key, 3, upto=2)
    assert again is not None
    liar.say(Ranges(again.request, (span.encode(),)))
    assert alice.lengths()[bytes(writer.pair.key)] == 3


def test_blocks_whose_bodies_were_erased_are_taken_by_who_knows_of_it(peers: Peers, alice: Peer) -> None:
    bob = peers.add("bob")
    item = note(bob)
    stamp = item.edit("set", "title", "secret")
    peers.sync()
    member(alice).erase(Position(bytes(stamp.feed), stamp.seq))
    peers.sync()
    for peer in (alice, bob):
        peer.store.erase(stamp.feed, stamp.seq)
    carol = peers.add("carol", None)
    member(alice).admit(carol.key, [Role.READER])
    Wire(peers).run()
    assert carol.lengths() == alice.lengths()
