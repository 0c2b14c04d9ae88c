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
        """Parse a key from 64 hex digits."""
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
        """The first eight hex digits, for error texts and displays."""
        return self.hex()[:8]


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key and its public key. The secret is never printed or compared."""

    key: PublicKey
    _secret: bytes = field(repr=False, compare=False)

    @classmethod
    def from_seed(cls, seed: bytes) -> KeyPair:
        """Derive the key pair of a 32-byte seed."""
        if len(seed) != SEED_SIZE:
            raise InvalidInput(f"a seed has {SEED_SIZE} bytes, not {len(seed)}")
        public, secret = crypto_sign_seed_keypair(seed)
        return cls(PublicKey(public), secret)

    @classmethod
    def generate(cls, randomness: Randomness) -> KeyPair:
        """Generate a key pair from fresh random bytes."""
        return cls.from_seed(randomness.bytes(SEED_SIZE))

    @property
    def seed(self) -> bytes:
        """The 32-byte seed of the private key, as secret as the key itself."""
        return self._secret[:SEED_SIZE]

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte Ed25519 signature of a message."""
        return crypto_sign(message, self._secret)[:SIGNATURE_SIZE]


_valid: set[tuple[bytes, bytes, bytes]] | None = None  # verified signatures, inside `verified_once`
_VALID_MAX = 1 << 16


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """True if `signature` is the signature of `key` over `message`. Malformed keys and signatures are not valid."""
    if len(signature) != SIGNATURE_SIZE or len(key) != KEY_SIZE:
        return False
    if _valid is not None and (key, message, signature) in _valid:
        return True
    try:
        crypto_sign_open(signature + message, key)
    except BadSignatureError:
        return False
    if _valid is not None and len(_valid) < _VALID_MAX:
        _valid.add((bytes(key), bytes(message), bytes(signature)))
    return True


@contextmanager
def verified_once() -> Iterator[None]:
    """Cache valid signatures until the context ends: for a process that simulates many peers.

    The result depends only on the bytes, so caching changes none. A real peer hardly verifies a signature twice.
    """
    global _valid  # the peers of a simulation share nothing else
    before, _valid = _valid, set()
    try:
        yield
    finally:
        _valid = before
