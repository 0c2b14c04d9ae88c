"""Our side of bench/feed.py. bench/anchors/hypercore.js takes the same commands, one JSON object a line.

append    folder, bodies, count, batch, durable → blocks, seconds
read      folder, how, seqs                     → blocks, seconds; `how` is sequential, random or arrow
serve     folder                                → offer; then sends the feed to the one peer that connects
receive   folder, offer, durable, watch         → blocks, seconds, and memory if it is watched
idle                                            → nothing, when what came before is done
"""

from __future__ import annotations

import gc
import itertools
import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from antiphon.core.keys import KeyPair
from antiphon.feed import span as spans
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.ingest import Outcome

PARTY = KeyPair.from_seed(b"p" * 32).key
PAIR = KeyPair.from_seed(b"f" * 32)
BODY_SIZE = 150
COMMIT_SIZE = 1 << 20  # a receiver commits when about this much has come
_LENGTH = struct.Struct("<I")


def append(folder: str, bodies: str, count: int, batch: int, durable: bool) -> dict[str, Any]:
    """Only the appends are timed: the drafts are made before, and closing flushes after."""
    pool = Path(bodies).read_bytes()
    drafts = [
        Draft(Kind.MUTATION, bytes(16), pool[at : at + BODY_SIZE])
        for at in range(0, min(count * BODY_SIZE, len(pool)), BODY_SIZE)
    ]
    made = [drafts[at : at + batch] for at in range(0, len(drafts), batch)]
    batches = list(itertools.islice(itertools.cycle(made), count // batch))
    gc.collect()
    gc.freeze()  # the collector need not look through drafts that only a benchmark makes beforehand
    with FeedStore.open(folder, durable=durable) as store:
        store.create(PAIR.key, PARTY)
        start = time.perf_counter()
        for some in batches:
            store.append(PAIR, PARTY, some)
        seconds = time.perf_counter() - start
        assert store.bounds(PAIR.key).length == count
    gc.unfreeze()
    return {"blocks": count, "seconds": seconds}


def read(folder: str, how: str, seqs: str) -> dict[str, Any]:
    wanted = json.loads(Path(seqs).read_text())
    with FeedStore.open(folder, readonly=True) as store:

        def sequential() -> int:
            blocks = store.read(PAIR.key, wanted[0], wanted[-1] + 1)
            return sum(len(block.message or b"") == BODY_SIZE for block in blocks)

        def random() -> int:
            return sum(len(store.block(PAIR.key, seq).message or b"") == BODY_SIZE for seq in wanted)

        def arrow() -> int:
            return sum(int(batch.num_rows) for batch in store.arrow(PAIR.key, wanted[0], wanted[-1] + 1))

        acts = {"sequential": sequential, "random": random, "arrow": arrow}
        start = time.perf_counter()
        blocks = acts[how]()
        seconds = time.perf_counter() - start
        assert blocks == len(wanted)
        return {"blocks": blocks, "seconds": seconds}


def serve(folder: str) -> None:
    """Spans as they are stored, each with its length before it."""
    with socket.create_server(("127.0.0.1", 0)) as server, FeedStore.open(folder, readonly=True) as feeds:
        head = feeds.head(PAIR.key)
        assert head is not None
        _say({"offer": {"port": server.getsockname()[1], "length": head.length, "hash": head.hash.hex()}})
        peer, _ = server.accept()
        with peer:
            for span in feeds.spans(PAIR.key):
                data = span.encode()
                peer.sendall(_LENGTH.pack(len(data)) + data)


def receive(folder: str, offer: dict[str, Any], durable: bool, watch: bool = False) -> dict[str, Any]:
    """From the connection to the last block stored; every span is decoded and verified from the bytes received."""
    memory = _Memory() if watch else None
    with FeedStore.open(folder, durable=durable) as store:
        start = time.perf_counter()
        with socket.create_connection(("127.0.0.1", offer["port"])) as peer, peer.makefile("rb") as stream:
            blocks = 0
            for some in _gathered(stream):
                blocks += _ingest(store, some)
        seconds = time.perf_counter() - start
        head = store.head(PAIR.key)
        assert head is not None
        assert (blocks, head.hash.hex()) == (offer["length"], offer["hash"])
    answer: dict[str, Any] = {"blocks": blocks, "seconds": seconds}
    if memory is not None:
        answer["memory"] = memory.stop()
    return answer


def _ingest(store: FeedStore, some: list[Span]) -> int:
    results = store.ingest_all(some)
    assert all(result.outcome is Outcome.STORED for result in results)
    return sum(result.added for result in results)


def _gathered(stream: IO[bytes]) -> Iterator[list[Span]]:
    """Decoded spans, as many as share a commit."""
    some: list[Span] = []
    size = 0
    while prefix := stream.read(_LENGTH.size):
        data = stream.read(_LENGTH.unpack(prefix)[0])
        some.append(spans.decode(data))
        size += len(data)
        if size >= COMMIT_SIZE:
            yield some
            some, size = [], 0
    if some:
        yield some


class _Memory:
    """Samples this process: anonymous memory is its own; file pages are the kernel's cache of the store, mapped."""

    def __init__(self) -> None:
        self._peak: dict[str, int] = {}
        self._before = _status()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._done.wait(0.01):
            self._sample()

    def _sample(self) -> None:
        for name, size in _status().items():
            self._peak[name] = max(size, self._peak.get(name, 0))

    def stop(self) -> dict[str, Any]:
        self._done.set()
        self._thread.join()
        self._sample()
        return {"before": self._before, "peak": self._peak}


def _status() -> dict[str, int]:
    """Bytes of this process's memory, by the kernel's names."""
    sizes = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmHWM", "VmRSS", "RssAnon", "RssFile", "RssShmem"):
            sizes[name] = int(value.split()[0]) << 10
    return sizes


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    commands: dict[str, Callable[..., dict[str, Any] | None]] = {
        "idle": dict,
        "append": append,
        "read": read,
        "serve": serve,
        "receive": receive,
    }
    for line in sys.stdin:
        command = json.loads(line)
        answer = commands[command.pop("do")](**command)
        if answer is not None:
            _say(answer)


if __name__ == "__main__":
    main()
