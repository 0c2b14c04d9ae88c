"""Anchored streams (seed 003): a reader goes on exactly after what was delivered; a writer can be waited for."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from antiphon.core.errors import InvalidInput, MissingBlocks
from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.feed.header import Kind
from antiphon.model.object.model import ObjectModel
from antiphon.party.live import anchored_stream as stream_module
from antiphon.party.live.anchored_stream import ReadStream, StreamMessage, WriteStream
from antiphon.testing.peers import Peer, Peers

PATIENCE_S = 30.0


def stamps(messages: list[StreamMessage]) -> list[Stamp]:
    return [message.stamp for message in messages]


def take(stream: ReadStream, count: int) -> list[StreamMessage]:
    found = []
    for message in stream:
        found.append(message)
        if len(found) == count:
            break
    return found


def talk(peers: Peers, turns: int = 6) -> bytes:
    """Two peers write to one item by turns."""
    alice, bob = peers.all[:2]
    note = alice.party.create("antiphon/object")
    peers.sync()
    for at in range(turns):
        peer = (alice, bob)[at % 2]
        peer.party.item(note.id).edit("set", f"n{at}", at)
        peers.sync()
    return note.id


def test_a_stream_delivers_every_message_once_in_the_total_order(peers: Peers, alice: Peer, bob: Peer) -> None:
    talk(peers)
    messages = list(ReadStream(alice.party))
    assert len(messages) == 7
    assert stamps(messages) == sorted(stamps(messages))
    assert [message.kind for message in messages] == [Kind.GENESIS] + [Kind.MUTATION] * 6
    assert stamps(list(ReadStream(bob.party))) == stamps(messages)


@pytest.mark.parametrize("at", range(8))
def test_an_anchor_resumes_exactly_after_the_last_delivered(peers: Peers, alice: Peer, bob: Peer, at: int) -> None:
    talk(peers)
    whole = list(ReadStream(alice.party))
    stream = ReadStream(alice.party)
    begun = take(stream, at) if at else []
    anchor = stream.anchor()
    alice.restart()
    rest = list(ReadStream(alice.party, anchor))
    assert stamps(begun) + stamps(rest) == stamps(whole)
    assert stamps(begun) + stamps(list(ReadStream(bob.party, anchor))) == stamps(whole), "on another peer too"


def test_an_anchor_is_small_long_lived_and_opaque(alice: Peer) -> None:
    stream = ReadStream(alice.party)
    assert stream.anchor() == Timeframe().encode()
    with pytest.raises(InvalidInput, match="timeframe"):
        ReadStream(alice.party, b"rubbish that is no anchor")


def test_late_arrivals_are_delivered_after_the_anchor(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Bob's message is older by its stamp than what was delivered; it still comes, and only it."""
    note = alice.party.create("antiphon/object")
    peers.sync()
    late = bob.party.item(note.id).edit("set", "late", True)
    for at in range(5):
        note.edit("set", "n", at)
    stream = ReadStream(alice.party)
    assert len(list(stream)) == 6
    anchor = stream.anchor()
    peers.sync()
    assert stamps(list(ReadStream(alice.party, anchor))) == [late]
    assert stamps(list(stream)) == [late], "the stream itself goes on too"
    assert list(stream) == []


def test_what_arrives_while_it_is_read_comes_next_time(peers: Peers, alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    note.edit("set", "a", 1)
    stream = ReadStream(alice.party)
    found: list[Stamp] = []
    written: list[Stamp] = []
    for message in stream:
        found.append(message.stamp)
        if not written:
            written.append(note.edit("set", "a", 2))
    assert written[0] not in found
    assert stamps(list(stream)) == written


def test_a_stream_of_one_item_passes_the_others_by(alice: Peer) -> None:
    one, other = alice.party.create("antiphon/object"), alice.party.create("antiphon/object")
    mine = [one.edit("set", "n", at) for at in range(3)]
    other.edit("set", "n", 9)
    stream = ReadStream(alice.party, item=one.id)
    assert stamps(list(stream))[1:] == mine
    assert stream.anchor() == alice.party.timeframe.encode(), "what was passed by is behind it"


def test_void_messages_are_not_delivered(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    peers.sync()
    assert alice.member is not None
    alice.member.revoke(bob.key)
    void = bob.party.item(note.id).edit("set", "b", 1)
    peers.sync()
    assert void not in stamps(list(ReadStream(alice.party)))
    assert ReadStream(alice.party).has(Timeframe().encode())


def test_a_long_feed_is_read_in_pieces(alice: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "_AT_ONCE", 3)
    note = alice.party.create("antiphon/object")
    written = [note.edit("set", "n", at) for at in range(10)]
    assert stamps(list(ReadStream(alice.party)))[1:] == written


def test_an_anchor_older_than_what_is_held_says_so(alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    written = [note.edit("set", "n", at) for at in range(10)]
    alice.store.prune(written[0].feed, 5)
    with pytest.raises(MissingBlocks, match=r"blocks 0 to 4 are pruned here, and this anchor is older; read the state"):
        list(ReadStream(alice.party))
    anchor = Timeframe({written[0].feed: 6}).encode()
    assert stamps(list(ReadStream(alice.party, anchor))) == written[6:]


def test_a_write_anchor_says_whether_a_reader_has_delivered_it(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    peers.sync()
    write, read = WriteStream(alice.party, note.id), ReadStream(bob.party)
    assert read.has(write.anchor()), "nothing was written yet"
    write.edit("set", "a", 1)
    write.write(ObjectModel().set(note.read(lambda _, state: state), "b", 2))
    list(read)
    assert not read.has(write.anchor())
    peers.sync()
    assert not read.has(write.anchor()), "here, but not delivered by this stream yet"
    list(read)
    assert read.has(write.anchor())
    again = ReadStream(bob.party, read.anchor())
    assert again.has(write.anchor())


def test_waiting_for_a_write_never_misses_it(tmp_path: Path) -> None:
    """Trap 18: whoever waits is registered before the append can come, whichever thread is first."""
    with Peers(tmp_path, authority=False) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        note = alice.party.create("antiphon/object")
        write = WriteStream(alice.party, note.id)
        bob.party.start()
        for at in range(20):
            write.edit("set", "n", at)
            anchor = Timeframe.decode(write.anchor())
            waited: list[bool] = []
            ready = threading.Event()

            def wait(anchor: Timeframe = anchor, waited: list[bool] = waited, ready: threading.Event = ready) -> None:
                ready.set()
                waited.append(bob.party.wait_for(anchor, PATIENCE_S))

            thread = threading.Thread(target=wait)
            thread.start()
            ready.wait(PATIENCE_S)
            for span in alice.ranges(bob.lengths()):
                bob.store.ingest(span)
            thread.join(PATIENCE_S)
            assert waited == [True]
            assert bob.party.item(note.id).value == {"n": at}


def test_a_writer_waits_for_its_own_state(alice: Peer) -> None:
    note = alice.party.create("antiphon/object")
    write = WriteStream(alice.party, note.id)
    assert write.wait(0.0)
    write.edit("set", "a", 1)
    assert write.wait(0.0)
    assert note.value == {"a": 1}


def test_an_anchor_older_than_what_is_held_goes_on_after_the_epoch_and_the_reader_is_told(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice = peers.add("alice")
        note = alice.party.create("antiphon/object")
        read = ReadStream(alice.party)
        assert len(list(read)) == 1
        anchor = read.anchor()
        note.edit("set", "title", "Milk")
        alice.epochs.declare()
        alice.epochs.prune()
        note.edit("set", "title", "Bread")
        with pytest.raises(MissingBlocks, match="epoch 1 holds what they made"):
            list(ReadStream(alice.party, anchor))
        told: list[int] = []
        again = ReadStream(alice.party, anchor, resume=lambda base: told.append(base.number))
        assert [message.stamp.seq for message in again] == [2]
        assert told == [1]
        assert list(ReadStream(alice.party, again.anchor())) == []
