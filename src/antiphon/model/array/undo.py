"""Undo of one message of an array. It keeps what others changed since. A redo is the undo of an undo.

Restored elements go between their former neighbours. An undo creates new elements for deleted ones, and records which
elements they are copies of. So a writer can also undo, step by step, the changes of an element before its deletion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.array.codec import Act, Delete, Draft, Insert, Item, Move, Set
from antiphon.model.array.pieces import ElementId, OrderWithout, Piece
from antiphon.model.array.state import ArrayState
from antiphon.model.undo import stands
from antiphon.model.value import Value

Gap = tuple[int, list[Item]]  # an index, and the items that go in front of it


class Element(NamedTuple):
    """An element as it is now: its id, its key, and the piece that holds it."""

    id: ElementId
    key: bytes
    piece: Piece
    at: int

    @property
    def writes(self) -> dict[Stamp, Value]:
        """Its values by stamp."""
        return dict(self.piece.written(self.at).values())


class Neighbourhood(NamedTuple):
    """The former place of an element: its key, and its neighbours among the elements that the message left in place."""

    key: bytes
    left: ElementId | None
    right: ElementId | None
    left_key: bytes = b""
    right_key: bytes = b""


class Captured(NamedTuple):
    """The parts of the state before a message that its undo needs."""

    deleted: list[tuple[ElementId, Neighbourhood, Value]]
    written: dict[ElementId, tuple[Value, Value, frozenset[Stamp]]]  # the winner, the new value, all stamps there
    moved: dict[ElementId, tuple[Neighbourhood, Neighbourhood]]  # the former and the new place


def element(state: ArrayState, name: ElementId) -> Element | None:
    """Return an element; None if it is not in the array."""
    found = state.find(name)
    return None if found is None else Element(name, found[0].span.key(found[1]), *found)


def _at(state: ArrayState, index: int) -> Element | None:
    """Return the element at an index; None if the index is out of range."""
    if not 0 <= index < state.order.length:
        return None
    piece, at = state.order.at(index)
    return Element(piece.name(at), piece.span.key(at), piece, at)


def capture(state: ArrayState, acts: Sequence[Act]) -> Captured:
    """Return what `undo` needs of the state right before a message is applied."""
    captured = Captured([], {}, {})
    deleted = [name for act in acts if isinstance(act, Delete) for name in act.names if state.find(name)]
    targets = {
        name: act.span.key(at)
        for act in acts
        if isinstance(act, Move) and not act.in_place
        for at, name in enumerate(act.names)
        if state.find(name)
    }
    if deleted or targets:
        places, values = _sources(state, [*deleted, *targets])
        for name in dict.fromkeys(deleted):
            captured.deleted.append((name, places[name], values[name]))
        anew = _anew(state, acts) if targets else {}
        for name, key in targets.items():
            captured.moved[name] = places[name], _target(state, key, anew, {*deleted, *targets})
    for act in acts:
        if isinstance(act, Set) and (found := element(state, act.name)) is not None:
            writes = found.writes
            captured.written[act.name] = writes[max(writes)], act.value, frozenset(writes)
    return captured


def _sources(
    state: ArrayState, names: Iterable[ElementId]
) -> tuple[dict[ElementId, Neighbourhood], dict[ElementId, Value]]:
    """Return the places and values of elements that will be removed. Adjacent ones have the same two neighbours."""
    indexes = sorted({index for name in names if (index := state.position(name)) is not None})
    places: dict[ElementId, Neighbourhood] = {}
    values: dict[ElementId, Value] = {}
    start = 0
    for end in range(1, len(indexes) + 1):
        if end < len(indexes) and indexes[end] == indexes[end - 1] + 1:
            continue
        low, high = indexes[start], indexes[end - 1] + 1
        left, right = _at(state, low - 1), _at(state, high)
        for piece, first, stop in state.order.between(low, high):
            for at in range(first, stop):
                places[piece.name(at)] = _place(piece.span.key(at), left, right)
                values[piece.name(at)] = piece.winner(at)
        start = end
    return places, values


def _anew(state: ArrayState, acts: Sequence[Act]) -> dict[bytes, Element]:
    """Return the elements that only get new keys, by these."""
    return {
        act.span.key(at): found
        for act in acts
        if isinstance(act, Move) and act.in_place
        for at, name in enumerate(act.names)
        if (found := element(state, name)) is not None
    }


def _target(state: ArrayState, key: bytes, anew: dict[bytes, Element], going: set[ElementId]) -> Neighbourhood:
    """Return the neighbours that a key will have. Elements that the same message moves count by their new keys."""
    without = going.union(found.id for found in anew.values())
    high = state.order.bisect(key)
    low = high - 1
    left, right = _beyond(state, low, -1, without), _beyond(state, high, 1, without)
    lefts = {new: found for new, found in anew.items() if new < key}
    rights = {new: found for new, found in anew.items() if new > key}
    if left is not None:
        lefts[left.key] = left
    if right is not None:
        rights[right.key] = right
    return _place(key, lefts[max(lefts)] if lefts else None, rights[min(rights)] if rights else None)


def _beyond(state: ArrayState, index: int, step: int, without: set[ElementId]) -> Element | None:
    """Return the first element from an index on, in one direction, that is not one of some."""
    while (found := _at(state, index)) is not None and found.id in without:
        index += step
    return found


def _place(key: bytes, left: Element | None, right: Element | None) -> Neighbourhood:
    names = left.id if left else None, right.id if right else None
    return Neighbourhood(key, *names, left.key if left else b"", right.key if right else b"")


def undo(
    state: ArrayState, captured: Captured, acts: Sequence[Act], stamp: Stamp, draft: Draft
) -> tuple[OrderWithout, list[Gap]]:
    """Draft deletions and writes; return the order without elements that move back, and the items for its gaps."""
    feed = draft.feed
    for act in acts:
        if isinstance(act, Insert):
            made = (_now(state, ElementId(stamp, act.first + number), feed) for number in range(len(act.values)))
            if there := [found.id for found in made if found is not None]:
                draft.delete(there)
    for name, (old, new, stamps) in captured.written.items():
        now = _now(state, name, feed)
        if now is not None and stands(now.writes, stamps, stamp, new):
            draft.set(now.id, old, sorted(now.writes))
    back = [
        (place, Item(None, value, copy_of=name))
        for name, place, value in captured.deleted
        if _now(state, name, feed) is None
    ]
    moved = {name: found for name in captured.moved if (found := _now(state, name, feed)) is not None}
    aside = {found.id for found in moved.values()}
    for name, found in moved.items():
        source, target = captured.moved[name]
        if found.piece.span.stamp == stamp or _is_back(state, found, target, stamp, aside):
            back.append((source, Item(found.id)))
    return _gaps(state, back, feed)


def _now(state: ArrayState, name: ElementId, feed: bytes) -> Element | None:
    """Return an element, or the copy that the writer of `feed` made of it. Copies are later, so they form no cycle."""
    while (copy := state.copies.get((feed, name))) is not None:
        name = copy
    return element(state, name)


def _is_back(state: ArrayState, found: Element, target: Neighbourhood, stamp: Stamp, aside: set[ElementId]) -> bool:
    """True if the writer of a move has since returned the element to the place of that move."""
    placed = found.piece.span.stamp
    if placed.feed != stamp.feed or placed < stamp:
        return False
    index = state.order.bisect(found.key)
    left, right = _beyond(state, index, -1, aside), _beyond(state, index, 1, aside)
    wanted = [_now(state, beside, stamp.feed) if beside else None for beside in (target.left, target.right)]
    return _same(left, wanted[0]) or _same(right, wanted[1])


def _same(one: Element | None, other: Element | None) -> bool:
    return one is other if one is None or other is None else one.id == other.id


def _gaps(state: ArrayState, back: Sequence[tuple[Neighbourhood, Item]], feed: bytes) -> tuple[OrderWithout, list[Gap]]:
    """Return the order without elements that move back, and the gaps for all restored elements."""
    leaving = {index for _, item in back if item.name and (index := state.position(item.name)) is not None}
    order = OrderWithout(state.order, sorted(leaving))
    gaps: list[Gap] = []
    found = ((_index(state, order, place, feed), place.key, item) for place, item in back)
    for index, _, item in sorted(found, key=lambda row: row[:2]):
        if not gaps or gaps[-1][0] != index:
            gaps.append((index, []))
        gaps[-1][1].append(item)
    return order, gaps


def _index(state: ArrayState, order: OrderWithout, place: Neighbourhood, feed: bytes) -> int:
    """Return the index for a key: between its former neighbours, unless others have moved these since."""
    index = order.bisect(place.key)
    left, left_still = _beside(state, place.left, place.left_key, feed)
    right, right_still = _beside(state, place.right, place.right_key, feed)
    low = order.bisect(left) + 1 if left else 0
    high = order.bisect(right) if right else order.length
    if low > high:  # the same writer moved one of them and has not undone the move
        low, high = low if left_still else 0, high if right_still else order.length
    return index if low > high else min(max(index, low), high)


def _beside(state: ArrayState, name: ElementId | None, key: bytes, feed: bytes) -> tuple[bytes, bool]:
    """Return the key of a neighbour, empty if another writer changed it, and True if the key is unchanged."""
    now = None if name is None else _now(state, name, feed)
    if now is None or not (now.key == key or now.piece.span.stamp.feed == feed):
        return b"", False
    return now.key, now.key == key


__all__ = ["Captured", "Gap", "capture", "undo"]
