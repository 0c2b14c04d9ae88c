"""The version of a home: one line in its file `home.version`, with a checksum. A home without the file has version 1.

>>> encode_version(2)
b'antiphon.home.2 3b5cca12e3278366'
>>> decode_version(encode_version(2))
2

The version is of the home as a whole: which files it has, and what one says of another. Each file has a format and a
version of its own besides. `antiphon.api.health.upgrade` has the steps from one version to the next.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

from antiphon.core.errors import BadEncoding, DamagedStore, InvalidInput, StoreError
from antiphon.core.output_file import output_file

VERSION_FILE = "home.version"
HOME_VERSION = 2  # of homes that this program makes
VERSION_MAX = 999_999
_LINE = re.compile(rb"(antiphon\.home\.([1-9][0-9]{0,5})) ([0-9a-f]{16})")
_SIZE_MAX = 64


def encode_version(version: int) -> bytes:
    """Return the content of the file."""
    if not 1 <= version <= VERSION_MAX:
        raise InvalidInput(f"the version of a home is 1 to {VERSION_MAX}, not {version}")
    word = b"antiphon.home.%d" % version
    return b"%s %s" % (word, _checksum(word))


def decode_version(data: bytes, what: str = "version") -> int:
    """Return the version in the content of the file. The checksum tells a newer home from a changed byte."""
    found = _LINE.fullmatch(data)
    if found is None or found[3] != _checksum(found[1]):
        raise BadEncoding(f"{what}: it is not the version of a home, or has changed on the disk")
    return int(found[2])


def read_version(home: Path) -> int:
    """Return the version of a home; 1 if it has no file for it."""
    path = home / VERSION_FILE
    try:
        with path.open("rb") as file:
            return decode_version(file.read(_SIZE_MAX), str(path))
    except (FileNotFoundError, NotADirectoryError):
        return 1
    except BadEncoding as error:
        raise DamagedStore(
            f"{error}. `antiphon doctor --repair` drops it, and the next opening goes through all upgrades again: put "
            "a copy of the file back instead if a newer program has used this home (docs/recovering.md)",
            file=str(path),
        ) from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error


def need_version(home: Path, known: int = HOME_VERSION) -> int:
    """Return the version of a home; raise `StoreError` if it is newer than a program knows."""
    version = read_version(home)
    if version > known:
        raise StoreError(
            f"the home {home} has version {version}, and this program knows versions up to {known}: a newer Antiphon "
            "has upgraded it. Use that one, or restore a backup that is older than the upgrade. Nothing was changed"
        )
    return version


def write_version(home: Path, version: int) -> None:
    """Replace the version of a home. A crash leaves the old one or the new one."""
    with output_file(home / VERSION_FILE, replace=True) as file:
        file.write(encode_version(version))


def _checksum(word: bytes) -> bytes:
    return sha256(word).hexdigest()[:16].encode()
