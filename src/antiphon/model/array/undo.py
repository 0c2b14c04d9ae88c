"""Undo of one message of an array. It keeps what others changed since. A redo is the undo of an undo.

Restored elements go between their former neighbours. An undo creates new elements for deleted ones, and records which
elements they are copies of. So a writer can also undo, step by step, the changes of an element before its deletion.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.array.codec import Act, Delete, Draft, Insert, Item, Move, Set
from antiphon.model.array.state import ArrayState, Element, ElementId
from antiphon.model.undo import stands
from antiphon.model.value import Value

Gap = tuple[int, list[Item]]  # an index, and the items that go in front of it


class Neighbourhood(NamedTuple):
    """The former place of an element: its key, and its neighbours among the elements that the message left in place."""

    key: bytes
    left: Element | None
    right: Element | None
    left_key: bytes = b""
    right_key: bytes = b""


class Captured(NamedTuple):
    """The parts of the state before a message that its undo needs."""

    deleted: list[tuple[ElementId, Neighbourhood, Value]]
    written: dict[ElementId, tuple[Value, Value, frozenset[Stamp]]]  # the winner, the new value, all stamps there
    moved: dict[ElementId, tuple[Neighbourhood, Neighbourhood]]  # the former and the new place


def capture(state: ArrayState, acts: Sequence[Act]) -> Captured:
    """Return what `undo` needs of the state right before a message is applied."""
    captured = Captured([], {}, {})
    deleted = [name for act in acts if isinstance(act, Delete) for name in act.names if name in state.elements]
    targets = {
        name: key
        for act in acts
        if isinstance(act, Move) and not act.in_place
        for name, key in zip(act.names, act.keys, strict=True)
        if name in state.elements
    }
    if deleted or targets:
        places = _sources(state, [*deleted, *targets])
        for name in dict.fromkeys(deleted):
            captured.deleted.append((name, places[name], state.elements[name].winner))
        for name, key in targets.items():
            captured.moved[name] = places[name], _target(state, key, acts, {*deleted, *targets})
    for act in acts:
        if isinstance(act, Set) and (element := state.elements.get(act.name)) is not None:
            captured.written[act.name] = element.winner, act.value, frozenset(element.writes)
    return captured


def _sources(state: ArrayState, names: Iterable[ElementId]) -> dict[ElementId, Neighbourhood]:
    """Return the places of elements that will be removed. Adjacent ones have the same two neighbours."""
    order, at = state.order, state.at
    indexes = sorted({bisect_left(order, state.elements[name].key) for name in names})
    places: dict[ElementId, Neighbourhood] = {}
    start = 0
    for end in range(1, len(indexes) + 1):
        if end < len(indexes) and indexes[end] == indexes[end - 1] + 1:
            continue
        low, high = indexes[start] - 1, indexes[end - 1] + 1
        left = at[order[low]] if low >= 0 else None
        right = at[order[high]] if high < len(order) else None
        for index in indexes[start:end]:
            places[at[order[index]].id] = _place(order[index], left, right)
        start = end
    return places


def _target(state: ArrayState, key: bytes, acts: Sequence[Act], going: set[ElementId]) -> Neighbourhood:
    """Return the neighbours that a key will have. Elements that the same message moves count by their new keys."""
    order, at = state.order, state.at
    anew = {
        new: state.elements[name]
        for act in acts
        if isinstance(act, Move) and act.in_place
        for name, new in zip(act.names, act.keys, strict=True)
        if name in state.elements
    }
    without = going.union(element.id for element in anew.values())
    high = bisect_left(order, key)
    low = high - 1
    while low >= 0 and at[order[low]].id in without:
        low -= 1
    while high < len(order) and at[order[high]].id in without:
        high += 1
    lefts = {new: element for new, element in anew.items() if new < key}
    rights = {new: element for new, element in anew.items() if new > key}
    if low >= 0:
        lefts[order[low]] = at[order[low]]
    if high < len(order):
        rights[order[high]] = at[order[high]]
    return _place(key, lefts[max(lefts)] if lefts else None, rights[min(rights)] if rights else None)


def _place(key: bytes, left: Element | None, right: Element | None) -> Neighbourhood:
    return Neighbourhood(key, left, right, left.key if left else b"", right.key if right else b"")


def undo(
    state: ArrayState, captured: Captured, acts: Sequence[Act], stamp: Stamp, draft: Draft
) -> tuple[list[bytes], list[Gap]]:
    """Draft deletions and writes; return the order without elements that move back, and the items for its gaps."""
    feed = draft.feed
    for act in acts:
        if isinstance(act, Insert):
            made = (_now(state, ElementId(stamp, act.first + number), feed) for number in range(len(act.values)))
            if there := [element.id for element in made if element is not None]:
                draft.delete(there)
    for name, (old, new, stamps) in captured.written.items():
        element = _now(state, name, feed)
        if element is not None and stands(element.writes, stamps, stamp, new):
            draft.set(element.id, old, sorted(element.writes))
    back = [
        (place, Item(None, value, copy_of=name))
        for name, place, value in captured.deleted
        if _now(state, name, feed) is None
    ]
    moved = {name: element for name in captured.moved if (element := _now(state, name, feed)) is not None}
    aside = {element.id for element in moved.values()}
    for name, element in moved.items():
        source, target = captured.moved[name]
        if element.placed == stamp or _is_back(state, element, target, stamp, aside):
            back.append((source, Item(element.id)))
    return _gaps(state, back, feed)


def _now(state: ArrayState, name: ElementId, feed: bytes) -> Element | None:
    """Return an element, or the copy that the writer of `feed` made of it. Copies are later, so they form no cycle."""
    while (copy := state.copies.get((feed, name))) is not None:
        name = copy
    return state.elements.get(name)


def _is_back(state: ArrayState, element: Element, target: Neighbourhood, stamp: Stamp, aside: set[ElementId]) -> bool:
    """True if the writer of a move has since returned the element to the place of that move."""
    if element.placed is None or element.placed.feed != stamp.feed or element.placed < stamp:
        return False
    order, at = state.order, state.at
    low = high = bisect_left(order, element.key)
    while low >= 0 and at[order[low]].id in aside:
        low -= 1
    while high < len(order) and at[order[high]].id in aside:
        high += 1
    left = at[order[low]] if low >= 0 else None
    right = at[order[high]] if high < len(order) else None
    wanted = [_now(state, beside.id, stamp.feed) if beside else None for beside in (target.left, target.right)]
    return left is wanted[0] or right is wanted[1]


def _gaps(state: ArrayState, back: Sequence[tuple[Neighbourhood, Item]], feed: bytes) -> tuple[list[bytes], list[Gap]]:
    """Return the order without elements that move back, and the gaps for all restored elements."""
    leaving = {state.elements[item.name].key for _, item in back if item.name is not None}
    order = [key for key in state.order if key not in leaving] if leaving else state.order
    gaps: list[Gap] = []
    found = ((_index(state, order, place, feed), place.key, item) for place, item in back)
    for index, _, item in sorted(found, key=lambda row: row[:2]):
        if not gaps or gaps[-1][0] != index:
            gaps.append((index, []))
        gaps[-1][1].append(item)
    return order, gaps


def _index(state: ArrayState, order: list[bytes], place: Neighbourhood, feed: bytes) -> int:
    """Return the index for a key: between its former neighbours, unless others have moved these since."""
    index = bisect_left(order, place.key)
    left, left_still = _beside(state, place.left, place.left_key, feed)
    right, right_still = _beside(state, place.right, place.right_key, feed)
    low = bisect_left(order, left) + 1 if left else 0
    high = bisect_left(order, right) if right else len(order)
    if low > high:  # the same writer moved one of them and has not undone the move
        low, high = low if left_still else 0, high if right_still else len(order)
    return index if low > high else min(max(index, low), high)


def _beside(state: ArrayState, element: Element | None, key: bytes, feed: bytes) -> tuple[bytes, bool]:
    """Return the key of a neighbour, empty if another writer changed it, and True if the key is unchanged."""
    now = None if element is None else _now(state, element.id, feed)
    if now is None or now.placed is None or not (now.key == key or now.placed.feed == feed):
        return b"", False
    return now.key, now.key == key


__all__ = ["Captured", "Gap", "capture", "undo"]
