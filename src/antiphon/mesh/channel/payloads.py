"""The payloads of the three messages of the handshake.

Each may be followed by bytes that a later version adds: they are authenticated with the rest, and not read here.
"""

from __future__ import annotations

from typing import NamedTuple

from antiphon.core.codec import Reader, u64
from antiphon.core.errors import BadEncoding
from antiphon.core.keys import KEY_SIZE, SIGNATURE_SIZE, KeyPair, verify

SIGNATURE_TAG = b"antiphon.channel"


class Dial(NamedTuple):
    """Message 1: the dialler's time."""

    sent_ms: int

    def encode(self) -> bytes:
        return u64(self.sent_ms)

    @classmethod
    def decode(cls, data: bytes) -> Dial:
        return cls(Reader(data, "first message").u64())


class Offer(NamedTuple):
    """Message 2, and the beginning of message 3: what an end speaks."""

    version: int
    features: int  # a set of bits, below 2^63

    def encode(self) -> bytes:
        return bytes((self.version,)) + u64(self.features)

    @classmethod
    def decode(cls, data: bytes) -> Offer:
        return cls.read(Reader(data, "second message"))

    @classmethod
    def read(cls, reader: Reader) -> Offer:
        offer = cls(reader.u8(), reader.u64())
        if offer.version == 0:
            raise BadEncoding("an end of a channel offers version 0: there is none")
        return offer

    def agree(self, other: Offer) -> Offer:
        """Return what both ends speak."""
        return Offer(min(self.version, other.version), self.features & other.features)


class Proof(NamedTuple):
    """Message 3: what the dialler speaks, its device key, and the signature of that key under the transcript."""

    offer: Offer
    device: bytes
    signature: bytes

    @classmethod
    def sign(cls, offer: Offer, device: KeyPair, transcript: bytes) -> Proof:
        """Sign the handshake up to message 2 and what message 3 says."""
        return cls(offer, bytes(device.key), device.sign(SIGNATURE_TAG + transcript + offer.encode() + device.key))

    def is_signed(self, transcript: bytes) -> bool:
        """True if the device signed this very handshake."""
        return verify(self.device, SIGNATURE_TAG + transcript + self.offer.encode() + self.device, self.signature)

    def encode(self) -> bytes:
        return self.offer.encode() + self.device + self.signature

    @classmethod
    def decode(cls, data: bytes) -> Proof:
        reader = Reader(data, "third message")
        return cls(Offer.read(reader), reader.take(KEY_SIZE), reader.take(SIGNATURE_SIZE))
