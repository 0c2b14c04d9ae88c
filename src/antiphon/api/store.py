"""`Store`: everything that one device has, in one folder: its keys, its feeds, its parties.

>>> import antiphon
>>> with antiphon.open("laptop", name="Ada", unprotected=True) as store:
...     party = store.create_party("Household")
...     groceries = party.list(["milk", "bread"], name="Groceries")
...     groceries.append("salt")
...     groceries.value
['milk', 'bread', 'salt']

Locks, so that no two threads ever wait for each other:

1. A party's lock, which a batch holds. Under it all below may be taken, but no other party's: so a reference into
   another party is not followed inside a batch (`look`), and whoever reaches into another one there does so at their
   own risk.
2. The manager's, while a party is opened or listed. The only party's lock under it is that of the party that is being
   made, which nobody else has yet.
3. `Store._lock`, for the store's own fields. Nothing is called while it is held.

What users hand in (key functions, iterables, steps of migrations, callbacks) runs under none of them, unless the users
themselves have opened a batch.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from antiphon.api.child_party import refer
from antiphon.api.held_views import FollowedViews, hold_view
from antiphon.api.inputs import need_text
from antiphon.api.invitation import Invitation
from antiphon.api.items.handle import Handle
from antiphon.api.key_text import from_any_text
from antiphon.api.locator import Locator
from antiphon.api.party import Party
from antiphon.api.registry import LocalRegistry, Registry, load_model
from antiphon.core.errors import (
    AntiphonError,
    InvalidInput,
    MissingBlocks,
    NotAuthorised,
    PartyPaused,
    StoreClosed,
    StoreError,
    UnknownItem,
    UnknownModel,
    UnknownParty,
)
from antiphon.core.keys import PublicKey
from antiphon.core.ports import Clock, Randomness
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.keys.identity import Identity, devices, load_identity, new_device, new_identity
from antiphon.halo.keys.key_file import KeyKind, Protection
from antiphon.halo.keys.key_store import KeyStore
from antiphon.model.factory import ModelFactory
from antiphon.model.value import Reference
from antiphon.party.bundle.export import Tick, no_tick
from antiphon.party.bundle.import_ import Bundle
from antiphon.party.live.manager import KnownParty, PartyManager
from antiphon.party.maintenance.garbage import GarbageReport, collect_garbage
from antiphon.party.store.meta_store import MetaStore, SubscriptionState
from antiphon.query.index.index import ItemIndex
from antiphon.snapshot.car_file import CarFile

_LOG = logging.getLogger("antiphon")


class Store:
    """A device's home. Thread-safe; one process at a time writes it. Close it, or use it with `with`."""

    def __init__(
        self,
        path: Path,
        keys: KeyStore,
        manager: PartyManager,
        identity: Identity | None,
        recovery_phrase: str,
        registry: Registry,
        followed: FollowedViews,
    ) -> None:
        self.path = path
        self.keys = keys
        self.manager = manager
        self._identity = identity
        self.recovery_phrase = recovery_phrase  # of an identity that is new: show it once, to be written down
        self.registry = registry  # of the names of models and view classes
        self.followed = followed  # the parties of which one view alone is held
        self._parties: dict[bytes, Party] = {}
        self._lock = threading.Lock()
        self._opened = threading.Condition(self._lock)
        self._opening = 0  # how many threads are opening a party
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        name: str = "me",
        passphrase: str | None = None,
        keyring: bool = False,
        unprotected: bool = False,
        models: ModelFactory | None = None,
        live: bool = False,
        epochs: bool = False,
        prune: bool = False,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        registry: Registry | None = None,
    ) -> Store:
        """Open the store in a folder. A new folder gets an identity called `name`, and a device.

        For a new store, choose how its private keys are kept: encrypted with a `passphrase`, encrypted with a key in
        the system's `keyring`, or `unprotected`, as plain bytes that anybody who reads the folder can use. A store
        that exists needs its passphrase if it has one; the other two arguments then change nothing.

        `live` folds new blocks of each open party in a thread of its own. `epochs` takes part in the party's epochs in
        another thread, as policy says, and `prune` drops messages there that a new final epoch holds, as policy allows.
        `models` are the models with code in this process, by default all that are installed; `registry` holds the names
        of models and view classes. A simulation hands in `clock` and `randomness`.
        """
        if not str(path):
            raise InvalidInput("the path of a store is empty; name a folder, '.' for the working directory")
        if prune and not epochs:
            raise InvalidInput("a store prunes messages by itself only where it takes part in epochs: epochs=True")
        home = Path(path).expanduser()
        keys, recovery_phrase = _keys(
            home / "keys", name, _protection(passphrase, keyring, unprotected), passphrase, randomness
        )
        device = devices(keys)[0]
        followed = FollowedViews(home / "views.json", home / "items")
        with contextlib.ExitStack() as opened:
            feeds = opened.enter_context(FeedStore.open(home / "feeds", clock=clock, randomness=randomness))
            meta = opened.enter_context(MetaStore.open(home / "meta.db", clock=clock))
            manager = PartyManager(
                feeds,
                meta,
                keys,
                device,
                folder=home / "items",
                models=models,
                clock=clock,
                randomness=randomness,
                live=live,
                epochs=epochs,
                prune=prune,
                items=followed.open_items,
                index=ItemIndex,
            )
            opened.pop_all()  # all is well: they stay open
        held = device.identity in {record.key for record in keys.keys(KeyKind.IDENTITY)}
        names = registry or LocalRegistry(home / "names.json")
        identity = load_identity(keys, device.identity) if held else None
        return cls(home, keys, manager, identity, recovery_phrase, names, followed)

    # -- who

    @property
    def me(self) -> PublicKey:
        """The identity that this device speaks for: give this key to whom you want to be admitted by."""
        return self.manager.device.identity

    @property
    def device(self) -> PublicKey:
        """This device: the key by which a policy of epochs names it."""
        return self.manager.device.key

    @property
    def identity(self) -> Identity:
        """The identity with its private key."""
        if self._identity is None:
            raise NotAuthorised(f"the private key of identity {self.me.short} is not on this device")
        return self._identity

    @property
    def may_vouch(self) -> bool:
        """Whether the private key of the identity is here, so that this device can join parties for it."""
        return self._identity is not None

    @property
    def models(self) -> ModelFactory:
        """The models whose code is here."""
        return self.manager.models

    def load_models(self) -> list[str]:
        """Register the models that the registry names and whose packages are installed; returns their names.

        Items that were opaque for want of their code are then folded, with the next refresh of their party. Names whose
        code is not here, or fails, are passed over and logged.
        """
        loaded = []
        for record in self.registry.records("model"):
            if (record.name, record.version) not in self.models.keys:
                try:
                    self.models.register(load_model(record))
                    loaded.append(record.name)
                except (UnknownModel, InvalidInput) as error:
                    _LOG.warning("%s", error)
        return loaded

    # -- parties

    def create_party(self, name: str = "", *, parent: Party | None = None) -> Party:
        """Found a party, as its first owner; with a parent, a child of that (`Party.create_child`)."""
        need_text(name, "the name of a party")
        with self._open_one():
            above = None if parent is None else bytes(parent.key)
            key = self.manager.create(self.identity, name, parent=above).key
        party = self._party(key)
        if name:
            party.name = name
        if parent is not None:
            refer(parent, party, name)
        return party

    def join(self, invitation: Invitation | str) -> None:
        """Take an invitation. The party opens once its blocks are here: see `sync`."""
        invited = Invitation.parse(invitation) if isinstance(invitation, str) else invitation
        if not isinstance(invited, Invitation):
            raise InvalidInput(f"one joins with what `party.invite` gives, or its text, not with {invited!r:.80}")
        self.manager.subscribe(invited.party, invited.genesis, invited.label)

    def hold_view(self, view: Locator | str, invitation: Invitation | str | None = None) -> None:
        """Hold one view of a party, what belongs to it, and of all else headers only. `sync` fetches it.

        The party is joined with the invitation, if it was not. Such a device writes like others, and declares and
        attests no epochs. What was held of the party before is not shown any more.
        """
        hold_view(self, view, invitation)

    def hold_whole(self, party: bytes) -> None:
        """Hold all of a party again of which one view was followed. It is shown whole once `sync` has all of it."""
        if party not in self.followed:
            raise InvalidInput(f"of party {party.hex()[:8]} no view alone is followed here")
        self.followed.leave(party)

    def party(self, which: bytes | str) -> Party:
        """A party, by its key, the text of its key, or its name; opened if it was not.

        A name is first looked for among the labels of this device, which others cannot change, and only then among the
        names that members gave to the parties that are open.
        """
        return self._party(which if isinstance(which, bytes) else self._named(which))

    def parties(self) -> tuple[KnownParty, ...]:
        """All parties that are followed here, open or not."""
        return self.manager.list()

    def __iter__(self) -> Iterator[Party]:
        """The parties whose blocks are here."""
        for known in self.parties():
            with contextlib.suppress(MissingBlocks, PartyPaused):
                yield self.party(bytes(known.party))

    def _named(self, name: str) -> bytes:
        if not isinstance(name, str):
            raise InvalidInput(f"a party is named by its key (bytes), its text, or its name, not by {name!r:.80}")
        known = self.parties()
        key = from_any_text(name)
        if key is not None and key in {one.party for one in known}:
            return bytes(key)
        found = [one.party for one in known if one.label == name]
        found = found or [one.party for one in known if self._shared_name(one.party) == name]
        if len(found) != 1:
            have = ", ".join(sorted(repr(one.label) for one in known)) or "none"
            raise UnknownParty(f"{len(found)} parties are called {name!r} here; there are {have}. Use a party's key")
        return bytes(found[0])

    def _shared_name(self, key: bytes) -> str | None:
        """What the members call a party that is open here; it may be called otherwise since it was joined."""
        party = self.running(key)
        with contextlib.suppress(PartyPaused):  # closed meanwhile
            return None if party is None else party.name
        return None

    def _party(self, key: bytes) -> Party:
        with self._open_one():
            known = next((one for one in self.parties() if one.party == key), None)
            if known is None:
                raise UnknownParty(f"party {key.hex()[:8]} is not held here; join it with an invitation")
            if known.state is SubscriptionState.PAUSED:
                raise PartyPaused(f"party {known.party.short} is paused here; resume it with `store.manager.resume`")
            processor = self.manager.open(key)
            party = self._parties.get(key)
            if party is None or party.processor is not processor:
                party = self._keep(Party(self, processor, self.manager.member(key)))
                party.join()
            return party

    def _keep(self, party: Party) -> Party:
        """The one of a party that all get: threads may have made several at once."""
        with self._lock:
            known = self._parties.get(party.key)
            if known is not None and known.processor is party.processor:
                return known
            party.processor.checks.append(party.schemas.check)
            self._parties[bytes(party.key)] = party
            return party

    @contextlib.contextmanager
    def _open_one(self) -> Iterator[None]:
        """While a party is being opened, the store is not closed; once it is being closed, none is opened."""
        with self._lock:
            if self._closed:
                raise StoreClosed(f"the store {str(self.path)!r} was closed; open it again")
            self._opening += 1
        try:
            yield
        finally:
            with self._lock:
                self._opening -= 1
                self._opened.notify_all()

    def running(self, key: bytes) -> Party | None:
        """A party that is open. Nothing is locked, and nothing opened, to find that out."""
        party = self._parties.get(key)
        return party if party is not None and party.processor.running else None

    def import_party(self, path: str | Path, label: str = "", *, tick: Tick = no_tick) -> Party:
        """Take a party from a file that `Party.export` has written. Everything in it is verified before any is taken.

        It begins at the epoch in the file, if as many devices have attested that as policy wants.
        """
        with self._open_one(), CarFile.open(path, partial(tick, "read")) as file:
            bundle = Bundle(file, tick, store=self.manager.feeds)
            with self.manager.blobs.putting():  # so that nobody collects them before the party is known
                taken = bundle.take(self.manager.feeds, self.manager.blobs)
                self.manager.subscribe(taken.party, taken.genesis, label, again=True)
        party = self._party(bytes(taken.party))
        party.refresh()
        return party

    def collect_garbage(self, *, earlier: int | None = 0) -> GarbageReport:
        """Let go of blobs that no party refers to; keep `earlier` snapshots more than policy asks for, or all (None).

        While a file or an epoch is being written it does nothing, and says so.
        """
        with self._open_one():
            if any(party.processor.open_batch() is not None for party in list(self._parties.values())):
                raise InvalidInput(f"the store {str(self.path)!r}: a batch is open; leave it first")
            return collect_garbage(self.manager, earlier=earlier)

    def open_parties(self) -> list[Party]:
        """The parties that are open. Nothing is locked to find that out."""
        return [party for party in list(self._parties.values()) if party.processor.running]

    # -- items of any party

    def resolve(self, reference: Reference | Locator | str, party: Party | None = None) -> Handle:
        """Return the item that a reference or a view's locator names, in any party. A fork leads to the new item."""
        if isinstance(reference, str):
            reference = Locator.parse(reference)
        if isinstance(reference, Locator):
            return self.party(bytes(reference.party)).view(reference.key)
        if not isinstance(reference, Reference):
            raise InvalidInput(f"a Reference, a view's locator or its text can be resolved, not {reference!r:.80}")
        if reference.party:
            return self.party(reference.party).item(reference.item)
        if party is None:
            raise InvalidInput(f"the reference {reference} names no party; resolve it with the party that holds it")
        return party.item(reference.item)

    def holds(self, reference: Reference | Locator | str, party: Party | None = None) -> bool:
        """Whether what a reference or a locator names is here, without an error if not."""
        try:
            self.resolve(reference, party)
        except (UnknownParty, UnknownItem, MissingBlocks, PartyPaused):
            return False
        return True

    def look(self, reference: Reference, party: Party) -> Handle | None:
        """What a reference in a value of a party leads to, if that can be told now: no party is opened for it.

        Inside a batch, no other party is looked into, as its lock may be with somebody who waits for this one's.
        """
        home = party if reference.party in (b"", party.key) else self.running(reference.party)
        if home is None or (home is not party and self._in_batch_beside(home)):
            return None
        try:
            return home.item(reference.item)
        except AntiphonError:  # it has not come, or the party was closed meanwhile, or cannot be read
            return None

    def _in_batch_beside(self, party: Party) -> bool:
        """Whether the calling thread is in a batch, and none of this party."""
        if party.processor.open_batch() is not None:
            return False
        return any(other.processor.open_batch() is not None for other in list(self._parties.values()))

    # -- life

    def __repr__(self) -> str:
        return f"<Store {str(self.path)!r} of {self.me.short}>"

    def close(self) -> None:
        """Save and let go of everything. Threads that are at work get `StoreClosed` or `PartyPaused`."""
        if any(party.processor.open_batch() is not None for party in list(self._parties.values())):
            raise InvalidInput(f"the store {str(self.path)!r}: a batch is open; leave it first")
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._opened.wait_for(lambda: not self._opening)
            parties = list(self._parties.values())
            self._parties.clear()
        with contextlib.ExitStack() as last:  # the last that it is told is done first
            last.callback(self.manager.feeds.close)
            last.callback(self.manager.meta.close)
            last.callback(self.manager.close)
            for party in parties:
                last.callback(party.release)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _protection(passphrase: str | None, keyring: bool, unprotected: bool) -> Protection | None:
    """The protection that the caller has chosen for a new store; None if there was no choice."""
    if (passphrase is not None) + keyring + unprotected > 1:
        raise InvalidInput("choose one of passphrase=, keyring=True and unprotected=True, not several")
    if passphrase is not None:
        return Protection.PASSPHRASE
    return Protection.KEYRING if keyring else Protection.UNPROTECTED if unprotected else None


def _keys(
    path: Path, name: str, protection: Protection | None, passphrase: str | None, randomness: Randomness | None
) -> tuple[KeyStore, str]:
    """The key store, with an identity and a device in it, and the recovery phrase of an identity that is new."""
    if path.exists():
        keys = KeyStore.open(path, passphrase, randomness=randomness)
        if devices(keys):
            return keys, ""  # without a device, creating the store was interrupted, and is finished now
    else:
        if protection is None:
            raise InvalidInput(
                f"{str(path.parent)!r} holds no store yet; to make one, choose how its private keys are kept: "
                "passphrase='…' encrypts them, keyring=True encrypts them with a key in the system's keyring, and "
                "unprotected=True leaves them readable for whoever can read the folder"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"there can be no store in {path.parent}: {error.strerror}") from None
        keys = KeyStore.create(path, passphrase=passphrase, protection=protection, randomness=randomness)
    identity, recovery_phrase = new_identity(keys, name, randomness)
    new_device(keys, f"{name}'s device", identity.key)
    return keys, recovery_phrase


open = Store.open  # noqa: A001 - exported as `antiphon.open`
