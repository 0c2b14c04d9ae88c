"""Random histories of one item, for the laws of models: writers edit, exchange and edit again.

They write single messages and batches, with void and hostile messages in between. All of it depends on the seed alone.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple

from antiphon.core.ids import ItemId
from antiphon.feed.header import Kind
from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import ItemState, fold
from antiphon.model.message import Genesis, Note, content, wrap, write_genesis
from antiphon.model.model import Model

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
        genesis = write_genesis(Genesis(NONCE, model.name, model.version))
        self.item = ItemId.derive(1, party=PARTY, feed=FEEDS[0], genesis=genesis)
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
        """Fold messages into a state, from the empty state or from a stored record."""
        item = None if base is None else item_codec.decode(base, self.models)
        folded = fold(PARTY, self.item, item, notes, self.models)
        if folded.late or folded.item is None:  # as the pipeline does: all messages, in the total order
            raise Late
        return folded.item

    def _hear(self, who: int) -> None:
        """Give one replica all messages of another, in the total order."""
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
        """A mutation that no honest program writes: bytes changed, cut, repeated, or copied from another message."""
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
        """Fold a set of messages in the total order."""
        return self.fold(sorted((line.note for line in lines), key=lambda note: note.stamp))

    def order(self) -> list[Note]:
        """The messages in some causal order; batches stay together, as delivery keeps them."""
        return [line.note for batch in self.batches(self.lines) for line in batch]

    def batches(self, lines: Collection[Line]) -> list[list[Line]]:
        """Some of the messages in a causal order, batch by batch; the messages left out count as delivered before."""
        left = list(lines)
        waiting = {line.name for line in left}
        found: list[list[Line]] = []
        while left:
            first = self._chance.choice([line for line in left if not line.seen & waiting])
            place = first.note.feed, first.note.lamport
            found.append([line for line in left if (line.note.feed, line.note.lamport) == place])
            waiting -= {line.name for line in found[-1]}
            left = [line for line in left if line.name in waiting]
        return found

    def cut(self, count: int) -> list[list[Line]]:
        """The history in parts, divided by causally closed cuts. The genesis is in the first; others may be empty."""
        batches = self.batches(self.lines)
        ends = sorted(self._chance.randrange(1, len(batches) + 1) for _ in range(count - 1))
        bounds = [0, *ends, len(batches)]
        return [[line for batch in batches[low:high] for line in batch] for low, high in pairwise(bounds)]


class Late(Exception):
    """A late message that the kept tail does not reach: the pipeline then folds the item's whole history again."""


def same(history: History, notes: list[Note], pieces: int, chance: random.Random) -> ItemState:
    """Fold notes in pieces, with a restart between them."""
    cuts = sorted(chance.randrange(1, len(notes) + 1) for _ in range(pieces))
    record: bytes | None = None
    start, state = 0, None
    for cut in [*cuts, len(notes)]:
        if cut > start:
            try:
                state = history.fold(notes[start:cut], record)
            except Late:
                state = history.fold(sorted(notes[:cut], key=lambda note: note.stamp))
            record, start = item_codec.encode(state), cut
    assert state is not None
    return state
