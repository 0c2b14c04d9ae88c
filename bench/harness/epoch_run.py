"""One party goes through epochs: each is declared by one device and attested by another, then both switch to it."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from antiphon.feed.store.feed_store import FeedStore
from antiphon.snapshot.walk import walk
from harness.epoch_devices import Running
from harness.epoch_feeds import OBJECT, command
from harness.epoch_pauses import Writer

BATCH = 500
WRITTEN_TO = 200  # items of the writer that is beside an epoch

now = time.perf_counter


class Run:
    """All epochs of one run."""

    def __init__(self, one: Running, other: Running, ids: Sequence[bytes], store: FeedStore) -> None:
        self.one = one
        self.other = other
        self.ids = ids
        self.store = store
        self.chance = random.Random(4)
        self.cut: dict[bytes, int] = {}

    def all(self, share: float, tail: int, alone: float, rounds: int) -> dict[str, Any]:
        count = max(1, int(len(self.ids) * share))
        found: dict[str, Any] = {"items": len(self.ids), "changed": count}
        found["first"] = self.epoch()
        self.touch(self.chance.sample(self.ids, count))
        found["scattered"] = self.epoch()
        self.touch(self.ids[-count:])
        found["newest"] = self.epoch()
        found["pauses"] = []
        for _ in range(rounds):
            self.touch(self.ids)
            found["pauses"].append(self.beside(alone))
        self.touch([self.chance.choice(self.ids) for _ in range(tail)])
        found["feed bytes"] = self.feed_bytes()
        found["messages"] = sum(record.length for record in self.store.feeds(self.one.party.key))
        return found

    # -- epochs

    def epoch(self) -> dict[str, float]:
        """Declare, attest and switch to an epoch, without a writer; return the bytes of new blobs, and of all."""
        before = self.reachable()
        self.other.party.process()
        seconds = {
            "declared": _timed(self.one.epochs.declare),
            "attested": _timed(self.other.epochs.step),
            "stood on": _timed(self.one.epochs.step),
        }
        self._check()
        after = self.reachable()
        return {
            **seconds,
            "new bytes": sum(size for cid, size in after.items() if cid not in before),
            "bytes": sum(after.values()),
        }

    def beside(self, alone: float) -> dict[str, Any]:
        """The same with a writer on the device that does the step."""
        writers = [Writer(device.party, self._objects(), self.chance) for device in (self.one, self.other)]
        self._receive(self.one)
        found = {"nothing": writers[0].alone(alone)}
        found["declared"] = writers[0].beside(self.one.epochs.declare)
        self._receive(self.other)
        found["attested and stood on"] = writers[1].beside(self.other.epochs.step)
        self._receive(self.one)
        found["stood on"] = writers[0].beside(self.one.epochs.step)
        self._check()
        return {name: one._asdict() for name, one in found.items()}

    def _receive(self, device: Running) -> None:
        """Settle earlier writes before a measurement: they are received, saved and on the disk."""
        device.party.process()
        device.party.save()
        os.sync()

    def _objects(self) -> list[bytes]:
        found = self.one.party.items(OBJECT.name)
        return self.chance.sample(found, min(WRITTEN_TO, len(found)))

    def _check(self) -> None:
        base, theirs = self.one.epochs.base, self.other.epochs.base
        assert base is not None
        assert theirs is not None
        assert base.cid == theirs.cid, (base.number, theirs.number, self.one.epochs.waits_for)
        self.cut = {feed: cut.length for feed, cut in base.feeds.items()}

    def reachable(self) -> dict[bytes, int]:
        """The blobs of the present snapshot, with their sizes."""
        base = self.one.epochs.base
        if base is None:
            return {}
        return {bytes(cid): len(self.one.blobs.get(cid)) for cid in walk(base.cid, self.one.blobs)}

    # -- messages

    def touch(self, items: Sequence[bytes]) -> None:
        """Change each item once."""
        party = self.one.party
        for start in range(0, len(items), BATCH):
            with party.batch() as batch:
                for item in items[start : start + BATCH]:
                    name, arguments = command(self._model(item), self.chance)
                    batch.edit(item, name, arguments, {})

    def _model(self, item: bytes) -> str:
        with self.one.party.locked() as engine:
            state = engine.entry(item).item
            assert state is not None
            return state.name

    def feed_bytes(self) -> int:
        """Bytes of all data feeds, as they are sent."""
        return sum(len(span.encode()) for feed, length in self.cut.items() if length for span in self.store.spans(feed))


def _timed(act: Callable[[], Any]) -> float:
    start = now()
    act()
    return now() - start
