"""`SimKeys`: a key store that does not wait for the disk. Keys are not what a simulated crash is about."""

from __future__ import annotations

from antiphon.halo.keys.key_file import NONCE_SIZE, Contents, Header, seal
from antiphon.halo.keys.key_store import KeyStore


class SimKeys(KeyStore):
    """Its file is written in place."""

    __slots__ = ()

    def _write(self, contents: Contents, guard: tuple[Header, bytes]) -> None:
        data = seal(contents, *guard, self._randomness.bytes(NONCE_SIZE))
        self._path.write_bytes(data)
        self._guard, self._seen = guard, (data, contents)
