"""`Manifest`: the file `antiphon-backup.json` of a backup: which files it has, with their sizes and checksums.

>>> files = tuple(BackupFile(name, 3, sha256(b"abc").digest()) for name in sorted(REQUIRED))
>>> manifest = Manifest(1700000000000, "", Counts(0, 0, 0, 0, 0), files)
>>> decode_manifest(encode_manifest(manifest)) == manifest
True

The manifest has a checksum of its own. It finds damage, not deceit: who can write the folder can write all of it.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from antiphon.api.health.home_files import BACKUP, BLOBS, DATA, FEEDS, KEYS, METADATA, NAMES, VIEWS
from antiphon.core.errors import AntiphonError, BadEncoding, DamagedStore, InvalidInput
from antiphon.core.home_version import VERSION_FILE
from antiphon.halo.keys.key_file import Protection

FORMAT = "antiphon.backup.1"
_FAMILY = "antiphon.backup."
MANIFEST_SIZE_MAX = 64 << 10
FEEDS_FILE, BLOBS_FILE = f"{FEEDS}/{DATA}", f"{BLOBS}/{DATA}"
#: The files that a backup may have, and those that it must have, in the order in which they ascend.
FILES = tuple(sorted((KEYS, FEEDS_FILE, BLOBS_FILE, METADATA, NAMES, VIEWS, VERSION_FILE)))
REQUIRED = (FEEDS_FILE, BLOBS_FILE, METADATA)
_NUMBER_MAX = 1 << 62
_DIGEST_SIZE = 32
_PROTECTIONS = ("", *(protection.value for protection in Protection))


@dataclass(frozen=True, slots=True)
class BackupFile:
    """A file of a backup: its name in the home, its size and its SHA-256."""

    name: str
    size: int
    sha256: bytes


@dataclass(frozen=True, slots=True)
class Counts:
    """The contents of a backup. `wrong` is the number of findings of the check when it was made."""

    parties: int
    feeds: int
    blocks: int
    blobs: int
    wrong: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a backup. `protection` says how the private keys are kept in it; "" if it has no keys."""

    created_ms: int
    protection: str
    counts: Counts
    files: tuple[BackupFile, ...]

    @property
    def size(self) -> int:
        """The bytes of all files together."""
        return sum(file.size for file in self.files)


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the content of the file: canonical JSON, whose last field is a SHA-256 of all fields before it."""
    rows = [{"name": file.name, "sha256": file.sha256.hex(), "size": file.size} for file in manifest.files]
    fields = {
        "format": FORMAT,
        "created_ms": manifest.created_ms,
        "protection": manifest.protection,
        "counts": asdict(manifest.counts),
        "files": rows,
    }
    return _text(fields | {"checksum": sha256(_text(fields)).hexdigest()})


def decode_manifest(data: bytes, what: str = BACKUP) -> Manifest:
    """Decode the content of the file. Only the canonical form is accepted."""
    if len(data) > MANIFEST_SIZE_MAX:
        raise BadEncoding(f"{what}: larger than {MANIFEST_SIZE_MAX} bytes")
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadEncoding(f"{what}: no JSON: {error}") from None
    found = fields.get("format") if isinstance(fields, dict) else None
    try:
        manifest = _manifest(fields)
    except (KeyError, TypeError, ValueError, AttributeError):
        manifest = None
    if manifest is not None and encode_manifest(manifest) == data:
        return manifest
    if isinstance(found, str) and found.startswith(_FAMILY) and found != FORMAT and _is_sound(fields):
        raise BadEncoding(f"{what}: its format is {found[:40]!r}; use the newer program that wrote it")
    raise BadEncoding(f"{what}: it is not the list of a backup's files, or has changed on the disk")


def _manifest(fields: dict[str, Any]) -> Manifest:
    files = tuple(BackupFile(row["name"], _number(row["size"]), _digest(row["sha256"])) for row in fields["files"])
    names = [file.name for file in files]
    if names != [name for name in FILES if name in names] or not set(REQUIRED) <= set(names):
        raise ValueError("these are not the files of a home")
    if fields["protection"] not in _PROTECTIONS or bool(fields["protection"]) != (KEYS in names):
        raise ValueError("no such protection of keys")
    counts = Counts(**{name: _number(value) for name, value in fields["counts"].items()})
    return Manifest(_number(fields["created_ms"]), fields["protection"], counts, files)


def _is_sound(fields: dict[str, Any]) -> bool:
    """True if the checksum of a manifest of any format is right."""
    told = fields.pop("checksum", None)
    try:
        return bool(told == sha256(_text(fields)).hexdigest())
    except (ValueError, RecursionError):
        return False


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _NUMBER_MAX:
        raise ValueError("no size or count")
    return value


def _digest(value: Any) -> bytes:
    digest = bytes.fromhex(value)
    if len(digest) != _DIGEST_SIZE:
        raise ValueError("no SHA-256")
    return digest


def _text(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, indent=1).encode()


def read_manifest(backup: Path) -> Manifest:
    """Return the manifest of a backup. The error names the file, and what to do."""
    path = backup / BACKUP
    if not os.path.lexists(path):
        raise InvalidInput(
            f"there is no backup in {backup}: it has no {BACKUP}; name a folder that `antiphon backup` made"
        )
    try:
        with open_file(path) as file:
            return decode_manifest(file.read(MANIFEST_SIZE_MAX + 1), str(path))
    except OSError as error:
        raise damaged_backup(path, f"it cannot be read: {error.strerror}") from None
    except BadEncoding as error:
        raise damaged_backup(path, error) from None


def open_file(path: Path) -> BinaryIO:
    """Open a file of a backup to read. A link, a pipe or a folder in its place is refused, and never waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise damaged_backup(path, f"it cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise damaged_backup(path, "it is no regular file")
    return open(handle, "rb")


def damaged_backup(path: Path, why: AntiphonError | str) -> DamagedStore:
    """Make the error for a file of a backup that has changed, with the ways back."""
    told = str(why) if str(path) in str(why) else f"{path}: {why}"
    return DamagedStore(
        f"{told}. No home was made. Take another backup, or another copy of this one; without one, begin a new home "
        "with the recovery phrase of the identity, join your parties, and sync (docs/recovering.md)",
        file=str(path),
    )
