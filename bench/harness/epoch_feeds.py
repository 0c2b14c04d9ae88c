"""Feeds for bench/epoch.py: several devices of one party, whose messages are written without the live engine.

Devices take turns, and each has seen all that was written before its turn. Most messages go to the newest items, some
to any: old items are scattered over the feeds of all devices.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from antiphon.core.ids import NONCE_SIZE, ItemId
from antiphon.core.stamp import Stamp
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Entry, Kind
from antiphon.feed.writer import FeedWriter
from antiphon.model.array.model import ArrayModel
from antiphon.model.message import Genesis, wrap, write_genesis
from antiphon.model.messenger.model import MessengerModel
from antiphon.model.model import Model
from antiphon.model.object.model import ObjectModel
from antiphon.model.text.model import TextModel

KEYS = ("title", "done", "owner", "notes", "rank")
TURN_BLOCKS = 200
NEWEST = 1000  # items that are worked on most
OLD_SHARE = 0.25  # of the messages go to any item
_WORDS = ("kettle", "lamp", "river", "stone", "paper", "orchard", "engine", "window", "harbour", "meadow")

OBJECT, TEXT, LIST, THREAD = ObjectModel(), TextModel(), ArrayModel(), MessengerModel()
#: How many of a hundred items have each model.
SHARES: tuple[tuple[Model[Any], int], ...] = ((OBJECT, 85), (TEXT, 6), (LIST, 6), (THREAD, 3))
_MODELS = [model for model, share in SHARES for _ in range(share)]


class Team:
    """Devices that write in turns. Their messages have consecutive lamports."""

    def __init__(self, writers: Sequence[FeedWriter], entries: Sequence[Entry], lengths: Sequence[int]) -> None:
        self._writers = writers
        self._turn = 0
        self._drafts: list[Draft] = []
        self._seqs = list(lengths)
        self._lamport = max((entry.lamport for entry in entries), default=0)
        self.count = 0
        for writer in writers:
            writer.see(*entries)

    @property
    def feed(self) -> bytes:
        return bytes(self._writers[self._turn].feed)

    def add(self, kind: Kind, item: bytes, message: bytes) -> Stamp:
        stamp = self.stamp
        self._drafts.append(Draft(kind, item, message))
        self.count += 1
        return stamp

    @property
    def stamp(self) -> Stamp:
        """The lamport of the next message."""
        at = len(self._drafts)
        return Stamp(self._lamport + 1 + at, self.feed, self._seqs[self._turn] + at)

    @property
    def party(self) -> bytes:
        return bytes(self._writers[0].party)

    def end_message(self) -> None:
        if len(self._drafts) == TURN_BLOCKS:
            self.flush()

    def flush(self) -> None:
        """End a turn: the others see it."""
        if not self._drafts:
            return
        writer = self._writers[self._turn]
        written = writer.extend(self._drafts)
        last = written[-1]
        assert (last.lamport, last.seq + 1) == (
            self._lamport + len(self._drafts),
            self._seqs[self._turn] + len(self._drafts),
        ), "its messages carry other stamps"
        self._lamport, self._seqs[self._turn] = last.lamport, last.seq + 1
        for other in self._writers:
            other.see(Entry(last.feed, last.seq, last.lamport, written.hash))
        self._drafts = []
        self._turn = (self._turn + 1) % len(self._writers)


def write_items(team: Team, items: int, mutations: int, chance: random.Random) -> list[str]:
    """Write items, and a number of mutations in all; return the ids, the oldest first."""
    ids: list[bytes] = []
    states: list[tuple[Model[Any], Any]] = []
    total = items + mutations
    for nth in range(total):
        if len(ids) * total <= nth * items:
            nonce, model = chance.randbytes(NONCE_SIZE), _MODELS[int(chance.random() * len(_MODELS))]
            message = write_genesis(Genesis(nonce, model.name, model.version))
            item = ItemId.derive(team.stamp.lamport, party=team.party, feed=team.feed, genesis=message)
            team.add(Kind.GENESIS, item, message)
            ids.append(bytes(item))
            states.append((model, model.initial()))
        else:
            low = 0 if chance.random() < OLD_SHARE else max(0, len(ids) - NEWEST)
            at = low + int(chance.random() * (len(ids) - low))
            model, state = states[at]
            mutation = mutate(model, state, team.feed, chance)
            model.apply(state, mutation, team.add(Kind.MUTATION, ids[at], wrap(Kind.MUTATION, mutation)))
        team.end_message()
    team.flush()
    return [item.hex() for item in ids]


def mutate(model: Model[Any], state: Any, feed: bytes, chance: random.Random) -> bytes:
    """One typical change."""
    phrase = " ".join(_WORDS[int(chance.random() * len(_WORDS))] for _ in range(3))
    if model is OBJECT:
        key = KEYS[int(chance.random() * len(KEYS))]
        return OBJECT.set(state, key, int(chance.random() * 1000) if key in ("done", "rank") else phrase, feed=feed)
    if model is TEXT:
        return TEXT.insert(state, int(chance.random() * (1 + TEXT.length(state))), phrase, feed=feed)
    if model is LIST:
        return LIST.insert(state, LIST.length(state), [phrase], feed=feed)
    return THREAD.post(state, phrase, sent_ms=1, feed=feed)


def command(model: str, chance: random.Random) -> tuple[str, tuple[Any, ...]]:
    """One change of an open item, by a command of its model."""
    number = int(chance.random() * 1000)
    if model == OBJECT.name:
        return "set", ("rank", number)
    if model == TEXT.name:
        return "insert", (0, f"{number} ")
    return ("append", (number,)) if model == LIST.name else ("post", (f"number {number}",))
