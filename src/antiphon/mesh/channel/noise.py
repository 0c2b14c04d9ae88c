"""The Noise protocol framework, revision 34, over Curve25519: handshakes and ciphers, without I/O or randomness.

Only what the patterns here need: no pre-shared keys, no fallback. A message that does not verify raises `ChannelFault`,
and the state must not be used any more.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from struct import Struct
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from nacl.bindings import crypto_scalarmult, crypto_scalarmult_base
from nacl.exceptions import RuntimeError as SodiumFailure

from antiphon.core.errors import ChannelFault
from antiphon.mesh.channel.limits import NONCE_MAX, RECORD_SIZE_MAX, TAG_SIZE

DH_SIZE = 32


class Suite(NamedTuple):
    """A cipher and a hash."""

    name: str  # the end of the protocol's name
    cipher: type[AESGCM] | type[ChaCha20Poly1305]
    nonce: Struct  # from a counter to 12 bytes
    hash: Callable[..., Any]

    @classmethod
    def of(cls, cipher: str, hash_name: str) -> Suite:
        """Return the suite of a cipher and a hash, by their names in Noise."""
        return cls(f"{cipher}_{hash_name}", *_CIPHERS[cipher], _HASHES[hash_name])


_CIPHERS: dict[str, tuple[type[AESGCM] | type[ChaCha20Poly1305], Struct]] = {
    "AESGCM": (AESGCM, Struct(">4xQ")),
    "ChaChaPoly": (ChaCha20Poly1305, Struct("<4xQ")),
}
_HASHES: dict[str, Callable[..., Any]] = {
    "SHA256": hashlib.sha256,
    "SHA512": hashlib.sha512,
    "BLAKE2s": hashlib.blake2s,
    "BLAKE2b": hashlib.blake2b,
}


class Pattern(NamedTuple):
    """The tokens of each message, the dialler's first. `known`: the dialler knows the other end's static key."""

    name: str
    known: bool
    messages: tuple[tuple[str, ...], ...]


NN = Pattern("NN", False, (("e",), ("e", "ee")))
XK = Pattern("XK", True, (("e", "es"), ("e", "ee"), ("s", "se")))


class StaticKey(NamedTuple):
    """An X25519 key pair."""

    secret: bytes
    public: bytes

    @classmethod
    def from_secret(cls, secret: bytes) -> StaticKey:
        """Derive the public key of a secret of 32 random bytes."""
        return cls(secret, crypto_scalarmult_base(secret))

    def __repr__(self) -> str:
        return f"StaticKey({self.public.hex()[:8]})"


def exchange(secret: bytes, public: bytes) -> bytes:
    """Return the shared secret of X25519. Refuse a public key whose result would be zero, whatever the secret."""
    try:
        return crypto_scalarmult(secret, public)
    except SodiumFailure:
        raise ChannelFault("a public key of small order was sent: drop the connection") from None


class CipherState:
    """A key and the count of the messages under it, in one direction."""

    __slots__ = ("_cipher", "_key", "_pack", "_suite", "count")

    def __init__(self, suite: Suite, key: bytes) -> None:
        self._suite = suite
        self._pack = suite.nonce.pack
        self.count = 0
        self._set(key)

    def _set(self, key: bytes) -> None:
        self._key = key
        self._cipher = self._suite.cipher(key)

    def encrypt(self, plain: bytes, associated: bytes | None = None) -> bytes:
        """Encrypt the next message."""
        count = self.count
        if count >= NONCE_MAX:
            raise ChannelFault("every nonce of the key is used: connect again")
        self.count = count + 1
        return self._cipher.encrypt(self._pack(count), plain, associated)

    def decrypt(self, encrypted: bytes | memoryview, associated: bytes | None = None) -> bytes:
        """Decrypt the next message, or raise `ChannelFault`."""
        count = self.count
        if count >= NONCE_MAX:
            raise ChannelFault("every nonce of the key is used: connect again")
        try:
            plain = self._cipher.decrypt(self._pack(count), encrypted, associated)
        except InvalidTag:
            raise ChannelFault(
                f"message {count} under its key is not what the other end sent next: drop the connection"
            ) from None
        self.count = count + 1
        return plain

    def rekey(self) -> None:
        """Replace the key by one that follows from it; the count goes on."""
        self._set(self._cipher.encrypt(self._pack(NONCE_MAX), bytes(32), None)[:32])


class SymmetricState:
    """The transcript: the hash of all that was sent, and the keys from all that was exchanged."""

    __slots__ = ("_chaining", "_cipher", "_suite", "hash")

    def __init__(self, name: bytes, suite: Suite) -> None:
        size = suite.hash().digest_size
        self._suite = suite
        self.hash: bytes = name.ljust(size, b"\0") if len(name) <= size else suite.hash(name).digest()
        self._chaining = self.hash
        self._cipher: CipherState | None = None

    def mix_hash(self, data: bytes) -> None:
        self.hash = self._suite.hash(self.hash + data).digest()

    def mix_key(self, secret: bytes) -> None:
        self._chaining, key = self._derive(secret)
        self._cipher = CipherState(self._suite, key[:32])

    def encrypt_and_hash(self, plain: bytes) -> bytes:
        sent = self._cipher.encrypt(plain, self.hash) if self._cipher else plain
        self.mix_hash(sent)
        return sent

    def decrypt_and_hash(self, received: bytes) -> bytes:
        plain = self._cipher.decrypt(received, self.hash) if self._cipher else received
        self.mix_hash(received)
        return plain

    @property
    def overhead(self) -> int:
        """How much longer an encrypted field is than the plain one, now."""
        return TAG_SIZE if self._cipher else 0

    def split(self) -> tuple[CipherState, CipherState]:
        """Return the ciphers of the dialler's messages and of the answering end's."""
        first, second = self._derive(b"")
        return CipherState(self._suite, first[:32]), CipherState(self._suite, second[:32])

    def _derive(self, secret: bytes) -> tuple[bytes, bytes]:
        def mac(key: bytes, data: bytes) -> bytes:
            return hmac.new(key, data, self._suite.hash).digest()

        key = mac(self._chaining, secret)
        first = mac(key, b"\1")
        return first, mac(key, first + b"\2")


class HandshakeState:
    """One end of a handshake. The two ends write and read its messages in turns, the dialler first."""

    __slots__ = ("_dials", "_ephemeral", "_messages", "_static", "_symmetric", "remote_ephemeral", "remote_static")

    def __init__(
        self,
        pattern: Pattern,
        suite: Suite,
        *,
        dials: bool,
        prologue: bytes,
        ephemeral: bytes,
        static: StaticKey | None = None,
        remote_static: bytes = b"",
    ) -> None:
        """Begin a handshake. `ephemeral`: 32 random bytes, used once. `remote_static`: if the pattern knows it."""
        self._dials = dials
        self._messages = list(pattern.messages)
        self._static = static
        self._ephemeral = StaticKey.from_secret(ephemeral)
        self.remote_static = remote_static
        self.remote_ephemeral = b""
        self._symmetric = SymmetricState(f"Noise_{pattern.name}_25519_{suite.name}".encode(), suite)
        self._symmetric.mix_hash(prologue)
        if pattern.known:
            self._symmetric.mix_hash(remote_static if dials else self._own_static.public)

    @property
    def hash(self) -> bytes:
        """The hash of the transcript so far; after the last message it names this handshake alone."""
        return self._symmetric.hash

    @property
    def is_done(self) -> bool:
        return not self._messages

    @property
    def _own_static(self) -> StaticKey:
        assert self._static is not None, "the pattern needs a static key"
        return self._static

    def write(self, payload: bytes) -> bytes:
        """Return the next message, with a payload."""
        state, parts = self._symmetric, []
        for token in self._messages.pop(0):
            match token:
                case "e":
                    parts.append(self._ephemeral.public)
                    state.mix_hash(self._ephemeral.public)
                case "s":
                    parts.append(state.encrypt_and_hash(self._own_static.public))
                case _:
                    state.mix_key(self._exchange(token))
        parts.append(state.encrypt_and_hash(payload))
        message = b"".join(parts)
        assert len(message) <= RECORD_SIZE_MAX
        return message

    def read(self, message: bytes) -> bytes:
        """Return the payload of the other end's next message, or raise `ChannelFault`."""
        state, rest = self._symmetric, message
        for token in self._messages.pop(0):
            match token:
                case "e":
                    self.remote_ephemeral, rest = _cut(rest, DH_SIZE)
                    state.mix_hash(self.remote_ephemeral)
                case "s":
                    key, rest = _cut(rest, DH_SIZE + state.overhead)
                    self.remote_static = state.decrypt_and_hash(key)
                case _:
                    state.mix_key(self._exchange(token))
        return state.decrypt_and_hash(rest)

    def split(self) -> tuple[CipherState, CipherState]:
        """Return the ciphers for sending and for receiving, once the handshake is done."""
        assert self.is_done
        first, second = self._symmetric.split()
        return (first, second) if self._dials else (second, first)

    def _exchange(self, token: str) -> bytes:
        own, remote = (token[0], token[1]) if self._dials else (token[1], token[0])  # the dialler's is named first
        secret = (self._ephemeral if own == "e" else self._own_static).secret
        return exchange(secret, self.remote_ephemeral if remote == "e" else self.remote_static)


def _cut(message: bytes, size: int) -> tuple[bytes, bytes]:
    """Cut a key off the front of a message."""
    if len(message) < size:
        raise ChannelFault("a message of the handshake is cut short: drop the connection")
    return message[:size], message[size:]
