"""Identities and devices: the keys of persons and bots, and the keys of their machines.

An identity is an Ed25519 key of a person or a bot; its seed is its recovery phrase. Each machine has a device key of
its own, and a credential tells a party that the identity has authorised the device. So the identity's private key need
not be on every machine: a key store may hold a device alone and know its identity by the public key.

>>> from antiphon.halo.keys.key_store import Protection
>>> store = KeyStore.create("keys", protection=Protection.UNPROTECTED)
>>> ann, recovery_phrase = new_identity(store, "Ann")
>>> laptop = new_device(store, "laptop", ann.key)
>>> Identity.recover(recovery_phrase) == ann, load_device(store, laptop.key).identity == ann.key
(True, True)
"""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.core.errors import KeyStoreError, UnknownKey
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.core.ports import Randomness, SystemRandomness
from antiphon.halo.keys.key_store import KeyKind, KeyStore
from antiphon.halo.keys.recovery_phrase import from_recovery_phrase, to_recovery_phrase


@dataclass(frozen=True, slots=True)
class Identity:
    """The private key of a person or a bot. Its recovery phrase is enough to restore it."""

    pair: KeyPair

    @classmethod
    def create(cls, randomness: Randomness) -> Identity:
        """Create an identity with a new private key. It is not stored."""
        return cls(KeyPair.generate(randomness))

    @classmethod
    def recover(cls, recovery_phrase: str) -> Identity:
        """Recover an identity from its words. Compare `key` with the one noted beside them: the checksum is short."""
        return cls(KeyPair.from_seed(from_recovery_phrase(recovery_phrase)))

    @property
    def key(self) -> PublicKey:
        """Public key of the identity."""
        return self.pair.key

    def recovery_phrase(self) -> str:
        """Return the 24 words of the identity's seed, which are as secret as the key itself."""
        return to_recovery_phrase(self.pair.seed)


@dataclass(frozen=True, slots=True)
class Device:
    """The private key of one machine, and the public key of the identity that it speaks for."""

    pair: KeyPair
    identity: PublicKey

    @property
    def key(self) -> PublicKey:
        """Public key of the device."""
        return self.pair.key


def new_identity(store: KeyStore, label: str, randomness: Randomness | None = None) -> tuple[Identity, str]:
    """Create an identity in `store`. Returns its recovery phrase too: show it once, to be written down on paper."""
    identity = Identity.create(randomness or SystemRandomness())
    store.add(identity.pair, KeyKind.IDENTITY, label)
    return identity, identity.recovery_phrase()


def recover_identity(store: KeyStore, recovery_phrase: str, label: str) -> Identity:
    """Recover an identity into `store`. Its devices are not recovered: make a new one."""
    identity = Identity.recover(recovery_phrase)
    store.add(identity.pair, KeyKind.IDENTITY, label)
    return identity


def new_device(store: KeyStore, label: str, identity: PublicKey) -> Device:
    """Create a device in `store` that speaks for `identity`. The identity need not be in `store`."""
    return Device(store.generate(KeyKind.DEVICE, label, identity), identity)


def load_identity(store: KeyStore, key: bytes) -> Identity:
    """Load an identity whose private key is in `store`."""
    record = store.record(key)
    if record.kind is not KeyKind.IDENTITY:
        raise UnknownKey(
            f"key {record.key.short} ({record.label!r}) is held as {record.kind.name.lower()}, not as identity"
        )
    return Identity(store.pair(key))


def load_device(store: KeyStore, key: bytes) -> Device:
    """Load a device whose private key is in `store`."""
    record = store.record(key)
    if record.kind is not KeyKind.DEVICE:
        raise UnknownKey(
            f"key {record.key.short} ({record.label!r}) is held as {record.kind.name.lower()}, not as device"
        )
    if record.owner is None:
        raise KeyStoreError(f"device {record.key.short} names no identity; add it again with its identity as owner")
    return Device(store.pair(key), record.owner)


def devices(store: KeyStore, identity: bytes | None = None) -> tuple[Device, ...]:
    """Load the devices whose private keys are in `store`: those of one identity, or all."""
    return tuple(
        Device(store.pair(record.key), record.owner)
        for record in store.keys(KeyKind.DEVICE)
        if record.owner is not None and identity in (None, record.owner)
    )
