"""The file of a key store under several processes, crashes, full disks and other people's eyes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.core.errors import BadEncoding, KeyStoreError, TooLarge
from antiphon.halo.keys.key_file import FILE_SIZE_MAX, KeyRecord
from antiphon.halo.keys.key_store import MINIMUM, KeyKind, KeyStore, Protection

PASSPHRASE = "correct horse battery staple"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys"


def create(path: Path) -> KeyStore:
    return KeyStore.create(path, passphrase=PASSPHRASE, cost=MINIMUM)


def test_a_store_is_not_created_over_another(path: Path) -> None:
    pair = create(path).generate(KeyKind.DEVICE, "laptop")
    with pytest.raises(KeyStoreError, match="there already"):
        KeyStore.create(path, protection=Protection.UNPROTECTED)
    assert KeyStore.open(path, PASSPHRASE).pair(pair.key) == pair


def test_places_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(KeyStoreError, match=r"file/keys.*choose another place"):
        create(tmp_path / "file" / "keys")
    with pytest.raises(KeyStoreError, match=r"keys cannot be read: No such file"):
        KeyStore.open(tmp_path / "keys")
    with pytest.raises(KeyStoreError, match=r"cannot be read|no regular file"):
        KeyStore.open(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(KeyStoreError, match="no regular file"):
        KeyStore.open(tmp_path / "pipe")


def test_only_the_user_may_read_the_file_at_every_moment(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    real = os.replace

    def watched(source: Path, target: Path) -> None:
        modes.append(stat.S_IMODE(source.stat().st_mode))
        real(source, target)

    monkeypatch.setattr(os, "replace", watched)
    umask = os.umask(0)
    try:
        create(path).generate(KeyKind.DEVICE, "laptop")
    finally:
        os.umask(umask)

    assert modes == [0o600, 0o600]
    assert {place.name: stat.S_IMODE(place.stat().st_mode) for place in path.parent.iterdir()} == {
        "keys": 0o600,
        "keys.lock": 0o600,
    }


def test_a_write_is_synced_before_and_after_the_rename(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = create(path)
    done: list[str] = []
    sync, rename = os.fsync, os.replace

    def watched_sync(number: int) -> None:
        sync(number)
        done.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")

    def watched_rename(source: Path, target: Path) -> None:
        rename(source, target)
        done.append("rename")

    monkeypatch.setattr(os, "fsync", watched_sync)
    monkeypatch.setattr(os, "replace", watched_rename)
    store.generate(KeyKind.FEED, "notes")

    assert done == ["file", "rename", "folder"]


def test_a_failed_write_leaves_the_store_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = create(path)
    pair = store.generate(KeyKind.DEVICE, "laptop")

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(KeyStoreError, match=r"cannot be written: No space left"):
            store.generate(KeyKind.FEED, "notes")
        with pytest.raises(KeyStoreError, match=r"cannot be written: No space left"):
            store.protect(protection=Protection.UNPROTECTED)

    assert sorted(place.name for place in path.parent.iterdir()) == ["keys", "keys.lock"]
    assert store.protection is Protection.PASSPHRASE
    assert KeyStore.open(path, PASSPHRASE).keys() == (KeyRecord(pair.key, KeyKind.DEVICE, "laptop"),)
    store.generate(KeyKind.FEED, "notes")


WRITER = """
import sys
from antiphon.halo.keys.key_store import KeyKind, KeyStore
store = KeyStore.open(sys.argv[1], sys.argv[2])
for number in range(int(sys.argv[3])):
    print(store.generate(KeyKind.FEED, f"{sys.argv[4]} {number}").key, flush=True)
"""


def writer(path: Path, count: int, name: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", WRITER, str(path), PASSPHRASE, str(count), name]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def test_two_processes_that_add_keys_lose_none(path: Path) -> None:
    store = create(path)
    with writer(path, 25, "first") as first, writer(path, 25, "second") as second:
        mine = [store.generate(KeyKind.DEVICE, f"mine {number}").key for number in range(10)]
        printed = first.communicate()[0].split() + second.communicate()[0].split()

    assert (first.returncode, second.returncode) == (0, 0)
    held = store.keys()
    assert {record.key.hex() for record in held} == {*printed, *(key.hex() for key in mine)}
    assert len(held) == 60


def test_a_killed_writer_loses_no_key_that_it_told_of(path: Path) -> None:
    store = create(path)
    told: set[str] = set()
    for kill_after in (1, 3, 7):
        with writer(path, 1000, "doomed") as process:
            assert process.stdout is not None
            told |= {process.stdout.readline().strip() for _ in range(kill_after)}
            process.send_signal(signal.SIGKILL)
            told |= {line.strip() for line in process.stdout if line.endswith("\n")}

        held = KeyStore.open(path, PASSPHRASE).keys()
        assert told <= {record.key.hex() for record in held}

    store.generate(KeyKind.FEED, "alive")
    assert sorted(place.name for place in path.parent.iterdir()) == ["keys", "keys.lock"]


def test_other_versions_and_other_files_are_named_as_such(path: Path) -> None:
    path.write_bytes(b"antiphon.keys.2 passphrase\n")
    with pytest.raises(BadEncoding, match="another version"):
        KeyStore.open(path)
    path.write_bytes(b"-----BEGIN OPENSSH PRIVATE KEY-----\n")
    with pytest.raises(BadEncoding, match="no key store"):
        KeyStore.open(path)
    with path.open("wb") as file:
        file.truncate(FILE_SIZE_MAX + 1)
    with pytest.raises(TooLarge, match=str(path)):
        KeyStore.open(path)
