"""The cycle collector rests while anybody wants it to, whichever thread begins or ends first."""

from __future__ import annotations

import gc

import pytest

from antiphon.party.engine.gc_pause import gc_paused


@pytest.fixture(autouse=True)
def _collecting() -> None:
    assert gc.isenabled()


def test_it_rests_until_the_last_who_wants_that_has_ended() -> None:
    first, second = gc_paused(), gc_paused()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_it_is_left_as_it_was_also_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), gc_paused():
        _ = 1 / 0
    assert gc.isenabled()


def test_who_has_switched_it_off_finds_it_so() -> None:
    gc.disable()
    try:
        with gc_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
