"""Helpers of the tests of snapshots."""

from __future__ import annotations

from pathlib import Path


def damage(folder: Path, data: bytes) -> None:
    """Change a blob where it lies in the file."""
    file = folder / "data.mdb"
    held = file.read_bytes()
    assert data in held
    with file.open("r+b") as stream:
        start = -1
        while (start := held.find(data, start + 1)) >= 0:
            stream.seek(start)
            stream.write(bytes([data[0] ^ 1]))
