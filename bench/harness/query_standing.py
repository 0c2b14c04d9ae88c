"""Live queries for bench/query.py: thousands that a write does not affect, and five that it does."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from statistics import median
from time import perf_counter as now
from typing import Any, NamedTuple
from unittest import mock

from antiphon.api.party import Party
from antiphon.feed.encoder import Written
from antiphon.feed.writer import FeedWriter
from antiphon.party.engine.engine import Engine
from antiphon.party.live.batch import Batch
from antiphon.party.live.processor import PartyProcessor
from antiphon.query.filters import Fact, Match, prop
from antiphon.query.index.index import ItemIndex
from antiphon.query.live.live import LiveQueries
from antiphon.query.live.subscription import Subscription
from antiphon.query.query import Query
from harness.query_asked import TASK
from harness.query_data import MINUTE, OWNED, PRIORITIES, TASKS, Ids, World, quiet_owner

_OPEN = prop("done").is_(False)
_DONE = prop("done").is_(True)
_BEACON = "quietbeacon"
MEMORY_ROUNDS = 3
KINDS = 10  # of unrelated queries
Times = dict[str, list[float]]


class Place(NamedTuple):
    """A party and its items."""

    party: Party
    world: World
    ids: Ids


# -- those that a write to a quiet task has nothing to do with


def unrelated(place: Place, count: int) -> list[Query]:
    """Subscriptions of all kinds in turn. Their results have the same sizes in a party of any size."""
    chance = random.Random(3)
    return [_kinds(place, n, chance)[n % KINDS] for n in range(count)]


def _kinds(place: Place, n: int, chance: random.Random) -> list[Query]:
    world, ids = place.world, place.ids
    number = chance.randrange(world.quiet, len(world.tasks))
    task = world.tasks[number]
    own, board = prop("owner") == task.owner, ids.boards[task.board]
    return [
        Query(own),
        Query(TASK & own & _OPEN),
        Query(Fact.PARENT.is_(board)),
        Query((prop("due") >= task.due) & (prop("due") < task.due + OWNED // 2 * MINUTE)),
        Query(prop("priority") >= PRIORITIES + n),
        Query(Match(" ".join(task.title.split()[:2]))),
        Query(Fact.ID.is_(board)).children(_OPEN).order_by("due").take(5),
        Query(own).order_by("due", descending=True).take(5),
        Query(own).count(),
        Query(Fact.REFERENCES.has(ids.tasks[number])),
    ]


# -- those that are told


class Target(NamedTuple):
    """A query, and a write that changes its result and no other's: one of two values in turn."""

    name: str
    query: Query
    task: int
    key: str
    values: tuple[Any, Any]


def targets(place: Place) -> list[Target]:
    world, ids = place.world, place.ids
    entering, early, said, deep, counted = range(OWNED, 6 * OWNED, OWNED)  # each of another owner
    title, soon = world.tasks[said].title, world.tasks[early].due
    boards = Query(Fact.ID.is_(ids.projects[0])).children()
    ordered = Query(prop("owner") == quiet_owner(2)).order_by("due").take(OWNED)
    summed = Query(prop("owner") == quiet_owner(5)).sum("priority")
    return [
        Target("equality", Query(prop("owner") == "Quiet one"), entering, "owner", ("Quiet one", quiet_owner(1))),
        Target("order and limit", ordered, early, "due", (soon + 1000 * MINUTE, soon)),
        Target("words", Query(Match(_BEACON)), said, "title", (f"{_BEACON} {title}", title)),
        Target("two steps", boards.children(_DONE), deep, "done", (True, False)),
        Target("sum", summed, counted, "priority", (-1, -2)),
    ]


class Told:
    """Five subscriptions that note when they are notified."""

    def __init__(self, place: Place, subscribe: Callable[[Query], Subscription[Any]]) -> None:
        self.targets = targets(place)
        self.heard: list[tuple[str, float]] = []
        self._held = [self._observe(target, subscribe) for target in self.targets]
        self.heard.clear()

    def _observe(self, target: Target, subscribe: Callable[[Query], Subscription[Any]]) -> Subscription[Any]:
        subscription = subscribe(target.query)
        subscription.on(lambda _: self.heard.append((target.name, now())))
        return subscription

    def target(self, n: int) -> Target:
        """The subscription of the nth write: each in turn."""
        return self.targets[n % len(self.targets)]

    def value(self, n: int) -> Any:
        return self.target(n).values[n // len(self.targets) % 2]

    def close(self) -> None:
        for subscription in self._held:
            subscription.close()


class Sample(NamedTuple):
    told: float  # seconds from when the write was durable
    whole: float  # of the call that writes


def write_and_tell(place: Place, told: Told, count: int) -> dict[str, list[Sample]]:
    """Durable writes, one at a time, each of which changes one result."""
    found: dict[str, list[Sample]] = defaultdict(list)
    tasks = [_task(place, target) for target in told.targets]
    with durable() as moments:
        for n in range(count):
            target, task, value = told.target(n), tasks[n % len(tasks)], told.value(n)
            start = now()
            task[target.key] = value
            whole = now() - start
            ((name, at),) = told.heard  # that one, and only that one
            assert name == target.name
            found[name].append(Sample(at - moments[-1], whole))
            told.heard.clear()
    return found


def _task(place: Place, target: Target) -> Any:
    return place.party.item(place.ids.tasks[target.task])


@contextmanager
def durable() -> Iterator[list[float]]:
    """When each append to a feed was on the disk."""
    moments: list[float] = []
    extend = FeedWriter.extend

    def timed(writer: FeedWriter, *values: Any, **more: Any) -> Written:
        written = extend(writer, *values, **more)
        moments.append(now())
        return written

    with mock.patch.object(FeedWriter, "extend", timed):
        yield moments


# -- what it costs


class Watched:
    """Live queries of a party that note how long each change takes."""

    def __init__(self, place: Place, others: int) -> None:
        self.place = place
        self.seconds: list[float] = []
        self._told: Callable[[frozenset[bytes]], None] = lambda _: None
        self._stop: Callable[[], None] = lambda: None
        index = place.party.processor.attach(ItemIndex)
        assert isinstance(index, ItemIndex)
        self.live = LiveQueries(self, index)
        queries = unrelated(place, others)
        start = now()
        self.others = [self.live.subscribe(query) for query in queries]
        self.filled = (now() - start) / others
        self.told = Told(place, self.live.subscribe)

    # It stands for its party.

    @property
    def processor(self) -> PartyProcessor:
        return self.place.party.processor

    def locked(self) -> AbstractContextManager[Engine]:
        return self.processor.locked()

    def open_batch(self) -> Batch | None:
        return self.processor.open_batch()

    def items(self, model: str | None = None) -> list[bytes]:
        return self.processor.items(model)

    def listen(
        self,
        callback: Callable[[frozenset[bytes]], None],
        note: Callable[[frozenset[bytes]], None] | None = None,
    ) -> Callable[[], None]:
        self._told, self._note = callback, note
        self.last()
        return self._stop

    def last(self) -> None:
        """Move behind the other listeners of the same party."""
        self._stop()
        self._stop = self.processor.listen(self._timed, self._note)

    def _timed(self, items: frozenset[bytes]) -> None:
        start = now()
        self._told(items)
        self.seconds.append(now() - start)

    def close(self) -> None:
        self.live.close()
        self._stop()


def compare(one: Watched, other: Watched, count: int) -> tuple[Times, Times]:
    """Seconds to match and notify each write, by kind; the two sizes take turns to be first."""
    found: tuple[Times, Times] = (defaultdict(list), defaultdict(list))
    for n in range(count):
        first, second = (one, other) if n % 2 else (other, one)
        second.last()
        _write(first, n)
        if second.place is not first.place:
            _write(second, n)
        for watched, times in zip((one, other), found, strict=True):
            times[watched.told.target(n).name].append(watched.seconds[-1])
    return found


def _write(watched: Watched, n: int) -> None:
    target = watched.told.target(n)
    _task(watched.place, target)[target.key] = watched.told.value(n)


# -- what it holds


def memory(watched: Watched) -> dict[str, float]:
    """Median bytes of one more subscription, by kind. A table that grows just then does not count."""
    count = watched.place.world.quiet // OWNED
    owners = [quiet_owner(n) for n in range(6, count)]  # not those that are written to
    boards = [watched.place.ids.boards[n] for n in range(watched.place.world.quiet // TASKS)]
    kinds = {
        "equality": [Query(prop("owner") == who) for who in owners],
        "order and limit": [Query(prop("owner") == who).order_by("due").take(5) for who in owners],
        "sum": [Query(prop("owner") == who).sum("priority") for who in owners],
        "a step": [Query(Fact.ID.is_(board)).children() for board in boards],
    }
    gc.collect()
    gc.freeze()  # so that collecting what is new is quick
    try:
        return {name: _bytes(watched.live, queries) for name, queries in kinds.items()}
    finally:
        gc.unfreeze()


def _bytes(live: LiveQueries, queries: list[Query]) -> float:
    sizes: list[int] = []
    for number in range(MEMORY_ROUNDS + 1):
        held = []
        tracemalloc.start()
        for query in queries:
            before = _traced()
            held.append(live.subscribe(query))
            sizes.append(_traced() - before)
        tracemalloc.stop()
        for subscription in held:
            subscription.close()
        if number == 0:
            sizes.clear()  # caches have got what they keep
    return median(sizes)


def _traced() -> int:
    """Bytes in use, after a garbage collection."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
