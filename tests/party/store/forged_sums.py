"""Forge the checksums of an item store, so that a test reaches what is behind them."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

from antiphon.core.codec import u32, u64

PAGE_SIZE = 4096


def forge_sums(path: Path, part: int | None = None) -> None:
    """Write sums that fit the closed file, whatever it holds."""
    data, sums = path.read_bytes(), path.with_name(path.name + "-sums")
    pages = [data[at : at + PAGE_SIZE] for at in range(0, len(data), PAGE_SIZE)]
    known = sums.read_bytes()[8:16] if part is None else u64(part)
    sums.write_bytes(b"APs1" + u32(1) + known + b"".join(u32(zlib.crc32(page)) for page in pages))


def spoil(path: Path, what: str, *values: object) -> None:
    """Run a statement on a closed item store behind its back; the checksums of its pages are right afterwards."""
    with closing(sqlite3.connect(path)) as db:
        db.execute(what, values)
        db.commit()
    forge_sums(path)
