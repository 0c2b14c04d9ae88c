"""One device of bench/mesh.py: a store in a process of its own. It takes commands, one JSON object a line.

prepare   home, others, parties      → nothing; homes that share so many parties, and have nothing else to say
open      home                       → device, identity; the store stays open until `close`
fill      count, size                → feed, length, size; objects in the first party, with values of `size` bytes
listen    host                       → address
connect   address                    → nothing, when the other device is proven
leave     address                    → nothing; the connection has ended
peers                                → devices, with the bytes from them and to them
take      address, feed, length      → stored, applied: seconds from connecting until the feed is stored, and seen
hear                                 → nothing; from now on it notes when the beacon of the first party changes
heard     last                       → spans in ms from writes to the subscriber, once the last one is seen
write     count, pause_ms            → times before each write to the beacon
echo      host, folder, count        → port; takes so many messages on a bare socket, and syncs each
echoed                               → times when each was synced
ask       host, port, folder, count, pause_ms → times before each message was synced and sent
pour      host, size                 → port; sends so many bytes on a bare socket
drain     host, port, size           → seconds until they have come
rest      seconds                    → nothing
usage                                → cpu seconds so far, memory, descriptors, threads, open parties
invite    identity                   → invitation to the first party
epoch                                → number, of an epoch over all that is in the first party; nothing is pruned
ideal                                → snapshot, tail, control: sizes of all that a joiner needs; history: of the rest
join      address, invitation, number, items → seconds until the joiner has the epoch and the items
state                                → items, and the hash of their snapshots
close                                → nothing

Times are of the clock of the machine (`time.monotonic_ns`), which its processes share.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import antiphon
from antiphon import Delta, Fact, Object, Party, Store
from antiphon.core.errors import AntiphonError
from antiphon.feed.store.feed_store import FeedStore
from antiphon.snapshot.blob_store import BlobStore
from harness.mesh_sockets import Receiver, drain, pour, send_synced

OBJECTS = 50
BATCH = 100
BEACON = "beacon"
PREPARED_AT_ONCE = 20  # parties
PATIENCE = 100.0  # seconds
_pause = threading.Event()  # never set: its time-outs are pauses


class Device:
    """The commands."""

    def __init__(self) -> None:
        self._store: Store | None = None
        self._seen: list[tuple[int, int]] = []  # values of the beacon, and when they were seen first
        self._changed = threading.Condition()
        self._kept: list[Any] = []

    @property
    def store(self) -> Store:
        assert self._store is not None, "no store is open"
        return self._store

    @property
    def party(self) -> Party:
        return self.store.party(name_of(0))

    # -- homes

    def prepare(self, home: str, others: list[str], parties: int) -> dict[str, Any]:
        with _opened(home, "writer") as here, ExitStack() as stack:
            there = [stack.enter_context(_opened(other, Path(other).name)) for other in others]
            for begin in range(0, parties, PREPARED_AT_ONCE):
                made = [_found(here, there, number) for number in range(begin, min(parties, begin + PREPARED_AT_ONCE))]
                for store in [*there, *there[:-1]]:  # the first ones hear of the last ones, too
                    antiphon.sync(here, store)
                for store in (here, *there):  # a sync of very many parties takes its time
                    for key in made if parties > PREPARED_AT_ONCE else ():
                        store.manager.pause(key)
            for store in (here, *there):
                for known in store.parties():
                    store.manager.meta.resume(known.party)
        return {}

    def open(self, home: str) -> dict[str, Any]:
        self._store = _opened(home, Path(home).name)
        return {"device": str(self._store.device), "identity": str(self._store.me)}

    def close(self) -> dict[str, Any]:
        self._kept.clear()
        self.store.close()
        self._store = None
        return {}

    def fill(self, count: int, size: int) -> dict[str, Any]:
        party, chance = self.party, random.Random(count)
        with party.batch():
            objects = [party.object() for _ in range(OBJECTS)]
        for begin in range(0, count, BATCH):
            with party.batch():
                for number in range(begin, min(count, begin + BATCH)):
                    objects[number % OBJECTS]["text"] = chance.randbytes(size // 2).hex()
        feed = party.member.open_data_feed().feed
        feeds = self.store.manager.feeds
        return {"feed": feed.hex(), "length": feeds.bounds(feed).length, "size": _size(feeds, feed, 0)}

    # -- a feed from one to the other

    def listen(self, host: str) -> dict[str, Any]:
        return {"address": str(self.store.listen(host, 0))}

    def connect(self, address: str) -> dict[str, Any]:
        self.store.connect(address)
        return {}

    def leave(self, address: str) -> dict[str, Any]:
        self.store.disconnect(address)
        return {}

    def take(self, address: str, feed: str, length: int) -> dict[str, Any]:
        """Connect, and wait until the feed is on the disk here, and its messages are applied."""
        key, feeds = bytes.fromhex(feed), self.store.manager.feeds
        start = time.perf_counter()
        self.store.connect(address)
        _until(lambda: _length(feeds, key) >= length)
        stored = time.perf_counter() - start
        _until(lambda: self.party.timeframe.get(key, -1) >= length - 1)
        return {"stored": stored, "applied": time.perf_counter() - start}

    def peers(self) -> dict[str, Any]:
        return {"peers": [[str(peer.device)[:8], peer.bytes_in, peer.bytes_out] for peer in self.store.peers]}

    # -- from a write to a subscriber

    def hear(self) -> dict[str, Any]:
        def changed(delta: Delta) -> None:
            with self._changed:
                self._seen += [(value["n"], time.monotonic_ns()) for value in delta.values.values()]
                self._changed.notify_all()

        self._kept.append(self.party.subscribe(Fact.TYPE.is_(BEACON), changed, values=True))
        return {}

    def heard(self, last: int) -> dict[str, Any]:
        """Return the milliseconds from each write that was seen to its subscriber. Two at once count as the later."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._seen and self._seen[-1][0] == last, PATIENCE):
                raise TimeoutError(f"write {last} was never seen; the last was {self._seen[-1:]}")
            seen, self._seen = dict(reversed(self._seen)), []
        seen.pop(0, None)
        return {"spans": [(at - wrote) / 1e6 for wrote, at in sorted(seen.items())]}

    def _beacon(self) -> Object:
        return self.party.query(type=BEACON).of(Object)[0]

    def write(self, count: int, pause_ms: float) -> dict[str, Any]:
        beacon, times = self._beacon(), []
        for _ in range(count):
            _pause.wait(pause_ms / 1000)
            times.append(time.monotonic_ns())
            beacon["n"] = times[-1]
        return {"times": times}

    def echo(self, host: str, folder: str, count: int) -> dict[str, Any]:
        self._receiver = Receiver(host, folder, count)
        return {"port": self._receiver.port}

    def echoed(self) -> dict[str, Any]:
        return {"times": self._receiver.join()}

    def ask(self, host: str, port: int, folder: str, count: int, pause_ms: float) -> dict[str, Any]:
        return {"times": send_synced(host, port, folder, count, _pause, pause_ms / 1000)}

    def pour(self, host: str, size: int) -> dict[str, Any]:
        return {"port": pour(host, size)}

    def drain(self, host: str, port: int, size: int) -> dict[str, Any]:
        return {"seconds": drain(host, port, size)}

    # -- what idle parties take

    def rest(self, seconds: float) -> dict[str, Any]:
        _pause.wait(seconds)
        return {}

    def usage(self) -> dict[str, Any]:
        found = resource.getrusage(resource.RUSAGE_SELF)
        status = Path("/proc/self/status").read_text()
        memory = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS"))
        return {
            "cpu": found.ru_utime + found.ru_stime,
            "memory": memory,
            "descriptors": len(os.listdir("/proc/self/fd")),
            "threads": threading.active_count(),
            "open": len(self.store.open_parties()),
        }

    # -- a joiner

    def invite(self, identity: str) -> dict[str, Any]:
        return {"invitation": str(self.party.invite(identity))}

    def epoch(self) -> dict[str, Any]:
        """Declare an epoch over all that is in the first party. Nothing is pruned."""
        self.party.epochs.set_policy(attesters=[self.store.device], generator=self.store.device)
        number = self.party.epochs.declare().number
        _until(lambda: self.party.epochs.step() or self.party.epochs.number == number)
        return {"number": self.party.epochs.number}

    def ideal(self) -> dict[str, Any]:
        """Return the sizes of all that a joiner of the first party needs, and of all that it does not."""
        party, feeds, blobs = self.party, self.store.manager.feeds, self.store.manager.blobs
        base = party.processor.engine.base
        assert base is not None
        assert isinstance(blobs, BlobStore)
        control = tail = history = 0
        for record in feeds.feeds(bytes(party.key)):
            cut = base.length(record.feed)
            if record.feed in party.member.machine.epochs().feeds:
                control += _size(feeds, record.feed, 0)
            else:
                tail += _size(feeds, record.feed, cut)
                history += _size(feeds, record.feed, 0) - _size(feeds, record.feed, cut)
        snapshot = sum(len(blobs.get(cid)) for cid in blobs)
        return {"control": control, "tail": tail, "snapshot": snapshot, "history": history, "blobs": blobs.count}

    def join(self, address: str, invitation: str, number: int, items: int) -> dict[str, Any]:
        """Join, and wait until the party here has the epoch and all items."""
        start = time.perf_counter()
        self.store.join(invitation)
        self.store.connect(address)
        _until(lambda: self._stands(number, items))
        return {"seconds": time.perf_counter() - start}

    def _stands(self, number: int, items: int) -> bool:
        try:
            party = self.party
            return party.epochs.number >= number and len(party.items()) >= items
        except AntiphonError:  # its first blocks have not come
            return False

    def state(self) -> dict[str, Any]:
        """Return the hash of all items of the first party, and their number."""
        snapshots = [item.snapshot() for item in self.party.items()]
        return {"items": len(snapshots), "hash": hashlib.sha256(b"".join(snapshots)).hexdigest()}


def _found(here: Store, there: list[Store], number: int) -> bytes:
    """Create a party, and let others follow it."""
    party = here.create_party(name_of(number))
    for store in there:
        store.join(party.invite(store.me))
    if number == 0:
        party.object({"n": 0}, type=BEACON)
    return bytes(party.key)


def name_of(number: int) -> str:
    return f"party {number}"


def _opened(home: str, name: str) -> Store:
    return antiphon.open(home, name=name, unprotected=True, epochs=False)


def _length(feeds: FeedStore, feed: bytes) -> int:
    try:
        return feeds.bounds(feed).length
    except AntiphonError:  # nothing of it has come
        return 0


def _size(feeds: FeedStore, feed: bytes, start: int) -> int:
    return sum(len(span.encode()) for span in feeds.spans(feed, start))


def _until(done: Callable[[], object]) -> None:
    """Look every millisecond."""
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {PATIENCE:.0f} s")
        _pause.wait(0.001)


def main() -> None:
    device = Device()
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = getattr(device, command.pop("do"))(**command)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
            traceback.print_exc()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
