"""What the tests of feeds share: keys, stores that close themselves, and talks with other processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.budget import SOAK

from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.store.feed_store import FeedStore
from antiphon.testing.spans import SeededRandomness, SpanWriter, StillClock, key_pair


@pytest.fixture(scope="session")
def soak() -> bool:
    """Whether budgets are those of `make soak`."""
    return SOAK


@pytest.fixture(scope="session")
def party() -> PublicKey:
    return key_pair("party").key


@pytest.fixture(scope="session")
def alice() -> KeyPair:
    return key_pair("alice")


@pytest.fixture(scope="session")
def bob() -> KeyPair:
    return key_pair("bob")


@pytest.fixture
def writer(alice: KeyPair, party: PublicKey) -> SpanWriter:
    """Alice's feed, written without a store."""
    return SpanWriter(alice, party)


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Callable[..., FeedStore]]:
    """Opens stores by name in a folder of the test's own; what is still open at the end is closed."""
    opened: list[FeedStore] = []

    def open_(name: str = "store", **options: Any) -> FeedStore:
        options.setdefault("clock", StillClock())
        options.setdefault("randomness", SeededRandomness(len(opened)))
        options.setdefault("durable", False)  # most tests are about anything but a power cut
        opened.append(FeedStore.open(tmp_path / name, **options))
        return opened[-1]

    yield open_
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Callable[..., FeedStore]) -> FeedStore:
    return open_store()


@pytest.fixture
def child() -> Iterator[Callable[..., Callable[[str], str]]]:
    """Starts `child.py` in a process of its own. What comes back asks it: a line there, a line back."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object) -> Callable[[str], str]:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("child.py")), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        started.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        heard, said = process.stdout, process.stdin
        assert heard.readline() == "ready\n"

        def ask(line: str) -> str:
            said.write(line + "\n")
            said.flush()
            return heard.readline().rstrip("\n")

        return ask

    yield start
    for process in started:
        process.kill()
        process.communicate()
