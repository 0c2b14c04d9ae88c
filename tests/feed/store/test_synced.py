"""An append is on the disk when it returns. A killed process keeps the system's cache, so a kill cannot show that;
here every write that was not synced is dropped, as by a power cut, and the store is opened on what is left."""

from __future__ import annotations

import os
import random
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from antiphon.core.errors import StoreError
from antiphon.core.keys import KeyPair
from antiphon.feed.store.feed_store import FeedStore

HERE = Path(__file__).parent
RECORD = struct.Struct("<cBQQ")  # see unsynced.c
SECTOR = 512
ROUNDS = 40


@dataclass(frozen=True)
class Event:
    """One thing that the writer did to its file, or a mark: an append had returned."""

    kind: str
    synced: bool
    offset: int
    data: bytes


@dataclass
class Disk:
    """The file as the system sees it, the file as it is on the disk, and what lies between them."""

    cache: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, int]] = field(default_factory=list)

    def do(self, event: Event) -> None:
        assert event.kind in "wsmd", f"the layer cannot follow {event}"
        if event.kind == "w":
            _put(self.cache, event.offset, event.data)
            if event.synced:
                _put(self.durable, event.offset, event.data)
            else:
                self.pending.append((event.offset, len(event.data)))
        elif event.kind == "s":
            for offset, size in self.pending:
                _put(self.durable, offset, bytes(self.cache[offset : offset + size]))
            self.pending = []

    def after_power_cut(self, chance: random.Random) -> bytes:
        """What is on the disk, with any of the sectors that were under way."""
        left = bytearray(self.durable)
        for offset, size in self.pending:
            for at in range(offset, offset + size, SECTOR):
                if chance.random() < 0.5:
                    _put(left, at, bytes(self.cache[at : min(at + SECTOR, offset + size)]))
        return bytes(left)


def _put(file: bytearray, offset: int, data: bytes) -> None:
    file.extend(bytes(max(0, offset + len(data) - len(file))))
    file[offset : offset + len(data)] = data


@dataclass(frozen=True)
class Trace:
    """What a writer did, and its acknowledgements by number: first seq, count."""

    events: list[Event]
    acknowledged: dict[int, tuple[int, int]]


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`unsynced.c`, compiled."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler here, so no file layer that drops unsynced writes")
    library = tmp_path_factory.mktemp("layer") / "unsynced.so"
    subprocess.run(
        [
            compiler,
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-Werror",
            "-o",
            library,
            HERE / "unsynced.c",
            "-ldl",
            "-lpthread",
        ],
        check=True,
    )
    return library


def traced(layer: Path, folder: Path, *, threads: int = 1, mode: str = "durable") -> Trace:
    """Run a writer on the layer."""
    log = folder / "log"
    done = subprocess.run(
        [sys.executable, HERE / "acker.py", folder / "made" / "here", "seed", str(ROUNDS), str(threads), mode],
        env={**os.environ, "LD_PRELOAD": str(layer), "ANTIPHON_UNSYNCED_LOG": str(log)},
        stdout=subprocess.PIPE,
        check=True,
    )
    lines = [[int(part) for part in line.split()] for line in done.stdout.splitlines()]
    assert len(lines) == ROUNDS
    return Trace(list(_events(log.read_bytes())), {number: (first, count) for number, first, count, _ in lines})


def _events(log: bytes) -> Iterator[Event]:
    at = 0
    while at < len(log):
        kind, synced, offset, size = RECORD.unpack_from(log, at)
        at += RECORD.size + size
        yield Event(kind.decode(), bool(synced), offset, log[at - size : at])


def lost(trace: Trace, folder: Path, feed: bytes, chance: random.Random) -> list[int]:
    """The acknowledged appends that a power cut would lose: right after each acknowledgement with nothing unsynced
    kept, and at random moments with any part of what was under way."""
    disk, marks, gone = Disk(), list[int](), list[int]()
    for at, event in enumerate(trace.events):
        disk.do(event)
        if event.kind == "m":
            marks.append(event.offset)
            gone += _missing(bytes(disk.durable), folder / f"{at}", feed, trace, marks)
        elif chance.random() < 0.3:
            gone += _missing(disk.after_power_cut(chance), folder / f"{at}", feed, trace, marks)
    assert sorted(marks) == list(range(ROUNDS))
    return gone


def _missing(data: bytes, folder: Path, feed: bytes, trace: Trace, marks: list[int]) -> list[int]:
    folder.mkdir(parents=True)
    (folder / "data.mdb").write_bytes(data)
    if not marks:
        return []
    try:
        with FeedStore.open(folder, durable=False) as store:
            length = store.verify(feed).length
            messages = [block.message or b"" for block in store.read(feed)]
    except StoreError:
        return list(marks)
    finally:
        shutil.rmtree(folder)
    assert len(messages) == length
    gone = []
    for number in marks:
        first, count = trace.acknowledged[number]
        wanted = [f"seed.{number} {at}/{count} ".encode() for at in range(count)]
        found = [message[: len(start)] for message, start in zip(messages[first:], wanted, strict=False)]
        gone += [number] if found != wanted else []
    return gone


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 6])
def test_no_power_cut_loses_what_was_acknowledged(layer: Path, tmp_path: Path, alice: KeyPair, threads: int) -> None:
    trace = traced(layer, tmp_path, threads=threads)

    assert lost(trace, tmp_path / "cut", alice.key, random.Random(threads)) == []


def test_the_folder_is_synced_before_the_first_acknowledgement(layer: Path, tmp_path: Path) -> None:
    """Else the file itself might not be there: three folders got a new entry, one of them for data.mdb."""
    events = traced(layer, tmp_path).events

    first = next(at for at, event in enumerate(events) if event.kind == "m")

    assert sum(event.kind == "d" for event in events[:first]) == 3


def test_without_sync_the_same_check_fails(layer: Path, tmp_path: Path, alice: KeyPair) -> None:
    """The check can fail: with `durable=False` a power cut loses what was not flushed."""
    trace = traced(layer, tmp_path, mode="nosync")

    assert set(lost(trace, tmp_path / "cut", alice.key, random.Random(0))) == set(range(ROUNDS))


def test_the_trace_of_system_calls_shows_a_sync_before_each_acknowledgement(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if (
        strace is None
        or subprocess.run([strace, "-o", os.devnull, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("no strace here, or it may not trace")
    calls = "trace=openat,write,writev,pwrite64,pwritev,fdatasync,fsync,msync,ftruncate"
    subprocess.run(
        [
            *(strace, "-f", "-y", "-s", "64", "-e", calls, "-o", tmp_path / "trace"),
            *(sys.executable, HERE / "acker.py", tmp_path / "store", "seed", "12"),
        ],
        check=True,
        capture_output=True,
    )

    dirty, meta_written, acknowledged, synced_descriptors = False, False, 0, set[str]()
    for line in (tmp_path / "trace").read_text(errors="replace").splitlines():
        assert "unfinished" not in line or "data.mdb" not in line, "two threads at once: this trace has no one order"
        opened = re.search(r"openat\(.*data\.mdb\", (\S+).*\) = (\d+)<", line)
        if opened is not None and "O_DSYNC" in opened[1]:
            synced_descriptors.add(opened[2])
        call = re.search(r" (\w+)\((\d+)<[^>]*/data\.mdb>", line)
        if call is not None:
            name, descriptor = call.groups()
            assert name in ("write", "writev", "pwrite64", "pwritev", "fdatasync", "fsync")
            if name in ("fdatasync", "fsync"):
                dirty = False
            elif descriptor in synced_descriptors:
                assert not dirty, "the meta page was written before the pages that it names were synced"
                meta_written = True
            else:
                dirty = True
        if re.search(r" write\(1<.*, \"\d+ \d+ \d+ [01]\\n\"", line):
            assert not dirty
            assert meta_written
            meta_written = False
            acknowledged += 1
    assert acknowledged == 12
