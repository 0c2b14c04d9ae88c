"""Keys as text for people to copy: lower-case base32 with a checksum, so that a typing error is detected."""

from __future__ import annotations

import base64
import binascii
from hashlib import sha256

from antiphon.core.errors import InvalidInput
from antiphon.core.keys import KEY_SIZE, PublicKey

_CHECK_SIZE = 3  # 35 bytes are 56 characters of base32, with nothing left over
TEXT_SIZE = 56
_TAG = b"antiphon.key.v1"


def is_unicode(text: str) -> bool:
    """True if a string can be encoded. Half a surrogate pair, as in JSON or on a command line, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def to_text(key: bytes) -> str:
    """Return the text of a key."""
    return base64.b32encode(key + sha256(_TAG + key).digest()[:_CHECK_SIZE]).decode("ascii").lower()


def from_text(text: str, what: str) -> PublicKey:
    """Return the key of a text. `what` names the key in the error."""
    try:
        raw = base64.b32decode(text.upper().encode("ascii")) if len(text) == TEXT_SIZE else b""
    except (binascii.Error, UnicodeEncodeError):
        raw = b""
    key = raw[:-_CHECK_SIZE]
    if not raw or to_text(key) != text.lower():
        raise InvalidInput(f"{text[:80]!r} is not the text of {what}: it was cut, mistyped, or is of something else")
    return PublicKey(key)


def from_any_text(text: str) -> PublicKey | None:
    """Return the key of a text in base32 or in hex; None if it is neither."""
    try:
        return PublicKey.from_hex(text) if len(text) == 2 * KEY_SIZE else from_text(text, "a key")
    except InvalidInput:
        return None
