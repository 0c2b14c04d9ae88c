"""Keys at rest: kept, protected, never shown."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import keyring.backends.fail
import keyring.backends.null
import pytest

from antiphon.core.codec import u32
from antiphon.core.errors import BadEncoding, InvalidInput, KeyStoreError, TooLarge, UnknownKey, WrongPassphrase
from antiphon.core.keys import KeyPair, PublicKey, verify
from antiphon.halo.keys import key_file
from antiphon.halo.keys.key_file import Contact, Contents, Cost, Header, HeldKey, KeyRecord, decode_file, seal, unseal
from antiphon.halo.keys.key_store import MINIMUM, KeyKind, KeyStore, Protection

PASSPHRASE = "correct horse battery staple"
FRIEND = PublicKey(b"f" * 32)


class MemoryKeyring(keyring.backend.KeyringBackend):
    """A real backend, as far as keyring knows; its entries live as long as the test."""

    priority = -1  # never picked by itself, for other tests

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.entries: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.entries[service, username]


@pytest.fixture
def vault() -> Iterator[MemoryKeyring]:
    before, vault = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(vault)
    yield vault
    keyring.set_keyring(before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def create(path: Path, protection: Protection = Protection.PASSPHRASE) -> KeyStore:
    passphrase = PASSPHRASE if protection is Protection.PASSPHRASE else None
    return KeyStore.create(path, passphrase=passphrase, protection=protection, cost=MINIMUM)


def reopen(store: KeyStore) -> KeyStore:
    return KeyStore.open(store.path, PASSPHRASE if store.protection is Protection.PASSPHRASE else None)


# Keeping


@pytest.mark.parametrize("protection", Protection)
def test_what_is_kept_is_there_after_reopening(path: Path, protection: Protection, vault: MemoryKeyring) -> None:
    store = create(path, protection)
    device = store.generate(KeyKind.DEVICE, "laptop")
    feed = store.generate(KeyKind.FEED, "notes", owner=device.key)
    store.remember(FRIEND, "Bob")

    again = reopen(store)

    assert again.protection is protection
    assert again.pair(device.key).sign(b"x") == device.sign(b"x")
    assert set(again.keys()) == {
        KeyRecord(device.key, KeyKind.DEVICE, "laptop"),
        KeyRecord(feed.key, KeyKind.FEED, "notes", device.key),
    }
    assert again.keys(KeyKind.FEED) == (again.record(feed.key),)
    assert again.keys(KeyKind.IDENTITY) == ()
    assert again.contacts() == (Contact(FRIEND, "Bob"),)


def test_adding_again_changes_the_label_but_never_the_kind(path: Path) -> None:
    store = create(path)
    pair = store.generate(KeyKind.DEVICE, "laptop")
    store.add(pair, KeyKind.DEVICE, "old laptop", FRIEND)

    with pytest.raises(InvalidInput, match="held as device, not feed"):
        store.add(pair, KeyKind.FEED, "notes")

    assert store.keys() == (KeyRecord(pair.key, KeyKind.DEVICE, "old laptop", FRIEND),)


def test_what_is_forgotten_is_gone(path: Path) -> None:
    store = create(path)
    pair = store.generate(KeyKind.FEED, "notes")
    store.remember(FRIEND, "Bob")

    store.forget(pair.key)
    store.forget(FRIEND)

    assert (store.keys(), store.contacts()) == ((), ())
    with pytest.raises(UnknownKey, match=pair.key.short):
        reopen(store).pair(pair.key)
    with pytest.raises(UnknownKey, match=str(path)):
        store.forget(FRIEND)


def test_a_contact_has_no_private_key(path: Path) -> None:
    store = create(path)
    store.remember(FRIEND, "Bob")
    store.remember(FRIEND, "Robert")

    assert store.contacts() == (Contact(FRIEND, "Robert"),)
    with pytest.raises(UnknownKey):
        store.pair(FRIEND)


@pytest.mark.parametrize("label", ["a\nb", "\x1b[2J", "\x85", "\udc80"])
def test_labels_that_could_lie_in_a_terminal_are_refused(path: Path, label: str) -> None:
    store = create(path)
    with pytest.raises(InvalidInput):
        store.generate(KeyKind.FEED, label)
    with pytest.raises(TooLarge):
        store.remember(FRIEND, "ä" * 101)
    assert (store.keys(), store.contacts()) == ((), ())


def test_nothing_shows_a_secret(path: Path) -> None:
    store = create(path, Protection.UNPROTECTED)
    seed = bytes(range(65, 97))
    store.add(KeyPair.from_seed(seed), KeyKind.IDENTITY, "Ann")
    file = decode_file(path.read_bytes())
    contents = unseal(file, b"")

    for shown in (repr(store), repr(store.keys()), repr(file), repr(contents), repr(contents.held), repr(store.pair)):
        assert "ABCDEFGH" not in shown
        assert seed.hex() not in shown
    assert "UNPROTECTED" in repr(store)


# Protection


def test_the_file_says_first_how_it_is_protected(path: Path, vault: MemoryKeyring) -> None:
    for protection in Protection:
        place = path.with_name(protection.value)
        create(place, protection)
        assert place.read_bytes().split(b"\n")[0] == b"antiphon.keys.1 " + protection.value.encode()


def test_secrets_are_in_the_file_only_when_unprotected(path: Path, vault: MemoryKeyring) -> None:
    for protection in Protection:
        place = path.with_name(protection.value)
        pair = create(place, protection).generate(KeyKind.DEVICE, "laptop")
        assert (pair.seed in place.read_bytes()) == (protection is Protection.UNPROTECTED)
        assert (b"laptop" in place.read_bytes()) == (protection is Protection.UNPROTECTED)


def test_how_to_protect_must_be_said(path: Path) -> None:
    with pytest.raises(InvalidInput, match="say how to protect"):
        KeyStore.create(path)
    with pytest.raises(InvalidInput, match="say how to protect"):
        KeyStore.create(path, protection=Protection.PASSPHRASE)
    with pytest.raises(InvalidInput, match="say how to protect"):
        KeyStore.create(path, passphrase=PASSPHRASE, protection=Protection.KEYRING)
    with pytest.raises(InvalidInput, match="1 to 1024 bytes"):
        KeyStore.create(path, passphrase="", cost=MINIMUM)
    assert not path.exists()


def test_a_wrong_passphrase_is_told_from_a_damaged_file(path: Path) -> None:
    create(path).generate(KeyKind.DEVICE, "laptop")

    with pytest.raises(WrongPassphrase, match=str(path)):
        KeyStore.open(path, "incorrect horse")
    with pytest.raises(KeyStoreError, match="give it"):
        KeyStore.open(path)

    damaged = bytearray(path.read_bytes())
    damaged[-40] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(BadEncoding, match=f"{path}: damaged"):
        KeyStore.open(path, PASSPHRASE)


def test_one_passphrase_in_two_forms_of_unicode(path: Path) -> None:
    KeyStore.create(path, passphrase="caf\u00e9", cost=MINIMUM)
    assert KeyStore.open(path, "cafe\u0301").protection is Protection.PASSPHRASE


def test_a_passphrase_for_a_store_without_one_is_refused(path: Path) -> None:
    """Else whoever can replace the file could pass keys of their own for those behind the passphrase."""
    create(path, Protection.UNPROTECTED)
    with pytest.raises(KeyStoreError, match="UNPROTECTED"):
        KeyStore.open(path, PASSPHRASE)


@pytest.mark.parametrize("after", Protection)
@pytest.mark.parametrize("before", Protection)
def test_protection_can_be_changed(path: Path, before: Protection, after: Protection, vault: MemoryKeyring) -> None:
    store = create(path, before)
    pair = store.generate(KeyKind.DEVICE, "laptop")
    stale = reopen(store)
    was = path.read_bytes()

    passphrase = "another one" if after is Protection.PASSPHRASE else None
    store.protect(passphrase=passphrase, protection=after, cost=MINIMUM)

    assert store.protection is after
    assert store.pair(pair.key) == pair
    assert KeyStore.open(path, passphrase).pair(pair.key) == pair
    assert len(vault.entries) == (after is Protection.KEYRING)
    if decode_file(was).header != decode_file(path.read_bytes()).header:
        # A process that opened it before must neither undo the protection nor read with the old key.
        with pytest.raises(KeyStoreError, match="open it again"):
            stale.generate(KeyKind.FEED, "notes")
    if before is Protection.PASSPHRASE and after is Protection.PASSPHRASE:
        with pytest.raises(WrongPassphrase):
            KeyStore.open(path, PASSPHRASE)


def test_the_default_cost_is_moderate() -> None:
    assert Cost(3, 256 * 1024) == key_file.MODERATE


@pytest.mark.parametrize(("ops", "memory_kib"), [(0, 8), (11, 8), (1, 7), (1, (1 << 20) + 1), (1 << 31, 1 << 31)])
def test_a_hostile_file_cannot_ask_for_hours_or_terabytes(path: Path, ops: int, memory_kib: int) -> None:
    with pytest.raises(InvalidInput, match="are allowed"):
        Cost(ops, memory_kib)
    data = b"antiphon.keys.1 passphrase\n" + bytes(16) + u32(ops) + u32(memory_kib) + u32(0)
    path.write_bytes(data + sha256(data).digest())
    with pytest.raises(BadEncoding, match=f"{path}.*are allowed"):
        KeyStore.open(path, PASSPHRASE)


# The keyring


def test_the_keyring_holds_the_key_under_the_stores_own_name(path: Path, vault: MemoryKeyring) -> None:
    create(path, Protection.KEYRING)
    create(path.with_name("other"), Protection.KEYRING)

    header = decode_file(path.read_bytes()).header
    assert len(vault.entries) == 2
    assert len(bytes.fromhex(vault.entries["antiphon", f"keys-{header.salt.hex()}"])) == 32


def test_a_keyring_without_the_entry_says_what_to_do(path: Path, vault: MemoryKeyring) -> None:
    create(path, Protection.KEYRING)
    vault.entries.clear()
    with pytest.raises(KeyStoreError, match=r"no entry antiphon/keys-.*recover from the phrase"):
        KeyStore.open(path)


@pytest.mark.parametrize("entry", ["", "no hex", "00" * 31])
def test_a_damaged_entry_is_refused(path: Path, vault: MemoryKeyring, entry: str) -> None:
    create(path, Protection.KEYRING)
    vault.entries = dict.fromkeys(vault.entries, entry)
    with pytest.raises(KeyStoreError, match="is damaged"):
        KeyStore.open(path)


def test_an_entry_with_another_key_does_not_open(path: Path, vault: MemoryKeyring) -> None:
    create(path, Protection.KEYRING)
    vault.entries = dict.fromkeys(vault.entries, "00" * 32)
    with pytest.raises(KeyStoreError, match="does not open it"):
        KeyStore.open(path)


@pytest.mark.parametrize("backend", [keyring.backends.fail.Keyring, keyring.backends.null.Keyring])
def test_no_usable_backend_is_a_clear_error(path: Path, vault: MemoryKeyring, backend: Any) -> None:
    create(path, Protection.KEYRING)
    keyring.set_keyring(backend())

    with pytest.raises(KeyStoreError, match="keyring"):
        KeyStore.open(path)
    with pytest.raises(KeyStoreError, match=r"cannot be used here.*use a passphrase"):
        create(path.with_name("new"), Protection.KEYRING)
    assert not path.with_name("new").exists()


def test_without_the_package_the_error_names_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(KeyStoreError, match=r"pip install 'antiphon\[keyring\]'"):
        create(path, Protection.KEYRING)


def test_a_seed_that_is_not_its_keys_is_never_used(path: Path) -> None:
    """Only somebody who can write an unprotected store can bring this about."""
    entry = HeldKey(KeyRecord(FRIEND, KeyKind.FEED, "swapped"), bytes(32))
    path.write_bytes(seal(Contents((entry,)), Header(Protection.UNPROTECTED), b"", bytes(24)))
    with pytest.raises(BadEncoding, match=f"{path}.*belongs to another key"):
        KeyStore.open(path).pair(FRIEND)


def test_randomness_is_handed_in(tmp_path: Path) -> None:
    class Counting:
        def __init__(self) -> None:
            self.calls = 0

        def bytes(self, count: int) -> bytes:
            self.calls += 1
            return sha256(self.calls.to_bytes(4, "big")).digest()[:count]

    files = []
    for name in ("one", "two"):
        store = KeyStore.create(tmp_path / name, passphrase=PASSPHRASE, cost=MINIMUM, randomness=Counting())
        pair = store.generate(KeyKind.FEED, "notes")
        assert verify(pair.key, b"x", store.pair(pair.key).sign(b"x"))
        files.append(store.path.read_bytes())
    assert files[0] == files[1]
