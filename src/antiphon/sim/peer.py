"""`SimPeer`: one device with the stores, processor, epochs and sessions of a real peer. The world schedules its work
instead of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from antiphon.core.errors import MissingBlob, NotAuthorised, StoreError
from antiphon.core.keys import KeyPair
from antiphon.core.ports import SeededRandomness
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.control.checkpoint_file import CheckpointFile
from antiphon.halo.keys.identity import Device, Identity
from antiphon.halo.keys.key_file import KeyKind, Protection
from antiphon.halo.member.device_proof import vouch
from antiphon.halo.member.membership import Membership
from antiphon.mesh.channel.seen_handshakes import SeenHandshakes
from antiphon.mesh.replication.admits import PartyAdmits
from antiphon.mesh.replication.replica import Replica
from antiphon.mesh.replication.session import Session
from antiphon.model.factory import ModelFactory
from antiphon.party.engine.authority import PartyAuthority
from antiphon.party.epochs.driver import EpochDriver
from antiphon.party.epochs.epochs import Epochs
from antiphon.party.epochs.renewal import drop_ended_feeds
from antiphon.party.live.processor import PartyProcessor
from antiphon.sim.disk import Crashed, SimDisk, SimItems
from antiphon.sim.epoch_events import epoch_events
from antiphon.sim.keys import SimKeys
from antiphon.sim.maxima import Maxima
from antiphon.sim.network import Network
from antiphon.sim.peer_links import PeerLinks
from antiphon.sim.trace import Kind
from antiphon.sim.world import World, WorldClock
from antiphon.snapshot.blob_store import BlobStore

RETRY_MS = 500
_MAP_SIZE = 4 << 20


class SimPeer:
    """One device. `up` is False between a crash and the restart."""

    def __init__(
        self,
        name: str,
        seed: int,
        folder: Path,
        world: World,
        network: Network,
        *,
        models: ModelFactory,
        founder: SimPeer | None = None,
        honest: bool = True,
        prunes: bool = False,
        skew_ms: int = 0,
        pace_ms: int = 20,
        open_items: int = 1_024,
    ) -> None:
        self.name = name
        self.honest = honest
        self.prunes = prunes
        self.pace_ms = pace_ms
        self.open_items = open_items
        self.world = world
        self.network = network
        self.models = models
        self.folder = folder
        self.dice = SeededRandomness(f"{seed} {name}")
        self.channel_dice = SeededRandomness(f"{seed} {name}'s channels")
        self.clock = WorldClock(world, skew_ms)
        self.disk = SimDisk(world.chance)
        self.neighbours: dict[str, SimPeer] = {}
        self.told: dict[str, int] = {}  # by neighbour: how much of the founder's control feed was delivered, last time
        self.maxima = Maxima()
        self.keys = SimKeys.create(folder / "keys", protection=Protection.UNPROTECTED, randomness=self.dice)
        self.identity = Identity(_pair(seed, name))
        self.device = Device(_pair(seed, f"{name}'s device"), self.identity.key)
        self.keys.add(self.device.pair, KeyKind.DEVICE, "device", owner=self.identity.key)
        self.up = False
        self.slow = 1  # factor on the pace of its work
        self.moved_ms = 0  # the time when this peer last got or wrote new data
        self._working = False
        self._wake_ms: int | None = None
        self._life = 0  # number of restarts; calls scheduled in an earlier life do nothing
        self._stood = self._said = 0  # the epoch and the control blocks that are in the trace
        self._forks: set[bytes] = set()  # that are in the trace
        self._looked = -1  # the store's transaction at the last work
        self._news = True
        self._drive_ms: int | None = None
        self._pruned = 0
        self._acts = 0  # number of control acts when it last checked whether its own feeds have ended
        self.store = self._open_store()
        if founder is None:
            member = Membership.found(
                self.store, self.keys, self.identity, self.device, clock=self.clock, randomness=self.dice
            )
            self.key, self.genesis_feed = member.party, member.genesis_feed
        else:
            self.key, self.genesis_feed = founder.key, founder.genesis_feed
        self._start()

    # -- start, crash, restart

    def _open_store(self) -> FeedStore:
        return FeedStore.open(
            self.folder / "feeds", map_size=_MAP_SIZE, clock=self.clock, randomness=self.dice, disk=self.disk
        )

    def _start(self) -> None:
        self.blobs = BlobStore.open(self.folder / "blobs", map_size=_MAP_SIZE, disk=self.disk)
        self.member = Membership.open(
            self.store,
            self.keys,
            self.device,
            self.key,
            self.genesis_feed,
            clock=self.clock,
            randomness=self.dice,
            checkpoint=CheckpointFile(self.items_path.with_suffix(".checkpoint"), self.key),
        )
        self.party = PartyProcessor(
            self.key,
            self.store,
            PartyAuthority.of(self.store, self.member),
            models=self.models,
            clock=self.clock,
            randomness=self.dice,
            cache_items_max=self.open_items,
            open_items=lambda: SimItems(self.items_path, self.key, self.disk),
            blobs=self.blobs,
        )
        self.epochs = Epochs(self.party, self.member)
        self.driver = EpochDriver(self.party, self.member, self.epochs)
        word = vouch(self.key, self.identity, self.device)
        self.replica = Replica(self.party, self.epochs, PartyAdmits(self.party, self.member, word=word))
        self.seen = SeenHandshakes()
        self.links = PeerLinks(self)
        self._stood = self.epochs.number
        self._news = self.up = True
        self.poke()

    @property
    def items_path(self) -> Path:
        return self.folder / "items.db"

    def crash(self) -> None:
        """Stop in the middle of any work. Unsynced writes are lost."""
        self.up = False
        self._life += 1
        self._working = False
        self._wake_ms = None
        self.world.record(Kind.CRASH, self.name)
        self.links.close()
        self.disk.lose(self._let_go, self.items_path)

    def _let_go(self) -> None:
        if self.party.running:
            self.party.engine.close()
        self.store.close()
        self.blobs.close()

    def restart(self) -> None:
        """Open all stores again. If the disk is full, try again later."""
        if self.up:
            return
        try:
            self.store = self._open_store()
            self._start()
        except StoreError:
            if not self.disk.full:
                raise
            self.store.close()
            self.blobs.close()
            self.world.after(RETRY_MS, self.restart)
        else:
            self.world.record(Kind.RESTART, self.name)

    def close(self) -> None:
        if self.up:
            self.up = False
            self.disk.full = False
            self.disk.crash_in = None
            self._let_go()

    @property
    def settled(self) -> bool:
        """True if it has processed all blocks in its store."""
        return self.store.transaction == self._looked

    # -- work

    def link(self, other: SimPeer) -> None:
        """Make two peers neighbours, which hold a session with each other."""
        if other.name not in self.neighbours:
            self.neighbours[other.name] = other
            other.neighbours[self.name] = self
            self.links.begin(other.name)
            other.links.begin(self.name)

    @property
    def sessions(self) -> dict[str, Session]:
        """The sessions with neighbours, by their names."""
        return self.links.sessions()

    def speaks_to(self, name: str) -> bool:
        """True if this peer and a neighbour have found that they share the party."""
        link = self.links.link(name)
        return link is not None and link.is_matched(self.key)

    def tell(self, name: str) -> None:
        """Note how much of the founder's control feed was delivered when something was sent to a neighbour."""
        self.told[name] = self.member.machine.delivered(bytes(self.genesis_feed))

    def news(self, name: str, blocks: int) -> None:
        """Note blocks or blobs that a neighbour has given."""
        self._news, self.moved_ms = True, self.world.now_ms
        if blocks:
            self.world.record(Kind.TAKE, self.name, other=name, count=blocks)

    def is_misled_by(self, other: SimPeer) -> bool:
        """True if a neighbour has claimed blocks that it lacks: what it seems to hold is not announced to it."""
        session, theirs = self.sessions.get(other.name), other.replica.holdings
        return session is not None and any(
            theirs.length(held.feed) < held.length and not theirs.ended(held.feed)
            for held in self.replica.holdings
            if session.seems_to_hold(held.feed)
        )

    def poke(self) -> None:
        """Schedule work soon."""
        if self.up and not self._working:
            self._working = True
            self._ask(self.pace_ms * self.slow, self._look_around)

    def _ask(self, delay_ms: int, act: Callable[[], None]) -> None:
        life = self._life
        self.world.after(delay_ms, lambda: act() if self._life == life and self.up else None)

    def guarded(self, act: Callable[[], None], *, resume: bool = True) -> bool:
        """Run a call of this peer. Return False if its disk was full, or it crashed."""
        try:
            if resume:
                self.party.resume()  # a save that failed on a full disk has stopped the processor
            act()
        except Crashed:
            self.crash()
            self.world.after(RETRY_MS, self.restart)
            return False
        except (StoreError, NotAuthorised) as error:
            if self.honest and (isinstance(error, NotAuthorised) or not self.disk.full):
                raise  # attackers may damage their own feeds, or use up what their device may open
            self._ask(RETRY_MS, self.poke)
            return False
        return True

    def _look_around(self) -> None:
        self._working = False
        self.guarded(self._work)

    def _work(self) -> None:
        now = self.world.now_ms
        self.links.work()
        due = self._drive_ms is not None and self._drive_ms <= now
        if due or self._news or self.store.transaction != self._looked:
            self._drive(now)
        wake = [None if self._drive_ms is None else self._drive_ms - now + self.clock.now_ms()]
        wake.append(self.links.tick())
        self.maxima.look(self)  # before the outgoing queues are emptied
        if self.links.send():
            wake.append(self.clock.now_ms())
        later = [at for at in wake if at is not None]
        if later:
            self._wake_at(now + max(1, min(later) - self.clock.now_ms()))

    def _drive(self, now: int) -> None:
        """Process new blocks and blobs, and run the epoch driver."""
        self._news = False
        self._join()
        self.party.process()
        due_ms = self.driver.tick(self.clock.now_ms())
        self._drive_ms = None if due_ms is None else now + max(1, due_ms - self.clock.now_ms())
        self._prune()
        self._note_epochs()
        self._looked = self.store.transaction

    def _wake_at(self, at_ms: int) -> None:
        if self._wake_ms is None or at_ms < self._wake_ms or self._wake_ms <= self.world.now_ms:
            self._wake_ms = at_ms
            self._ask(at_ms - self.world.now_ms, lambda: self._wake(at_ms))

    def _wake(self, at_ms: int) -> None:
        if self._wake_ms == at_ms:  # else another time was set since
            self._wake_ms = None
            self.poke()

    def _join(self) -> None:
        """Open a control feed once the identity is admitted, and a new one after each later admission."""
        member = self.member
        member.refresh()
        if member.machine.act_count != self._acts:
            self._acts = member.machine.act_count
            drop_ended_feeds(self.party, member)
        if member.control is not None:
            return
        if member.machine.roles_of(self.identity.key):
            try:
                member.join(member.vouch(self.identity))
            except NotAuthorised:
                if self.honest:
                    raise
                return  # its device has opened as many control feeds as count: it goes on with its data feed alone
            self.moved_ms = self.world.now_ms
            self.world.record(Kind.JOIN, self.name)

    def _prune(self) -> None:
        if self.prunes and self.epochs.number > self._pruned:
            try:
                count = self.epochs.prune()
            except MissingBlob:  # it started from the snapshot, and has not fetched all blobs
                return
            self._pruned = self.epochs.number
            if count:
                self.world.record(Kind.PRUNE, self.name, count=count, number=self._pruned)

    def _note_epochs(self) -> None:
        """Record in the trace what this peer wrote about epochs, forks that it found, and its base epoch."""
        control, machine = self.member.control, self.member.machine
        if control is not None and machine.length(control.feed) > self._said:
            for word in epoch_events(machine, control.feed, self._said):
                self.world.record(word.kind, self.name, number=word.number, text=word.text)
            self._said = machine.length(control.feed)
        for feed, end in sorted(machine.fork_ends.items()):
            if feed not in self._forks:
                self._forks.add(feed)
                self.world.record(
                    Kind.REFUSE, self.name, text=f"feed {feed.hex()[:8]} has two histories: it ends at {end}"
                )
        number = self.epochs.number
        if number != self._stood:
            self._stood = number
            self.moved_ms = self.world.now_ms
            base = self.epochs.base
            self.world.record(Kind.STAND, self.name, number=number, text="" if base is None else str(base.cid)[:16])


def _pair(seed: int, name: str) -> KeyPair:
    return KeyPair.from_seed(sha256(f"{seed} {name}".encode()).digest())
