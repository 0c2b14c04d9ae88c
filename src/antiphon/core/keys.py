"""Ed25519 keys: identities, devices, parties and feeds are all named by a public key.

>>> pair = KeyPair.from_seed(bytes(32))
>>> signature = pair.sign(b"hello")
>>> verify(pair.key, b"hello", signature), verify(pair.key, b"hullo", signature)
(True, False)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair
from nacl.exceptions import BadSignatureError

from antiphon.core.errors import InvalidInput
from antiphon.core.ports import Randomness

KEY_SIZE = 32
SEED_SIZE = 32
SIGNATURE_SIZE = 64


class PublicKey(bytes):
    """32 bytes that name an identity, a device, a party or a feed. Compares and sorts as bytes."""

    __slots__ = ()

    def __new__(cls, raw: bytes) -> PublicKey:
        if len(raw) != KEY_SIZE:
            raise InvalidInput(f"a public key has {KEY_SIZE} bytes, not {len(raw)}")
        return super().__new__(cls, raw)

    @classmethod
    def from_hex(cls, text: str) -> PublicKey:
        try:
            return cls(bytes.fromhex(text))
        except ValueError as error:
            raise InvalidInput(f"{text[:80]!r} is no public key in hex: {error}") from None

    def __str__(self) -> str:
        return self.hex()

    def __repr__(self) -> str:
        return f"PublicKey({self.short})"

    @property
    def short(self) -> str:
        """The first eight hex digits, for people."""
        return self.hex()[:8]


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key and its public half. Never printed, never compared by its secret."""

    key: PublicKey
    _secret: bytes = field(repr=False, compare=False)

    @classmethod
    def from_seed(cls, seed: bytes) -> KeyPair:
        if len(seed) != SEED_SIZE:
            raise InvalidInput(f"a seed has {SEED_SIZE} bytes, not {len(seed)}")
        public, secret = crypto_sign_seed_keypair(seed)
        return cls(PublicKey(public), secret)

    @classmethod
    def generate(cls, randomness: Randomness) -> KeyPair:
        return cls.from_seed(randomness.bytes(SEED_SIZE))

    @property
    def seed(self) -> bytes:
        return self._secret[:SEED_SIZE]

    def sign(self, message: bytes) -> bytes:
        return crypto_sign(message, self._secret)[:SIGNATURE_SIZE]


_right: set[tuple[bytes, bytes, bytes]] | None = None  # what was found right, while somebody wants it remembered
_RIGHT_MAX = 1 << 16


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` is `key`'s over `message`. Malformed keys and signatures are just not valid."""
    if len(signature) != SIGNATURE_SIZE or len(key) != KEY_SIZE:
        return False
    if _right is not None and (key, message, signature) in _right:
        return True
    try:
        crypto_sign_open(signature + message, key)
    except BadSignatureError:
        return False
    if _right is not None and len(_right) < _RIGHT_MAX:
        _right.add((bytes(key), bytes(message), bytes(signature)))
    return True


@contextmanager
def verified_once() -> Iterator[None]:
    """Until this ends, what was found right is right: for a process that plays many peers, all of which ask the same.

    It depends on nothing but the bytes, so nobody can tell; a peer by itself meets hardly a signature twice.
    """
    global _right  # as the peers of a simulation share nothing else
    before, _right = _right, set()
    try:
        yield
    finally:
        _right = before
