"""One identity, several devices; the identity's key may be on none of them but come back from paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.core.errors import InvalidInput, KeyStoreError, UnknownKey
from antiphon.core.keys import KeyPair, verify
from antiphon.core.ports import SystemRandomness
from antiphon.halo.keys.identity import (
    Identity,
    devices,
    load_device,
    load_identity,
    new_device,
    new_identity,
    recover_identity,
)
from antiphon.halo.keys.key_store import KeyKind, KeyStore, Protection


@pytest.fixture
def store(tmp_path: Path) -> KeyStore:
    return KeyStore.create(tmp_path / "keys", protection=Protection.UNPROTECTED)


@pytest.fixture
def other(tmp_path: Path) -> KeyStore:
    return KeyStore.create(tmp_path / "other", protection=Protection.UNPROTECTED)


def test_an_identity_is_kept_and_loaded(store: KeyStore) -> None:
    ann, phrase = new_identity(store, "Ann")

    loaded = load_identity(KeyStore.open(store.path), ann.key)

    assert loaded == ann
    assert loaded.recovery_phrase() == phrase
    (record,) = store.keys()
    assert (record.key, record.label, record.kind) == (ann.key, "Ann", KeyKind.IDENTITY)


def test_a_lost_identity_comes_back_from_its_phrase(store: KeyStore, other: KeyStore) -> None:
    ann, phrase = new_identity(store, "Ann")
    store.path.unlink()

    recovered = recover_identity(other, phrase, "Ann")

    assert recovered.key == ann.key
    assert verify(ann.key, b"still me", load_identity(other, ann.key).pair.sign(b"still me"))


def test_a_device_need_not_hold_its_identity(store: KeyStore, other: KeyStore) -> None:
    ann, _ = new_identity(store, "Ann")
    phone = new_device(other, "phone", ann.key)

    assert load_device(KeyStore.open(other.path), phone.key) == phone
    assert phone.identity == ann.key
    with pytest.raises(UnknownKey):
        load_identity(other, ann.key)


def test_devices_are_listed_by_identity(store: KeyStore) -> None:
    ann, _ = new_identity(store, "Ann")
    bot, _ = new_identity(store, "bot")
    laptop, phone = new_device(store, "laptop", ann.key), new_device(store, "phone", ann.key)
    server = new_device(store, "server", bot.key)

    assert {device.key for device in devices(store, ann.key)} == {laptop.key, phone.key}
    assert {device.key for device in devices(store)} == {laptop.key, phone.key, server.key}
    assert len({laptop.key, phone.key, server.key, ann.key, bot.key}) == 5


def test_a_key_is_loaded_only_as_what_it_is(store: KeyStore) -> None:
    ann, _ = new_identity(store, "Ann")
    laptop = new_device(store, "laptop", ann.key)

    with pytest.raises(UnknownKey, match="held as device, not as identity"):
        load_identity(store, laptop.key)
    with pytest.raises(UnknownKey, match="held as identity, not as device"):
        load_device(store, ann.key)


def test_a_device_without_an_identity_is_told_apart(store: KeyStore) -> None:
    pair = store.generate(KeyKind.DEVICE, "stray")

    assert devices(store) == ()
    with pytest.raises(KeyStoreError, match="names no identity"):
        load_device(store, pair.key)


def test_a_broken_phrase_keeps_nothing(store: KeyStore) -> None:
    with pytest.raises(InvalidInput):
        recover_identity(store, "abandon " * 24, "nobody")

    assert store.keys() == ()


def test_identities_with_one_randomness_are_the_same() -> None:
    class Counting:
        def bytes(self, count: int) -> bytes:
            return bytes(range(count))

    assert Identity.create(Counting()) == Identity(KeyPair.from_seed(bytes(range(32))))
    assert Identity.create(SystemRandomness()) != Identity.create(SystemRandomness())


def test_neither_shows_its_secret(store: KeyStore) -> None:
    ann, _ = new_identity(store, "Ann")
    laptop = new_device(store, "laptop", ann.key)

    for shown in (repr(ann), str(ann), repr(laptop), repr(store.keys()), repr(store)):
        assert ann.pair.seed.hex() not in shown
        assert repr(ann.pair.seed) not in shown
        assert repr(laptop.pair.seed) not in shown
