"""How an attack reaches honest members, and all that they must be able to do afterwards: one helper for all attacks.

An attack prepares a `Scene`, in which Mallory hands out signed spans: not the same ones to all. A way brings them to
the honest members as it would from any peer: blocks that somebody gives them, sessions with members who give on what
Mallory handed them, a sync with the store of such a member, or a file that it has made. `survive` plays all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.attacks.equivocator import Equivocator, meet, waits, works
from tests.mesh.replication.wire import admits_of
from tests.party.bundle.test_export import export, take
from tests.party.epochs.epoch_acts import member, note

from antiphon.api.sync.talk import Talk
from antiphon.feed.span import Span
from antiphon.halo.credentials.claims import Role
from antiphon.mesh.link.party_sessions import PartySessions
from antiphon.mesh.replication.replica import Replica
from antiphon.pipeline.plan.party_plan import Planner
from antiphon.testing.parties import pair_of
from antiphon.testing.peers import Peer, Peers

HONEST = ("alice", "bob")


class Scene:
    """A party of Alice, who founded it, and Bob, with Mallory and two members who give on what she hands them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.peers = Peers(folder / "peers")
        self.alice, self.bob = (self.peers.add(name) for name in HONEST)
        self.couriers = [self.peers.add(name, Role.READER) for name in ("eve", "frank")]
        self.mallory = Equivocator(self.peers)
        self.meet_first = False  # before Alice declares an epoch
        self._shown: dict[str, list[Span]] = {name: [] for name in HONEST}

    def show(self, *spans: Span, to: tuple[str, ...] = HONEST) -> None:
        """Hand out spans, to all or to some."""
        for name in to:
            self._shown[name] += spans

    def give_all(self) -> None:
        """Hand out what Mallory's own device has written in the way that any program writes."""
        have = self.alice.lengths()
        self.show(*self.mallory.peer.ranges(have))

    @property
    def honest(self) -> list[Peer]:
        return [self.alice, self.bob]

    def _equip_couriers(self) -> None:
        for courier, name in zip(self.couriers, HONEST, strict=True):
            courier.take(self._shown[name])

    # -- ways

    def by_ingest(self) -> None:
        """Somebody hands the blocks over."""
        for peer in self.honest:
            peer.take(self._shown[peer.name])

    def by_session(self) -> None:
        """Each honest member first talks to another courier."""
        self._equip_couriers()
        meet(self.peers, [(peer.name, courier.name) for peer, courier in zip(self.honest, self.couriers, strict=True)])

    def by_sync(self) -> None:
        """Each honest member syncs with another courier, as `antiphon.sync` does with two stores."""
        self._equip_couriers()
        for pair in zip(self.honest, self.couriers, strict=True):
            sync(*pair)

    def by_file(self) -> None:
        """Each honest member imports a file that another courier has made."""
        self._equip_couriers()
        for peer, courier in zip(self.honest, self.couriers, strict=True):
            path = self.folder / f"for {peer.name}.car"
            export(courier, path, whole=True)
            take(path, peer)
            peer.party.process()

    def close(self) -> None:
        self.mallory.peer.close()
        for peer in self.peers.all:
            peer.close()


def replica_of(peer: Peer) -> Replica:
    return Replica(peer.party, peer.epochs, admits_of(peer))


def sync(one: Peer, other: Peer, other_end: Replica | None = None) -> None:
    """Let two peers talk as two stores in one process do, until nothing moves."""
    ends = replica_of(one), other_end or replica_of(other)
    pairs = pair_of(f"{one.name}'s device"), pair_of(f"{other.name}'s device")
    talk = Talk(PartySessions(ends[:1]), pairs[0], PartySessions(ends[1:]), pairs[1])
    while talk.until_quiet():
        for peer, end in zip((one, other), ends, strict=True):
            peer.party.process()
            peer.epochs.step()
            end.refresh()


Way = Callable[[Scene], None]
WAYS: dict[str, Way] = {
    "ingest": Scene.by_ingest,
    "session": Scene.by_session,
    "sync": Scene.by_sync,
    "file": Scene.by_file,
}

#: An attack prepares a scene, goes on when its blocks have come and Alice and Bob have not met yet, and checks the end.
Attack = Callable[[Scene], Iterator[None]]


def survive(scene: Scene, attack: Attack, way: Way) -> None:
    """Play an attack, with its blocks coming one way, and all that honest members do afterwards."""
    acts = attack(scene)
    next(acts)
    way(scene)
    for courier in scene.couriers:
        scene.peers.all.remove(courier)
        courier.close()
    said = [note(peer, f"{peer.name} after the attack") for peer in scene.honest]
    next(acts, None)
    if not scene.meet_first:
        scene.alice.epochs.declare()
    meet(scene.peers)
    if scene.meet_first:
        scene.alice.epochs.declare()
        meet(scene.peers)
    for peer in scene.honest:
        assert [peer.party.item(item.id).value["title"] for item in said] == [
            f"{name} after the attack" for name in HONEST
        ]
        assert peer.epochs.number == 1, peer.epochs.waits_for
    _go_on(scene)
    next(acts, None)
    for peer in scene.peers.all:
        assert lost(peer, scene) == []
        judged_alike(peer)


def judged_alike(peer: Peer) -> None:
    """The pipeline comes to the same verdicts on all messages as the live engine.

    The engine has no lanes for feeds without blocks, and the plan has.
    """
    plan = Planner("", peer.store, peer.blobs, peer.party.key).plan()
    assert not plan.error
    with peer.party.locked() as engine:
        live = {feed: (lane.state.position, tuple(lane.state.voids)) for feed, lane in engine.delivery.lanes.items()}
    planned = {lane.feed: (lane.position, lane.voids) for lane in plan.lanes}
    assert {feed: planned.get(feed) for feed in live} == live
    assert {planned[feed] for feed in planned.keys() - live.keys()} <= {(0, ())}


def _go_on(scene: Scene) -> None:
    """Honest members write, invite, revoke, set policy, declare and restart; a newcomer joins; Mallory is revoked."""
    peers, alice = scene.peers, scene.alice
    works(peers)
    dave = peers.add("dave", None)
    member(alice).admit(dave.key, [Role.EDITOR])
    meet(peers)
    dave.join()
    written = note(dave, "hello from the newcomer")
    member(alice).revoke(scene.mallory.peer.key)
    works(peers)
    for peer in peers.all:
        assert peer.party.item(written.id).value["title"] == "hello from the newcomer"
        assert member(peer).state.member(scene.mallory.peer.key) is None


def lost(peer: Peer, scene: Scene) -> list[str]:
    """What is void, refused or waits here of feeds that an honest member writes."""
    honest = {record.feed for one in scene.peers.all for record in one.store.feeds(peer.party.key) if record.writable}
    void = [(void.stamp.feed, void.reason) for void in member(peer).voids]
    refused = [(row.feed, f"{row.seq}: {row.reason}") for row in peer.party.refused()]
    waiting = [(feed, "waits") for feed in waits(peer)]
    return [f"{feed.hex()[:8]} {why}" for feed, why in (*void, *refused, *waiting) if feed in honest]
