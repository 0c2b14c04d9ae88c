"""`CheckpointFile`: the checkpoints of a party's control feeds. Without them an opening takes longer, and no more."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path

from antiphon.core.errors import BadEncoding
from antiphon.halo.control.checkpoint_codec import decode_checkpoints, encode_checkpoints
from antiphon.halo.control.lane_checkpoint import LaneCheckpoint

_LOG = logging.getLogger("antiphon")


class CheckpointFile:
    """A file that is replaced as a whole. A damaged one is as good as none."""

    def __init__(self, path: Path, party: bytes) -> None:
        self._path = path
        self._party = bytes(party)

    def load(self) -> dict[bytes, LaneCheckpoint]:
        """Return the checkpoints, by control feed; nothing if the file is missing, damaged or of another version."""
        try:
            return decode_checkpoints(self._party, self._path.read_bytes())
        except (FileNotFoundError, BadEncoding):
            return {}
        except OSError as error:
            _LOG.warning("%s cannot be read, so opening its party takes longer: %s", self._path.name, error)
            return {}

    def save(self, lanes: Iterable[LaneCheckpoint]) -> None:
        """Replace the file. It is not synced: its checksum finds a write that a crash has cut short.

        If there is no room for it, that is logged, and the old one stays: a party opens and closes without it.
        """
        fresh = self._path.with_name(f"{self._path.name}.new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh.touch(0o600)
            fresh.write_bytes(encode_checkpoints(self._party, lanes))
            os.replace(fresh, self._path)
        except OSError as error:
            _LOG.warning("%s cannot be written, so the next opening takes longer: %s", self._path.name, error)

    def delete(self) -> None:
        """Delete the file."""
        self._path.unlink(missing_ok=True)
