"""A writer that runs beside an epoch: small durable batches, one after another, and the time of each."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from antiphon.party.live.processor import PartyProcessor

BATCH = 5
now = time.perf_counter


class Beside(NamedTuple):
    """Pauses of a writer during one step."""

    seconds: float  # that it took
    cpu: float  # of the thread that did it
    batches: int
    median: float
    p99: float
    longest: float
    at: float  # when the longest began, since the beginning


class Writer:
    """A thread that writes during a step."""

    def __init__(self, party: PartyProcessor, items: list[bytes], chance: random.Random) -> None:
        self._party = party
        self._items = items
        self._chance = chance
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._times: list[tuple[float, float]] = []

    def beside(self, act: Callable[[], Any]) -> Beside:
        self._times = []
        with self._writing():
            start, cpu = now(), time.thread_time()
            act()
            seconds, cpu = now() - start, time.thread_time() - cpu
        taken = sorted(one for _, one in self._times)
        at, longest = max(self._times, key=lambda pair: pair[1])
        return Beside(
            seconds, cpu, len(taken), taken[len(taken) // 2], taken[int(len(taken) * 0.99)], longest, at - start
        )

    def alone(self, seconds: float) -> Beside:
        return self.beside(lambda: time.sleep(seconds))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._stop.clear()
        began = threading.Event()
        thread = threading.Thread(target=self._run, args=(began,), daemon=True)
        thread.start()
        began.wait()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()
        if self._error is not None:
            raise self._error

    def _run(self, began: threading.Event) -> None:
        try:
            for nth in range(3):  # states are read, files are open
                self._write(nth)
            self._times.clear()
            self._write(0)
            began.set()
            while not self._stop.is_set():
                self._write(len(self._times))
        except BaseException as error:
            self._error = error
            began.set()

    def _write(self, nth: int) -> None:
        start = now()
        with self._party.batch():
            for at in range(BATCH):
                item = self._items[(nth * BATCH + at) % len(self._items)]
                self._party.item(item).edit("set", "rank", self._chance.randrange(1000))
        self._times.append((start, now() - start))
