"""Feeds for bench/live.py, made without the live engine: the commands of the models, and large appends.

The messages are those that a live party would have written: each mutation names the messages that it replaces, and has
the stamp of its block.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from antiphon.core.ids import NONCE_SIZE, ItemId
from antiphon.core.stamp import Stamp
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.writer import FeedWriter
from antiphon.model.message import Genesis, wrap, write_genesis
from antiphon.model.object.model import ObjectModel, ObjectState
from antiphon.model.text.model import TextModel

OBJECT = ObjectModel()
TEXT = TextModel()
KEYS = ("title", "done", "owner", "notes", "rank")
APPEND_BLOCKS = 1000

Edit = tuple[int, int, str]  # position, how many are deleted, what is inserted


class Scribe:
    """Appends one block for each message, in large appends, each of which becomes a span."""

    def __init__(self, store: FeedStore, writer: FeedWriter, append_blocks: int = APPEND_BLOCKS) -> None:
        record = store.record(writer.feed)
        self._writer = writer
        self._append_blocks = append_blocks
        self._drafts: list[Draft] = []
        self._first = Stamp(record.lamport + 1, bytes(writer.feed), record.length)
        self.party = bytes(writer.party)
        self.feed = bytes(writer.feed)
        self.count = 0

    @property
    def stamp(self) -> Stamp:
        """The lamport of the next message."""
        return Stamp(self._first.lamport + self.count, self.feed, self._first.seq + self.count)

    def add(self, kind: Kind, item: bytes, message: bytes) -> Stamp:
        stamp = self.stamp
        self._drafts.append(Draft(kind, item, message))
        self.count += 1
        if len(self._drafts) == self._append_blocks:
            self.flush()
        return stamp

    def create(self, model: str, version: int, nonce: bytes) -> bytes:
        """The genesis of an item."""
        message = write_genesis(Genesis(nonce, model, version))
        item = ItemId.derive(self.stamp.lamport, party=self.party, feed=self.feed, genesis=message)
        self.add(Kind.GENESIS, item, message)
        return bytes(item)

    def mutate(self, item: bytes, mutation: bytes) -> Stamp:
        return self.add(Kind.MUTATION, item, wrap(Kind.MUTATION, mutation))

    def flush(self) -> None:
        if self._drafts:
            last = self._writer.extend(self._drafts)[-1]
            assert last.lamport == self._first.lamport + self.count - 1, "its messages carry other stamps"
            self._drafts = []


def sliding(items: int, history: int, window: int, chance: random.Random) -> Iterator[int]:
    """The item of each message: `window` items are in work at a time, and a finished one is replaced by the next."""
    active = list(range(min(window, items)))
    following = len(active)
    left = array("l", [history + 1]) * items
    while active:
        at = int(chance.random() * len(active))
        item = active[at]
        yield item
        left[item] -= 1
        if left[item]:
            continue
        if following < items:
            active[at] = following
            following += 1
        else:
            active[at] = active[-1]
            active.pop()


def scattered(items: int, history: int, chance: random.Random) -> Iterator[int]:
    """The same messages, in random order of items."""
    order = array("l", range(items)) * (history + 1)
    chance.shuffle(order)
    return iter(order)


def write_objects(
    scribe: Scribe, order: Iterable[int], history: int, picked: set[int], chance: random.Random
) -> dict[str, Any]:
    """Objects, each of a genesis and `history` mutations; returns the values of those picked, by the item's id."""
    states: dict[int, tuple[bytes, ObjectState]] = {}
    done: dict[int, int] = {}
    expected: dict[str, Any] = {}
    for number in order:
        known = states.get(number)
        if known is None:
            item = scribe.create(OBJECT.name, OBJECT.version, chance.randbytes(NONCE_SIZE))
            states[number], done[number] = (item, OBJECT.initial()), 0
            continue
        item, state = known
        nth = done[number]
        value = f"{nth % 10} of item {number % 100_000:6}" if nth % 2 else number % 1000
        mutation = OBJECT.set(state, KEYS[nth % len(KEYS)], value, feed=scribe.feed)
        OBJECT.apply(state, mutation, scribe.mutate(item, mutation))
        done[number] = nth + 1
        if nth + 1 == history:
            if number in picked:
                expected[item.hex()] = OBJECT.value(state)
            del states[number], done[number]
    scribe.flush()
    return expected


def write_text(scribe: Scribe, edits: Sequence[Edit]) -> bytes:
    """One text, a block for each edit; returns its id."""
    item = scribe.create(TEXT.name, TEXT.version, bytes(NONCE_SIZE))
    state = TEXT.initial()
    for position, deleted, inserted in edits:
        mutation = TEXT.replace(state, position, deleted, inserted, feed=scribe.feed)
        TEXT.apply(state, mutation, scribe.mutate(item, mutation))
    scribe.flush()
    return item
