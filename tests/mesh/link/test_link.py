"""A link: which parties are matched, what is carried, and when it ends."""

from __future__ import annotations

import pytest
from tests.mesh.link.link_pair import ALICE, BOB, HandHost, LinkPair, Prober, names, party

from antiphon.core.errors import BadEncoding, InvalidInput, LinkSilent, TooLarge
from antiphon.mesh.link.frames import Data, Digest, Ping, Pong, Show, Shown, Tags, UnknownFrame
from antiphon.mesh.link.limits import PIECE_SIZE_MAX, STREAM_SIZE_MAX, TAGS_MAX
from antiphon.mesh.link.party_tags import ANSWERING, DIALLER, PartyTags
from antiphon.mesh.replication.limits import MESSAGE_SIZE_MAX

CHESS, CHOIR, CLUB = party("chess"), party("choir"), party("club")


def test_both_ends_are_told_of_the_other_device_and_of_the_parties_that_they_share() -> None:
    pair = LinkPair(one=HandHost({CHESS, CHOIR}), other=HandHost({CHOIR, CLUB}))
    assert not pair.alice.is_open
    pair.pump()
    assert pair.one.seen == [BOB.key]
    assert pair.other.seen == [ALICE.key]
    assert sorted(pair.one.told) == sorted([("unmatched", CHESS), ("equal", CHOIR)])
    assert sorted(pair.other.told) == sorted([("unmatched", CLUB), ("equal", CHOIR)])
    assert pair.alice.is_matched(CHOIR)
    assert not pair.alice.is_matched(CHESS)


def test_digests_tell_whether_a_session_is_needed() -> None:
    pair = LinkPair(one=HandHost({CHESS}), other=HandHost({CHESS}, digests={CHESS: bytes(range(32))}))
    pair.pump()
    assert pair.one.told == pair.other.told == [("differs", CHESS)]


def test_messages_of_a_matched_party_arrive_whole_and_in_order() -> None:
    pair = LinkPair(one=HandHost({CHESS}), other=HandHost({CHESS}))
    pair.pump()
    messages = [b"one", bytes(100_000), bytes(range(256)) * 200, b"four"]
    pair.alice.send(CHESS, messages)
    pair.bob.send(CHESS, [b"back"])
    pair.pump(1_000)
    assert pair.other.messages == [(CHESS, message, False) for message in messages]
    assert pair.one.messages == [(CHESS, b"back", False)]


def test_a_message_before_the_other_ends_tag_is_shown_and_opens_the_party_there() -> None:
    pair = LinkPair(one=HandHost({CHESS}), other=HandHost(follows={CHESS, CHOIR}))
    pair.pump()
    assert pair.one.told == [("unmatched", CHESS)]
    pair.alice.send(CHESS, [b"dropped", b"hello"])
    pair.pump()
    assert not pair.other.messages  # it is judged later, not before it is answered
    pair.wait(0)
    assert pair.other.messages == [(CHESS, b"hello", True)]

    pair.other.speaks = {CHESS}  # its session has judged what was shown, and answers
    pair.bob.send(CHESS, [b"welcome"])
    pair.pump()
    assert pair.one.messages == [(CHESS, b"welcome", False)]
    assert pair.alice.is_matched(CHESS)
    pair.alice.send(CHESS, [b"thanks"])
    pair.pump()
    assert pair.other.messages[-1] == (CHESS, b"thanks", False)


def test_what_waits_to_be_shown_is_sent_when_the_party_is_matched() -> None:
    pair = LinkPair(one=HandHost({CHESS, CHOIR}), other=HandHost())
    pair.pump()
    pair.alice.send(CHESS, [b"first"])
    pair.alice.send(CHOIR, [b"second"])
    pair.pump()  # one is shown, the other one waits for its turn
    pair.other.speaks = {CHOIR}
    pair.bob.judge()
    pair.pump()
    assert pair.other.messages == [(CHOIR, b"second", False)]


def test_messages_to_show_take_turns() -> None:
    pair = LinkPair(one=HandHost({CHESS, CHOIR, CLUB}), other=HandHost(follows={CHESS, CHOIR, CLUB}))
    pair.pump()
    for name in (CHESS, CHOIR, CLUB):
        pair.alice.send(name, [b"hello"])
    pair.pump()
    for _ in range(4):
        pair.wait(1_500)
    assert sorted(pair.other.messages) == sorted((name, b"hello", True) for name in (CHESS, CHOIR, CLUB))


def test_of_what_is_shown_in_a_second_only_the_last_is_judged() -> None:
    host = HandHost(follows={CHESS})
    prober = Prober(host)
    tags = PartyTags(prober.channel.id, DIALLER)
    shows = [Show(tags.tag(CHESS), tags.close(CHESS, at, b"%d" % at)) for at in range(6)]
    assert list(names(prober.say(*shows[:3]))) == ["Shown"] * 3
    prober.wait(0)
    assert list(names(prober.say(*shows[3:]))) == ["Shown"] * 3
    prober.wait(999)
    assert host.messages == [(CHESS, b"2", True)]
    prober.wait(1)
    assert host.messages == [(CHESS, b"2", True), (CHESS, b"5", True)]


def test_a_box_of_another_channel_number_or_party_is_not_given_to_the_host() -> None:
    host = HandHost(follows={CHESS, CHOIR})
    prober = Prober(host)
    tags, foreign = PartyTags(prober.channel.id, DIALLER), PartyTags(bytes(32), DIALLER)
    for at, show in enumerate((
        Show(tags.tag(CHESS), foreign.close(CHESS, 0, b"of another channel")),
        Show(foreign.tag(CHESS), foreign.close(CHESS, 1, b"of another channel")),
        Show(tags.tag(CHESS), tags.close(CHESS, 1, b"repeated")),
        Show(tags.tag(CHESS), tags.close(CHOIR, 3, b"of another party")),
        Show(tags.tag(CHESS), PartyTags(prober.channel.id, ANSWERING).close(CHESS, 4, b"of the other end")),
    )):  # fmt: skip
        assert prober.say(show) == [Shown()], at
        prober.wait(1_000)
    assert host.messages == []


def test_a_revoked_device_loses_what_waits_in_both_directions() -> None:
    pair = LinkPair(one=HandHost({CHESS, CHOIR}), other=HandHost({CHESS, CHOIR}))
    pair.pump()
    pair.bob.send(CHESS, [bytes(50_000)])
    pair.bob.send(CHOIR, [b"choir"])
    pair.alice.send(CHESS, [bytes(50_000)])
    pair.bob.receive(pair.alice.outgoing(20_000), pair.now_ms)  # a part of the message has come
    pair.other.speaks = {CHOIR}
    pair.bob.judge()
    pair.pump()
    assert pair.one.messages == [(CHOIR, b"choir", False)]
    assert pair.other.messages == []
    assert pair.bob.waiting_size == 0
    assert pair.bob.send(CHESS, [b"too late"]) == 0
    pair.alice.send(CHESS, [b"hello?"])
    pair.pump()
    assert (pair.one.messages, pair.other.messages) == ([(CHOIR, b"choir", False)], [])


def test_who_is_admitted_again_is_matched_again() -> None:
    pair = LinkPair(one=HandHost({CHESS}), other=HandHost({CHESS}))
    pair.pump()
    pair.alice.send(CHESS, [bytes(50_000)])
    pair.bob.receive(pair.alice.outgoing(1), pair.now_ms)  # the first piece, before the revocation
    pair.other.speaks = set()
    pair.bob.judge()
    pair.other.speaks = {CHESS}
    pair.bob.judge()
    pair.pump()
    pair.alice.send(CHESS, [b"hello"])
    pair.bob.send(CHESS, [b"welcome"])
    pair.pump()
    assert pair.other.messages == [(CHESS, b"hello", False)]  # the rest of the first message is passed over
    assert pair.one.messages == [(CHESS, b"welcome", False)]
    assert pair.one.told == [("equal", CHESS)] * 2


def test_a_message_of_a_party_that_is_not_spoken_in_any_more_is_judged_and_not_answered() -> None:
    """Its sender may have been admitted again, and show that: the first message in one piece counts."""
    host = HandHost({CHESS, CHOIR})
    prober = Prober(host)
    tags = PartyTags(prober.channel.id, DIALLER)
    prober.say(Tags((tags.tag(CHESS), *(b"%016d" % number for number in range(15)))))
    host.speaks, host.follows = set(), {CHESS}
    prober.link.judge()
    stream = tags.tag(CHESS)
    pieces = Data(stream, True, False, b"in"), Data(stream, False, True, b"pieces")
    whole = Data(stream, True, True, b"admission"), Data(stream, True, True, b"other things")
    assert prober.say(*pieces, *whole) == []
    prober.wait(0)
    assert host.messages == [(CHESS, b"admission", True)]
    assert prober.say(Data(stream, True, True, b"once a second")) == []
    prober.wait(999)
    assert len(host.messages) == 1
    prober.wait(1)
    assert host.messages[-1] == (CHESS, b"once a second", True)
    prober.say(Data(tags.tag(CLUB), True, True, b"of a party that is not held"))
    prober.wait(1_000)
    assert len(host.messages) == 2


def test_a_party_that_is_dropped_before_its_tag_was_sent_is_not_named() -> None:
    host = HandHost()
    prober = Prober(host)
    host.speaks = {CHESS}
    prober.link.judge()
    host.speaks = set()
    prober.link.judge()
    assert prober.frames() == []


def test_tags_come_in_groups_of_16_with_random_ones_among_them() -> None:
    for count, expected in ((0, 16), (3, 16), (16, 16), (17, 32)):
        parties = {party(f"party {number}") for number in range(count)}
        prober = Prober(HandHost(parties))
        (first,) = prober.first
        assert isinstance(first, Tags)
        mine = {PartyTags(prober.channel.id, ANSWERING).tag(name) for name in parties}
        assert mine <= set(first.tags)
        assert len(first.tags) == len(set(first.tags)) == expected
    host = HandHost()
    prober = Prober(host)
    host.speaks = {CHESS}
    prober.link.judge()
    (later,) = prober.frames()
    assert isinstance(later, Tags)
    assert len(later.tags) == 16
    prober.link.judge()
    assert prober.frames() == []  # nothing new


def test_thousands_of_parties_are_named_in_several_frames() -> None:
    parties = {party(f"party {number}") for number in range(2_500)}
    pair = LinkPair(one=HandHost(parties), other=HandHost(set(list(parties)[:2_400])))
    pair.pump()
    assert sum(what == "equal" for what, _ in pair.one.told) == 2_400


def test_no_tag_is_the_same_in_two_channels_or_at_the_other_end() -> None:
    seen = []
    for seed in ("one", "another"):
        pair = LinkPair(seed, HandHost({CHESS}), HandHost({CHESS}))
        pair.pump()
        seen += [PartyTags(pair.alice.channel.id, role).tag(CHESS) for role in (DIALLER, ANSWERING)]
    assert len(set(seen)) == 4


def test_tags_of_no_party_here_are_forgotten_but_not_refused() -> None:
    host = HandHost({CHESS})
    prober = Prober(host)
    mine = PartyTags(prober.channel.id, DIALLER)
    later = mine.tag(CHOIR)
    prober.say(Tags((later, *(b"%016d" % number for number in range(15)))))
    host.speaks.add(CHOIR)
    prober.link.judge()
    assert prober.link.is_matched(CHOIR)
    forgotten = mine.tag(CLUB)
    prober.say(Tags((forgotten, *(b"%016d" % number for number in range(15)))))
    for group in range(TAGS_MAX // 16):
        prober.say(Tags(tuple(b"%08d%08d" % (group, number) for number in range(16))))
    host.speaks.add(CLUB)
    prober.link.judge()
    assert not prober.link.is_matched(CLUB)


def test_streams_that_are_not_matched_and_unknown_frames_are_passed_over() -> None:
    prober = Prober(HandHost({CHESS}))
    tag = PartyTags(prober.channel.id, DIALLER).tag(CHESS)
    said = prober.say(Data(tag, True, True, b"before the tag"), Digest(tag, bytes(32)), UnknownFrame(b"\xc8later"))
    assert (said, prober.host.messages, prober.host.told) == ([], [], [])
    prober.say(Tags((tag, *(b"%016d" % number for number in range(15)))), Data(tag, True, True, b"after it"))
    assert prober.host.messages == [(CHESS, b"after it", False)]
    prober.say(Data(tag, False, True, b"without a beginning"))
    assert len(prober.host.messages) == 1


@pytest.mark.parametrize("data", [b"\x01short", b"\x03more", b"\x05" + bytes(17), b"\x06", b"\x02" + bytes(20)])
def test_malformed_frames_end_the_link(data: bytes) -> None:
    prober = Prober(HandHost({CHESS}))
    with pytest.raises(BadEncoding):
        prober.say(data)


def test_a_message_or_piece_above_its_limit_ends_the_link() -> None:
    prober = Prober(HandHost({CHESS}))
    tag = PartyTags(prober.channel.id, DIALLER).tag(CHESS)
    prober.say(Tags((tag, *(b"%016d" % number for number in range(15)))))
    with pytest.raises(TooLarge):
        prober.say(Data(tag, True, True, bytes(PIECE_SIZE_MAX + 1)))
    pieces = MESSAGE_SIZE_MAX // PIECE_SIZE_MAX
    prober.say(*(Data(tag, number == 0, False, bytes(PIECE_SIZE_MAX)) for number in range(pieces)))
    with pytest.raises(TooLarge):
        prober.say(Data(tag, False, False, bytes(PIECE_SIZE_MAX)))
    assert prober.link.waiting_size == 0
    with pytest.raises(InvalidInput):
        prober.link.receive(b"\0\x20" + bytes(32), prober.now_ms)


def test_an_honest_end_has_no_more_under_way_than_the_other_takes() -> None:
    parties = [party(f"party {number}") for number in range(4)]
    pair = LinkPair(one=HandHost(set(parties)), other=HandHost(set(parties)))
    pair.pump()
    large = bytes(MESSAGE_SIZE_MAX - 1)
    for name in parties:
        pair.alice.send(name, [large, b"small"])
    most = 0
    while pair.alice.has_outgoing:
        pair.bob.receive(pair.alice.outgoing(PIECE_SIZE_MAX), pair.now_ms)
        most = max(most, pair.bob.waiting_size)
    assert [len(message) for _, message, _ in pair.other.messages].count(len(large)) == 4
    assert len(pair.other.messages) == 8
    assert MESSAGE_SIZE_MAX < most <= 2 * MESSAGE_SIZE_MAX


def test_a_tiny_party_is_not_starved_by_a_huge_one() -> None:
    pair = LinkPair(one=HandHost({CHESS, CHOIR}), other=HandHost({CHESS, CHOIR}))
    pair.pump()
    pair.alice.send(CHESS, [bytes(512 << 10)] * 8)
    pair.bob.receive(pair.alice.outgoing(100_000), pair.now_ms)
    pair.alice.send(CHOIR, [b"tiny"])
    pair.bob.receive(pair.alice.outgoing(2 * PIECE_SIZE_MAX), pair.now_ms)
    assert pair.other.messages == [(CHOIR, b"tiny", False)]


def test_a_full_queue_says_when_it_has_room() -> None:
    pair = LinkPair(one=HandHost({CHESS}), other=HandHost({CHESS}))
    pair.pump()
    assert pair.alice.room(CHESS) == STREAM_SIZE_MAX
    room = pair.alice.send(CHESS, [bytes(300_000)] * 4)
    assert room == 0
    pair.bob.receive(pair.alice.outgoing(300_000), pair.now_ms)
    assert not pair.one.room
    pair.bob.receive(pair.alice.outgoing(500_000), pair.now_ms)
    assert pair.one.room == [CHESS]
    pair.pump()
    assert pair.one.room == [CHESS]


def test_all_parties_together_queue_a_bounded_number_of_bytes() -> None:
    parties = {party(f"party {number}") for number in range(40)}
    pair = LinkPair(one=HandHost(parties), other=HandHost(parties))
    pair.pump()
    for name in parties:
        while pair.alice.room(name):
            pair.alice.send(name, [bytes(min(200_000, pair.alice.room(name)))])
    assert pair.alice.waiting_size == 4 << 20
    pair.pump()
    assert set(pair.one.room) == parties


def test_a_silent_end_is_asked_and_then_given_up() -> None:
    pair = LinkPair()
    pair.pump()
    began = pair.now_ms
    assert pair.alice.tick(began) == began + 20_000
    pair.wait(20_000)
    assert pair.alice.tick(pair.now_ms) == pair.now_ms + 20_000  # it was answered
    for _ in range(10):
        pair.wait(20_000)
    pair.alice.tick(pair.now_ms + 20_000)
    ping = pair.alice.outgoing(0)
    assert ping
    assert pair.alice.tick(pair.now_ms + 79_999) == pair.now_ms + 80_000
    with pytest.raises(LinkSilent):
        pair.alice.tick(pair.now_ms + 80_000)


def test_a_ping_is_answered_with_its_token() -> None:
    prober = Prober(HandHost())
    assert prober.say(Ping(b"12345678")) == [Pong(b"12345678")]


def test_a_handshake_that_is_not_finished_in_time_ends_the_link() -> None:
    pair = LinkPair()
    assert pair.bob.tick(pair.now_ms) == pair.now_ms + 10_000
    assert pair.bob.outgoing(100) == b""
    with pytest.raises(LinkSilent):
        pair.bob.tick(pair.now_ms + 10_000)
