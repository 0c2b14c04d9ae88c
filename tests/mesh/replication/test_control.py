"""A child's parent: where nobody follows the parent itself, its control feeds come alone."""

from __future__ import annotations

from pathlib import Path

from tests.mesh.replication.wire import Wire, admits_of
from tests.party.epochs.epoch_acts import member, note

from antiphon.halo.credentials.claims import Role
from antiphon.mesh.replication.admits import NewcomerAdmits
from antiphon.mesh.replication.codec import decode
from antiphon.mesh.replication.message import Announcement
from antiphon.mesh.replication.replica import ControlReplica, Replica
from antiphon.mesh.replication.session import Session
from antiphon.testing.peers import Peers, pair_of


def talk(one: Session, other: Session) -> None:
    """Until both have said everything."""
    now_ms = 0
    for _ in range(60):
        now_ms += 100
        for speaker, listener in ((one, other), (other, one)):
            speaker.tick(now_ms)
            for data in speaker.outgoing():
                listener.receive(data, now_ms)


def test_control_feeds_come_alone_from_one_who_holds_everything(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice = peers.add("alice")
        note(alice)
        guest = peers.add("guest", None)
        member(alice).admit(guest.key, [Role.READER])
        newcomer = NewcomerAdmits(member(guest).vouch(guest.identity))
        control = ControlReplica(guest.store, alice.party.key, newcomer, randomness=guest.dice)
        whole = Replica(alice.party, alice.epochs, admits_of(alice))
        ends = Session(control, alice.device.key), Session(whole, guest.device.key)
        talk(*ends)

        wanted = {held.feed: held.length for held in whole.holdings if held.control}
        assert guest.lengths() == wanted
        assert 0 < len(wanted) < len(alice.lengths())
        member(alice).admit(pair_of("another").key, [Role.READER])
        whole.refresh()
        talk(*ends)
        assert sum(guest.lengths().values()) == sum(wanted.values()) + 1


def test_what_comes_with_the_control_feeds_makes_a_device_able_to_join(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice = peers.add("alice")
        guest = peers.add("guest", None)
        member(alice).admit(guest.key, [Role.EDITOR])
        wire = Wire(peers)
        wire.run()
        guest.join()
        note(guest, "hello")
        wire.nodes["guest"].replica.refresh()
        wire.run()

        assert [item["title"] for item in (alice.party.item(one).value for one in alice.party.items())] == ["hello"]


def test_a_newcomer_shows_itself_again_to_one_who_restarted_and_forgot_it(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice = peers.add("alice")
        note(alice)
        guest = peers.add("guest", None)
        member(alice).admit(guest.key, [Role.READER])
        wire = Wire(peers)
        wire.watch = lambda giver, taker, data: not isinstance(decode(data).body, Announcement)
        wire.run(30_000)
        assert wire.nodes["guest"].sessions["alice"].connected
        wire.restart("alice")
        assert not guest.lengths()
        wire.watch = lambda giver, taker, data: True
        wire.run(wire.now_ms + 200_000)
        assert guest.lengths() == alice.lengths()
