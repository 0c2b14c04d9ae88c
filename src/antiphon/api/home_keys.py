"""Open or create the keys of a home, before any other of its files is opened."""

from __future__ import annotations

from pathlib import Path

from antiphon.api.health.home_files import tighten
from antiphon.api.health.presence import need_feeds, need_keys, refuse_backup
from antiphon.api.health.upgrade import upgrade_home
from antiphon.core.errors import InvalidInput, StoreError
from antiphon.core.home_version import need_version
from antiphon.core.ports import Randomness
from antiphon.halo.keys.identity import devices, load_identity, new_device, new_identity
from antiphon.halo.keys.key_file import KeyKind, Protection, encode_label, usable_label
from antiphon.halo.keys.key_store import KeyStore


def choose_protection(passphrase: str | None, keyring: bool, unprotected: bool) -> Protection | None:
    """The protection that the arguments of `open` choose for a new store; None if they choose none."""
    if (passphrase is not None) + keyring + unprotected > 1:
        raise InvalidInput("choose one of passphrase=, keyring=True and unprotected=True, not several")
    if passphrase is not None:
        return Protection.PASSPHRASE
    return Protection.KEYRING if keyring else Protection.UNPROTECTED if unprotected else None


def enter_home(
    home: Path, name: str, protection: Protection | None, passphrase: str | None, randomness: Randomness | None
) -> tuple[KeyStore, str]:
    """Open or create the keys of a home, if no file was lost, and take the permissions of others from its files.

    An older home is upgraded before any of its files is opened.
    """
    refuse_backup(home)
    need_version(home)
    need_keys(home)
    if (home / "keys").exists():
        upgrade_home(home)
    keys, recovery_phrase = _open_keys(home / "keys", name, protection, passphrase, randomness)
    tighten(home)
    upgrade_home(home)
    need_feeds(home, keys)
    return keys, recovery_phrase


def _open_keys(
    path: Path, name: str, protection: Protection | None, passphrase: str | None, randomness: Randomness | None
) -> tuple[KeyStore, str]:
    """Open or create the key store, with an identity and a device. Return it with a new identity's recovery phrase."""
    if path.exists():
        keys = KeyStore.open(path, passphrase, randomness=randomness)
        if devices(keys):
            return keys, ""  # without a device, the creation of the store was interrupted: it is completed below
    else:
        encode_label(name)
        if protection is None:
            raise InvalidInput(
                f"{str(path.parent)!r} holds no store yet; to make one, choose how its private keys are kept: "
                "passphrase='…' encrypts them, keyring=True encrypts them with a key in the system's keyring, and "
                "unprotected=True leaves them readable for anybody who can read the folder"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StoreError(f"there can be no store in {path.parent}: {error.strerror}") from None
        keys = KeyStore.create(path, passphrase=passphrase, protection=protection, randomness=randomness)
    held = keys.keys(KeyKind.IDENTITY)
    if held:
        identity = load_identity(keys, held[0].key)
        recovery_phrase = identity.recovery_phrase()  # nobody has seen it yet
    else:
        identity, recovery_phrase = new_identity(keys, name, randomness)
    new_device(keys, usable_label(f"{name}'s device"), identity.key)
    return keys, recovery_phrase
