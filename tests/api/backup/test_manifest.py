"""The manifest of a backup: one encoding, and every changed byte is refused."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from antiphon.api.backup.manifest import (
    FILES,
    MANIFEST_SIZE_MAX,
    REQUIRED,
    BackupFile,
    Counts,
    Manifest,
    decode_manifest,
    encode_manifest,
    read_manifest,
)
from antiphon.core.errors import BadEncoding, DamagedStore, InvalidInput

NUMBERS = st.integers(0, 1 << 62)


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    names = [name for name in FILES if name in REQUIRED or draw(st.booleans())]
    files = tuple(BackupFile(name, draw(NUMBERS), draw(st.binary(min_size=32, max_size=32))) for name in names)
    protection = draw(st.sampled_from(["passphrase", "keyring", "UNPROTECTED"])) if "keys" in names else ""
    return Manifest(draw(NUMBERS), protection, Counts(*(draw(NUMBERS) for _ in range(5))), files)


@given(manifests())
def test_it_comes_back(manifest: Manifest) -> None:
    assert decode_manifest(encode_manifest(manifest)) == manifest


@given(manifests(), st.integers(0), st.integers(0, 7))
def test_every_flipped_bit_is_refused(manifest: Manifest, at: int, bit: int) -> None:
    spoilt = bytearray(encode_manifest(manifest))
    spoilt[at % len(spoilt)] ^= 1 << bit
    with pytest.raises(BadEncoding):
        decode_manifest(bytes(spoilt))


def forged(**changes: Any) -> bytes:
    """A manifest whose checksum is right, with other fields."""
    files = tuple(BackupFile(name, 1, bytes(32)) for name in FILES)
    fields = json.loads(encode_manifest(Manifest(1, "UNPROTECTED", Counts(0, 0, 0, 0, 0), files))) | changes
    del fields["checksum"]
    text = json.dumps(fields, indent=1).encode()
    return json.dumps(fields | {"checksum": sha256(text).hexdigest()}, indent=1).encode()


ROW = {"name": "keys", "sha256": "00" * 32, "size": 1}


@pytest.mark.parametrize(
    "changes",
    [
        {"files": [ROW]},
        {"files": [{**ROW, "name": "../keys"}]},
        {"files": "keys"},
        {"files": [1]},
        {"created_ms": -1},
        {"created_ms": True},
        {"created_ms": 1.5},
        {"protection": "none"},
        {"protection": ["UNPROTECTED"]},
        {"protection": ""},
        {"counts": {}},
        {"counts": [1]},
        {"counts": {"parties": 0, "feeds": 0, "blocks": 0, "blobs": 0, "wrong": 0, "more": 0}},
        {"more": 1},
    ],
)
def test_hostile_fields_are_refused(changes: dict[str, Any]) -> None:
    assert decode_manifest(forged()).protection == "UNPROTECTED"
    with pytest.raises(BadEncoding, match="it is not the list"):
        decode_manifest(forged(**changes))


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"1", b"null", b"{", b"[" * 10_000, b'"' + b"x" * MANIFEST_SIZE_MAX, b"\xff"]
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(BadEncoding):
        decode_manifest(data)


def test_a_newer_format_is_told_from_damage(tmp_path: Path) -> None:
    (tmp_path / "antiphon-backup.json").write_bytes(forged(format="antiphon.backup.2"))
    with pytest.raises(DamagedStore, match="use the newer program that wrote it"):
        read_manifest(tmp_path)


def test_a_folder_that_is_no_backup_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InvalidInput, match="there is no backup in"):
            read_manifest(path)
