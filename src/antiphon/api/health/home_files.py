"""The files of a home: their names, which of them are there, and who may read them.

keys            the private keys (`KeyStore`), with keys.lock
feeds/          the feed store; blobs/ the blob store: data.mdb and lock files each
meta.db         the followed parties, with SQLite's meta.db-wal and meta.db-shm
items/          for each party <key>.db, an item store, with SQLite's files, and <key>.checkpoint; both derived
names.json      names of models and view classes
views.json      the parties of which one view alone is held
home.version    the version of the home
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from antiphon.core.home_version import VERSION_FILE

KEYS, METADATA, NAMES, VIEWS = "keys", "meta.db", "names.json", "views.json"
FEEDS, BLOBS, ITEMS = "feeds", "blobs", "items"
DATA = "data.mdb"
BACKUP = "antiphon-backup.json"  # makes a folder a backup of a home
_FOLDERS = (FEEDS, BLOBS, ITEMS)
_OTHERS = 0o077  # the permissions of anybody but the owner


def home_paths(home: Path) -> Iterator[Path]:
    """Yield the folder of a home, and all files and folders in it that are a home's; links are not followed."""
    yield home
    with os.scandir(home) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = entry.name.removeprefix(".")
            if entry.is_file(follow_symlinks=False) and name.startswith((KEYS, METADATA, NAMES, VIEWS, VERSION_FILE)):
                yield home / entry.name
    for folder in _FOLDERS:
        if (home / folder).is_dir() and not (home / folder).is_symlink():
            yield home / folder
            with os.scandir(home / folder) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    if entry.is_file(follow_symlinks=False):
                        yield home / folder / entry.name


def open_to_others(home: Path) -> Iterator[Path]:
    """Yield the files and folders of a home that others than its owner may read or write."""
    for path in home_paths(home):
        try:
            if stat.S_IMODE(path.lstat().st_mode) & _OTHERS:
                yield path
        except FileNotFoundError:  # SQLite removes its files
            continue


def tighten(home: Path) -> int:
    """Take the permissions of others from the files and folders of a home. Return from how many.

    Files that belong to somebody else are left as they are: `antiphon verify` names them.
    """
    changed = 0
    for path in list(open_to_others(home)):
        try:
            path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~_OTHERS)
            changed += 1
        except (FileNotFoundError, PermissionError):
            continue
    return changed
