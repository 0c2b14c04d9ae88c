"""Output files: whole or not at all, never through a link, never over another file unless asked."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from antiphon.core.errors import InvalidInput, StoreError
from antiphon.core.output_file import output_file


def test_it_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with output_file(path) as stream:
        stream.write(b"hello")
        assert not path.exists()
    assert path.read_bytes() == b"hello"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["a"]


def test_after_an_error_nothing_remains(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), output_file(path, replace=True) as stream:  # noqa: PT012
        stream.write(b"new")
        raise ZeroDivisionError
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["a"])


def test_an_existing_file_is_refused_also_if_it_comes_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(InvalidInput, match="a exists"), output_file(path) as stream:  # noqa: PT012
        stream.write(b"new")
        path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="a exists"), output_file(path):
        pass
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_system_without_hard_links_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    with output_file(tmp_path / "a") as stream:
        stream.write(b"hello")
    assert (tmp_path / "a").read_bytes() == b"hello"

    with pytest.raises(InvalidInput, match="a exists"), output_file(tmp_path / "a"):
        pass
    with pytest.raises(InvalidInput, match="b exists"), output_file(tmp_path / "b") as stream:  # noqa: PT012
        stream.write(b"new")
        (tmp_path / "b").write_bytes(b"came meanwhile")
    assert (tmp_path / "b").read_bytes() == b"came meanwhile"
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_missing_folder_and_a_full_disk_are_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written: No such file"), output_file(tmp_path / "no" / "a"):
        pass
    with pytest.raises(StoreError, match="a could not be written: no space is left"), output_file(tmp_path / "a"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert os.listdir(tmp_path) == []
