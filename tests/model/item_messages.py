"""Helpers for tests of the fold: small models, and messages to one item."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from antiphon.core.ids import ItemId
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import Folded, ItemState, fold
from antiphon.model.message import Change, Genesis, Note, wrap, write_change, write_genesis
from antiphon.model.model import Feeding, InvalidMutation, Model
from antiphon.model.object.model import ObjectModel

PARTY = sha256(b"party").digest()
ALICE = sha256(b"alice").digest()
A, B, C = sorted(sha256(name).digest() for name in (b"alice", b"bob", b"carol"))
NONCE = b"n" * 16
OTHER = ItemId.derive(2, party=PARTY, feed=A, genesis=NONCE)
THIRD = ItemId.derive(3, party=PARTY, feed=A, genesis=NONCE)


class Log(Model[list[bytes]]):
    """ORDERED, with a snapshot: what was said, in the total order; a `!` must not follow another."""

    name = "test/log"
    feeding = Feeding.ORDERED

    def initial(self) -> list[bytes]:
        return []

    def apply(self, state: list[bytes], mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        if mutation == b"!" and state and state[-1] == b"!":
            raise InvalidMutation("one ! is enough")
        if mutation == b"crash":
            raise ZeroDivisionError("a fault in somebody's code")
        if not void:
            state.append(mutation)

    def snapshot(self, state: list[bytes]) -> bytes:
        return b"\n".join(state)

    def restore(self, data: bytes) -> list[bytes]:
        return data.split(b"\n") if data else []

    def value(self, state: list[bytes]) -> list[bytes]:
        return list(state)


class Arrivals(Log):
    """Says that it takes any order, but not that its bytes do not show it."""

    name = "test/arrivals"
    feeding = Feeding.COMMUTATIVE
    canonical = False


class Kept(Log):
    """ORDERED, without a snapshot of its own."""

    name = "test/kept"
    snapshot = Model.snapshot
    restore = Model.restore


class KeptInAnyOrder(Model[set[bytes]]):
    """COMMUTATIVE, without a snapshot of its own."""

    name = "test/any"

    def initial(self) -> set[bytes]:
        return set()

    def apply(self, state: set[bytes], mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        if not mutation:
            raise InvalidMutation("there is nothing in it")
        if not void:
            state.add(mutation)

    def value(self, state: set[bytes]) -> list[bytes]:
        return sorted(state)


MODELS = ModelFactory(ObjectModel, Log, Arrivals, Kept, KeptInAnyOrder)


def genesis(model: str = "test/log", *, lamport: int = 1, feed: bytes = A, seq: int = 0, **options: Any) -> Note:
    void = options.pop("void", "")
    message = write_genesis(Genesis(NONCE, model, 1, **options))
    return Note(Kind.GENESIS, lamport, feed, seq, 77, message, void)


def said(lamport: int, feed: bytes, seq: int, mutation: bytes, void: str = "") -> Note:
    return Note(Kind.MUTATION, lamport, feed, seq, 78, wrap(Kind.MUTATION, mutation), void)


def changed(lamport: int, feed: bytes, seq: int, change: Change, void: str = "") -> Note:
    return Note(Kind.CHANGE, lamport, feed, seq, 79, write_change(change), void)


def item_of(genesis: Note) -> ItemId:
    """The id of the item that a genesis begins."""
    assert genesis.message is not None
    return ItemId.derive(genesis.lamport, party=PARTY, feed=genesis.feed, genesis=genesis.message)


def item_in(notes: Sequence[Note], base: bytes | None = None) -> bytes:
    """The item of a base, or the one that the first genesis among these messages begins; `ITEM` without any."""
    if base is not None:
        return item_codec.restore(base, MODELS).id
    begun = next((note for note in notes if note.kind == Kind.GENESIS and note.message is not None), None)
    return ITEM if begun is None else item_of(begun)


def run(notes: Sequence[Note], item: ItemState | None = None, item_id: bytes = b"") -> Folded:
    """Fold messages to an item: this one, else the one that the first genesis among them begins."""
    return fold(PARTY, item_id or (item_in(notes) if item is None else item.id), item, notes, MODELS)


ITEM = item_of(genesis())


def state_of(notes: Sequence[Note], **options: Any) -> ItemState:
    folded = run(notes, **options)
    assert folded.item is not None
    assert not folded.late
    return folded.item
