"""Edits of texts, arrays, threads, files, and objects with more than registers.

Making the next mutation of such an item needs its state, so the state is kept, as the writing side has seen it.
"""

from __future__ import annotations

import random
from itertools import islice
from typing import Any

from antiphon.core.cid import Cid
from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.generate.mutation_parts import phrase
from antiphon.model.array.model import ArrayModel
from antiphon.model.file import FileModel
from antiphon.model.messenger.model import MessengerModel
from antiphon.model.model import Model
from antiphon.model.object.model import ObjectModel
from antiphon.model.text.model import TextModel

OBJECT, ARRAY, TEXT, THREAD, FILE = ObjectModel(), ArrayModel(), TextModel(), MessengerModel(), FileModel()
CONTENTS = tuple(b"content %d of a generated file\n" % number for number in range(16))
_CIDS = tuple(Cid.of(content) for content in CONTENTS)
_TEXT_MAX, _ARRAY_MAX = 1_500, 120  # so that a hot item does not grow without end
_RECENT = 12  # posts that still get replies and edits


class TrackedItem:
    """An item whose state is kept: its model, its state, and the number of mutations in it."""

    __slots__ = ("count", "model", "state")

    def __init__(self, model: Model[Any]) -> None:
        self.model = model
        self.state = model.initial()
        self.count = 0


class StateCopy:
    """A copy of a state for one side of a partition, and the mutations that this side made."""

    __slots__ = ("log", "state")

    def __init__(self, work: TrackedItem) -> None:
        self.state = work.model.restore(work.model.snapshot(work.state))
        self.log: list[tuple[bytes, Stamp]] = []


def join(work: TrackedItem, copies: list[StateCopy]) -> None:
    """Merge the mutations that several sides made to one item."""
    work.state = copies[0].state
    work.count += sum(len(copy.log) for copy in copies)
    for copy in copies[1:]:
        for mutation, stamp in copy.log:
            work.model.apply(work.state, mutation, stamp)


def act(model: Model[Any], state: Any, chance: random.Random, feed: bytes, now_ms: int) -> bytes:
    """Make one random mutation of a state, such as a user would make."""
    if model is TEXT:
        return _write(state, chance, feed)
    if model is ARRAY:
        return _arrange(state, chance, feed)
    if model is THREAD:
        return _talk(state, chance, feed, now_ms)
    if model is FILE:
        return _file(state, chance, feed)
    return _shape(state, chance, feed)


def _write(state: Any, chance: random.Random, feed: bytes) -> bytes:
    length, roll = TEXT.length(state), chance.random()
    if length > _TEXT_MAX:
        return TEXT.delete(state, int(chance.random() * 1_000), 200, feed=feed)
    if length > 20 and roll < 0.2:
        return TEXT.delete(state, int(chance.random() * (length - 4)), 1 + int(chance.random() * 3), feed=feed)
    if length > 20 and roll < 0.25:
        start = int(chance.random() * (length - 8))
        return TEXT.mark(state, start, start + 8, "bold" if roll < 0.23 else "link", feed=feed)
    at = length if roll < 0.7 else int(chance.random() * (length + 1))
    return TEXT.insert(state, at, phrase(chance) + ". " if roll < 0.6 else "e", feed=feed)


def _arrange(state: Any, chance: random.Random, feed: bytes) -> bytes:
    length, roll = ARRAY.length(state), chance.random()
    if length > _ARRAY_MAX:
        return ARRAY.delete(state, 0, 20, feed=feed)
    at = int(chance.random() * length)
    if length > 2 and roll < 0.15:
        return ARRAY.move(state, at, int(chance.random() * length), feed=feed)
    if length > 2 and roll < 0.3:
        return ARRAY.delete(state, at, feed=feed)
    if length > 2 and roll < 0.5:
        return ARRAY.set(state, at, phrase(chance), feed=feed)
    return ARRAY.insert(state, length if roll < 0.9 else at, [phrase(chance)], feed=feed)


def _talk(state: Any, chance: random.Random, feed: bytes, now_ms: int) -> bytes:
    roll, post = chance.random(), None
    if roll < 0.5:
        recent = [stamp for stamp in islice(reversed(state.posts), _RECENT) if state.posts[stamp].redacted is None]
        post = recent[int(chance.random() * len(recent))] if recent else None
    if post is not None and roll < 0.1:
        return THREAD.edit(state, post, phrase(chance), feed=feed)
    if post is not None and roll < 0.13:
        return THREAD.redact(state, post, feed=feed)
    return THREAD.post(state, phrase(chance), reply_to=post, sent_ms=now_ms, feed=feed)


def _file(state: Any, chance: random.Random, feed: bytes) -> bytes:
    if chance.random() < 0.3:
        return FILE.rename(state, f"{phrase(chance)}.txt", feed=feed)
    nth = int(chance.random() * len(CONTENTS))
    return FILE.set(state, _CIDS[nth], len(CONTENTS[nth]), "text/plain", f"file {nth}.txt", feed=feed)


def _shape(state: Any, chance: random.Random, feed: bytes) -> bytes:
    """A mutation of maps, sets and counters in an object."""
    roll, number = chance.random(), int(chance.random() * 20)
    try:
        if roll < 0.25:
            return OBJECT.add(state, "tags", f"tag {number}", feed=feed)
        if roll < 0.33:
            return OBJECT.remove(state, "tags", OBJECT.get(state, "tags")[number % 3], feed=feed)
        if roll < 0.53:
            return OBJECT.increment(state, "visits", 1 + number, feed=feed)
        if roll < 0.63:
            return OBJECT.update(state, {("place", "room"): phrase(chance), ("place", "floor"): number}, feed=feed)
        if roll < 0.68:
            return OBJECT.delete(state, "place", feed=feed)
    except (InvalidInput, IndexError):
        pass  # the object has no such set, map or counter yet
    return OBJECT.set(state, ("plan", f"step {number % 8}"), phrase(chance), feed=feed)
