"""Folders that users name: on this machine, never by a URI."""

from __future__ import annotations

import re
from pathlib import Path

from antiphon.core.errors import InvalidInput

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")  # `Path` makes one slash of two

HOME_PARTS = ("keys", "feeds", "meta.db")  # any of them makes a folder a home


def local_path(name: str | Path) -> Path:
    """Return the path that a user has named, with `~` resolved. Refuse a URI such as `s3://bucket/tables`.

    >>> local_path("tables")
    PosixPath('tables')
    """
    found = _URI.match(str(name))
    if found:
        raise InvalidInput(
            f"{str(name)!r} is a URI, and only folders of this machine can be used: mount the {found[1]} store, "
            "and name the folder where it is mounted"
        )
    return Path(name).expanduser()


def refuse_home(folder: Path) -> None:
    """Raise `InvalidInput` if a folder that is to be filled with other files is the home of a peer."""
    found = next((name for name in HOME_PARTS if (folder / name).exists()), None)
    if found is not None:
        raise InvalidInput(f"{folder} is the home of a peer: it has {found}. Name another folder, outside of the home")
