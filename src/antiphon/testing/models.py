"""Prove a model of your own: `run_model_tests(ChessModel)` plays random histories and checks the laws of models.

Histories come from `Model.rehearse`: several writers edit, hear of each other and edit on, alone and in batches, with
void and with hostile messages in between. Everything depends on the seed, so a failure repeats.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from antiphon.core.errors import InvalidInput
from antiphon.core.ids import ItemId
from antiphon.feed.header import Kind
from antiphon.model import itemcodec
from antiphon.model.envelope import Genesis, Note, content, wrap, write_genesis
from antiphon.model.factory import ModelFactory
from antiphon.model.interface import Model
from antiphon.model.item import ItemState, fold

PARTY = sha256(b"the party of the model tests").digest()
FEEDS = tuple(sorted(sha256(name).digest() for name in (b"alice", b"bob", b"carol")))
NONCE = bytes(16)


class Line(NamedTuple):
    """A message of a history, and the messages that its writer had seen."""

    note: Note
    seen: frozenset[tuple[bytes, int]]

    @property
    def name(self) -> tuple[bytes, int]:
        return self.note.feed, self.note.seq


class History:
    """A history of one item, made by replicas that edit and exchange at random."""

    def __init__(self, model: Model[Any], chance: random.Random, *, size: int, hostile: bool, void: bool) -> None:
        self.models = ModelFactory(type(model))
        self.item = ItemId.derive(1, party=PARTY, feed=FEEDS[0], nonce=NONCE)
        genesis = write_genesis(Genesis(NONCE, model.name, model.version))
        self.lines = [Line(Note(Kind.GENESIS, 1, FEEDS[0], 0, 1, genesis), frozenset())]
        self._chance = chance
        self._model = model
        self._replicas = [self.fold([self.lines[0].note]) for _ in FEEDS]
        self._seen: list[set[tuple[bytes, int]]] = [{self.lines[0].name} for _ in FEEDS]
        self._lamports = [1] * len(FEEDS)
        self._lengths = [1, *[0] * (len(FEEDS) - 1)]
        while len(self.lines) < size:
            who = chance.randrange(len(FEEDS))
            if chance.random() < 0.3:
                self._hear(who)
            else:
                self._write(who, hostile and chance.random() < 0.2, void and chance.random() < 0.2)

    def fold(self, notes: Sequence[Note], base: bytes | None = None) -> ItemState:
        """The state that messages make, from nothing or from a stored record."""
        item = None if base is None else itemcodec.decode(base, self.models)
        folded = fold(PARTY, self.item, item, notes, self.models)
        if folded.late or folded.item is None:  # as the pipeline does: all messages, in the total order
            raise _Late
        return folded.item

    def _hear(self, who: int) -> None:
        """One replica takes all that another has, in the total order."""
        other = self._chance.randrange(len(FEEDS))
        fresh = [line for line in self.lines if line.name in self._seen[other] - self._seen[who]]
        fresh.sort(key=lambda line: line.note.stamp)
        self._take(who, fresh)

    def _take(self, who: int, lines: Sequence[Line]) -> None:
        if not lines:
            return
        self._seen[who] |= {line.name for line in lines}
        self._lamports[who] = max([self._lamports[who], *(line.note.lamport for line in lines)])
        self._replicas[who] = self.state([line for line in self.lines if line.name in self._seen[who]])

    def _write(self, who: int, hostile: bool, void: bool) -> None:
        count = self._chance.choice((1, 1, 1, 2))
        self._lamports[who] += 1
        seen = frozenset(self._seen[who])
        for _ in range(count):
            state = self._replicas[who].state
            mutation = self._model.rehearse(state, self._chance, FEEDS[who])
            if hostile:
                mutation = self.spoil(mutation)
            note = Note(
                Kind.MUTATION,
                self._lamports[who],
                FEEDS[who],
                self._lengths[who],
                1000 * len(self.lines),
                wrap(Kind.MUTATION, mutation),
                "no right to it" if void else "",
            )
            self._lengths[who] += 1
            self.lines.append(Line(note, seen))
            self._take(who, [self.lines[-1]])

    def spoil(self, mutation: bytes) -> bytes:
        """A mutation that nobody would write: bytes changed, cut, doubled, or taken from another's message."""
        chance, data = self._chance, bytearray(mutation)
        how = chance.randrange(5)
        if how == 0:
            return chance.randbytes(chance.randrange(40))
        if how == 1 and data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        elif how == 2:
            del data[chance.randrange(len(data) + 1) :]
        elif how == 3:
            data.extend(bytes(data))
        else:
            mutations = [line.note for line in self.lines if line.note.kind == Kind.MUTATION]
            if mutations:
                other = chance.choice(mutations)
                return content(other.kind, other.message or b"")
        return bytes(data)

    def state(self, lines: Sequence[Line]) -> ItemState:
        """The state that a set of messages makes, in the total order."""
        return self.fold(sorted((line.note for line in lines), key=lambda note: note.stamp))

    def order(self) -> list[Note]:
        """The messages in some causal order; batches stay together, as delivery keeps them."""
        left = list(self.lines)
        done: set[tuple[bytes, int]] = set()
        notes: list[Note] = []
        while left:
            first = self._chance.choice([line for line in left if line.seen <= done])
            batch = [
                line for line in left if (line.note.feed, line.note.lamport) == (first.note.feed, first.note.lamport)
            ]
            notes += [line.note for line in batch]
            done |= {line.name for line in batch}
            left = [line for line in left if line.name not in done]
        return notes


class _Late(Exception):
    """A late message that the kept tail does not reach: the pipeline then folds the item's whole history afresh."""


def _same(history: History, notes: list[Note], pieces: int, chance: random.Random) -> ItemState:
    """Fold notes in pieces, with a restart between them."""
    cuts = sorted(chance.randrange(1, len(notes) + 1) for _ in range(pieces))
    record: bytes | None = None
    start, state = 0, None
    for cut in [*cuts, len(notes)]:
        if cut > start:
            try:
                state = history.fold(notes[start:cut], record)
            except _Late:
                state = history.fold(sorted(notes[:cut], key=lambda note: note.stamp))
            record, start = itemcodec.encode(state), cut
    assert state is not None
    return state


# -- the laws


def _converges(model: Model[Any], chance: random.Random, *, hostile: bool = False, void: bool = False) -> None:
    history = History(model, chance, size=chance.randrange(2, 24), hostile=hostile, void=void)
    wanted = history.state(history.lines)
    value, snapshot = model.value(wanted.state), itemcodec.snapshot(wanted)
    for _ in range(3):
        notes = history.order()
        state = _same(history, notes, 0, chance)
        assert model.value(state.state) == value, "another causal order gives another value"
        assert itemcodec.snapshot(state) == snapshot, "another causal order gives other snapshot bytes"


def any_causal_order_gives_the_same(model: Model[Any], chance: random.Random) -> None:
    """Every causal delivery order gives the same value and the same snapshot bytes."""
    _converges(model, chance)


def void_messages_keep_their_place(model: Model[Any], chance: random.Random) -> None:
    """Void messages give the same state in every order."""
    _converges(model, chance, void=True)


def hostile_messages_do_not_split(model: Model[Any], chance: random.Random) -> None:
    """Messages that nobody honest would write are taken or refused alike in every order."""
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
    """Saved and restored at any points, an item goes on as if it had not been."""
    history = History(model, chance, size=chance.randrange(2, 24), hostile=True, void=True)
    notes = history.order()
    wanted = itemcodec.snapshot(_same(history, notes, 0, chance))
    assert itemcodec.snapshot(_same(history, notes, 4, chance)) == wanted, "a restart shows in the snapshot"


def snapshots_are_whole(model: Model[Any], chance: random.Random) -> None:
    """A snapshot restores to a state with the same value and the same bytes, and taking it changes nothing."""
    history = History(model, chance, size=chance.randrange(2, 24), hostile=True, void=True)
    state = history.state(history.lines)
    snapshot = itemcodec.snapshot(state)
    assert itemcodec.snapshot(state) == snapshot, "two snapshots of one state differ"
    again = itemcodec.restore(snapshot, history.models)
    assert model.value(again.state) == model.value(state.state), "a restored state has another value"
    assert itemcodec.snapshot(again) == snapshot, "a restored state has another snapshot"


def folding_twice_is_folding_once(model: Model[Any], chance: random.Random) -> None:
    """The same history folded again gives the same: nothing is counted twice, nothing is read from outside."""
    history = History(model, chance, size=chance.randrange(2, 24), hostile=False, void=False)
    first, second = history.state(history.lines), history.state(history.lines)
    assert model.value(first.state) == model.value(second.state), "the same history gives two values"
    assert itemcodec.snapshot(first) == itemcodec.snapshot(second), "the same history gives two snapshots"


def refusals_leave_the_state_alone(model: Model[Any], chance: random.Random) -> None:
    """A mutation is taken whole, or refused with `InvalidMutation` and nothing has changed."""
    history = History(model, chance, size=chance.randrange(2, 12), hostile=False, void=False)
    state = history.state(history.lines)
    stamp = state.genesis._replace(lamport=1 << 20, seq=1 << 20)
    for _ in range(20):
        before = itemcodec.snapshot(state)
        try:
            model.apply(state.state, history.spoil(model.rehearse(state.state, chance, FEEDS[0])), stamp)
        except InvalidInput:
            assert itemcodec.snapshot(state) == before, "a refused mutation changed the state"
        stamp = stamp._replace(lamport=stamp.lamport + 1, seq=stamp.seq + 1)


def rubbish_is_no_snapshot(model: Model[Any], chance: random.Random) -> None:
    """Bytes that are no snapshot are refused with `InvalidInput`, or are the bytes of what they restore to."""
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
    snapshots_are_whole,
    restarts_leave_no_trace,
    void_messages_keep_their_place,
    a_last_void_message_does_not_show,
    refusals_leave_the_state_alone,
    hostile_messages_do_not_split,
    rubbish_is_no_snapshot,
)


def run_model_tests(model: type[Model[Any]], *, examples: int = 50, seed: int = 0) -> tuple[str, ...]:
    """Check all laws of models, each on so many random histories; returns what was checked.

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
