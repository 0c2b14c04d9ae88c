"""Output folders: whole or not at all, never over anything, and nothing of a killed program stays."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

import pytest

from antiphon.core.errors import DiskFull, InvalidInput, StoreError
from antiphon.core.output_folder import output_folder


def test_it_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a"
    with output_folder(path) as folder:
        (folder / "one").write_bytes(b"hello")
        assert not path.exists()
    assert (path / "one").read_bytes() == b"hello"
    assert [stat.S_IMODE(made.stat().st_mode) for made in (path, path.parent)] == [0o700, 0o700]
    assert os.listdir(path.parent) == ["a"]


def test_after_an_error_nothing_remains(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), output_folder(tmp_path / "a") as folder:  # noqa: PT012
        (folder / "one").write_bytes(b"hello")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
@pytest.mark.parametrize("meanwhile", [False, True])
def test_nothing_is_written_over(tmp_path: Path, kind: str, meanwhile: bool) -> None:
    path = tmp_path / "a"

    def make() -> None:
        if kind == "file":
            path.write_bytes(b"mine")
        elif kind == "link":
            path.symlink_to(tmp_path / "nowhere")
        else:
            path.mkdir()
            (path / "mine").touch()

    if not meanwhile:
        make()
    with pytest.raises(InvalidInput, match="a is there already"), output_folder(path) as folder:  # noqa: PT012
        (folder / "one").touch()
        make()
    assert os.listdir(tmp_path) == ["a"]
    assert not (path / "one").exists()


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with output_folder(tmp_path / "a") as folder:
        (folder / "one").touch()
    assert os.listdir(tmp_path / "a") == ["one"]


def test_leftovers_of_killed_programs_go_and_those_in_use_stay(tmp_path: Path) -> None:
    left, mine = tmp_path / f".antiphon-{'0' * 32}.partial", tmp_path / ".antiphon-mine.partial"
    linked = tmp_path / f".antiphon-{'1' * 32}.partial"
    (tmp_path / "elsewhere").mkdir()
    linked.symlink_to(tmp_path / "elsewhere")
    for folder in (left, mine):
        (folder / "feeds").mkdir(parents=True)
    with output_folder(tmp_path / "a") as outer:
        assert not left.exists()
        with output_folder(tmp_path / "b"):
            assert outer.exists(), "it is locked"
    assert mine.exists()
    assert linked.is_symlink()
    assert (tmp_path / "elsewhere").exists()


def test_a_folder_that_is_taken_for_a_leftover_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program may see it between its making and its locking."""
    locks, flock = [], fcntl.flock

    def late(handle: int, how: int) -> None:
        locks.append(handle)
        if len(locks) == 1:
            [found] = tmp_path.iterdir()
            found.rmdir()
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with output_folder(tmp_path / "a") as folder:
        (folder / "one").touch()
    assert len(locks) == 2
    assert os.listdir(tmp_path / "a") == ["one"]


def test_a_full_disk_and_a_forbidden_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(DiskFull, match="a could not be written: no space is left"), output_folder(tmp_path / "a"):
        raise OSError(errno.ENOSPC, "No space left on device")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written"), output_folder(tmp_path / "file" / "a"):
        pass
    assert os.listdir(tmp_path) == ["file"]
