"""`ArrayModel`: a list that several people edit at once: insert, delete, move, set.

>>> array = ArrayModel()
>>> state, alice = array.initial(), b"a" * 32
>>> array.apply(state, array.insert(state, 0, ["milk", "bread"], feed=alice), Stamp(1, alice, 0))
>>> array.apply(state, array.move(state, 1, 0, feed=alice), Stamp(2, alice, 1))
>>> array.value(state)
['bread', 'milk']

Runs of elements that two people insert at the same place do not interleave. Of concurrent moves one wins. Of concurrent
values the winner shows, and `conflicts` returns the others. Deleted elements stay deleted. Commands return mutations
and do not change the state. They take the writer's own `feed`, so that they can continue a run of that writer.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Mapping

from antiphon.core.errors import InvalidInput, TooLarge
from antiphon.core.stamp import Stamp
from antiphon.model.array.codec import ELEMENTS_MAX, Draft, Item, check_index, read_mutation, read_state, write_state
from antiphon.model.array.pieces import ElementId, OrderWithout, Piece, stamp_of
from antiphon.model.array.position import KEY_SIZE_MAX, between, key_size
from antiphon.model.array.state import ArrayState
from antiphon.model.array.undo import Captured, Gap, capture, undo
from antiphon.model.model import Model
from antiphon.model.value import Value

REKEY_SIZE_MAX = KEY_SIZE_MAX // 2  # of new keys, so that it takes long until they are too long again
_REKEY_COUNT = 8
_NO_LISTS = (str, bytes, bytearray, memoryview, Mapping)  # iterable, but hardly meant as lists of values

_MUTABLE = frozenset({list, dict})


class ArrayModel(Model[ArrayState]):
    """A list. See docs/models/array.md."""

    name = "antiphon/array"
    commands = frozenset({"insert", "append", "delete", "set", "move"})

    def initial(self) -> ArrayState:
        return ArrayState()

    def apply(self, state: ArrayState, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        acts = read_mutation(mutation, stamp)
        state.heard.hear(stamp)
        if not void:
            for act in acts:
                act.change(state, stamp)
        if state.due:
            state.settle(stamp)

    def snapshot(self, state: ArrayState) -> bytes:
        return write_state(state)

    def restore(self, data: bytes) -> ArrayState:
        return read_state(data)

    # -- reading

    def value(self, state: ArrayState) -> list[Value]:
        values: list[Value] = [None] * state.order.length  # at once: a list that grows takes more
        at = 0
        for piece in state.order:
            values[at : at + piece.count] = piece.winners()
            at += piece.count
        return values if _MUTABLE.isdisjoint(map(type, values)) else [_own(value) for value in values]

    def length(self, state: ArrayState) -> int:
        """Return the number of elements."""
        return state.order.length

    def get(self, state: ArrayState, index: int) -> Value:
        """Return the value of the element at `index`."""
        piece, at = _element(state, index)
        return _own(piece.winner(at))

    def conflicts(self, state: ArrayState, index: int) -> list[tuple[Stamp, Value]]:
        """Return all concurrent values of an element with their stamps, the winner first; usually one."""
        piece, at = _element(state, index)
        writes = sorted(piece.written(at).values(), key=stamp_of, reverse=True)
        return [(stamp, copy.deepcopy(value)) for stamp, value in writes]

    def ids(self, state: ArrayState) -> list[ElementId]:
        """Return the ids of the elements in order. A move does not change the id of an element."""
        return [piece.name(at) for piece in state.order for at in range(piece.count)]

    def keys(self, state: ArrayState) -> list[bytes]:
        """Return the position keys of the elements. Their byte order is the order of the elements."""
        return [key for piece in state.order for key in piece.span.all_keys()]

    def position(self, state: ArrayState, name: ElementId) -> int | None:
        """Return the index of an element; None if it is not in the array."""
        return state.position(name)

    # -- commands

    def insert(self, state: ArrayState, index: int, values: Iterable[Value], *, feed: bytes = b"") -> bytes:
        """Insert values in front of the element at `index`, or at the end."""
        if isinstance(values, _NO_LISTS) or not isinstance(values, Iterable):
            kind = type(values).__name__
            raise InvalidInput(f"values is a list of values, not {kind}; to insert one text use [text]")
        items = [Item(None, value) for value in values]
        if not items:
            raise InvalidInput("there are no values to insert")
        if len(items) > ELEMENTS_MAX:
            raise TooLarge(f"one mutation inserts at most {ELEMENTS_MAX} elements, not {len(items)}; insert in parts")
        check_index(index, state.order.length + 1, "place")
        return _put(OrderWithout(state.order), [(index, items)], Draft(feed), feed)[0]

    def append(self, state: ArrayState, *values: Value, feed: bytes = b"") -> bytes:
        """Insert values at the end."""
        return self.insert(state, state.order.length, values, feed=feed)

    def delete(self, state: ArrayState, index: int, count: int = 1, *, feed: bytes = b"") -> bytes:
        """Delete `count` elements from `index` on."""
        length = state.order.length
        check_index(index, length)
        if type(count) is not int or not 1 <= count <= length - index:
            raise InvalidInput(f"there are no {count!r} elements from {index} on in an array of {length}")
        draft = Draft(feed)
        parts = state.order.between(index, index + count)
        draft.delete(piece.name(at) for piece, low, high in parts for at in range(low, high))
        return draft.encode()[0]

    def set(self, state: ArrayState, index: int, value: Value, *, feed: bytes = b"") -> bytes:
        """Replace the value of the element at `index`."""
        piece, at = _element(state, index)
        draft = Draft(feed)
        draft.set(piece.name(at), value, sorted(map(stamp_of, piece.written(at).values())))
        return draft.encode()[0]

    def move(self, state: ArrayState, source: int, target: int, *, feed: bytes = b"") -> bytes:
        """Move an element, like `list.insert(target, list.pop(source))`."""
        piece, at = _element(state, source)
        check_index(target, state.order.length, "place")
        others = OrderWithout(state.order, [source])
        return _put(others, [(target, [Item(piece.name(at))])], Draft(feed), feed)[0]

    # -- undo

    def capture(self, state: ArrayState, mutation: bytes, stamp: Stamp) -> Captured:
        return capture(state, read_mutation(mutation, stamp))

    def revert(self, state: ArrayState, captured: Captured, mutation: bytes, stamp: Stamp, feed: bytes) -> list[bytes]:
        """Delete what a message inserted, restore what it deleted, and reset what it set or moved unless others did."""
        draft = Draft(feed)
        order, gaps = undo(state, captured, read_mutation(mutation, stamp), stamp, draft)
        return _put(order, gaps, draft, feed)

    # -- rehearsal

    def rehearse(self, state: ArrayState, chance: random.Random, feed: bytes) -> bytes:
        length = state.order.length
        act = chance.choice(["insert", "append", "delete", "set", "move"]) if length else "append"
        if act == "delete":
            index = chance.randrange(length)
            return self.delete(state, index, chance.randint(1, min(3, length - index)), feed=feed)
        if act == "set":
            return self.set(state, chance.randrange(length), chance.randrange(1000), feed=feed)
        if act == "move":
            return self.move(state, chance.randrange(length), chance.randrange(length), feed=feed)
        values = [chance.randrange(1000) for _ in range(chance.choice([1, 1, 2, 5]))]
        return self.insert(state, chance.randint(0, length) if act == "insert" else length, values, feed=feed)


def _element(state: ArrayState, index: int) -> tuple[Piece, int]:
    return state.order.at(check_index(index, state.order.length))


def _own(value: Value) -> Value:
    return copy.deepcopy(value) if type(value) in _MUTABLE else value  # callers must not change the state's own


def _put(order: OrderWithout, gaps: list[Gap], draft: Draft, feed: bytes) -> list[bytes]:
    """Put items into gaps. Where keys would become too long, the neighbours get new keys in the same mutation."""
    places = [between(*_neighbours(order, index, index), len(items), feed) for index, items in gaps]
    if all(key_size(place, len(items)) <= KEY_SIZE_MAX for place, (_, items) in zip(places, gaps, strict=True)):
        for place, (_, items) in zip(places, gaps, strict=True):
            draft.put(place, items)
        return draft.encode()
    low, high = gaps[0][0], gaps[-1][0]
    step = _REKEY_COUNT
    while True:
        low, high = max(0, low - step), min(order.length, high + step)
        count = high - low + sum(len(items) for _, items in gaps)
        place = between(*_neighbours(order, low, high), count, feed)
        if key_size(place, count) <= REKEY_SIZE_MAX or (low == 0 and high == order.length):
            break
        step *= 2
    coming = dict(gaps)
    merged: list[Item] = []
    for index in range(low, high + 1):
        merged += coming.get(index, [])
        if index < high:
            merged.append(Item(order.name(index), in_place=True))
    draft.put(place, merged)
    return draft.encode()


def _neighbours(order: OrderWithout, low: int, high: int) -> tuple[bytes | None, bytes | None]:
    return (order.key(low - 1) if low else None), (order.key(high) if high < order.length else None)


__all__ = ["ArrayModel", "ArrayState", "ElementId"]
