"""`PartyTags`: tags and keys of parties, bound to one channel and to the end that uses them.

Who knows a party's key can compute its tags on a channel of their own, and on no other: a tag that was heard elsewhere
fits no party here.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

from nacl.bindings import crypto_aead_chacha20poly1305_ietf_decrypt, crypto_aead_chacha20poly1305_ietf_encrypt
from nacl.exceptions import CryptoError

from antiphon.mesh.link.frames import TAG_SIZE

DIALLER, ANSWERING = b"d", b"r"
_SHOW_LABEL = b"antiphon link show 1 "
_NOTHING = bytes(32)  # the key that is tried where no party has the tag


class PartyTags:
    """The tags of one end of a channel. `channel` is its handshake hash."""

    def __init__(self, channel: bytes, role: bytes) -> None:
        self._channel = channel
        self._role = role

    def tag(self, party: bytes) -> bytes:
        """Return the tag of a party."""
        return hmac.digest(self._channel + self._role, party, sha256)[:TAG_SIZE]

    def close(self, party: bytes, number: int, message: bytes) -> bytes:
        """Encrypt the message that this end shows as its `number`th."""
        key = self._show_key(party)
        return crypto_aead_chacha20poly1305_ietf_encrypt(message, self.tag(party), _nonce(number), key)

    def open(self, party: bytes | None, number: int, box: bytes) -> bytes | None:
        """Decrypt a message; None if it is not of that party. It takes as long if there is no such party."""
        key = self._show_key(_NOTHING if party is None else party)
        tag = self.tag(_NOTHING if party is None else party)
        try:
            message = crypto_aead_chacha20poly1305_ietf_decrypt(box, tag, _nonce(number), key)
        except CryptoError:
            return None
        return None if party is None else message

    def _show_key(self, party: bytes) -> bytes:
        """Derive a key by HKDF-SHA256 (RFC 5869) from the party's key, with the channel as salt."""
        extracted = hmac.digest(self._channel, party, sha256)
        return hmac.digest(extracted, _SHOW_LABEL + self._role + b"\x01", sha256)


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "little")
