"""`PartyReplication` (`party.replication`): how far this device is with each connected one, feed by feed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.errors import StoreClosed
from antiphon.core.keys import PublicKey

if TYPE_CHECKING:
    from antiphon.api.store import Store

_LOG = logging.getLogger("antiphon")
_RATE_S = 5.0  # over which a rate is measured
_PAUSE_S = 0.1  # at least, from one call of a callback to the next


@dataclass(frozen=True, slots=True)
class FeedReplication:
    """One feed of a party and one device: what is held here, and what is wanted of what that device holds."""

    device: PublicKey
    feed: PublicKey
    have: int  # blocks of the feed, from the first one on, that came here or are written here
    want: int  # further blocks that the device has
    rate: float  # blocks of the feed that came in a second, lately, from anybody
    lag_ms: int  # for how long some have been wanted without a break


class PartyReplication:
    """The feeds of a party, each with each device for which the party is open at the moment. Thread-safe.

    A device that holds the same as this one is asked for nothing, and may be missing here: see `Party.synced`.
    """

    def __init__(self, store: Store, party: bytes) -> None:
        self._store = store
        self._party = party
        self._lock = threading.Lock()
        self._samples: dict[bytes, tuple[float, int]] = {}  # by feed: when it was looked at, and its length then
        self._rates: dict[bytes, float] = {}
        self._wanted_since: dict[tuple[bytes, bytes], float] = {}

    def __repr__(self) -> str:
        return f"<replication of party {self._party.hex()[:8]}: {self.want} blocks wanted>"

    @property
    def feeds(self) -> tuple[FeedReplication, ...]:
        """The state of each feed with each device, by their keys."""
        now_s = time.monotonic()
        lengths = {bytes(record.feed): record.length for record in self._store.manager.feeds.feeds(self._party)}
        held = self._store.network.holdings(self._party)
        with self._lock:
            for feed, length in lengths.items():
                self._measure(feed, length, now_s)
            return tuple(
                self._state(device, feed, lengths.get(feed, 0), theirs, now_s)
                for device, of_feeds in sorted(held.items())
                for feed, theirs in sorted(of_feeds.items())
            )

    def __iter__(self) -> Iterator[FeedReplication]:
        return iter(self.feeds)

    @property
    def want(self) -> int:
        """How many blocks are wanted: of each feed, as many as the device has that holds most of it."""
        most: dict[bytes, int] = {}
        for one in self.feeds:
            most[one.feed] = max(most.get(one.feed, 0), one.want)
        return sum(most.values())

    def subscribe(self, callback: Callable[[tuple[FeedReplication, ...]], object]) -> Callable[[], None]:
        """Call a function with the state now, and whenever blocks come or are wanted. Return what ends it.

        It is called in a thread of its own, at most ten times a second. An error in it is logged.
        """
        return _Reports(self, callback, self._store.network.watch).stop

    def _measure(self, feed: bytes, length: int, now_s: float) -> None:
        began_s, before = self._samples.setdefault(feed, (now_s, length))
        passed_s = now_s - began_s
        if passed_s > 0:
            self._rates[feed] = (length - before) / passed_s
        if passed_s > _RATE_S:
            self._samples[feed] = now_s, length

    def _state(self, device: bytes, feed: bytes, have: int, theirs: int, now_s: float) -> FeedReplication:
        want = max(0, theirs - have)
        if not want:
            self._wanted_since.pop((device, feed), None)
        since_s = self._wanted_since.setdefault((device, feed), now_s) if want else now_s
        rate, lag_ms = self._rates.get(feed, 0.0), int((now_s - since_s) * 1_000)
        return FeedReplication(PublicKey(device), PublicKey(feed), have, want, rate, lag_ms)


class _Reports:
    """Calls back in a thread of its own while a subscription lasts."""

    def __init__(
        self,
        replication: PartyReplication,
        callback: Callable[[tuple[FeedReplication, ...]], object],
        watch: Callable[[Callable[[], None]], Callable[[], None]],
    ) -> None:
        self._replication = replication
        self._callback = callback
        self._news = threading.Event()
        self._ended = threading.Event()
        self._news.set()
        self._unwatch = watch(self._news.set)
        threading.Thread(target=self._run, daemon=True, name="antiphon replication").start()

    def _run(self) -> None:
        told: object = None
        while not self._ended.wait(_PAUSE_S):
            self._news.wait()
            self._news.clear()
            if self._ended.is_set():
                return
            try:
                feeds = self._replication.feeds
                now = [(one.device, one.feed, one.have, one.want) for one in feeds]
                if now != told:
                    told = now
                    self._callback(feeds)
            except StoreClosed:
                return
            except Exception:
                _LOG.exception("a subscription to the replication of a party failed")

    def stop(self) -> None:
        """End the calls."""
        self._unwatch()
        self._ended.set()
        self._news.set()
