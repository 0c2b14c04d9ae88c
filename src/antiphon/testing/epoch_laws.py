"""The laws of models about epochs: a state restored from the snapshot of an epoch continues as every peer's does.

A history is divided by causally closed cuts. Messages outside a cut may have lower lamports than messages inside it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from antiphon.model import item_codec
from antiphon.model.epoch_fold import fold_epoch, fold_on
from antiphon.model.fold import ItemState, fold
from antiphon.model.late_messages import keeps_tail
from antiphon.model.message import Note
from antiphon.model.model import Discard, Model
from antiphon.testing.histories import PARTY, History, Line


def _sorted(lines: Iterable[Line]) -> list[Note]:
    return sorted((line.note for line in lines), key=lambda note: note.stamp)


def _epoch(
    history: History,
    base: bytes | None,
    lines: Iterable[Line],
    discard: Discard | None = None,
    *,
    raw: bool = False,
) -> bytes:
    listed = () if raw else history.models.keys
    data, _ = fold_epoch(PARTY, history.item, base, _sorted(lines), history.models, listed, discard=discard)
    assert data is not None
    return data


def _onto(history: History, base: bytes, lines: list[Line], chance: random.Random) -> ItemState:
    """Deliver messages to an item that begins at a base, in some causal order, with restarts."""
    item: ItemState | None = item_codec.restore(base, history.models)
    done: list[Line] = []
    for batch in history.batches(lines):
        done += batch
        folded = fold(PARTY, history.item, item, [line.note for line in batch], history.models)
        if folded.late:  # as the pipeline does: all of them on the base, in the total order
            again = item_codec.restore(base, history.models)
            folded = fold(PARTY, history.item, again, _sorted(done), history.models, whole=True)
        assert folded.item is not None
        assert not folded.late, "a fold of all from the base is late"
        item = folded.item
        if chance.random() < 0.3:
            item = item_codec.decode(item_codec.encode(item), history.models)
    assert item is not None
    return item


def _check(history: History, base: bytes, tail: list[Line], model: Model[Any], chance: random.Random) -> bytes:
    """Check that all orders of a tail give the state of the total order; return that state."""
    first = fold(
        PARTY, history.item, item_codec.restore(base, history.models), _sorted(tail), history.models, whole=True
    )
    assert first.item is not None
    value, wanted = model.value(first.item.state), item_codec.snapshot(first.item)
    for _ in range(3):
        item = _onto(history, base, tail, chance)
        assert model.value(item.state) == value, "another order after an epoch gives another value"
        assert item_codec.snapshot(item) == wanted, "another order after an epoch gives other bytes"
    return wanted


def late_messages_come_after_an_epoch(model: Model[Any], chance: random.Random) -> None:
    """Messages outside an epoch's cut give the same state in every causal order, however low their lamports."""
    history = History(model, chance, size=chance.randrange(2, 24), hostile=True, void=True)
    inside, tail = history.cut(2)
    found = _check(history, _epoch(history, None, inside), tail, model, chance)
    if not keeps_tail(model):
        whole = item_codec.snapshot(history.state(history.lines))
        assert found == whole, "a state that went through an epoch differs from one that did not"


def epochs_follow_one_another(model: Model[Any], chance: random.Random) -> None:
    """A peer that begins at the first epoch computes the bytes of the second."""
    history = History(model, chance, size=chance.randrange(2, 24), hostile=True, void=True)
    inside, between, tail = history.cut(3)
    first = _epoch(history, None, inside)
    second = _epoch(history, first, between)
    assert item_codec.snapshot(_onto(history, first, between, chance)) == second, "an epoch differs from the live state"
    assert _epoch(history, second, []) == second, "an epoch without messages is not the one before"
    _check(history, second, tail, model, chance)


def a_state_goes_on_as_its_bytes_do(model: Model[Any], chance: random.Random) -> None:
    """A peer that keeps its states from epoch to epoch computes the same bytes as one that restores them."""
    history = History(model, chance, size=chance.randrange(2, 24), hostile=True, void=True)
    data: bytes | None = None
    state: ItemState | None = None
    for part in history.cut(3):
        wanted = _epoch(history, data, part)
        data, _, state = fold_on(state, PARTY, history.item, data, _sorted(part), history.models, history.models.keys)
        assert data == wanted, "a state that an epoch made differs from the one that its bytes encode"


def raw_messages_are_reified_alike(model: Model[Any], chance: random.Random) -> None:
    """Messages kept raw, because an epoch did not list the model, give the same state when they are folded later."""
    history = History(model, chance, size=chance.randrange(2, 24), hostile=True, void=True)
    inside, between, last = history.cut(3)
    wanted = base = None
    for part in (inside, between, last):
        wanted = _epoch(history, wanted, part)
        base = _epoch(history, base, part, raw=chance.random() < 0.7)
    assert base is not None
    assert _epoch(history, base, []) == wanted, "what waited raw is reified to something else"


def discards_are_the_same_for_all(model: Model[Any], chance: random.Random) -> None:
    """Messages about content that an epoch discarded give the same state in every order; twice is as once."""
    history = History(model, chance, size=chance.randrange(2, 24), hostile=True, void=True)
    inside, between, tail = history.cut(3)
    policy = Discard(chance.randrange(12_000), chance.choice((0, 1_000, 5_000)), chance.choice((0, 1, 3)))
    first = _epoch(history, None, inside, policy)
    assert _epoch(history, first, [], policy) == first, "discarding twice is not discarding once"
    _check(history, first, between, model, chance)
    second = _epoch(history, first, between, policy)
    _check(history, second, tail, model, chance)


BASE_LAWS: tuple[Callable[[Model[Any], random.Random], None], ...] = (
    late_messages_come_after_an_epoch,
    epochs_follow_one_another,
    a_state_goes_on_as_its_bytes_do,
    raw_messages_are_reified_alike,
    discards_are_the_same_for_all,
)
