"""`Store`: the home of one device, in one folder: its keys, its feeds and its parties.

>>> import antiphon
>>> with antiphon.open("laptop", name="Ada", unprotected=True) as store:
...     party = store.create_party("Household")
...     groceries = party.list(["milk", "bread"], name="Groceries")
...     groceries.append("salt")
...     groceries.value
['milk', 'bread', 'salt']

Locks are taken in this order, so that threads cannot deadlock:

1. The lock of a party. A batch holds it. A thread that holds it may take the locks below, but not the lock of another
   party. Therefore a reference into another party is not resolved inside a batch (`try_resolve`). An application that
   calls another party inside a batch risks a deadlock.
2. The lock of the manager, while a party is opened or listed. Under it, a thread takes the lock of a party only if the
   party is being created, so that no other thread has it yet.
3. `Store._lock`, for the store's own fields. No function is called while it is held.

Code of the application (key functions, iterables, steps of migrations, callbacks) runs under none of these locks,
unless the application itself has opened a batch.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from antiphon.api.backup.backup import BackupReport, OpenHome, copy_home
from antiphon.api.child_party import add_child_reference
from antiphon.api.health.feed_checks import Tick as BackupTick
from antiphon.api.health.presence import need_rest
from antiphon.api.held_views import HeldViews, hold_view
from antiphon.api.home_keys import choose_protection, enter_home
from antiphon.api.inputs import need_text
from antiphon.api.invitation import Invitation
from antiphon.api.items.handle import Handle
from antiphon.api.key_text import from_any_text
from antiphon.api.locator import Locator
from antiphon.api.network.network import Network
from antiphon.api.network.peers import StorePeer
from antiphon.api.party import Party
from antiphon.api.registry import LocalRegistry, Registry, load_model
from antiphon.core.errors import (
    AntiphonError,
    InvalidInput,
    MissingBlocks,
    NotAuthorised,
    PartyPaused,
    StoreClosed,
    UnknownItem,
    UnknownModel,
    UnknownParty,
)
from antiphon.core.keys import KEY_SIZE, PublicKey
from antiphon.core.local_path import local_path
from antiphon.core.ports import Clock, Randomness
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.keys.identity import Identity, devices, load_identity
from antiphon.halo.keys.key_file import KeyKind, encode_label, usable_label
from antiphon.halo.keys.key_store import KeyStore
from antiphon.mesh.transport.address import Address
from antiphon.model.factory import ModelFactory
from antiphon.model.value import Reference
from antiphon.party.bundle.export import Tick, no_tick
from antiphon.party.bundle.import_ import Bundle
from antiphon.party.live.manager import KnownParty, PartyManager
from antiphon.party.maintenance.garbage import GarbageReport, collect_garbage
from antiphon.party.store.meta_store import MetaStore, SubscriptionState
from antiphon.query.index.index import ItemIndex
from antiphon.snapshot.blob_store import BlobStore
from antiphon.snapshot.car_file import CarFile

_LOG = logging.getLogger("antiphon")


class Store:
    """The home of one device: a folder with its keys, feeds and parties. `antiphon.open` opens it.

    Thread-safe. Only one process at a time can open a store. Close it with `close`, or use it in a `with` statement.
    """

    def __init__(
        self,
        path: Path,
        keys: KeyStore,
        manager: PartyManager,
        identity: Identity | None,
        recovery_phrase: str,
        registry: Registry,
        held_views: HeldViews,
    ) -> None:
        self.path = path
        self.keys = keys
        self.manager = manager
        self._identity = identity
        self.recovery_phrase = recovery_phrase  # of a new identity, else empty: show it once, to be written down
        self.registry = registry  # names of models and view classes
        self.held_views = held_views  # the parties of which the store holds one view alone
        self.network = Network(self)
        self._parties: dict[bytes, Party] = {}
        self._held: set[bytes] = set()  # parties that the application has asked for: no network closes them
        self._lock = threading.Lock()
        self._opened = threading.Condition(self._lock)
        self._opening = 0  # number of threads that are opening a party
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
        epochs: bool = True,
        prune: bool = False,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        registry: Registry | None = None,
    ) -> Store:
        """Open the store in a folder, or create it there, with an identity called `name` and a device.

        A new store needs one of the first three arguments, which say how its private keys are kept:

        - `passphrase` encrypts them with this passphrase. An existing store that has one needs it again.
        - `keyring=True` encrypts them with a key in the system's keyring.
        - `unprotected=True` writes them as plain bytes. Anybody who can read the folder can use them.
        - `live=True` processes new blocks of each open party in a background thread.
        - `epochs=False` switches off the background thread that takes part in the epochs of all open parties.
        - `prune=True` also deletes there messages that a new final epoch contains, as far as policy allows.
        - `models` are the models with code in this process; by default all installed models.
        - `registry` holds the names of models and view classes; by default the file `names.json` in the folder.
        - `clock` and `randomness` replace those of the system, in simulations and tests.

        >>> with Store.open("desktop", name="Ada", unprotected=True) as store:
        ...     key = store.create_party("Household").key
        >>> with Store.open("desktop") as store:
        ...     store.party(key).name
        'Household'
        """
        if not str(path):
            raise InvalidInput("the path of a store is empty; name a folder, '.' for the working directory")
        if prune and not epochs:
            raise InvalidInput("a store prunes by itself only where it takes part in epochs: leave out epochs=False")
        home = local_path(path)
        keys, recovery_phrase = enter_home(
            home, name, choose_protection(passphrase, keyring, unprotected), passphrase, randomness
        )
        device = devices(keys)[0]
        held_views = HeldViews(home / "views.json", home / "items")
        with contextlib.ExitStack() as opened:
            feeds = opened.enter_context(FeedStore.open(home / "feeds", clock=clock, randomness=randomness))
            need_rest(home, feeds, keys)
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
                items=held_views.open_items,
                index=ItemIndex,
            )
            opened.pop_all()  # no error: they stay open
        held = device.identity in {record.key for record in keys.keys(KeyKind.IDENTITY)}
        names = registry or LocalRegistry(home / "names.json")
        identity = load_identity(keys, device.identity) if held else None
        return cls(home, keys, manager, identity, recovery_phrase, names, held_views)

    # -- identity

    @property
    def me(self) -> PublicKey:
        """The public key of the identity that owns this device.

        Give it to the owner of a party, who can then `invite` you. `str(store.me)` is the key as text.
        """
        return self.manager.device.identity

    @property
    def device(self) -> PublicKey:
        """The public key of this device, with which `PartyEpochs.set_policy` names it."""
        return self.manager.device.key

    @property
    def identity(self) -> Identity:
        """The identity with its private key. `NotAuthorised` if the private key is not on this device."""
        if self._identity is None:
            raise NotAuthorised(f"the private key of identity {self.me.short} is not on this device")
        return self._identity

    @property
    def may_vouch(self) -> bool:
        """True if the private key of the identity is on this device, so that the device can join parties by itself."""
        return self._identity is not None

    @property
    def models(self) -> ModelFactory:
        """The models whose code is registered in this process."""
        return self.manager.models

    def load_models(self) -> list[str]:
        """Register the models that the registry names and whose packages are installed. Return their names.

        Items of these models that were opaque get their value with the next `Party.refresh`. A model that cannot be
        imported is skipped, with a warning in the log.
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
        """Create a party, with your identity as its first owner. With a `parent`, see `Party.create_child`.

        The `name` is shared with all members. It is also the label of the party on this device.
        """
        need_text(name, "the name of a party")
        with self._open_one():
            above = None if parent is None else bytes(parent.key)
            key = self.manager.create(self.identity, name, parent=above).key
        party = self._party(key)
        if name:
            party.name = name
        if parent is not None:
            add_child_reference(parent, party, name)
        return party

    def join(self, invitation: Invitation | bytes | str) -> None:
        """Join a party with an invitation, or with its text.

        A new device of somebody who is a member already needs no invitation: the key of the party, or its text, will
        do. The party can be opened with `party` once its first blocks have arrived, for example with `sync`.

        >>> import antiphon
        >>> ada, bob = (antiphon.open(name, unprotected=True) for name in ("ada", "bob"))
        >>> with ada, bob:
        ...     club = ada.create_party("Book club")
        ...     bob.join(club.invite(bob.me))
        ...     moved = antiphon.sync(ada, bob)
        ...     bob.party("Book club").name
        'Book club'
        """
        key = from_any_text(invitation) if isinstance(invitation, str) else invitation
        if isinstance(key, bytes):
            self.manager.subscribe(PublicKey(key))
            return
        invited = Invitation.parse(invitation) if isinstance(invitation, str) else invitation
        if not isinstance(invited, Invitation):
            raise InvalidInput(f"one joins with what `party.invite` gives, or its text, not with {invited!r:.80}")
        self.manager.subscribe(invited.party, invited.genesis, usable_label(invited.label))

    def hold_view(self, view: Locator | str, invitation: Invitation | str | None = None) -> None:
        """Hold one view of a party alone: the view with everything that belongs to it. `sync` fetches it.

        Of all other items the device holds only the headers of their messages. It can write like other devices, but
        it declares and attests no epochs. If the store held the whole party before, it shows only the view from now on.

        `view` is the locator of the view (`Handle.locator`), or its text. The party is joined with the `invitation` if
        it was not joined before.
        """
        hold_view(self, view, invitation)

    def hold_whole(self, party: bytes) -> None:
        """Hold the whole party again, after `hold_view`. It is shown as a whole once `sync` has fetched the rest."""
        if party not in self.held_views:
            raise InvalidInput(f"party {party.hex()[:8]}: no view alone is held here; `hold_view` holds one")
        self.held_views.want_whole(party)

    def party(self, which: bytes | str) -> Party:
        """Return a party by its key, the text of its key, or its name. Open it if it is not open.

        A name is first compared with the labels of the parties on this device, which other members cannot change, then
        with the shared names of the open parties. `UnknownParty` if none or several parties match; `MissingBlocks` if
        the first blocks of the party have not arrived yet.
        """
        return self._party(which if isinstance(which, bytes) else self._named(which))

    def leave(self, party: bytes) -> None:
        """Leave a party on this device; see `PartyOperator.leave`."""
        with self._lock:
            known = self._parties.get(bytes(party))
        if known is not None and known.processor.open_batch() is not None:
            raise InvalidInput(f"party {known.key.short}: a batch is open; leave it first")
        if known is not None:
            known.close_subscriptions()
        self.manager.delete(party)
        with self._lock:
            self._parties.pop(bytes(party), None)
            self._held.discard(bytes(party))

    def left_parties(self) -> tuple[KnownParty, ...]:
        """List the parties that were left on this device, and can be taken back."""
        found = (one for one in self.manager.meta.parties() if one.state is SubscriptionState.FORGOTTEN)
        return tuple(KnownParty(one.party, one.label, one.state, False) for one in found)

    def take_back(self, party: bytes | str) -> Party:
        """Take back a party that was left here, by its key, the text of its key, or its label."""
        key = from_any_text(party) if isinstance(party, str) else party
        found = [one for one in self.left_parties() if one.party == key or one.label == party]
        if len(found) != 1:
            raise UnknownParty(f"{len(found)} parties called {party!r:.80} were left here; `left_parties` lists them")
        self.manager.subscribe(found[0].party, again=True)
        return self._party(bytes(found[0].party))

    def parties(self) -> tuple[KnownParty, ...]:
        """List all parties that this device has created or joined, open or not."""
        return self.manager.list()

    def __iter__(self) -> Iterator[Party]:
        """Open and yield each party whose first blocks have arrived and that is not paused."""
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
            raise UnknownParty(
                f"{len(found)} parties are called {name!r} here; there are {have}. Use a "
                "party's key; if a party is missing, `antiphon verify` says why"
            )
        return bytes(found[0])

    def _shared_name(self, key: bytes) -> str | None:
        """The shared name of a party, if it is open. It may have changed since this device joined."""
        party = self.running(key)
        with contextlib.suppress(PartyPaused):  # closed meanwhile
            return None if party is None else party.name
        return None

    def _party(self, key: bytes, *, hold: bool = True) -> Party:
        with self._open_one():
            if hold:
                self._held.add(bytes(key))  # before it is opened: see `release`
            known = self.manager.meta.find(key) if len(key) == KEY_SIZE else None
            if known is None or known.state is SubscriptionState.FORGOTTEN:
                raise UnknownParty(
                    f"party {key.hex()[:8]} is not held here; join it with an invitation, or see `antiphon verify`"
                )
            if known.state is SubscriptionState.PAUSED:
                raise PartyPaused(f"party {known.party.short} is paused here; resume it with `store.manager.resume`")
            processor = self.manager.open(key)
            party = self._parties.get(key)
            if party is None or party.processor is not processor:
                party = self._keep(Party(self, processor, self.manager.member(key)))
                party.join()
                self.held_views.step(party)  # a power loss may have taken the last saved items of a held view
            return party

    def lend(self, party: bytes) -> Party:
        """Open a party for the network, which gives it back with `release`."""
        return self._party(bytes(party), hold=False)

    def is_held(self, party: bytes) -> bool:
        """True if the application has asked for a party since it was opened."""
        return bytes(party) in self._held

    def release(self, party: bytes) -> None:
        """Close a party that was lent, unless the application holds it, or asks for it at this moment."""
        self.manager.close_party(party, unless=lambda: self.is_held(party))
        with self._lock:
            known = self._parties.get(bytes(party))
            if known is not None and not known.processor.running and not self.is_held(party):
                del self._parties[bytes(party)]

    def _keep(self, party: Party) -> Party:
        """Return one `Party` for all callers: several threads may have created one at the same time."""
        with self._lock:
            known = self._parties.get(party.key)
            if known is not None and known.processor is party.processor:
                return known
            party.processor.checks.append(party.schemas.check)
            self._parties[bytes(party.key)] = party
            return party

    @contextlib.contextmanager
    def _open_one(self) -> Iterator[None]:
        """Keep the store from closing while a party is opened. `StoreClosed` if it is closed already."""
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
        """Return a party if it is open, else None. It takes no lock and opens nothing."""
        party = self._parties.get(key)
        return party if party is not None and party.processor.running else None

    def import_party(self, path: str | Path, label: str = "", *, tick: Tick = no_tick) -> Party:
        """Import a party from a file that `Party.export` wrote. The whole file is verified before anything is stored.

        The party starts at the epoch in the file, if that has enough attestations. `label` names the party on this
        device. `tick` is called with the name of the current step, and how many bytes are done.
        """
        encode_label(label)
        with self._open_one(), CarFile.open(path, partial(tick, "read")) as file:
            bundle = Bundle(file, tick, store=self.manager.feeds)
            with self.manager.blobs.putting():  # no garbage collection before the party is known
                taken = bundle.take(self.manager.feeds, self.manager.blobs)
                self.manager.subscribe(taken.party, taken.genesis, label, again=True)
        party = self._party(bytes(taken.party))
        party.refresh()
        return party

    def backup(self, to: str | Path, *, tick: BackupTick = lambda *_: None) -> BackupReport:
        """Copy this home into a new folder, while it is in use; `antiphon.restore` makes a home of it.

        The copy is of one moment, and appears whole or not at all. It has the private keys, protected as they are
        here; items are left out, because they are built again. `tick` is called with the current step, how much of it
        is done, and how much it is.
        """
        with self._open_one():
            blobs = self.manager.blobs
            assert isinstance(blobs, BlobStore), "a home has its blobs on the disk"
            return copy_home(OpenHome(self.path, self.manager.feeds, blobs, self.manager.meta), to, tick=tick)

    def collect_garbage(self, *, earlier: int | None = 0) -> GarbageReport:
        """Delete the blobs that no party refers to any more. Return a report.

        The snapshots that policy keeps stay, and `earlier` more for each party; with None all snapshots stay. While a
        file or an epoch is being written, nothing is deleted, and the report says so.
        """
        with self._open_one():
            if any(party.processor.open_batch() is not None for party in list(self._parties.values())):
                raise InvalidInput(f"the store {str(self.path)!r}: a batch is open; leave it first")
            return collect_garbage(self.manager, earlier=earlier)

    def open_parties(self) -> list[Party]:
        """List the open parties. It takes no lock."""
        return [party for party in list(self._parties.values()) if party.processor.running]

    # -- other devices

    def listen(self, host: str = "127.0.0.1", port: int = 0) -> Address:
        """Let other devices connect to this one. Return the address to give them; its text is `str(address)`.

        `host` is an address of this machine: by default only programs on it can connect; "0.0.0.0" or "::" are all its
        addresses, and then others need one of them in place of it. With port 0 the system chooses a free one.

        Whoever connects gets only the parties that the device is a member of. docs/network.md says what others see.
        """
        with self._open_one():
            return self.network.listen(host, port)

    def connect(self, address: Address | str, timeout: float = 10.0) -> bool:
        """Connect to a device at its address, and keep it connected: if the connection ends, it is dialled again.

        Return True once it is connected. If it is not within `timeout` seconds, return False: it is still dialled, and
        `peers` says what the difficulty is. `InvalidInput` if the address is not valid, or names no device.

        >>> import antiphon
        >>> ada, bob = (antiphon.open(name, unprotected=True) for name in ("ada", "bob"))
        >>> with ada, bob:
        ...     party = ada.create_party("Household")
        ...     bob.join(party.invite(bob.me))
        ...     note = party.text("Hello")
        ...     connected = bob.connect(ada.listen())
        ...     held = party.synced(timeout=30)
        ...     str(bob.party(party.key).item(note.id))
        'Hello'
        """
        return self.network.connect(address, timeout)

    def disconnect(self, who: Address | bytes | str) -> bool:
        """End the connections to a device, or to all devices of an identity, and dial them no more.

        False if there was nothing to end. The device may still connect to this one, if this one listens.
        """
        return self.network.disconnect(who)

    @property
    def peers(self) -> tuple[StorePeer, ...]:
        """The devices that are connected, and those that `connect` keeps dialling."""
        return self.network.peers()

    # -- items of any party

    def resolve(self, reference: Reference | Locator | str, party: Party | None = None) -> Handle:
        """Return the item that a reference or the locator of a view names, in any party.

        A forked item leads to the new item. A reference inside one party does not name the party: pass the `party` that
        contains it. Errors: `UnknownParty`, `UnknownItem`, `MissingBlocks`, `PartyPaused`.
        """
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
        """True if this device holds the item that a reference or a locator names: `resolve` would return it."""
        try:
            self.resolve(reference, party)
        except (UnknownParty, UnknownItem, MissingBlocks, PartyPaused):
            return False
        return True

    def try_resolve(self, reference: Reference, party: Party) -> Handle | None:
        """Return the item that a reference inside a party names, or None. Opens no party, and raises no error.

        Inside a batch, references into other parties give None: another thread may hold the lock of that party while it
        waits for this one's.
        """
        home = party if reference.party in (b"", party.key) else self.running(reference.party)
        if home is None or (home is not party and self._in_batch_beside(home)):
            return None
        try:
            return home.item(reference.item)
        except AntiphonError:  # the item has not arrived, or the party was closed meanwhile, or cannot be read
            return None

    def _in_batch_beside(self, party: Party) -> bool:
        """True if the calling thread is inside a batch of another party."""
        if party.processor.open_batch() is not None:
            return False
        return any(other.processor.open_batch() is not None for other in list(self._parties.values()))

    # -- life

    def __repr__(self) -> str:
        return f"<Store {str(self.path)!r} of {self.me.short}>"

    def close(self) -> None:
        """Save and close the store and its parties. Other threads that use them get `StoreClosed` or `PartyPaused`."""
        if any(party.processor.open_batch() is not None for party in list(self._parties.values())):
            raise InvalidInput(f"the store {str(self.path)!r}: a batch is open; leave it first")
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._opened.wait_for(lambda: not self._opening)
            parties = list(self._parties.values())
            self._parties.clear()
        self.network.close()
        with contextlib.ExitStack() as last:  # callbacks run in reverse order
            last.callback(self.manager.feeds.close)
            last.callback(self.manager.meta.close)
            last.callback(self.manager.close)
            for party in parties:
                last.callback(party.close_subscriptions)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


open = Store.open  # noqa: A001 - exported as `antiphon.open`
