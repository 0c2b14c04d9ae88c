"""Whole peers in one process: each has its own stores on disk, and the test passes blocks between them.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder, Peers(folder) as peers:
...     alice, bob = peers.add("alice"), peers.add("bob")
...     note = alice.party.create("antiphon/object")
...     _ = note.edit("set", "title", "Milk")
...     moved = peers.sync()
...     bob.party.item(note.id).value
{'title': 'Milk'}
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from types import TracebackType

from antiphon.core.errors import BrokenChain, Equivocation, MissingBlocks
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.core.ports import Clock, Randomness, SeededRandomness
from antiphon.feed.encoder import Draft, Written
from antiphon.feed.header import Entry, Kind
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.writer import FeedWriter
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import FeedAdmission, FeedKind, Role
from antiphon.halo.keys.identity import Device, Identity
from antiphon.halo.keys.key_file import KeyKind, Protection
from antiphon.halo.keys.key_store import KeyStore
from antiphon.halo.member.membership import Membership
from antiphon.model.factory import ModelFactory
from antiphon.party.engine.authority import OpenAuthority, PartyAuthority
from antiphon.party.engine.ports import Authority
from antiphon.party.epochs.epochs import Epochs
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.views.partial_party import PartialParty, open_items
from antiphon.party.views.selection import ViewSelection
from antiphon.snapshot.blobs import Blobs, MemoryBlobs
from antiphon.testing.view_fetch import fetch_view


class Ticks:
    """A clock that a test moves."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms


class Peer:
    """One device of one person. `party` is its live engine."""

    def __init__(
        self,
        name: str,
        folder: Path,
        models: ModelFactory,
        *,
        founder: Peer | None,
        open_party: KeyPair | None,
        owner: Peer | None = None,
    ) -> None:
        self.name = name
        self.folder = folder
        self.models = models
        self.clock: Clock = Ticks()
        self.dice: Randomness = SeededRandomness(name)
        self.store = FeedStore.open(folder / "feeds", durable=False, clock=self.clock, randomness=self.dice)
        self._open_party = open_party
        self._path = folder / "items.db"
        self.blobs: Blobs = MemoryBlobs()
        self.selection: ViewSelection | None = None
        self.member: Membership | None = None
        if open_party is None:
            self._enrol(founder, owner)
        self.party = self._run()

    def _enrol(self, founder: Peer | None, owner: Peer | None) -> None:
        self.keys = KeyStore.create(self.folder / "keys", protection=Protection.UNPROTECTED, randomness=self.dice)
        self.identity: Identity = Identity(pair_of(self.name)) if owner is None else owner.identity
        if owner is None:
            self.keys.add(self.identity.pair, KeyKind.IDENTITY, "identity")
        self.device = Device(pair_of(f"{self.name}'s device"), self.identity.key)
        self.keys.add(self.device.pair, KeyKind.DEVICE, "device", owner=self.identity.key)
        if founder is None:
            self.member = Membership.found(
                self.store, self.keys, self.identity, self.device, clock=self.clock, randomness=self.dice
            )
        else:
            assert founder.member is not None
            party, genesis = founder.member.party, founder.member.genesis_feed
            self.member = Membership.open(self.store, self.keys, self.device, party, genesis, clock=self.clock)

    def _run(self) -> PartyProcessor:
        authority: Authority
        if self._open_party is not None:
            key = self._open_party.key
            authority = OpenAuthority(self.store, key, pair_of(f"{self.name}'s feed"))
        else:
            assert self.member is not None
            key = self.member.party
            authority = PartyAuthority.of(self.store, self.member)
        return PartyProcessor(
            key,
            self.store,
            authority,
            path=self._path,
            models=self.models,
            clock=self.clock,
            randomness=self.dice,
            blobs=self.blobs,
            open_items=open_items(self.selection, self._path, key) if self.selection is not None else None,
        )

    def hold_view(self, view: bytes) -> PartialParty:
        """Hold only one view from now on, and drop the state of other items; see `testing.view_fetch`."""
        self.party.delete()
        self.selection = ViewSelection(view)
        self.party = self._run()
        return self.partial

    @property
    def partial(self) -> PartialParty:
        """The party of which this device holds one view."""
        assert self.selection is not None
        if self._partial is None or self._partial[0] is not self.party:
            self._partial = self.party, PartialParty(self.party, self.epochs, self.selection)
        return self._partial[1]

    _partial: tuple[PartyProcessor, PartialParty] | None = None

    @property
    def epochs(self) -> Epochs:
        """The party's epochs, as this device takes part in them."""
        if self._epochs is None or self._epochs[0] is not self.party:
            assert self.member is not None
            self._epochs = self.party, Epochs(self.party, self.member)
        return self._epochs[1]

    _epochs: tuple[PartyProcessor, Epochs] | None = None

    def restart(self, *, crash: bool = False) -> None:
        """Close the party and open it again. After a crash, unsaved blocks are processed again."""
        if crash:
            with self.party.locked() as engine:
                engine.close()
        else:
            self.party.close()
        if self.member is not None:
            member = self.member
            self.member = Membership.open(
                self.store, self.keys, self.device, member.party, member.genesis_feed, clock=self.clock
            )
        self.party = self._run()

    def rebuild(self) -> None:
        """Delete all derived state, and rebuild it from the feeds."""
        self.party.delete()
        self.restart_after_delete()

    def restart_after_delete(self) -> None:
        self.party = self._run()

    def join(self) -> None:
        """Open this device's control feed, once it has received an admission of its identity."""
        assert self.member is not None
        self.member.join(self.member.vouch(self.identity))

    def admit_feed(self, feed: KeyPair) -> None:
        """Admit a further data feed of this device, whose blocks a test writes by itself."""
        assert self.member is not None
        assert self.member.control is not None
        word = self.member.vouch(self.identity)
        claim = FeedAdmission(feed.key, FeedKind.DATA, self.identity.key, self.device.key, word)
        signed = credential.sign(self.member.party, claim, [self.device.pair, feed])
        self.member.control.see(*self.member.machine.entries())
        self.member.control.append(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(signed))
        self.member.refresh()

    def forge(self, *drafts: Draft, atomic: bool = False, seen: Iterable[Entry] = ()) -> Written:
        """Append blocks to this device's data feed without any check, as no honest program does."""
        if self.member is not None:
            writer = self.member.open_data_feed()
        else:
            writer = FeedWriter.open(self.store, pair_of(f"{self.name}'s feed"), self.party.key)
        writer.see(*seen)
        return writer.extend(drafts, atomic=atomic)

    @property
    def key(self) -> PublicKey:
        return self.identity.key

    def ranges(self, have: dict[bytes, int]) -> list[Span]:
        """The ranges that another peer lacks."""
        return [
            span
            for record in self.store.feeds(self.party.key)
            if have.get(record.feed, 0) < record.length
            for span in self.store.spans(record.feed, max(record.start, have.get(record.feed, 0)))
        ]

    def take(self, ranges: Iterable[Span]) -> int:
        """Ingest ranges, and skip those that do not link to this peer's blocks yet. Returns how many were new."""
        taken = 0
        begins = self.epochs.begins() if self.member is not None else {}
        for span in ranges:
            try:
                taken += self.store.ingest_bytes(span.encode(), begins.get(span.feed)).added
            except (MissingBlocks, BrokenChain, Equivocation):
                continue
        self.party.process()
        return taken

    def lengths(self) -> dict[bytes, int]:
        return {record.feed: record.length for record in self.store.feeds(self.party.key)}

    def snapshots(self) -> dict[bytes, bytes]:
        """The canonical bytes of every item."""
        return {item: self.party.snapshot(item) for item in self.party.items()}

    def close(self) -> None:
        self.party.close()
        self.store.close()


class Peers:
    """Peers of one party. With `authority=False` the party has no credentials, and every key may write."""

    def __init__(self, folder: str | Path, *, authority: bool = True, models: ModelFactory | None = None) -> None:
        self._folder = Path(folder)
        self._models = models or ModelFactory.standard()
        self._open_party = None if authority else pair_of("an open party")
        self.all: list[Peer] = []

    def add(
        self,
        name: str,
        role: Role | None = Role.EDITOR,
        models: ModelFactory | None = None,
        *,
        owner: Peer | None = None,
    ) -> Peer:
        """Add a peer. The first founds the party; others are admitted and join, except with a role of None.

        With an `owner` it is a second device of that peer's identity, without the identity's private key.
        """
        founder = self.all[0] if self.all and self._open_party is None else None
        peer = Peer(
            name,
            self._folder / name,
            models or self._models,
            founder=founder,
            open_party=self._open_party,
            owner=owner,
        )
        self.all.append(peer)
        if founder is not None and role is not None:
            assert founder.member is not None
            if owner is None:
                founder.member.admit(peer.key, [role])
            self.pass_on(founder, peer)
            peer.join()
            self.sync()
        return peer

    def pass_on(self, giver: Peer, taker: Peer) -> int:
        """Give a peer all blocks that it lacks; one that holds a view gets only the bodies that belong to it."""
        spans: Iterable[Span] = giver.ranges(taker.lengths())
        if taker.selection is not None:
            spans = [span.keeping(taker.selection.keeps) for span in spans]
        elif giver.selection is not None:
            spans = [span for span in spans if not span.states]  # the others come from those who have them whole
        return taker.take(spans)

    def pass_blobs(self, giver: Peer, taker: Peer, *, whole: bool = False) -> int:
        """Give a peer the blobs that it wants for an epoch; with `whole`, all blobs of the snapshot."""
        moved = 0
        if taker.selection is not None:
            return fetch_view(giver, taker).count if giver.selection is None else 0
        while wanted := [cid for cid in taker.epochs.wanted(whole=whole) if giver.blobs.has(cid)]:
            taker.blobs.put_all((cid, giver.blobs.get(cid)) for cid in wanted)
            moved += len(wanted)
            taker.epochs.step()
        return moved

    def settle(self) -> None:
        """Exchange until all peers have all blocks, and none writes more about epochs."""
        while True:
            moved = self.sync()
            moved += sum(peer.epochs.step() for peer in self.all)
            moved += sum(self.pass_blobs(one, other) for one in self.all for other in self.all if one is not other)
            if not moved:
                return

    def sync(self) -> int:
        """Exchange until all peers have all blocks; return the number of blocks moved."""
        total = 0
        while True:
            moved = sum(self.pass_on(one, other) for one in self.all for other in self.all if one is not other)
            total += moved
            if not moved:
                return total

    def __enter__(self) -> Peers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for peer in self.all:
            peer.close()


def pair_of(name: str) -> KeyPair:
    """The key pair of a name: peers' identities, devices and feeds follow from their names."""
    return KeyPair.from_seed(sha256(name.encode()).digest())
