"""The key store: private keys of this node and public keys of others, in one file that is rewritten atomically.

Private keys are at rest under a passphrase, or under a key in the OS keyring, or plainly UNPROTECTED: the file's first
line says which. docs/design/keys.md compares the three.

>>> store = KeyStore.create("keys", passphrase="correct horse battery staple", cost=MINIMUM)
>>> pair = store.generate(KeyKind.DEVICE, "laptop")
>>> again = KeyStore.open("keys", passphrase="correct horse battery staple")
>>> again.pair(pair.key) == pair, [record.label for record in again.keys(KeyKind.DEVICE)]
(True, ['laptop'])
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from antiphon.core.errors import BadEncoding, InvalidInput, KeyStoreError, TooLarge, UnknownKey
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.core.ports import Randomness, SystemRandomness
from antiphon.halo.keys.key_file import (
    BOX_KEY_SIZE,
    FILE_SIZE_MAX,
    MINIMUM,
    MODERATE,
    NONCE_SIZE,
    SALT_SIZE,
    Contact,
    Contents,
    Cost,
    Header,
    HeldKey,
    KeyKind,
    KeyRecord,
    Protection,
    decode_file,
    derive_key,
    seal,
    unseal,
)

__all__ = ["MINIMUM", "MODERATE", "Contact", "Cost", "KeyKind", "KeyRecord", "KeyStore", "Protection"]

_KEYRING_SERVICE = "antiphon"


class KeyStore:
    """Private keys and contacts in one file. Several processes may use one file; each sees what the others added.

    Make one with `create` or `open`. It holds no file open and needs no closing. The secrets stay in the memory of
    this process as long as the object lives.
    """

    __slots__ = ("_guard", "_path", "_randomness", "_seen")

    def __init__(self, path: Path, guard: tuple[Header, bytes], randomness: Randomness) -> None:
        self._path = path
        self._guard = guard
        self._randomness = randomness
        self._seen: tuple[bytes, Contents] = (b"", Contents())

    @classmethod
    def create(
        cls,
        path: Path | str,
        *,
        passphrase: str | None = None,
        protection: Protection | None = None,
        cost: Cost = MODERATE,
        randomness: Randomness | None = None,
    ) -> KeyStore:
        """Create an empty store. Without a passphrase, `protection` must be KEYRING or UNPROTECTED."""
        place, source = Path(path).resolve(), randomness or SystemRandomness()
        try:
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise KeyStoreError(
                f"{_name(place)} cannot be made there: {error.strerror}; choose another place"
            ) from None
        with _locked(place):
            if place.exists():
                raise KeyStoreError(f"{_name(place)} is there already; open it, or choose another place")
            store = cls(place, _protect(passphrase, protection, cost, source), source)
            store._write(Contents(), store._guard)
        return store

    @classmethod
    def open(cls, path: Path | str, passphrase: str | None = None, *, randomness: Randomness | None = None) -> KeyStore:
        """Open an existing store. A passphrase is refused if the file needs none: the file may have been replaced."""
        place = Path(path).resolve()
        header = decode_file(_read(place), _name(place)).header
        if header.protection is Protection.PASSPHRASE:
            if passphrase is None:
                raise KeyStoreError(f"{_name(place)} is under a passphrase; give it")
            key = derive_key(passphrase, header)
        elif passphrase is not None:
            raise KeyStoreError(
                f"{_name(place)} is not under a passphrase but {header.protection.value}; "
                "if you expected that, open it without one, else somebody replaced the file"
            )
        else:
            key = _from_keyring(header.salt, place) if header.protection is Protection.KEYRING else b""
        store = cls(place, (header, key), randomness or SystemRandomness())
        store._load()
        return store

    @staticmethod
    def needs_passphrase(path: Path | str) -> bool:
        """True if the keys in a file are under a passphrase."""
        place = Path(path).resolve()
        return decode_file(_read(place), _name(place)).header.protection is Protection.PASSPHRASE

    @property
    def path(self) -> Path:
        """Absolute path of the file."""
        return self._path

    @property
    def protection(self) -> Protection:
        """Protection of the file: by a passphrase, by the keyring, or none."""
        return self._guard[0].protection

    def __repr__(self) -> str:
        return f"KeyStore({str(self._path)!r}, {self.protection.value})"

    def generate(self, kind: KeyKind, label: str, owner: PublicKey | None = None) -> KeyPair:
        """Generate a private key. It is stored before it is returned."""
        pair = KeyPair.generate(self._randomness)
        self.add(pair, kind, label, owner)
        return pair

    def add(self, pair: KeyPair, kind: KeyKind, label: str, owner: PublicKey | None = None) -> None:
        """Store a private key. Adding it again changes its label and owner, never its kind."""
        entry = HeldKey(KeyRecord(pair.key, kind, label, owner), pair.seed)

        def change(contents: Contents) -> Contents:
            held = contents.find(pair.key)
            if held is not None and held.record.kind is not kind:
                raise InvalidInput(
                    f"key {pair.key.short} is held as {held.record.kind.name.lower()}, not {kind.name.lower()}; "
                    "a key serves one purpose: generate another"
                )
            return contents.with_held(entry)

        self._update(change)

    def pair(self, key: bytes) -> KeyPair:
        """Return the key pair of a public key."""
        held = self._held(key)
        pair = KeyPair.from_seed(held.seed)
        if pair.key != key:
            raise BadEncoding(
                f"{_name(self._path)}: the seed of {held.key.short} belongs to another key; do not use it"
            )
        return pair

    def record(self, key: bytes) -> KeyRecord:
        """Return the kind, label and owner of a private key."""
        return self._held(key).record

    def keys(self, kind: KeyKind | None = None) -> tuple[KeyRecord, ...]:
        """List the private keys without their secrets, ascending by public key."""
        return tuple(held.record for held in self._load().held if kind is None or held.record.kind is kind)

    def remember(self, key: PublicKey, label: str) -> None:
        """Store a contact: the public key of somebody else. Storing it again changes the label."""
        self._update(lambda contents: contents.with_contact(Contact(key, label)))

    def contacts(self) -> tuple[Contact, ...]:
        """List the contacts, ascending by public key."""
        return self._load().contacts

    def forget(self, key: bytes) -> None:
        """Delete a private key or a contact. A private key without a recovery phrase on paper is lost permanently."""

        def change(contents: Contents) -> Contents:
            if contents.find(key) is None and contents.contact(key) is None:
                raise UnknownKey(self._unknown(key))
            return contents.without(key)

        self._update(change)

    def protect(
        self, *, passphrase: str | None = None, protection: Protection | None = None, cost: Cost = MODERATE
    ) -> None:
        """Change the passphrase or the kind of protection. Other processes must open the store again."""
        with _locked(self._path):
            contents, before = self._load(), self._guard[0]
            self._write(contents, _protect(passphrase, protection, cost, self._randomness))
        if before.protection is Protection.KEYRING:
            _drop_from_keyring(before.salt)

    def _held(self, key: bytes) -> HeldKey:
        held = self._load().find(key)
        if held is None:
            raise UnknownKey(self._unknown(key))
        return held

    def _unknown(self, key: bytes) -> str:
        return f"{_name(self._path)} holds no key {key.hex()[:8]}; `keys()` and `contacts()` list what it holds"

    def _load(self) -> Contents:
        """Read the file again: another process may have rewritten it."""
        data = _read(self._path)
        seen, contents = self._seen
        if data != seen:
            file = decode_file(data, _name(self._path))
            header, key = self._guard
            if file.header != header:
                raise KeyStoreError(f"{_name(self._path)} was given another protection meanwhile; open it again")
            contents = unseal(file, key, _name(self._path))
            self._seen = data, contents
        return contents

    def _update(self, change: Callable[[Contents], Contents]) -> None:
        with _locked(self._path):
            self._write(change(self._load()), self._guard)

    def _write(self, contents: Contents, guard: tuple[Header, bytes]) -> None:
        data = seal(contents, *guard, self._randomness.bytes(NONCE_SIZE))
        _replace(self._path, data)
        self._guard, self._seen = guard, (data, contents)


def _name(path: Path) -> str:
    return f"key store {path}"


def _protect(
    passphrase: str | None, protection: Protection | None, cost: Cost, randomness: Randomness
) -> tuple[Header, bytes]:
    """Return a new header and the key of its box. Both are new each time: a crash midway leaves the old ones valid."""
    if protection is None and passphrase is not None:
        protection = Protection.PASSPHRASE
    if protection is None or (protection is Protection.PASSPHRASE) != (passphrase is not None):
        raise InvalidInput(
            "say how to protect the keys: a passphrase, or Protection.KEYRING, or Protection.UNPROTECTED"
        )
    if protection is Protection.UNPROTECTED:
        return Header(protection), b""
    salt = randomness.bytes(SALT_SIZE)
    if passphrase is not None:
        header = Header(protection, salt, cost)
        return header, derive_key(passphrase, header)
    key = randomness.bytes(BOX_KEY_SIZE)
    _into_keyring(salt, key)
    return Header(protection, salt), key


# The file


def _read(path: Path) -> bytes:
    try:
        # Not blocking: a pipe put in the file's place must not hang us.
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise KeyStoreError(f"{_name(path)} is no regular file; name another")
            data = file.read(FILE_SIZE_MAX + 1)
    except OSError as error:
        raise KeyStoreError(f"{_name(path)} cannot be read: {error.strerror}; create it, or name another") from None
    if len(data) > FILE_SIZE_MAX:
        raise TooLarge(f"{_name(path)}: more than {FILE_SIZE_MAX} bytes, so it is none of ours; name another file")
    return data


def _replace(path: Path, data: bytes) -> None:
    """Write, sync, rename, sync: at every moment the file is the whole old one or the whole new one. Needs the lock."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.unlink(missing_ok=True)  # left over from a crash
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise KeyStoreError(
            f"{_name(path)} cannot be written: {error.strerror}; it is whole, but may lack the change"
        ) from None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock: one writer at a time over all processes and threads. The kernel frees it when a process dies."""
    beside = path.with_name(f"{path.name}.lock")
    try:
        lock = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise KeyStoreError(f"{_name(path)} cannot be locked with {beside.name}: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


# The keyring of the operating system


def _account(salt: bytes) -> str:
    return f"keys-{salt.hex()}"


def _keyring() -> ModuleType:
    try:
        import keyring
    except ImportError:
        raise KeyStoreError(
            "the OS keyring needs the package `keyring`: pip install 'antiphon[keyring]', or use a passphrase"
        ) from None
    return keyring


def _into_keyring(salt: bytes, key: bytes) -> None:
    keyring = _keyring()
    try:
        keyring.set_password(_KEYRING_SERVICE, _account(salt), key.hex())
        kept = keyring.get_password(_KEYRING_SERVICE, _account(salt))
    except Exception as error:  # backends raise what they like
        raise _no_keyring(error) from None
    if kept != key.hex():  # keyring's null backend takes everything and keeps nothing
        raise _no_keyring("it did not keep what it was given")


def _from_keyring(salt: bytes, path: Path) -> bytes:
    keyring = _keyring()
    try:
        text = keyring.get_password(_KEYRING_SERVICE, _account(salt))
    except Exception as error:  # backends raise what they like
        raise _no_keyring(error) from None
    if text is None:
        raise KeyStoreError(
            f"{_name(path)}: the OS keyring has no entry {_KEYRING_SERVICE}/{_account(salt)}; "
            "open it as the user and on the machine that wrote it, or recover from the phrase"
        )
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != BOX_KEY_SIZE:
        raise KeyStoreError(
            f"{_name(path)}: the OS keyring's entry {_account(salt)} is damaged; recover from the phrase"
        )
    return key


def _drop_from_keyring(salt: bytes) -> None:
    with suppress(Exception):  # an entry too many opens nothing that is still there
        _keyring().delete_password(_KEYRING_SERVICE, _account(salt))


def _no_keyring(reason: object) -> KeyStoreError:
    return KeyStoreError(
        f"the OS keyring cannot be used here ({reason}); unlock it, or use a passphrase, as on a server without one"
    )
