"""The thread of a network: who calls into it while it ends is answered."""

from __future__ import annotations

import threading

import pytest

from antiphon.core.errors import StoreClosed
from antiphon.mesh.node.network_thread import NetworkThread


def test_a_call_that_comes_when_the_loop_has_stopped_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thread = NetworkThread("test")
    close, closing, called = thread.loop.close, threading.Event(), threading.Event()

    def late() -> None:
        closing.set()
        assert called.wait(30)
        close()

    monkeypatch.setattr(thread.loop, "close", late)
    found: list[object] = []

    def call() -> None:
        try:
            found.append(thread.call(lambda: 1))
        except StoreClosed as error:
            found.append(error)

    thread.post(thread.loop.stop)
    assert closing.wait(30)
    caller = threading.Thread(target=call, daemon=True)
    soon = thread.loop.call_soon_threadsafe

    def noted(*args: object) -> object:
        try:
            return soon(*args)  # type: ignore[arg-type]
        finally:
            called.set()

    monkeypatch.setattr(thread.loop, "call_soon_threadsafe", noted)
    caller.start()
    caller.join(30)
    assert isinstance(found[0], StoreClosed)


def test_a_call_after_the_end_says_so() -> None:
    thread = NetworkThread("test")
    assert thread.stop(30)
    with pytest.raises(StoreClosed):
        thread.call(lambda: 1)
