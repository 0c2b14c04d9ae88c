"""Rows that are made ahead of a save are the rows that the save would have made."""

from __future__ import annotations

import random
import tempfile
import threading
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.party.histories import models, some_ranges

from antiphon.core.errors import InvalidInput
from antiphon.model import item_codec
from antiphon.party.engine import engine as engine_module, row_cache
from antiphon.party.engine.ports import ItemRow
from antiphon.party.live.item import Item
from antiphon.party.live.processor import PartyProcessor
from antiphon.query.index.index import ItemIndex
from antiphon.testing.peers import Peer, Peers

EDITS: dict[str, tuple[Any, ...]] = {
    "antiphon/object": ("set", "n"),
    "antiphon/array": ("append",),
    "antiphon/text": ("insert", 0),
    "antiphon/messenger": ("post",),
}
MODELS = sorted(EDITS)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[ItemRow]:
    """Saves come often, rows are made for each; and none that is taken differs from one that is made anew."""
    monkeypatch.setattr(engine_module, "UNSAVED_MESSAGES_MAX", 12)
    monkeypatch.setattr(engine_module, "UNSAVED_ITEMS_MAX", 30)
    monkeypatch.setattr(engine_module, "AHEAD_ROWS", 1)
    monkeypatch.setattr(row_cache, "_MORE", 1)
    found: list[ItemRow] = []

    def row_of(entry, index):  # type: ignore[no-untyped-def]
        row = row_cache.row_of(entry, index)
        if entry.cached is not None and entry.cached.row is row:
            assert row == row_cache._row(entry.item, index)
            found.append(row)
        return row

    monkeypatch.setattr(engine_module, "row_of", row_of)
    return found


def change(party: PartyProcessor, item: Item, chance: random.Random) -> None:
    """Nothing here asks for all items, which would be saved for that."""
    drawn = chance.random()
    if drawn < 0.1:
        item.restore() if item.deleted else item.delete()
    elif drawn < 0.2:
        item.set_metadata("display_name", f"name {drawn}")
    elif drawn < 0.3:
        with pytest.raises(InvalidInput), party.batch():
            _set_and_fail(item, drawn)
    else:
        _edit(item, drawn)


def _edit(item: Item, drawn: float) -> None:
    command, *arguments = EDITS[item.model[0]]
    item.edit(command, *arguments, f"value {drawn}")


def _set_and_fail(item: Item, drawn: float) -> None:
    _edit(item, drawn)
    raise InvalidInput("no")


@pytest.mark.slow
def test_whatever_is_written_and_delivered(taken: list[ItemRow]) -> None:
    @settings(max_examples=15)
    @given(seed=st.integers(0, 1 << 32), indexed=st.booleans())
    def check(seed: int, indexed: bool) -> None:
        chance = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder, Peers(folder, authority=True, models=models()) as peers:
            alice, bob = peers.add("alice"), peers.add("bob")
            if indexed:
                alice.party.attach(ItemIndex)
            made = [peer.party.create(name).id for peer in peers.all for name in MODELS]
            peers.sync()
            for _ in range(100):
                peer, other = chance.sample(peers.all, 2)
                if chance.random() < 0.1:
                    some_ranges(other, peer, chance)
                else:
                    change(peer.party, peer.party.item(chance.choice(made)), chance)
            peers.sync()
            wanted = alice.snapshots()
            assert bob.snapshots() == wanted
            for peer in peers.all:
                peer.restart(crash=True)
                assert peer.snapshots() == wanted

    check()
    assert len(taken) > 100


def test_a_save_takes_what_was_made(alice: Peer, taken: list[ItemRow]) -> None:
    notes = [alice.party.create("antiphon/object") for _ in range(3)]
    for turn in range(20):
        notes[turn % 3].edit("set", "n", turn)
    assert taken
    alice.restart(crash=True)
    assert [alice.party.item(note.id).value for note in notes] == [{"n": 18}, {"n": 19}, {"n": 17}]


def test_who_saves_lets_a_writer_in_between_rows(alice: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_cache, "ROWS_BESIDE", 2)
    party = alice.party
    notes = [party.create("antiphon/object") for _ in range(5)]
    party.save()
    for note in notes:
        note.edit("set", "n", 1)
    acts: list[str] = []

    def write() -> None:
        with party.locked():
            notes[0].edit("set", "n", 2)  # the row that is made by now is true no more
            acts.append("written")

    writer = threading.Thread(target=write)
    make_some, save = row_cache._make_some, engine_module.Engine.save

    def make_beside_writer(*given: Any) -> bool:
        acts.append("made")
        if not writer.ident:
            writer.start()
            while not party.waited_for:
                pass
        return make_some(*given)

    def saved(engine: engine_module.Engine) -> None:
        acts.append("save")
        save(engine)

    monkeypatch.setattr(row_cache, "_make_some", make_beside_writer)
    monkeypatch.setattr(row_cache, "REST_S", 60.0)  # it ends when the writer has the lock
    monkeypatch.setattr(engine_module.Engine, "save", saved)
    party.save()
    writer.join()
    monkeypatch.undo()

    assert acts == ["made", "written", "made", "made", "save"]
    alice.restart(crash=True)
    assert [alice.party.item(note.id).value for note in notes] == [{"n": 2}, *[{"n": 1}] * 4]


def test_what_is_taken_back_is_in_no_row(alice: Peer, taken: list[ItemRow]) -> None:
    note = alice.party.create("antiphon/object")
    other = alice.party.create("antiphon/object")
    for turn in range(8):
        note.edit("set", "n", turn)
    with pytest.raises(InvalidInput), alice.party.batch():
        _set_and_fail(note, 0.5)
    for turn in range(20):
        other.edit("set", "n", turn)
    assert taken
    with alice.party.locked() as engine:
        engine.save()
        record = engine.items.load([note.id])[note.id]
    assert item_codec.decode(record, alice.party.models).value == {"n": 7}


def test_an_item_that_grows_is_not_saved_whole_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows cost no more than its messages; a save for every so many messages would cost their square."""
    monkeypatch.setattr(engine_module, "UNSAVED_MESSAGES_MAX", 10)
    monkeypatch.setattr(engine_module, "ROW_SIZE_FREE", 1_000)
    sizes: list[int] = []

    def row_of(entry, index):  # type: ignore[no-untyped-def]
        row = row_cache.row_of(entry, index)
        sizes.append(len(row.record or b""))
        return row

    with tempfile.TemporaryDirectory() as folder, Peers(folder, authority=False) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        thread = alice.party.create("antiphon/messenger")
        peers.sync()
        monkeypatch.setattr(engine_module, "row_of", row_of)
        for number in range(60):
            with alice.party.batch():
                for _ in range(12):
                    thread.edit("post", f"post {number}")
            peers.pass_on(alice, bob)
            bob.party.process()
    assert sizes[-1] > 10_000
    assert sum(sizes) < 12 * sizes[-1]  # of both peers
