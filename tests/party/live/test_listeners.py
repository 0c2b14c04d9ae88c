"""Who hears of changes, and how they are let go."""

from __future__ import annotations

import gc
import weakref

import pytest

from antiphon.party.live.listeners import Listeners

A, B = b"a" * 16, b"b" * 16


class Handle:
    """Something that can be observed through."""


def test_an_observer_hears_of_its_item_only() -> None:
    listeners, told = Listeners("p"), []
    one, other = Handle(), Handle()
    listeners.observe(one, A, lambda handle: told.append((handle is one, "one")))
    stop = listeners.observe(other, A, lambda handle: told.append((handle is other, "other")))
    assert listeners.tell(frozenset({B})) == ""
    assert told == []
    listeners.tell(frozenset({A, B}))
    assert told == [(True, "one"), (True, "other")]
    stop()
    stop()
    listeners.tell(frozenset({A}))
    assert told[2:] == [(True, "one")]
    assert len(listeners) == 1


def test_an_observer_that_is_interrupted_does_not_keep_the_news_from_others() -> None:
    listeners, told = Listeners("p"), []
    one, other = Handle(), Handle()

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    listeners.listen(interrupt)
    listeners.listen(lambda _: told.append("all"))
    listeners.observe(one, A, interrupt)
    listeners.observe(other, A, lambda _: told.append("other"))
    with pytest.raises(KeyboardInterrupt):
        listeners.tell(frozenset({A}))
    assert told == ["all", "other"]


def test_an_observer_goes_with_its_handle() -> None:
    listeners, told = Listeners("p"), []
    handle = Handle()
    listeners.observe(handle, A, lambda _: told.append(1))
    gone = weakref.ref(handle)
    del handle
    gc.collect()
    assert gone() is None
    listeners.tell(frozenset({A}))
    assert (told, len(listeners)) == ([], 0)


def test_a_handle_that_is_collected_while_the_lock_is_held_does_not_hang() -> None:
    """The collector runs whenever it likes: also inside the listeners' own code, in the very same thread."""
    listeners = Listeners("p")
    handle = Handle()
    handle.itself = handle  # type: ignore[attr-defined]
    listeners.observe(handle, A, lambda _: None)
    del handle
    with listeners._lock:
        gc.collect()
    assert len(listeners) == 0


def test_stopping_leaves_nothing_behind_with_a_handle_that_lives_on() -> None:
    listeners, handle = Listeners("p"), Handle()
    before = len(weakref.finalize._registry)  # type: ignore[attr-defined]
    for _ in range(100):
        listeners.observe(handle, A, lambda _: None)()
    assert len(weakref.finalize._registry) == before  # type: ignore[attr-defined]
    assert len(listeners) == 0
