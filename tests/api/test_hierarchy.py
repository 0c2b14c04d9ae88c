"""Parents of items: in deep trees, with cycles that peers have closed, and at earlier times."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import antiphon
from antiphon import Handle, InvalidInput, Party
from antiphon.model.message import Change

MOVES = st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(0, 5)), max_size=12)


def above(party: Party, item: bytes) -> list[bytes]:
    """Ask for one parent after the other, the slow way."""
    found: list[bytes] = []
    while item := party.parent_of(item):
        found.append(item)
    return found


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES)
def test_what_is_above_is_the_parents_one_by_one(party: Party, moves: list[tuple[int, int | None]]) -> None:
    """Claims are written without a check, as a hostile peer writes them: with cycles."""
    items = [party.object() for _ in range(6)]
    with party.batch():
        items += [party.object() for _ in range(2)]
        for child, parent in moves:
            if child != parent:
                items[child].item.move(None if parent is None else items[parent].id)
        inside = [party.queries.above(bytes(item.id)) for item in items]
    assert inside == [above(party, bytes(item.id)) for item in items]
    for item in items:
        assert party.queries.above(bytes(item.id)) == above(party, bytes(item.id))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES, forks=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=4))
def test_a_batch_knows_where_things_will_hang(
    party: Party, moves: list[tuple[int, int | None]], forks: list[tuple[int, int]]
) -> None:
    """With forks: the answers inside a batch equal the answers of the index after it."""
    items = [party.object() for _ in range(6)]
    with party.processor.batch() as batch:  # what was just made need not be saved
        for child, parent in moves:
            if child != parent:
                items[child].item.move(None if parent is None else items[parent].id)
        for old, new in forks:
            if old != new:
                batch.change(bytes(items[old].id), Change(forked_to=bytes(items[new].id)))
        inside = [party.parent_of(item.id) for item in items]
    assert inside == [party.parent_of(item.id) for item in items]


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
    """A former version computed the ancestors of each ancestor again."""
    deepest, other = chain(party, 1000)[-1], party.object()
    party.queries.above(bytes(deepest.id))
    began = time.perf_counter()
    for _ in range(20):
        party.queries.above(bytes(deepest.id))
    asked = time.perf_counter()
    other.move_under(deepest)
    moved = time.perf_counter()
    assert moved - asked < asked - began, "less than 20 walks, where there were 1000"
    assert other.parent == deepest


def test_a_parent_is_asked_for_without_a_look_at_what_is_above_it(tmp_path: Path) -> None:
    """Given a deep tree on disk, when an item's parent is asked for, then only that is loaded; in a batch as well."""
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        ids = [item.id for item in chain(store.create_party("Household"), 200)]
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        party = store.party("Household")
        deepest = party.item(ids[-1])
        with party.processor.locked() as engine:
            assert deepest.parent is not None
            assert deepest.parent.id == ids[-2]
            assert len(engine.cache) < 10
            with party.batch():
                deepest.move_under(party.item(ids[100]))
                assert deepest.parent.id == ids[100]
                assert len(engine.cache) < 10


def test_the_past_has_what_was_known_then(party: Party) -> None:
    board, lane = party.object(), party.object()
    card = party.object({"n": 1}, name="Card", type="task", parent=board)
    then = party.timeframe
    card.name, card.type = "Map", "note"
    card.set_metadata("colour", "red")
    card.move_under(lane)
    card.delete()

    past, now = card.at(then), card.at(party.timeframe)
    assert (past.name, past.type, past.parent, past.deleted) == ("Card", "task", board.id, False)
    assert past.metadata == {"display_name": "Card", "type": "task"}
    assert (now.name, now.type, now.parent, now.deleted) == ("Map", "note", lane.id, True)
    assert party.at(then).item(card.id).name == "Card"
    card.set_metadata("display_name", 5)
    assert card.at(party.timeframe).name == ""
