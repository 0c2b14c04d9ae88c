"""`Store`: everything that one device has, in one folder: its keys, its feeds, its parties.

>>> import antiphon
>>> with antiphon.open("laptop", name="Ada") as store:
...     party = store.create_party("Household")
...     groceries = party.list(["milk", "bread"], name="Groceries")
...     groceries.append("salt")
...     groceries.value
['milk', 'bread', 'salt']
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from antiphon.api.handle import Handle
from antiphon.api.invitation import Invitation
from antiphon.api.locator import Locator
from antiphon.api.party import Party
from antiphon.api.registry import LocalRegistry, Registry, load_model
from antiphon.core.errors import (
    InvalidInput,
    MissingBlocks,
    NotAuthorised,
    StoreError,
    UnknownItem,
    UnknownModel,
    UnknownParty,
)
from antiphon.core.keys import PublicKey
from antiphon.core.ports import Clock, Randomness
from antiphon.feed.store import FeedStore
from antiphon.halo.identity import Identity, devices, load_identity, new_device, new_identity
from antiphon.halo.keyfile import KeyKind, Protection
from antiphon.halo.keystore import KeyStore
from antiphon.model.factory import ModelFactory
from antiphon.model.value import Reference
from antiphon.party.manager import KnownParty, PartyManager
from antiphon.party.meta import MetaStore, SubscriptionState


class Store:
    """A device's home. Thread-safe; one process at a time writes it. Close it, or use it with `with`."""

    def __init__(
        self,
        path: Path,
        keys: KeyStore,
        manager: PartyManager,
        identity: Identity | None,
        phrase: str,
        registry: Registry,
    ) -> None:
        self.path = path
        self.keys = keys
        self.manager = manager
        self._identity = identity
        self.phrase = phrase  # of an identity that was made just now: to be written down, and shown once
        self.registry = registry  # of the names of models and view classes
        self._parties: dict[bytes, Party] = {}
        self._lock = threading.RLock()

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        name: str = "me",
        passphrase: str | None = None,
        models: ModelFactory | None = None,
        follow: bool = False,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        registry: Registry | None = None,
    ) -> Store:
        """The store in a folder; a new one gets an identity called `name` and a device.

        With a passphrase the keys are encrypted; without, they lie in the folder as they are. `follow` keeps each open
        party current in a thread of its own.
        """
        home = Path(path).expanduser()
        keys, phrase = _keys(home / "keys", name, passphrase, randomness)
        device = devices(keys)[0]
        feeds = FeedStore.open(home / "feeds", clock=clock, randomness=randomness)
        try:
            meta = MetaStore.open(home / "meta.db", clock=clock)
        except BaseException:
            feeds.close()
            raise
        manager = PartyManager(
            feeds,
            meta,
            keys,
            device,
            folder=home / "items",
            models=models,
            clock=clock,
            randomness=randomness,
            follow=follow,
        )
        held = device.identity in {record.key for record in keys.keys(KeyKind.IDENTITY)}
        names = registry or LocalRegistry(home / "names.json")
        return cls(home, keys, manager, load_identity(keys, device.identity) if held else None, phrase, names)

    # -- who

    @property
    def me(self) -> PublicKey:
        """The identity that this device speaks for: give this key to whom you want to be admitted by."""
        return self.manager.device.identity

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
        code is not here are passed over; `load_model` says what is amiss with one.
        """
        loaded = []
        for record in self.registry.records("model"):
            if (record.name, record.version) not in self.models.keys:
                with contextlib.suppress(UnknownModel):
                    self.models.register(load_model(record))
                    loaded.append(record.name)
        return loaded

    # -- parties

    def create_party(self, name: str = "") -> Party:
        """Found a party, as its first owner."""
        with self._lock:
            party = self._party(self.manager.create(self.identity, name).key)
            if name:
                party.name = name
            return party

    def join(self, invitation: Invitation | str) -> None:
        """Take an invitation. The party opens once its blocks are here: see `exchange`."""
        invited = Invitation.parse(invitation) if isinstance(invitation, str) else invitation
        self.manager.follow(invited.party, invited.genesis, invited.label)

    def party(self, which: bytes | str) -> Party:
        """A party, by its key or its name; opened if it was not."""
        with self._lock:
            return self._party(which if isinstance(which, bytes) else self._named(which))

    def parties(self) -> tuple[KnownParty, ...]:
        """All parties that are followed here, open or not."""
        return self.manager.list()

    def __iter__(self) -> Iterator[Party]:
        """The parties whose blocks are here."""
        for known in self.parties():
            if known.state is not SubscriptionState.PAUSED:
                with contextlib.suppress(MissingBlocks):
                    yield self.party(bytes(known.party))

    def _named(self, name: str) -> bytes:
        found = [known.party for known in self.parties() if name in (known.label, self._name_of(known))]
        if len(found) != 1:
            have = ", ".join(sorted(repr(known.label) for known in self.parties())) or "none"
            raise UnknownParty(f"{len(found)} parties are called {name!r} here; there are {have}. Use a party's key")
        return bytes(found[0])

    def _name_of(self, known: KnownParty) -> str:
        """What the members call a party that is open here; it may be called otherwise since it was joined."""
        party = self._parties.get(bytes(known.party))
        return party.name if party is not None and known.open else known.label

    def _party(self, key: bytes) -> Party:
        if key not in {known.party for known in self.parties()}:
            raise UnknownParty(f"party {key.hex()[:8]} is not held here; join it with an invitation")
        processor = self.manager.open(key)
        party = self._parties.get(key)
        if party is None or party.processor is not processor:
            party = self._parties[bytes(key)] = Party(self, processor, self.manager.member(key))
        return party

    # -- items of any party

    def follow(self, reference: Reference | Locator | str, party: Party | None = None) -> Handle:
        """The item that a reference or a view's locator names, in whichever party; forks are followed."""
        if isinstance(reference, str):
            reference = Locator.parse(reference)
        if isinstance(reference, Locator):
            return self.party(bytes(reference.party)).view(reference.key)
        if reference.party:
            return self.party(reference.party).item(reference.item)
        if party is None:
            raise InvalidInput(f"the reference {reference} names no party; follow it from the party that holds it")
        return party.item(reference.item)

    def holds(self, reference: Reference | Locator | str, party: Party | None = None) -> bool:
        """Whether what a reference or a locator names is here, without an error if not."""
        try:
            self.follow(reference, party)
        except (UnknownParty, UnknownItem, MissingBlocks):
            return False
        return True

    # -- life

    def __repr__(self) -> str:
        return f"<Store {str(self.path)!r} of {self.me.short}>"

    def close(self) -> None:
        """Save and let go of everything."""
        with self._lock:
            for party in self._parties.values():
                party.release()
            self._parties.clear()
            self.manager.close()
            self.manager.meta.close()
            self.manager.feeds.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _keys(path: Path, name: str, passphrase: str | None, randomness: Randomness | None) -> tuple[KeyStore, str]:
    """The key store, with an identity and a device in it; the phrase of an identity that was made just now."""
    if path.exists():
        keys = KeyStore.open(path, passphrase, randomness=randomness)
        if devices(keys):
            return keys, ""  # without one, it was left when it had just been made: it is filled now
    else:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"there can be no store in {path.parent}: {error.strerror}") from None
        protection = Protection.UNPROTECTED if passphrase is None else Protection.PASSPHRASE
        keys = KeyStore.create(path, passphrase=passphrase, protection=protection, randomness=randomness)
    identity, phrase = new_identity(keys, name, randomness)
    new_device(keys, f"{name}'s device", identity.key)
    return keys, phrase
