"""`SimKeys`: a key store that does not wait for the disk. Simulated crashes do not affect keys."""

from __future__ import annotations

from antiphon.halo.keys.key_file import NONCE_SIZE, Contents, Header, seal
from antiphon.halo.keys.key_store import KeyStore


class SimKeys(KeyStore):
    """A key store that writes its file in place, without a sync."""

    __slots__ = ()

    def _write(self, contents: Contents, guard: tuple[Header, bytes]) -> None:
        data = seal(contents, *guard, self._randomness.bytes(NONCE_SIZE))
        self._path.write_bytes(data)
        self._guard, self._seen = guard, (data, contents)
