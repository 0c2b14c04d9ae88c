"""Our side of bench/epoch.py; it takes one JSON object a line. All commands share a folder.

build    items, mutations          → seconds; the feeds of a party with several devices
epochs   share, tail, alone, rounds → what epochs cost, what they rewrite, what a writer sees; a joiner's folder
start    replay                    → seconds to the first item, to all of them, and bytes read; its item store is new
opened   count                     → seconds that each of some items takes to be opened from the tree
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from antiphon.feed.block import Block
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.reader import FeedReader
from antiphon.halo.control.machine import PartyMachine
from antiphon.party.engine.authority import PartyAuthority
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.store.item_store import delete_file
from antiphon.snapshot.blob_store import BlobStore
from antiphon.snapshot.blobs import MemoryBlobs
from harness.epoch_devices import ATTESTER, GENERATOR, MODELS, CountedBlobs, Party, found, running
from harness.epoch_feeds import Team, write_items
from harness.epoch_run import Run

PICKS = 200
now = time.perf_counter


def build(folder: str, items: int, mutations: int) -> dict[str, Any]:
    start = now()
    with FeedStore.open(Path(folder, "feeds"), durable=False) as store:
        writers = found(Path(folder), store)
        machine = PartyMachine(*Party.load(Path(folder)))
        PartyAuthority(store, machine).refresh()
        lengths = [store.record(writer.feed).length for writer in writers]
        team = Team(writers, machine.entries(), lengths)
        ids = write_items(team, items, mutations, random.Random(1))
    Path(folder, "ids.json").write_text(json.dumps(ids))
    return {"seconds": now() - start, "messages": team.count}


def epochs(folder: str, share: float, tail: int, alone: float, rounds: int) -> dict[str, Any]:
    """Run all epochs in one process, so that its devices share the feeds."""
    place = Path(folder)
    ids = [bytes.fromhex(item) for item in json.loads(Path(folder, "ids.json").read_text())]
    with FeedStore.open(place / "feeds") as store:
        with running(place, store, GENERATOR):
            pass  # its item store is made here; the other's is a copy of it
        shutil.copyfile(place / f"{GENERATOR}.items", place / f"{ATTESTER}.items")
        with running(place, store, GENERATOR) as one, running(place, store, ATTESTER) as other:
            run = Run(one, other, ids, store)
            answer = run.all(share, tail, alone, rounds)
            expected = [(item.hex(), one.party.snapshot(item).hex()) for item in random.Random(2).sample(ids, PICKS)]
        (place / "expected.json").write_text(json.dumps(expected))
    _joiner(place, run.cut)
    return answer


def _joiner(folder: Path, cut: dict[bytes, int]) -> None:
    """Make the folder of a peer that joined at the epoch: its blobs, the control feeds and the tail."""
    there = folder / "joiner"
    shutil.copytree(folder / "feeds", there / "feeds", ignore=shutil.ignore_patterns("lock*"))
    shutil.copytree(folder / f"{GENERATOR}.blobs", there / "blobs", ignore=shutil.ignore_patterns("lock*"))
    with FeedStore.open(there / "feeds") as store:
        for feed, length in cut.items():
            if length:
                store.prune(feed, length)


def start(folder: str, replay: bool) -> dict[str, Any]:
    """Run in a fresh process."""
    place, there = Path(folder), Path(folder) if replay else Path(folder, "joiner")
    expected = [tuple(map(bytes.fromhex, pair)) for pair in json.loads((place / "expected.json").read_text())]
    with _opened(place, there, replay=replay) as (begin, party, count):
        _ = party.item(expected[0][0]).value
        first, first_bytes = now() - begin, count()
        ids = party.items()
        listed, listed_bytes = now() - begin, count()
        for item in ids:
            _ = party.item(item).value
        read, read_bytes = now() - begin, count()
        assert all(party.snapshot(item) == wanted for item, wanted in expected)
        assert not party.refused()
    times = {"first": first, "listed": listed, "read": read}
    sizes = {"first": first_bytes, "listed": listed_bytes, "read": read_bytes}
    return {"items": len(ids), "seconds": times, "bytes": sizes}


def opened(folder: str, count: int) -> dict[str, Any]:
    """Open items of the tree, each for the first time."""
    ids = [bytes.fromhex(item) for item in json.loads(Path(folder, "ids.json").read_text())]
    some = random.Random(3).sample(ids, min(count, len(ids)))
    taken = []
    with _opened(Path(folder), Path(folder, "joiner"), replay=False) as (_, party, size):
        before = size()
        for item in some:
            begin = now()
            _ = party.item(item).value
            taken.append(now() - begin)
        return {"seconds": sorted(taken), "bytes": (size() - before) / len(some)}


@contextmanager
def _opened(folder: Path, there: Path, *, replay: bool) -> Iterator[tuple[float, PartyProcessor, Callable[[], int]]]:
    """Open a party without an item store: yields the start time, the party, and a function for the bytes read."""
    known, path = Party.load(folder), there / "start.items"
    delete_file(path)
    sizes = [0]
    with _counting(sizes):
        begin = now()
        with FeedStore.open(there / "feeds") as store, BlobStore.open(there / "blobs") as held:
            authority = PartyAuthority(store, PartyMachine(*known))
            blobs = CountedBlobs(MemoryBlobs() if replay else held)
            with PartyProcessor(known.party, store, authority, path=path, models=MODELS, blobs=blobs) as party:
                yield begin, party, lambda: sizes[0] + blobs.read


@contextmanager
def _counting(sizes: list[int]) -> Iterator[None]:
    """Add up the bytes of all blocks that are read from a feed store."""
    runs, block = FeedReader.runs, FeedReader.block

    def counted_runs(self: FeedReader, *values: Any) -> Iterator[tuple[Span, int, int]]:
        for span, low, high in runs(self, *values):
            sizes[0] += span.size
            yield span, low, high

    def counted_block(self: FeedReader, *values: Any) -> Block:
        found = block(self, *values)
        sizes[0] += len(found.body or b"")
        return found

    with (
        mock.patch.object(FeedReader, "runs", counted_runs),
        mock.patch.object(FeedReader, "block", counted_block),
    ):
        yield


def main() -> None:
    commands: dict[str, Callable[..., dict[str, Any]]] = {
        "build": build,
        "epochs": epochs,
        "start": start,
        "opened": opened,
    }
    for line in sys.stdin:
        command = json.loads(line)
        print(json.dumps(commands[command.pop("do")](**command)), flush=True)


if __name__ == "__main__":
    main()
