"""Very many items at once, also on a second core, give the same as one by one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.party.engine.forked_worker import ForkedWorker

pytestmark = pytest.mark.slow

PROGRAM = """
import sys, tempfile
from pathlib import Path
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.party.engine import cold_fold, engine
from antiphon.party.engine.forked_worker import ForkedWorker
from antiphon.testing.peers import Peers


if not ForkedWorker.possible():
    sys.exit(77)
forks = []
start = ForkedWorker.__init__
ForkedWorker.__init__ = lambda self, work: (forks.append(1), start(self, work))[1]
with tempfile.TemporaryDirectory() as folder, Peers(folder, authority=False) as peers:
    alice, bob = peers.add("alice"), peers.add("bob")
    items = []
    for number in range(300):
        with alice.party.batch():
            item = alice.party.create(("antiphon/object", "antiphon/text", "antiphon/array")[number % 3])
            if number % 3 == 0:
                item.edit("set", "n", number)
            elif number % 3 == 1:
                item.edit("insert", 0, f"text {number}")
            else:
                item.edit("append", number)
        items.append(item.id)
    for item in items[::7]:
        alice.forge(Draft(Kind.MUTATION, item, b"rubbish"))
    alice.party.process()
    assert not forks
    engine.MANY, cold_fold.SECOND_ITEMS_MIN, cold_fold.ROWS_AT_ONCE = 10, 20, 13
    peers.sync()
    assert forks, "nothing was folded apart"
    assert bob.snapshots() == alice.snapshots() and len(bob.snapshots()) == 300
    assert bob.party.refused() == alice.party.refused() and bob.party.refused()
    assert [len(bob.party.item(item).history()) for item in items] == [
        len(alice.party.item(item).history()) for item in items
    ]
    bob.restart()
    assert bob.snapshots() == alice.snapshots()
    for broken in (lambda *_: 1 / 0, lambda *_: iter(())):  # a helper that fails, and one that does nothing
        cold_fold._fold_apart = broken
        bob.rebuild()
        assert bob.snapshots() == alice.snapshots()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a second process is used on Linux only")
def test_items_folded_on_a_second_core_are_the_same(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, cwd=tmp_path)
    if done.returncode == 77:
        pytest.skip("there is one core only")
    assert done.returncode == 0, done.stderr


def test_no_second_process_beside_other_threads() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not ForkedWorker.possible()
    finally:
        done.set()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_what_the_second_process_yields_comes_back_in_order() -> None:
    def work() -> Iterator[list[object]]:
        for number in range(100):
            yield [number, b"x" * number, (("text", number),)]

    assert ForkedWorker(work).results() == list(work())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_second_process_that_fails_gives_nothing() -> None:
    def work() -> Iterator[int]:
        yield 1
        raise ZeroDivisionError

    assert ForkedWorker(work).results() is None
