"""Helpers for tests of access lists: random histories of one item, folded whole or as an engine does."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256

from tests.party.histories import Jottings, Moves

from antiphon.core.ids import SYSTEM_ITEM, ItemId
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.model import item_codec
from antiphon.model.access import EVERYONE, Access, Author
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import META, ItemState, fold
from antiphon.model.message import Change, Genesis, Note, wrap, write_change, write_genesis

PARTY = sha256(b"party").digest()
FEEDS = [bytes([number]) * 32 for number in (1, 2, 3, 4)]
GROUP, OUTSIDE = b"G" * 32, ItemId.derive(1, party=PARTY, feed=b"o" * 32, genesis=bytes(16))
NAMES = ("antiphon/object", "antiphon/text", "antiphon/messenger", "test/moves", "test/jottings", "test/unknown")
MODELS = ModelFactory.standard()
MODELS.register(Moves)
MODELS.register(Jottings)
Verdicts = dict[Stamp, str]


def author_of(feed: bytes, seq: int) -> Author:
    """Feeds are their own authors; the fourth is an owner's, until its 12th block; two are in a group by turns."""
    owner = feed == FEEDS[3] and seq < 12
    return Author(feed, (GROUP,) if feed in FEEDS[1:3] and seq % 4 < 2 else (), owner)


@dataclass
class Replica:
    """A writer, and what it knows, in an order in which it could have come."""

    feed: bytes
    known: list[Note] = field(default_factory=list)
    seq: int = 0

    def pull(self, other: Replica, chance: random.Random) -> None:
        here = set(self.known)
        self.known += [note for note in other.known[: chance.randrange(len(other.known) + 1)] if note not in here]

    def write(self, kind: Kind, message: bytes) -> Note:
        lamport = 1 + max((note.lamport for note in self.known), default=0)
        note = Note(kind, lamport, self.feed, self.seq, 7, message)
        self.seq += 1
        self.known.append(note)
        return note


class History:
    """What four writers send to one item. Some of them hear of little, so their lamports are those of long ago."""

    def __init__(self, seed: int, steps: int, model: str) -> None:
        self.chance = random.Random(seed)
        self.replicas = [Replica(feed) for feed in FEEDS]
        self.seen: dict[Stamp, set[Stamp]] = {}
        nonce, creator = self.chance.randbytes(16), self.chance.choice(self.replicas)
        message = write_genesis(Genesis(nonce, model, 1))
        self.item = ItemId.derive(1, party=PARTY, feed=creator.feed, genesis=message)
        if model == "system":
            self.item, self.model = SYSTEM_ITEM, META.name
        else:
            self.model = model
            self._write(creator, Kind.GENESIS, message)
            for replica in self.replicas:
                replica.known = list(creator.known)
        talk = [self.chance.choice((0.05, 0.5, 0.9)) for _ in FEEDS]
        for _ in range(steps):
            nth = self.chance.randrange(len(FEEDS))
            if self.chance.random() < talk[nth]:
                self.replicas[nth].pull(self.chance.choice(self.replicas), self.chance)
            self._act(self.replicas[nth])

    def _write(self, replica: Replica, kind: Kind, message: bytes) -> None:
        seen = {note.stamp for note in replica.known}
        self.seen[replica.write(kind, message).stamp] = seen

    def _act(self, replica: Replica) -> None:
        chance, what = self.chance, self.chance.random()
        if what < 0.3:
            self._write(replica, Kind.CHANGE, write_change(Change(access=self._access(replica))))
        elif what < 0.4:
            change = chance.choice([Change(deleted=chance.random() < 0.5), Change(parent=OUTSIDE), Change(parent=b"")])
            self._write(replica, Kind.CHANGE, write_change(change))
        elif what < 0.5:
            mutation = META.set(META.initial(), "name", chance.randrange(9), feed=replica.feed)
            self._write(replica, Kind.METADATA, wrap(Kind.METADATA, mutation))
        else:
            model = MODELS.find(self.model, 1)
            state = whole(self, replica.known)[0]
            mutation = b"?" if model is None or state is None else model.rehearse(state.state, chance, replica.feed)
            if model is not None and state is not None:
                lamport = 1 + max((note.lamport for note in replica.known), default=0)
                mutation = model.in_batch(state.state, mutation, replica.feed, lamport)
            self._write(replica, Kind.MUTATION, wrap(Kind.MUTATION, mutation))

    def _access(self, replica: Replica) -> Access:
        chance = self.chance
        pool = [EVERYONE, GROUP, *FEEDS]
        grant = tuple(sorted(chance.sample(pool, chance.randrange(3))))
        revoke = tuple(sorted(chance.sample(pool, chance.randrange(not grant, 3))))
        lengths = Counter(note.feed for note in replica.known)  # of this item alone: there is nothing else here
        if chance.random() < 0.3:
            lengths = Counter({feed: chance.randrange(6) for feed in FEEDS})
        return Access(grant, revoke, tuple(sorted(lengths.items())) if revoke else ())

    @property
    def notes(self) -> list[Note]:
        return sorted({note for replica in self.replicas for note in replica.known}, key=lambda note: note.stamp)

    def causal_order(self) -> list[Note]:
        """Any order in which each message comes after all that its writer had seen."""
        left, order, known = self.notes, [], set[Stamp]()
        while left:
            ready = [note for note in left if self.seen[note.stamp] <= known]
            note = self.chance.choice(ready)
            left.remove(note)
            known.add(note.stamp)
            order.append(note)
        return order


def restored(base: bytes | None) -> ItemState | None:
    return None if base is None else item_codec.restore(base, MODELS)


def whole(history: History, notes: list[Note], base: bytes | None = None) -> tuple[ItemState | None, Verdicts]:
    """The fold in the total order, on the item's snapshot in an epoch if there is one."""
    ordered = sorted(notes, key=lambda note: note.stamp)
    folded = fold(PARTY, history.item, restored(base), ordered, MODELS, author_of, whole=True)
    assert not folded.late
    return folded.item, {stamp: reason for stamp, reason in folded.verdicts.items() if reason}


def live(history: History, order: list[Note], base: bytes | None = None) -> tuple[ItemState | None, Verdicts]:
    """As an engine does: by parts of any size, put away and taken out between them, and afresh where it is late."""
    chance, item = history.chance, restored(base)
    verdicts: Verdicts = {}
    at = 0
    while at < len(order):
        size = chance.choice((1, 1, 3, 9))
        folded = fold(PARTY, history.item, item, order[at : at + size], MODELS, author_of)
        at += size
        item = folded.item
        verdicts.update(folded.verdicts)
        if folded.late:
            item, verdicts = whole(history, order[:at], base)
        if item is not None and chance.random() < 0.3:
            item = item_codec.decode(item_codec.encode(item), MODELS)
    return item, {stamp: reason for stamp, reason in verdicts.items() if reason}


def shown(item: ItemState | None) -> object:
    assert item is not None
    bytes_ = item_codec.snapshot(item) if item.model is not None else b""
    writers = None if item.access is None else item.access.names()
    return bytes_, item.value, item.metadata, item.parent, item.is_deleted, writers
