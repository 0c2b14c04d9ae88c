"""Where items hang: however deep that is, and whatever circles peers have closed; and where they hung then."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon import Handle, InvalidInput, Party

MOVES = st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(0, 5)), max_size=12)


def above(party: Party, item: bytes) -> list[bytes]:
    """One by one, as nobody should."""
    found: list[bytes] = []
    while item := party.parent_of(item):
        found.append(item)
    return found


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES)
def test_what_is_above_is_the_parents_one_by_one(party: Party, moves: list[tuple[int, int | None]]) -> None:
    """Claims are written without a check, as a hostile peer writes them: circles and all."""
    with party.batch():
        items = [party.object() for _ in range(6)]
        for child, parent in moves:
            if child != parent:
                items[child].item.move(None if parent is None else items[parent].id)
    for item in items:
        assert party.queries.above(bytes(item.id)) == above(party, bytes(item.id))


def chain(party: Party, depth: int) -> list[Handle]:
    with party.batch():
        items: list[Handle] = [party.object()]
        for _ in range(depth):
            items.append(party.create(parent=items[-1]))
    return items


def test_nothing_is_hung_below_itself(party: Party) -> None:
    items = chain(party, 5)
    for below in (items[0], items[1], items[5]):
        with pytest.raises(InvalidInput, match="which is itself or below it"):
            items[0].move_under(below)
    items[3].move_under(items[0])
    items[1].move_under(items[5])
    assert items[1].parent == items[5]
    assert items[3].children == [items[4]]


def test_moving_deep_down_is_one_walk(party: Party) -> None:
    """Once, each item above was asked for all that is above it."""
    deepest, other = chain(party, 1000)[-1], party.object()
    party.parent_of(deepest.id)
    began = time.perf_counter()
    for _ in range(20):
        party.parent_of(deepest.id)
    asked = time.perf_counter()
    other.move_under(deepest)
    moved = time.perf_counter()
    assert moved - asked < asked - began, "less than 20 walks, where there were 1000"
    assert other.parent == deepest


def test_the_past_has_what_was_known_then(party: Party) -> None:
    board, lane = party.object(), party.object()
    card = party.object({"n": 1}, name="Card", type="task", parent=board)
    then = party.timeframe
    card.name, card.type = "Map", "note"
    card.describe("colour", "red")
    card.move_under(lane)
    card.delete()

    past, now = card.at(then), card.at(party.timeframe)
    assert (past.name, past.type, past.parent, past.deleted) == ("Card", "task", board.id, False)
    assert past.metadata == {"display_name": "Card", "type": "task"}
    assert (now.name, now.type, now.parent, now.deleted) == ("Map", "note", lane.id, True)
    assert party.at(then).item(card.id).name == "Card"
    card.describe("display_name", 5)
    assert card.at(party.timeframe).name == ""
