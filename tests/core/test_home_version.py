"""The version of a home: a changed byte is never read as another version."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import BadEncoding, DamagedStore, InvalidInput, StoreError
from antiphon.core.home_version import (
    HOME_VERSION,
    VERSION_FILE,
    VERSION_MAX,
    decode_version,
    encode_version,
    need_version,
    read_version,
    write_version,
)


@given(st.integers(1, VERSION_MAX), st.integers(0), st.integers(0, 7))
def test_a_flipped_bit_is_damage_and_no_other_version(version: int, at: int, bit: int) -> None:
    data = encode_version(version)
    assert decode_version(data) == version
    spoilt = bytearray(data)
    spoilt[at % len(data)] ^= 1 << bit
    with pytest.raises(BadEncoding, match="has changed on the disk"):
        decode_version(bytes(spoilt))


@pytest.mark.parametrize("version", [0, -1, VERSION_MAX + 1])
def test_no_other_version_is_written(version: int) -> None:
    with pytest.raises(InvalidInput):
        encode_version(version)


def test_a_home_without_the_file_has_version_1(tmp_path: Path) -> None:
    assert read_version(tmp_path) == read_version(tmp_path / "nowhere") == 1
    write_version(tmp_path, 7)
    assert read_version(tmp_path) == 7
    assert (tmp_path / VERSION_FILE).stat().st_mode & 0o777 == 0o600


def test_a_newer_home_is_refused_with_what_to_do(tmp_path: Path) -> None:
    write_version(tmp_path, HOME_VERSION)
    assert need_version(tmp_path) == HOME_VERSION
    write_version(tmp_path, HOME_VERSION + 1)
    with pytest.raises(StoreError, match=r"a newer Antiphon has upgraded it. Use that one, or restore a backup"):
        need_version(tmp_path)


@pytest.mark.parametrize("data", [b"", b"antiphon.home.2", encode_version(2) + b"\n", b"\0" * 40, b"x" * 10_000])
def test_damage_is_named_with_the_ways_back(tmp_path: Path, data: bytes) -> None:
    (tmp_path / VERSION_FILE).write_bytes(data)
    with pytest.raises(DamagedStore, match=r"doctor --repair.*put a copy") as told:
        read_version(tmp_path)
    assert told.value.file == str(tmp_path / VERSION_FILE)


def test_a_folder_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / VERSION_FILE).mkdir()
    with pytest.raises(StoreError, match="cannot be read"):
        read_version(tmp_path)
