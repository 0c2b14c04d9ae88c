"""Test a model of your own: `run_model_tests(ChessModel)` plays random histories and checks the laws of models.

Histories come from `Model.rehearse`: several writers edit, exchange and edit again, in single messages and in batches,
with void and hostile messages in between. All of it depends on the seed alone, so a failure repeats.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from antiphon.core.errors import InvalidInput
from antiphon.core.keys import PublicKey
from antiphon.feed.header import Kind
from antiphon.model import item_codec
from antiphon.model.message import Note, wrap
from antiphon.model.model import Model
from antiphon.testing.epoch_laws import BASE_LAWS
from antiphon.testing.histories import FEEDS, PARTY, History, Line, same

__all__ = ["FEEDS", "LAWS", "PARTY", "History", "Line", "run_model_tests"]

# -- the laws


def _converges(model: Model[Any], chance: random.Random, *, hostile: bool = False, void: bool = False) -> None:
    history = History(model, chance, size=chance.randrange(2, 24), hostile=hostile, void=void)
    wanted = history.state(history.lines)
    value, snapshot = model.value(wanted.state), item_codec.snapshot(wanted)
    for _ in range(3):
        notes = history.order()
        state = same(history, notes, 0, chance)
        assert model.value(state.state) == value, "another causal order gives another value"
        assert item_codec.snapshot(state) == snapshot, "another causal order gives other snapshot bytes"


def any_causal_order_gives_the_same(model: Model[Any], chance: random.Random) -> None:
    """Every causal delivery order gives the same value and the same snapshot bytes."""
    _converges(model, chance)


def void_messages_keep_their_place(model: Model[Any], chance: random.Random) -> None:
    """Void messages give the same state in every order."""
    _converges(model, chance, void=True)


def hostile_messages_do_not_split(model: Model[Any], chance: random.Random) -> None:
    """Hostile messages are accepted or refused alike in every order."""
    _converges(model, chance, hostile=True, void=True)


def a_last_void_message_does_not_show(model: Model[Any], chance: random.Random) -> None:
    """A void message that nobody built upon leaves the value as it was."""
    history = History(model, chance, size=chance.randrange(2, 12), hostile=False, void=False)
    before = history.state(history.lines)
    value = model.value(before.state)
    mutation = model.rehearse(before.state, chance, FEEDS[2])
    seq = sum(1 for line in history.lines if line.note.feed == FEEDS[2])
    lamport = 1 + max(line.note.lamport for line in history.lines)
    note = Note(Kind.MUTATION, lamport, FEEDS[2], seq, 1, wrap(Kind.MUTATION, mutation), "void")
    seen = frozenset(line.name for line in history.lines)
    after = history.state([*history.lines, Line(note, seen)])
    assert model.value(after.state) == value, "a void message shows"


def restarts_leave_no_trace(model: Model[Any], chance: random.Random) -> None:
    """An item that is saved and restored at any point continues as one that was not."""
    history = History(model, chance, size=chance.randrange(2, 24), hostile=True, void=True)
    notes = history.order()
    wanted = item_codec.snapshot(same(history, notes, 0, chance))
    assert item_codec.snapshot(same(history, notes, 4, chance)) == wanted, "a restart shows in the snapshot"


def snapshots_are_whole(model: Model[Any], chance: random.Random) -> None:
    """A snapshot restores to a state with the same value and the same bytes, and taking it changes nothing."""
    history = History(model, chance, size=chance.randrange(2, 24), hostile=True, void=True)
    state = history.state(history.lines)
    snapshot = item_codec.snapshot(state)
    assert item_codec.snapshot(state) == snapshot, "two snapshots of one state differ"
    again = item_codec.restore(snapshot, history.models)
    assert model.value(again.state) == model.value(state.state), "a restored state has another value"
    assert item_codec.snapshot(again) == snapshot, "a restored state has another snapshot"


def folding_twice_is_folding_once(model: Model[Any], chance: random.Random) -> None:
    """Folding the same history again gives the same state: nothing counts twice, nothing comes from outside."""
    history = History(model, chance, size=chance.randrange(2, 24), hostile=False, void=False)
    first, second = history.state(history.lines), history.state(history.lines)
    assert model.value(first.state) == model.value(second.state), "the same history gives two values"
    assert item_codec.snapshot(first) == item_codec.snapshot(second), "the same history gives two snapshots"


def the_type_of_a_key_does_not_show(model: Model[Any], chance: random.Random) -> None:
    """A feed's key as `bytes` and as `PublicKey` gives the same state: a model uses the bytes, never their `str`."""
    history = History(model, chance, size=chance.randrange(2, 24), hostile=False, void=False)
    notes = sorted((line.note for line in history.lines), key=lambda note: note.stamp)
    plain = history.fold(notes)
    typed = history.fold([note._replace(feed=PublicKey(note.feed)) for note in notes])
    assert model.value(typed.state) == model.value(plain.state), "the type of a feed's key shows in the value"
    assert item_codec.snapshot(typed) == item_codec.snapshot(plain), "the type of a feed's key shows in the snapshot"


def refusals_leave_the_state_alone(model: Model[Any], chance: random.Random) -> None:
    """A mutation is applied as a whole, or refused with `InvalidMutation` and without any change."""
    history = History(model, chance, size=chance.randrange(2, 12), hostile=False, void=False)
    state = history.state(history.lines)
    stamp = state.genesis._replace(lamport=1 << 20, seq=1 << 20)
    for _ in range(20):
        before = item_codec.snapshot(state)
        try:
            model.apply(state.state, history.spoil(model.rehearse(state.state, chance, FEEDS[0])), stamp)
        except InvalidInput:
            assert item_codec.snapshot(state) == before, "a refused mutation changed the state"
        stamp = stamp._replace(lamport=stamp.lamport + 1, seq=stamp.seq + 1)


def rubbish_is_no_snapshot(model: Model[Any], chance: random.Random) -> None:
    """Damaged bytes are refused with `InvalidInput`, or are the exact snapshot of the state that they restore to."""
    if not model.has_snapshot:
        return
    history = History(model, chance, size=chance.randrange(2, 12), hostile=False, void=False)
    data = bytearray(model.snapshot(history.state(history.lines).state))
    for _ in range(20):
        spoilt = bytearray(data)
        if spoilt:
            spoilt[chance.randrange(len(spoilt))] ^= 1 << chance.randrange(8)
        try:
            state = model.restore(bytes(spoilt))
        except InvalidInput:
            continue
        assert model.snapshot(state) == bytes(spoilt), "two snapshots stand for one state"


LAWS: tuple[Callable[[Model[Any], random.Random], None], ...] = (
    any_causal_order_gives_the_same,
    folding_twice_is_folding_once,
    the_type_of_a_key_does_not_show,
    snapshots_are_whole,
    restarts_leave_no_trace,
    void_messages_keep_their_place,
    a_last_void_message_does_not_show,
    refusals_leave_the_state_alone,
    hostile_messages_do_not_split,
    rubbish_is_no_snapshot,
    *BASE_LAWS,
)


def run_model_tests(model: type[Model[Any]], *, examples: int = 50, seed: int = 0) -> tuple[str, ...]:
    """Check all laws of models, each on `examples` random histories; return the names of the laws.

    A failure names the law and the seed with which it repeats.
    """
    made = model()
    for law in LAWS:
        for example in range(examples):
            number = seed + example
            try:
                law(made, random.Random(f"{law.__name__} {number}"))  # noqa: S311
            except AssertionError as error:
                raise AssertionError(f"{made.name}: {law.__doc__} Seed {number}: {error}") from error
    return tuple((law.__doc__ or "").strip() for law in LAWS)
