"""Results are lazy: an item is loaded when it is used; and they do not change."""

from __future__ import annotations

from pathlib import Path

import pytest

import antiphon
from antiphon import Object, Party, Store, prop


def open_items(party: Party) -> int:
    with party.processor.locked() as engine:
        return len(engine.cache)


def test_a_query_loads_only_what_is_looked_at(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        party = store.create_party("Household")
        with party.batch():
            for number in range(50):
                party.object({"n": number})

    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        party = store.party("Household")
        before = open_items(party)
        found = party.query(prop("n") >= 10, order="-n")
        assert len(found) == 40
        assert found
        assert len(found.ids) == 40
        assert party.aggregate(antiphon.Query().count()) == 50
        assert open_items(party) == before

        assert found[0].value == {"n": 49}
        assert open_items(party) == before + 1
        assert [item.value["n"] for item in found[-3:]] == [12, 11, 10]
        assert open_items(party) == before + 4


def test_what_is_near_an_item_is_loaded_when_it_is_looked_at(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        party = store.create_party("Household")
        with party.batch():
            board = party.object(name="Board")
            cards = [board.create() for _ in range(50)]
            for card in cards:
                party.link(board, card)
        cards[3].delete()

    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        party = store.party("Household")
        board = party.item(board.id, Object)
        before = open_items(party)
        assert [len(found) for found in (board.children, board.embedded, board.links())] == [49, 49, 50]
        assert open_items(party) == before
        assert board.children[3].id == sorted({card.id for card in cards} - {cards[3].id})[3]
        assert open_items(party) == before + 1


def test_results_are_equal_that_hold_the_same(party: Party) -> None:
    items = [party.object({"n": number}) for number in range(3)]
    found = party.query(prop("n") < 2)
    assert found == items[:2] == party.query(prop("n") < 2)
    assert found != items
    assert found != items[1::-1]
    assert found != party.query(prop("n") < 3)
    assert found != tuple(items[:2])


def test_results_are_a_sequence(party: Party) -> None:
    items = [party.object({"n": number}) for number in range(4)]
    found = party.query(prop("n") < 3)
    assert list(found) == items[:3]
    assert (found[0], found[-1], found[1:]) == (items[0], items[2], items[1:3])
    assert list(reversed(found)) == items[2::-1]
    assert items[1] in found
    assert items[3] not in found
    assert "milk" not in found
    assert found.index(items[2]) == 2
    assert found.first() == items[0]
    assert party.query(prop("n") > 9).first() is None
    assert not party.query(prop("n") > 9)
    assert repr(found) == f"<Results [{items[0]!r}, {items[1]!r}, {items[2]!r}]>"
    assert "{'n': 0}" in repr(found)
    with pytest.raises(IndexError):
        _ = found[3]


def test_results_are_those_of_one_moment(party: Party) -> None:
    item = party.object({"n": 1})
    found = party.query(prop("n") == 1)
    item["n"] = 2
    party.object({"n": 1})
    assert list(found) == [item]
    assert found.of(Object)[0]["n"] == 2, "a handle shows what is there now"


def test_results_of_a_kind(party: Party, ada: Store) -> None:
    note, numbers = party.object(), party.list()
    assert party.items().of(antiphon.List) == [numbers]
    assert party.items().of(Object) == [note]
    assert party.items().of(antiphon.Handle) == [note, numbers]
    assert ada.create_party().object() not in party.items()
