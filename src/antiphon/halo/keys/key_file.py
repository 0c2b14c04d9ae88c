"""The file of a key store, as bytes: pure functions, so that they can be fuzzed and replayed.

    antiphon.keys.1 passphrase\\n  salt(16) ops(u32) memory_kib(u32) │ size(u32) nonce(24) secretbox   │ SHA-256
    antiphon.keys.1 keyring\\n     account(16)                       │ size(u32) nonce(24) secretbox   │ of all
    antiphon.keys.1 UNPROTECTED\\n                                   │ size(u32) the contents, in clear │ before

The hash at the end tells damage from a wrong passphrase. It does not protect against deliberate changes: the box
authenticates its contents, and a changed salt or cost gives another key, which does not open the box.

>>> file = KeyFile(Header(Protection.UNPROTECTED), encode_contents(Contents()))
>>> encode_file(file)[:28], decode_file(encode_file(file)) == file
(b'antiphon.keys.1 UNPROTECTED\\n', True)
"""

from __future__ import annotations

import enum
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from operator import attrgetter
from typing import Protocol, TypeVar

from nacl.bindings import crypto_secretbox, crypto_secretbox_NONCEBYTES, crypto_secretbox_open
from nacl.exceptions import CryptoError, RuntimeError as SodiumFailure
from nacl.pwhash import argon2id

from antiphon.core.codec import Reader, u32
from antiphon.core.errors import BadEncoding, InvalidInput, KeyStoreError, TooLarge, WrongPassphrase
from antiphon.core.keys import KEY_SIZE, SEED_SIZE, PublicKey

BOX_KEY_SIZE = 32
NONCE_SIZE = crypto_secretbox_NONCEBYTES
SALT_SIZE = 16
LABEL_SIZE_MAX = 200
KEYS_MAX = 1 << 16
CONTACTS_MAX = 1 << 16
FILE_SIZE_MAX = 64 << 20
PASSPHRASE_SIZE_MAX = 1024
_MAGIC = b"antiphon.keys.1 "
_FAMILY = b"antiphon.keys."
_CHECKSUM_SIZE = 32


class Protection(enum.Enum):
    """How the private keys of a key store are protected against readers of its file."""

    PASSPHRASE = "passphrase"  # noqa: S105 — a word in a file format
    KEYRING = "keyring"
    UNPROTECTED = "UNPROTECTED"


class KeyKind(enum.Enum):
    """The purpose of a private key. A key serves one purpose only."""

    IDENTITY = 1
    DEVICE = 2
    FEED = 3


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one guess at a passphrase, under argon2id. Bounded, so that a hostile file cannot hang its reader."""

    ops: int
    memory_kib: int

    def __post_init__(self) -> None:
        if not (1 <= self.ops <= 10 and 8 <= self.memory_kib <= 1 << 20):
            raise InvalidInput(
                f"argon2id with {self.ops} passes over {self.memory_kib} KiB: "
                "1 to 10 passes over 8 KiB to 1 GiB are allowed"
            )


#: The default: about a second, 256 MiB.
MODERATE = Cost(3, 256 << 10)
#: The least there is, for tests: it protects nothing.
MINIMUM = Cost(1, 8)


@dataclass(frozen=True, slots=True)
class Header:
    """The part of the file in clear. `salt` is argon2id's, or names the keyring's account, or is empty."""

    protection: Protection
    salt: bytes = b""
    cost: Cost | None = None

    def __post_init__(self) -> None:
        salted = self.protection is not Protection.UNPROTECTED
        assert len(self.salt) == (SALT_SIZE if salted else 0), "a header's salt has 16 bytes, or none if unprotected"
        assert (self.cost is not None) == (self.protection is Protection.PASSPHRASE), "a passphrase, and only it, costs"


@dataclass(frozen=True, slots=True)
class KeyFile:
    """The parts of a file; `body` is the box, or the contents themselves when unprotected."""

    header: Header
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """The public facts about a private key. `owner`: the identity of a device, the device of a feed."""

    key: PublicKey
    kind: KeyKind
    label: str
    owner: PublicKey | None = None


@dataclass(frozen=True, slots=True)
class HeldKey:
    """A record with its secret."""

    record: KeyRecord
    seed: bytes = field(repr=False)

    @property
    def key(self) -> PublicKey:
        return self.record.key


@dataclass(frozen=True, slots=True)
class Contact:
    """The public key of somebody else, and the name that the user gave it."""

    key: PublicKey
    label: str


class _Keyed(Protocol):
    @property
    def key(self) -> PublicKey: ...


_Entry = TypeVar("_Entry", bound=_Keyed)
_key_of = attrgetter("key")


@dataclass(frozen=True, slots=True)
class Contents:
    """All that a key store holds; both lists ascend by key."""

    held: tuple[HeldKey, ...] = ()
    contacts: tuple[Contact, ...] = ()

    def find(self, key: bytes) -> HeldKey | None:
        return _find(self.held, key)

    def contact(self, key: bytes) -> Contact | None:
        return _find(self.contacts, key)

    def with_held(self, entry: HeldKey) -> Contents:
        return replace(self, held=_put(self.held, entry))

    def with_contact(self, entry: Contact) -> Contents:
        return replace(self, contacts=_put(self.contacts, entry))

    def without(self, key: bytes) -> Contents:
        return Contents(
            tuple(entry for entry in self.held if entry.key != key),
            tuple(entry for entry in self.contacts if entry.key != key),
        )


def _find(entries: Sequence[_Entry], key: bytes) -> _Entry | None:
    at = bisect_left(entries, key, key=_key_of)
    return entries[at] if at < len(entries) and entries[at].key == key else None


def _put(entries: tuple[_Entry, ...], entry: _Entry) -> tuple[_Entry, ...]:
    at = bisect_left(entries, entry.key, key=_key_of)
    after = at + 1 if at < len(entries) and entries[at].key == entry.key else at
    return (*entries[:at], entry, *entries[after:])


def encode_contents(contents: Contents) -> bytes:
    """Canonical bytes: private keys, then contacts, each counted and ascending by public key. Not protected yet."""
    if len(contents.held) > KEYS_MAX or len(contents.contacts) > CONTACTS_MAX:
        raise TooLarge(
            f"a key store holds at most {KEYS_MAX} private keys and {CONTACTS_MAX} contacts; use a second one"
        )
    parts = [u32(len(contents.held))]
    last = b""
    for entry in contents.held:
        record = entry.record
        if entry.key <= last or len(entry.seed) != SEED_SIZE:
            raise InvalidInput("contents of a key store: keys must ascend, and a seed has 32 bytes")
        owner = b"\0" if record.owner is None else b"\1" + record.owner
        parts += (entry.key, entry.seed, bytes((record.kind.value,)), owner, encode_label(record.label))
        last = entry.key
    parts.append(u32(len(contents.contacts)))
    last = b""
    for contact in contents.contacts:
        if contact.key <= last:
            raise InvalidInput("contents of a key store: contacts must ascend")
        parts += (contact.key, encode_label(contact.label))
        last = contact.key
    return b"".join(parts)


def decode_contents(data: bytes, what: str = "key store") -> Contents:
    """Decode contents. Only the canonical form is accepted. If seeds fit their keys is checked when they are used."""
    reader = Reader(data, what)
    held: list[HeldKey] = []
    last = b""
    for _ in range(_count(reader, KEYS_MAX, what)):
        key = PublicKey(reader.take(KEY_SIZE))
        if key <= last:
            raise BadEncoding(f"{what}: private keys do not ascend")
        seed = reader.take(SEED_SIZE)
        number, owned = reader.u8(), reader.u8()
        if number not in _KINDS or owned > 1:
            raise BadEncoding(f"{what}: key {key.short} has the kind {number} and the owner mark {owned}")
        owner = PublicKey(reader.take(KEY_SIZE)) if owned else None
        held.append(HeldKey(KeyRecord(key, _KINDS[number], _label(reader, what), owner), seed))
        last = key
    contacts: list[Contact] = []
    last = b""
    for _ in range(_count(reader, CONTACTS_MAX, what)):
        key = PublicKey(reader.take(KEY_SIZE))
        if key <= last:
            raise BadEncoding(f"{what}: contacts do not ascend")
        contacts.append(Contact(key, _label(reader, what)))
        last = key
    reader.done()
    return Contents(tuple(held), tuple(contacts))


_KINDS = {kind.value: kind for kind in KeyKind}


def _count(reader: Reader, most: int, what: str) -> int:
    count = reader.u32()
    if count > most:
        raise TooLarge(f"{what}: {count} entries, at most {most} are allowed")
    return count


def encode_label(label: str) -> bytes:
    """Encode a label. Labels are shown in terminals, where control characters could falsify the output: refuse them."""
    try:
        raw = label.encode()
    except UnicodeEncodeError:
        raise InvalidInput("a label is text; this one holds half a surrogate pair") from None
    if len(raw) > LABEL_SIZE_MAX:
        raise TooLarge(f"a label of {len(raw)} bytes, at most {LABEL_SIZE_MAX} are allowed; shorten it")
    if any(unicodedata.category(character) == "Cc" for character in label):
        raise InvalidInput(f"the label {label!r} holds control characters; leave them out")
    return bytes((len(raw),)) + raw


def usable_label(text: str) -> str:
    """Turn any text, such as a name that a peer chose, into a label: drop what `encode_label` refuses.

    >>> usable_label("Book\\nclub")
    'Bookclub'
    """
    shown = "".join(one for one in text if unicodedata.category(one) not in ("Cc", "Cs"))
    return shown.encode()[:LABEL_SIZE_MAX].decode(errors="ignore")


def _label(reader: Reader, what: str) -> str:
    raw = reader.take(reader.u8())
    try:
        label = raw.decode()
        encode_label(label)
    except ValueError as error:
        raise BadEncoding(f"{what}: a label is broken: {error}") from None
    return label


def encode_file(file: KeyFile) -> bytes:
    """Encode the file of a key store."""
    header = file.header
    parts = [_MAGIC, header.protection.value.encode(), b"\n", header.salt]
    if header.cost is not None:
        parts += (u32(header.cost.ops), u32(header.cost.memory_kib))
    parts += (u32(len(file.body)), file.body)
    data = b"".join(parts)
    return data + sha256(data).digest()


def decode_file(data: bytes, what: str = "key store") -> KeyFile:
    """Decode the file of a key store. The error tells a damaged file from one that is no key store."""
    if len(data) > FILE_SIZE_MAX:
        raise TooLarge(f"{what}: {len(data)} bytes, at most {FILE_SIZE_MAX} are allowed")
    words = {_MAGIC + protection.value.encode() + b"\n": protection for protection in Protection}
    line = next((line for line in words if data.startswith(line)), None)
    if line is None:
        if data.startswith(_FAMILY) and not data.startswith(_MAGIC):
            raise BadEncoding(f"{what}: of another version than 1; use the version of Antiphon that wrote it")
        raise BadEncoding(
            f"{what}: this is no key store, or its first line is damaged; restore it from a backup, or recover from "
            "the phrase"
        )
    signed, checksum = data[:-_CHECKSUM_SIZE], data[-_CHECKSUM_SIZE:]
    if sha256(signed).digest() != checksum:
        raise BadEncoding(
            f"{what}: damaged (its checksum is off); restore it from a backup, or recover from the phrase"
        )
    reader = Reader(signed, what)
    reader.take(len(line))
    header = _header(reader, words[line], what)
    body = reader.take(reader.u32())
    reader.done()
    return KeyFile(header, body)


def _header(reader: Reader, protection: Protection, what: str) -> Header:
    if protection is Protection.UNPROTECTED:
        return Header(protection)
    salt = reader.take(SALT_SIZE)
    if protection is Protection.KEYRING:
        return Header(protection, salt)
    try:
        return Header(protection, salt, Cost(ops=reader.u32(), memory_kib=reader.u32()))
    except InvalidInput as error:
        raise BadEncoding(f"{what}: {error}") from None


def derive_key(passphrase: str, header: Header) -> bytes:
    """Derive the key of the box from a passphrase: slow, and hungry for memory, on purpose."""
    assert header.cost is not None, "only a header under a passphrase has a cost"
    # The same passphrase typed on another keyboard may arrive as other code points.
    secret = unicodedata.normalize("NFC", passphrase).encode(errors="surrogatepass")
    if not 1 <= len(secret) <= PASSPHRASE_SIZE_MAX:
        raise InvalidInput(f"a passphrase has 1 to {PASSPHRASE_SIZE_MAX} bytes, not {len(secret)}")
    try:
        return argon2id.kdf(BOX_KEY_SIZE, secret, header.salt, header.cost.ops, header.cost.memory_kib << 10)
    except SodiumFailure:
        raise KeyStoreError(f"argon2id needs {header.cost.memory_kib} KiB of memory here; free some") from None


def seal(contents: Contents, header: Header, key: bytes, nonce: bytes) -> bytes:
    """Encode a file with the contents in a box under `key`, or in clear if the header says UNPROTECTED."""
    body = encode_contents(contents)
    if header.protection is not Protection.UNPROTECTED:
        body = nonce + crypto_secretbox(body, nonce, key)
    return encode_file(KeyFile(header, body))


def unseal(file: KeyFile, key: bytes, what: str = "key store") -> Contents:
    """Decode the contents of a file whose checksum is right: a box that does not open has another key."""
    protection, body = file.header.protection, file.body
    if protection is Protection.UNPROTECTED:
        return decode_contents(body, what)
    if len(body) < NONCE_SIZE:
        raise BadEncoding(f"{what}: its box has {len(body)} bytes, too few for a nonce")
    try:
        plain = crypto_secretbox_open(body[NONCE_SIZE:], body[:NONCE_SIZE], key)
    except CryptoError:
        if protection is Protection.PASSPHRASE:
            raise WrongPassphrase(f"{what}: the passphrase does not open it; try again") from None
        raise KeyStoreError(f"{what}: the key in the OS keyring does not open it; restore it from a backup") from None
    return decode_contents(plain, what)
