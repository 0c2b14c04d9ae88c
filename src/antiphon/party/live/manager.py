"""`PartyManager`: the parties of one device. It opens, closes and lists them; a closed party costs nothing.

>>> from antiphon.feed import FeedStore
>>> from antiphon.halo import KeyStore, Protection, new_device, new_identity
>>> from antiphon.party import MetaStore
>>> keys = KeyStore.create("keys", protection=Protection.UNPROTECTED)
>>> alice, _ = new_identity(keys, "Alice")
>>> laptop = new_device(keys, "laptop", alice.key)
>>> with FeedStore.open("feeds") as feeds, MetaStore.open("meta.db") as meta:
...     with PartyManager(feeds, meta, keys, laptop, folder="items") as parties:
...         party = parties.create(alice, "Book club")
...         [(known.label, known.open) for known in parties.list()]
[('Book club', True)]
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from antiphon.core.errors import AntiphonError, InvalidInput, MissingBlocks
from antiphon.core.keys import PublicKey
from antiphon.core.ports import Clock, Randomness
from antiphon.feed.header import Kind
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.reader import FeedReader
from antiphon.halo.acts.act import read_act
from antiphon.halo.control.checkpoint_file import CheckpointFile
from antiphon.halo.credentials.claims import PartyGenesis
from antiphon.halo.keys.identity import Device, Identity
from antiphon.halo.keys.key_file import encode_label
from antiphon.halo.keys.key_store import KeyStore
from antiphon.halo.member.membership import Membership
from antiphon.model.factory import ModelFactory
from antiphon.party.engine.authority import PartyAuthority
from antiphon.party.engine.ports import Authority, Index, Items
from antiphon.party.epochs.driver import EpochDriver
from antiphon.party.epochs.epochs import Epochs
from antiphon.party.epochs.worker import EpochWorker
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.store.item_store import delete_file
from antiphon.party.store.meta_store import MetaStore, Subscription, SubscriptionState
from antiphon.snapshot.blob_store import BlobStore
from antiphon.snapshot.blobs import Blobs, MemoryBlobs


@dataclass(frozen=True, slots=True)
class KnownParty:
    """A party that this device follows or has paused."""

    party: PublicKey
    label: str
    state: SubscriptionState
    open: bool


class PartyManager:
    """Opens, closes and lists parties. Its stores are arguments, so any can be shared or replaced. Thread-safe."""

    def __init__(
        self,
        feeds: FeedStore,
        meta: MetaStore,
        keys: KeyStore,
        device: Device,
        *,
        folder: str | Path | None = None,
        models: ModelFactory | None = None,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        live: bool = False,
        epochs: bool = False,
        prune: bool = False,
        blobs: Blobs | None = None,
        authority: Callable[[FeedStore, Membership], Authority] = PartyAuthority.of,
        items: Callable[[PublicKey], Items] | None = None,
        index: Callable[[Any], Index] | None = None,
    ) -> None:
        self.feeds = feeds
        self.meta = meta
        self.keys = keys
        self.device = device
        self.models = models or ModelFactory.standard()
        self._folder = Path(folder) if folder is not None else None
        self.clock = clock
        self.randomness = randomness
        self._live = live  # process new blocks of each open party in a thread of its own
        # One thread takes part in the epochs of all open parties, and prunes the messages that epochs hold.
        self._worker = EpochWorker(feeds, prune=prune) if epochs else None
        self._blob_store: BlobStore | None = None  # next to the item stores, if the caller passed none
        if blobs is None and self._folder is not None:
            blobs = self._blob_store = BlobStore.open(self._folder.with_name("blobs"))
        self.blobs: Blobs = MemoryBlobs() if blobs is None else blobs
        self._authority = authority
        self._items = items
        self._index = index
        self._lock = threading.RLock()
        self._closed = threading.Condition(self._lock)
        self._closing: set[bytes] = set()
        self.listeners: list[
            Callable[[bytes], None]
        ] = []  # called with a party that is followed, paused, resumed or left
        self._open: dict[bytes, PartyProcessor] = {}
        self._members: dict[bytes, Membership] = {}
        self._epochs: dict[bytes, Epochs] = {}

    # -- parties

    def create(self, identity: Identity, label: str = "", *, parent: bytes | None = None) -> PartyProcessor:
        """Found a party; with the key of an open parent, a child of that party."""
        encode_label(label)  # before the first block: a party that is founded and not listed would be lost from sight
        member = Membership.found(
            self.feeds,
            self.keys,
            identity,
            self.device,
            parent=None if parent is None else self.member(parent),
            clock=self.clock,
            randomness=self.randomness,
        )
        if (checkpoint := self._checkpoint(member.party)) is not None:
            member.attach_checkpoint(checkpoint)
        with self._lock:
            self.meta.subscribe(member.party, label=label, genesis_feed=member.genesis_feed)
            party = self._run(member)
        self._tell(member.party)
        return party

    def subscribe(
        self, party: bytes, genesis_feed: bytes | None = None, label: str = "", *, again: bool = False
    ) -> Subscription:
        """Follow a party, for example from an invitation. It can be opened once its genesis is here.

        A party that was deleted here is followed only with `again`.
        """
        known = self.meta.subscribe(party, label=label, genesis_feed=genesis_feed, again=again)
        self._tell(party)
        return known

    def _tell(self, party: bytes) -> None:
        for listener in list(self.listeners):
            listener(bytes(party))

    def open(self, party: bytes) -> PartyProcessor:
        """Return the party, running. If its genesis feed is not known, it is searched for among the feeds here."""
        key = PublicKey(party)
        with self._lock:
            running = self._open.get(key)
            if running is None or not (running.running or running.failed):
                return self._start(key)
        if not running.running:
            # Without the manager's lock: whoever is in a batch of that party may be about to open another one.
            with running.locked():
                pass  # starts it again: the error that stopped it may be over, such as a full disk
        return running

    def _start(self, key: PublicKey) -> PartyProcessor:
        """Open a party that does not run, under the lock, which is let go while the party is still being closed."""
        self._closed.wait_for(lambda: key not in self._closing)
        running = self._open.get(key)
        if running is not None and (running.running or running.failed):
            return running  # another thread was quicker
        known = self.meta.find(key)
        if known is None or known.state is SubscriptionState.FORGOTTEN:
            raise InvalidInput(f"party {key.short} is not followed here; subscribe to it first")
        if known.state is SubscriptionState.PAUSED:
            raise InvalidInput(f"party {key.short} is paused; resume it first")
        genesis = known.genesis_feed or find_genesis(self.feeds, key)
        if genesis is None:
            raise MissingBlocks(f"party {key.short}: its genesis is not here yet; fetch its control feeds from a peer")
        if known.genesis_feed is None:
            self.meta.set_genesis_feed(key, genesis)
        return self._run(self._member(key, genesis))

    def _member(self, party: PublicKey, genesis: bytes) -> Membership:
        return Membership.open(
            self.feeds,
            self.keys,
            self.device,
            party,
            genesis,
            clock=self.clock,
            randomness=self.randomness,
            checkpoint=self._checkpoint(party),
            at_once=False,
        )

    def _checkpoint(self, party: bytes) -> CheckpointFile | None:
        path = self._path(party)
        return None if path is None else CheckpointFile(path.with_suffix(".checkpoint"), party)

    def unopened_member(self, party: bytes) -> Membership | None:
        """Return the membership in a party by its control feeds alone; None before its genesis is here.

        The party is not opened. The caller drops the membership after use.
        """
        known = self.meta.find(party)
        genesis = None if known is None else known.genesis_feed or find_genesis(self.feeds, party)
        return None if genesis is None else self._member(PublicKey(party), genesis)

    @contextmanager
    def looking(self, party: bytes) -> Iterator[tuple[PartyProcessor, Membership]]:
        """Open a party for reading. A paused party runs only while the context is open."""
        key = PublicKey(party)
        known = self.meta.find(key)
        genesis = None if known is None else known.genesis_feed or find_genesis(self.feeds, key)
        if known is None or known.state is not SubscriptionState.PAUSED or genesis is None:
            yield self.open(key), self.member(key)
            return
        member = self._member(key, genesis)
        with self._processor(member) as processor:
            yield processor, member

    def member(self, party: bytes) -> Membership:
        """Return this device's membership in a party, to join, admit and revoke. Opens the party."""
        with self._lock:
            self.open(party)
            return self._members[bytes(party)]

    def epochs(self, party: bytes) -> Epochs:
        """Return this device's `Epochs` of a party. Opens the party."""
        with self._lock:
            self.open(party)
            return self._epochs[bytes(party)]

    def epoch_status(self, party: bytes) -> str:
        """Return what a party's epochs wait for; "" if for nothing, or if no thread takes part in them."""
        return "" if self._worker is None else self._worker.status(bytes(party))

    def _processor(self, member: Membership) -> PartyProcessor:
        return PartyProcessor(
            member.party,
            self.feeds,
            self._authority(self.feeds, member),
            path=self._path(member.party),
            models=self.models,
            clock=self.clock,
            randomness=self.randomness,
            open_items=None if self._items is None else partial(self._items, member.party),
            index=self._index,
            blobs=self.blobs,
        )

    def _run(self, member: Membership) -> PartyProcessor:
        party, key = self._processor(member), bytes(member.party)
        self._stop_work(key, wait=False)  # its processor may have been paused directly
        self._members[key], self._open[key], self._epochs[key] = member, party, Epochs(party, member)
        if self._live:
            above = member.parent
            party.start(None if above is None else above.party)
        if self._worker is not None:
            self._worker.add(party, member, self._epochs[key])
        return party

    def _is_idle(self, party: PartyProcessor, member: Membership) -> bool:
        """True if the epochs of a party wait for new blocks alone."""
        key = bytes(party.key)
        if not party.running:
            return False
        if self._worker is not None and self._worker.is_idle(key):
            return True
        if not member.is_open:  # nothing has looked since it was closed last
            rest = party.rest()
            return rest is not None and rest.is_idle
        with suppress(AntiphonError):
            return EpochDriver(party, member, self._epochs[key]).is_idle(party.clock.now_ms())
        return False

    def _stop_work(self, key: bytes, *, wait: bool = True) -> None:
        epochs = self._epochs.pop(key, None)
        if epochs is not None:
            epochs.cancel(for_good=True)
        if self._worker is not None:
            self._worker.remove(key, wait=wait)

    def _path(self, party: bytes) -> Path | None:
        return None if self._folder is None else self._folder / f"{party.hex()}.db"

    def list(self) -> tuple[KnownParty, ...]:
        """Return all parties that are followed or paused here."""
        with self._lock:
            return tuple(
                KnownParty(known.party, known.label, known.state, self._is_open(known.party))
                for known in self.meta.parties()
                if known.state is not SubscriptionState.FORGOTTEN
            )

    def _is_open(self, party: bytes) -> bool:
        running = self._open.get(bytes(party))
        return running is not None and running.running

    def close_party(self, party: bytes, unless: Callable[[], bool] = lambda: False) -> None:
        """Stop a party and free its memory. `open` starts it again.

        `unless` is asked under the lock that `open` takes: if it returns True, the party stays open.
        """
        key = bytes(party)
        with self._lock:
            if unless():
                return
            running = self._open.pop(key, None)
            member = self._members.pop(key, None)
            self._closing.add(key)
        try:
            is_idle = running is not None and member is not None and self._is_idle(running, member)
            self._stop_work(key)
            if running is not None:
                running.pause(is_idle=is_idle)
            if member is not None and member.is_open:
                member.save_checkpoint()
        finally:
            with self._closed:
                self._closing.discard(key)
                self._closed.notify_all()

    def pause(self, party: bytes) -> None:
        """Close a party until `resume`, also across restarts."""
        self.meta.pause(party)
        self.close_party(party)
        self._tell(party)

    def resume(self, party: bytes) -> PartyProcessor:
        """Open a paused party again."""
        self.meta.resume(party)
        opened = self.open(party)
        self._tell(party)
        return opened

    def delete(self, party: bytes) -> None:
        """Forget a party: delete its item store, and follow it again only with `again=True`. Its feeds stay."""
        with self._lock:
            self.meta.forget(party)
            running = self._open.pop(bytes(party), None)
            self._members.pop(bytes(party), None)
        self._stop_work(bytes(party))
        if running is not None:
            running.delete()
        elif (path := self._path(party)) is not None:
            delete_file(path)
        if (checkpoint := self._checkpoint(party)) is not None:
            checkpoint.delete()
        self._tell(party)

    def close(self) -> None:
        """Close all parties, and the blob store if this manager opened it."""
        try:
            for party in list(self._open):
                self.close_party(party)
        finally:
            if self._worker is not None:
                self._worker.stop()
            if self._blob_store is not None:
                self._blob_store.close()

    def __enter__(self) -> PartyManager:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def find_genesis(store: FeedReader, party: bytes) -> PublicKey | None:
    """Return the genesis feed of a party: its first block is the party genesis, signed with the party's own key."""
    for record in store.feeds(party):
        try:
            if store.first_kind(record.feed) is not Kind.CREDENTIAL:
                continue
            act = read_act(party, store.block(record.feed, 0), {})
        except AntiphonError:  # an unreadable feed is not the genesis feed; reading it directly reports why
            continue
        if isinstance(act.claim, PartyGenesis) and act.claim.admission.feed == record.feed and party in act.signers:
            return PublicKey(record.feed)
    return None


def parent_of(store: FeedReader, party: bytes) -> PublicKey | None:
    """Return the parent that a child party's genesis names; None if it is no child, or its genesis is not here."""
    genesis = find_genesis(store, party)
    if genesis is None:
        return None
    claim = read_act(party, store.block(genesis, 0), {}).claim
    return PublicKey(claim.parent) if isinstance(claim, PartyGenesis) and claim.parent else None
