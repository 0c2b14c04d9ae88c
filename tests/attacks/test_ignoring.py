"""A device that ignores a member goes on being heard: it gives on what others need of that member's feeds (rule 29)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import antiphon
from antiphon import Object, Party, Store, sync
from antiphon.core.reasons import Reason


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[Store]]:
    """Ada, who creates the party, Bob, Carol and Dora."""
    names = ("ada", "bob", "carol", "dora")
    made = [antiphon.open(tmp_path / name, name=name, unprotected=True, epochs=False) for name in names]
    try:
        party = made[0].create_party("Household")
        for store in made[1:]:
            store.join(party.invite(store.me))
            sync(made[0], store)
        for store in made[1:]:
            sync(made[0], store)
        yield made
    finally:
        for store in made:
            store.close()


def party_of(store: Store) -> Party:
    (known,) = store.parties()
    return store.party(known.party)


def seen_by(store: Store, item: Object) -> object:
    assert not party_of(store).status().blocked
    return party_of(store).item(item.id, Object).value


def ignored_by_ada(stores: list[Store]) -> tuple[Object, Object]:
    """Ada has seen Bob's last block and ignores him; she writes. Return her item, and one of Bob's."""
    ada, bob, carol, _ = stores
    note = party_of(ada).object({"title": "Milk"})
    sync(ada, carol)
    sync(ada, bob)
    party_of(bob).item(note.id, Object)["title"] = "Rubbish"
    his = party_of(bob).object({"title": "Bob's"})
    sync(ada, bob)
    party_of(ada).operator.ignore(bob.me)
    note["by"] = "Ada"
    return note, his


def test_who_ignores_is_heard_by_those_who_reach_nobody_else(stores: list[Store]) -> None:
    ada, bob, carol, _ = stores
    note, his = ignored_by_ada(stores)
    sync(ada, carol)
    assert seen_by(carol, note) == {"title": "Milk", "by": "Ada"}
    assert not party_of(carol).has(his.id), "the headers of what Bob wrote are shown, and nothing of it counts yet"
    party_of(carol).item(note.id, Object)["also"] = "Carol"
    sync(ada, carol)
    assert seen_by(ada, note) == {"title": "Milk", "by": "Ada", "also": "Carol"}
    sync(bob, carol)
    assert seen_by(carol, note) == {"title": "Rubbish", "by": "Ada", "also": "Carol"}
    assert seen_by(carol, his) == {"title": "Bob's"}


def test_it_is_so_after_restarts_and_ends_with_heeding(stores: list[Store]) -> None:
    note, his = ignored_by_ada(stores)
    stores[0].close()
    stores[0] = antiphon.open(stores[0].path, epochs=False)
    note = party_of(stores[0]).item(note.id, Object)
    note["again"] = True
    sync(stores[0], stores[2])
    stores[2].close()
    stores[2] = antiphon.open(stores[2].path, epochs=False)
    ada, bob, carol, _ = stores
    assert seen_by(carol, note) == {"title": "Milk", "by": "Ada", "again": True}

    party_of(ada).operator.heed(bob.me)
    sync(ada, carol)
    assert seen_by(carol, note) == {"title": "Milk", "by": "Ada", "again": True}, "neither has the body"
    sync(ada, bob)
    sync(ada, carol)
    for store in (ada, carol):
        assert seen_by(store, note) == {"title": "Rubbish", "by": "Ada", "again": True}
        assert seen_by(store, his) == {"title": "Bob's"}
        assert not party_of(store).refused()


@pytest.mark.parametrize("first", [False, True])
def test_what_others_wrote_upon_the_ignored_goes_on_through_who_ignores(stores: list[Store], first: bool) -> None:
    """Dora writes to what Bob began; both are gone; Carol reaches only Ada, who ignores Bob, before or after that."""
    ada, bob, carol, dora = stores
    if first:
        party_of(ada).operator.ignore(bob.me)
    his = party_of(bob).object({"title": "Bob's"})
    sync(bob, dora)
    party_of(dora).item(his.id, Object)["by"] = "Dora"
    hers = party_of(dora).object({"title": "Dora's"})
    sync(ada, bob)
    sync(ada, dora)
    if not first:
        party_of(ada).operator.ignore(bob.me)
    mine = party_of(ada).object({"title": "Ada's"})
    sync(ada, carol)
    assert seen_by(carol, hers) == {"title": "Dora's"}
    assert seen_by(carol, mine) == {"title": "Ada's"}
    assert not party_of(ada).has(his.id)
    assert Reason.IGNORED in {row.code for row in party_of(ada).refused()}
    sync(bob, carol)
    assert seen_by(carol, his) == {"title": "Bob's", "by": "Dora"}


def test_a_file_of_who_ignores_takes_nothing_from_those_who_import_it(stores: list[Store], tmp_path: Path) -> None:
    """The blocks of an ignored feed are in it as a branch: their reader fetches the history with its bodies."""
    ada, bob, carol, _ = stores
    note, his = ignored_by_ada(stores)
    party_of(ada).export(tmp_path / "party.car")
    carol.import_party(tmp_path / "party.car")
    assert seen_by(carol, note) == {"title": "Milk", "by": "Ada"}
    sync(bob, carol)
    assert seen_by(carol, note) == {"title": "Rubbish", "by": "Ada"}
    assert seen_by(carol, his) == {"title": "Bob's"}
    assert not party_of(carol).refused()


def test_epochs_of_the_others_go_on_and_reach_who_ignores(stores: list[Store]) -> None:
    ada, bob, carol, dora = stores
    party_of(ada).epochs.set_policy(attesters=[bob.me, carol.me, dora.me], generator=dora.me)
    for store in (bob, carol, dora):
        sync(ada, store)
    note, his = ignored_by_ada(stores)
    sync(ada, carol)
    sync(carol, bob)
    sync(carol, dora)
    party_of(dora).epochs.declare()
    for store in (bob, carol, ada, bob, carol):
        sync(dora, store)
    assert {party_of(store).epochs.number for store in stores} == {1}
    for store in stores:
        assert seen_by(store, note) == {"title": "Rubbish", "by": "Ada"}, "the snapshot holds what Bob wrote before"
        assert seen_by(store, his) == {"title": "Bob's"}
    party_of(bob).item(note.id, Object)["title"] = "Worse"
    sync(ada, bob)
    note["by"] = "Ada again"
    sync(ada, carol)
    assert seen_by(carol, note) == {"title": "Rubbish", "by": "Ada again"}
