"""Ed25519 keys of devices as static keys of Noise: the same point, in the coordinates of X25519.

Both points ±P of Ed25519 become one key of X25519. So the channel also checks which of the two it is: the key of the
answering end is in the prologue, and the dialler signs.
"""

from __future__ import annotations

from nacl.bindings import (
    crypto_core_ed25519_is_valid_point,
    crypto_sign_ed25519_pk_to_curve25519,
    crypto_sign_ed25519_sk_to_curve25519,
)

from antiphon.core.errors import InvalidInput
from antiphon.core.keys import KEY_SIZE, KeyPair
from antiphon.mesh.channel.noise import StaticKey


def static_key(device: KeyPair) -> StaticKey:
    """Return the static key of this device."""
    return StaticKey.from_secret(crypto_sign_ed25519_sk_to_curve25519(device.seed + device.key))


def static_public(device: bytes) -> bytes:
    """Return the static public key of a device. Refuse a key that is no canonical point of prime order."""
    if len(device) != KEY_SIZE or not crypto_core_ed25519_is_valid_point(bytes(device)):
        raise InvalidInput(
            f"{device[:KEY_SIZE].hex()} is no device key: it is not the canonical form of a point of prime order"
        )
    return crypto_sign_ed25519_pk_to_curve25519(bytes(device))
