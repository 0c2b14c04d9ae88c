"""Dead files of a table: those that no recent version needs. A run that rewrites a file leaves the old one behind."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from math import inf
from pathlib import Path
from time import time

from deltalake import DeltaTable

from antiphon.pipeline.tables.delta_log import log_entry, log_versions, read_commits
from antiphon.pipeline.tables.run_tables import path_of


def files_in(table: Path) -> list[Path]:
    """Return all files in the folder of a table that can be data: not those whose path has a name with `_` or `.`."""
    found: list[Path] = []
    for folder, folders, files in os.walk(table):
        folders[:] = [name for name in folders if not name.startswith(("_", "."))]
        found += [Path(folder, name) for name in files if not name.startswith(("_", "."))]
    return found


def dead_files(table: Path, version: int, keep: timedelta) -> list[Path]:
    """Return the files that neither `version` needs, nor a later one, nor one that was the last within `keep`.

    Files that were written within `keep` are left: another program may be about to commit them (OPTIMIZE).
    """
    since, first = time() - keep.total_seconds(), version
    while first > 0 and log_entry(table, first).is_file() and log_entry(table, first).stat().st_mtime > since:
        first -= 1
    last = max([version, *log_versions(table)])
    held = {path_of(file) for file in DeltaTable(str(table), version=first).file_uris()}
    held.update(str(table / file) for commit in read_commits(table, first, last) for file in commit.adds)
    return [file for file in files_in(table) if str(file) not in held and _written(file) <= since]


def _written(file: Path) -> float:
    """Return the time at which a file was written; the end of time if it is gone."""
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return inf


def delete_files(table: Path, files: Iterable[Path]) -> int:
    """Delete files of a table, and the folders that are empty then; return the number of files."""
    count = 0
    for file in files:
        with suppress(FileNotFoundError):
            file.unlink()
            count += 1
        for folder in file.parents:
            if folder == table:
                break
            with suppress(OSError):  # it has other files
                folder.rmdir()
    return count


def size_of(files: Iterable[Path]) -> int:
    """Return the bytes of files."""
    return sum(file.stat().st_size for file in files)
