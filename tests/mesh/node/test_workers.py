"""Workers: a key in one thread at a time, all keys in turns, and timers by a clock that is handed in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from antiphon.mesh.node.workers import Workers


@contextmanager
def working(turn: Callable[[Hashable], int | None], now_ms: Callable[[], int] = lambda: 0) -> Iterator[Workers]:
    workers = Workers(2, "test", turn, now_ms)
    try:
        yield workers
    finally:
        assert workers.stop(30)


def test_a_key_has_one_turn_at_a_time_and_none_is_lost() -> None:
    running, most, done = [0], [0], threading.Semaphore(0)
    counted = {"a": 0}
    inbox = {"a": 0}

    def turn(key: Hashable) -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        found, inbox["a"] = inbox["a"], 0
        counted["a"] += found
        running[0] -= 1
        if counted["a"] == 500:
            done.release()

    with working(turn) as workers:
        for _ in range(500):
            inbox["a"] += 1
            workers.wake("a")
        assert done.acquire(timeout=30) or counted["a"] == 500
    assert most[0] == 1


def test_a_key_that_wants_more_turns_waits_for_the_others() -> None:
    seen: list[Hashable] = []
    both = threading.Event()

    def turn(key: Hashable) -> int | None:
        seen.append(key)
        if key == "busy" and "other" in seen:
            both.set()
            return None
        return 0 if key == "busy" else None

    with working(turn) as workers:
        workers.wake("busy")
        workers.wake("other")
        assert both.wait(30)


def test_a_turn_can_be_asked_for_at_a_time() -> None:
    now = [0]
    turns, second = [], threading.Event()

    def turn(key: Hashable) -> int | None:
        turns.append(now[0])
        if len(turns) == 1:
            return 5_000
        second.set()
        return None

    with working(turn, lambda: now[0]) as workers:
        workers.wake("key")
        while not turns:
            second.wait(0.01)
        now[0] = 5_000
        workers.wake("another")  # the clock is handed in, so somebody has to look at it
        assert second.wait(30)


def test_an_error_is_logged_and_ends_no_thread(caplog: object) -> None:
    done = threading.Event()

    def turn(key: Hashable) -> None:
        if key == "bad":
            raise RuntimeError("broken")
        done.set()

    with working(turn) as workers:
        for _ in range(4):
            workers.wake("bad")
        workers.wake("good")
        assert done.wait(30)
