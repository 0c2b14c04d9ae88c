"""Members of every item: metadata, hierarchy, deletion, history, observers, and writers."""

from __future__ import annotations

import gc

import pytest

from antiphon import Deleted, Handle, InvalidInput, Party, Store, prop, sync
from antiphon.core import Stamp
from antiphon.core.errors import InvalidMutation
from antiphon.model import Model, ModelFactory
from antiphon.model.item_state import EMBEDDED, META
from antiphon.model.value import Reference, Value


def test_metadata_is_described_and_seen_by_all(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    note = party.object()
    note.name, note.type = "Note", "task"
    note.set_metadata("colour", "red")
    sync(ada, bob)
    there = theirs.item(note.id)
    assert (there.name, there.type, there.metadata["colour"]) == ("Note", "task", "red")
    assert there in theirs.query(type="task")
    there.metadata["colour"] = "blue"
    assert there.metadata["colour"] == "red", "it is a copy"


@pytest.mark.parametrize("key", ["access", "view_key", "id_proof", "embedded_items"])
def test_what_follows_from_the_item_itself_is_not_described(party: Party, key: str) -> None:
    note = party.object()
    with pytest.raises(InvalidInput, match=f"{key} is not set as metadata"):
        note.set_metadata(key, b"mine")
    assert key not in note.metadata


def test_metadata_of_the_wrong_kind_is_no_name(party: Party) -> None:
    note = party.object()
    note.set_metadata("display_name", 5)
    note.set_metadata("type", ["task"])
    assert (note.name, note.type) == ("", "")


def test_it_shows_its_kind_its_name_and_what_it_holds(party: Party) -> None:
    groceries = party.list(["milk", "bread"], name="Groceries")
    assert repr(groceries) == f"<List {groceries.id.hex()[:10]} 'Groceries' ['milk', 'bread']>"
    assert repr(party.object({"title": "Plan"})).endswith(" '' {'title': 'Plan'}>")
    assert repr(party.text("Hello")).endswith(" '' 'Hello'>")
    assert len(repr(party.list(range(1000)))) < 100


def test_items_hang_under_others_and_move(party: Party) -> None:
    board, lane, card = party.object(name="Board"), party.object(name="Lane"), party.object(name="Card")
    lane.move_under(board)
    card.move_under(lane)
    assert (card.parent, lane.parent, board.parent) == (lane, board, None)
    card.move_under(board)
    assert board.children == [lane, card]
    card.move_under(None)
    assert card.parent is None
    assert board.children == [lane]


def test_nothing_hangs_under_itself(party: Party) -> None:
    board = party.object()
    lane = party.object(parent=board)
    card = party.object(parent=lane)
    for wrong in (board, lane, card):
        with pytest.raises(InvalidInput, match="itself or below it"):
            board.move_under(wrong)
    assert board.parent is None


def test_parts_are_made_embedded_and_released(party: Party) -> None:
    board = party.object()
    lane = board.create("antiphon/array", name="Lane", type="lane")
    loose = party.object()
    board.embed(loose)
    assert board.embedded == [lane, loose]
    assert lane.parent == board
    assert (lane.name, lane.type) == ("Lane", "lane")
    assert loose.parent is None
    board.release(loose)
    assert board.embedded == [lane]


def test_what_is_deleted_is_hidden_until_it_is_restored(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    board = party.object({"n": 1})
    card, other = party.object({"n": 2}, parent=board), party.object({"n": 3}, parent=board)
    card.delete()
    sync(ada, bob)
    assert theirs.item(card.id).deleted
    assert list(party.query(prop("n") > 0)) == [board, other]
    assert list(party.query(prop("n") > 0, deleted=Deleted.SHOWN)) == [board, card, other]
    assert list(party.query(prop("n") > 0, deleted=Deleted.ONLY)) == [card]
    assert board.children == [other]
    assert card.parent == board
    assert card.value == {"n": 2}, "it can still be looked at"
    theirs.item(card.id).restore()
    sync(ada, bob)
    assert not card.deleted
    assert board.children == [card, other]


def test_a_deleted_items_own_surroundings_are_still_there(party: Party) -> None:
    board = party.object()
    card = party.object(parent=board)
    board.delete()
    assert board.children == [card]
    assert card.parent == board


def test_history_has_every_message_and_the_past_every_state(party: Party) -> None:
    note = party.text("a")
    then = party.timeframe
    note.append("b")
    note.name = "Note"
    assert [event.kind.name for event in note.history()] == ["GENESIS", "MUTATION", "MUTATION", "METADATA"]
    assert all(not event.refused for event in note.history())
    assert note.at(then).value == "a"
    assert note.at(party.timeframe).value == "ab"


def test_observers_are_called_until_they_stop_or_the_handle_is_gone(
    ada: Store, bob: Store, party: Party, theirs: Party
) -> None:
    note = party.object({"n": 0})
    sync(ada, bob)
    seen: list[int] = []
    stop = note.observe(lambda it: seen.append(it["n"]))
    note["n"] = 1
    sync(ada, bob)
    theirs.item(note.id).edit("set", "n", 2)
    sync(ada, bob)
    party.object({"n": 9})
    assert seen == [1, 2]
    stop()
    note["n"] = 3
    assert seen == [1, 2]

    other = party.item(note.id)
    other.observe(lambda it: seen.append(-1))
    del other
    gc.collect()
    note["n"] = 4
    assert seen == [1, 2]


def test_commands_and_questions_of_the_model_are_at_hand(party: Party) -> None:
    numbers = party.list([1, 2])
    stamp = numbers.edit("append", 3)
    assert numbers.history()[-1].stamp == stamp
    assert numbers.inspect(lambda model, state: model.length(state)) == 3
    with pytest.raises(InvalidInput, match="has no command 'shuffle'"):
        numbers.edit("shuffle")


def test_who_may_write(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    note = party.object({"n": 0})
    assert note.writers is None
    note.restrict_writers(ada.me)
    sync(ada, bob)
    there = theirs.item(note.id)
    assert note.writers == there.writers == (bytes(ada.me),)
    with pytest.raises(InvalidMutation, match="does not name its writer"):
        there.edit("set", "n", 1)
    note.restrict_writers(ada.me, bob.me)
    sync(ada, bob)
    there.edit("set", "n", 2)
    sync(ada, bob)
    assert note["n"] == 2
    assert sorted(note.writers or ()) == sorted([bytes(ada.me), bytes(bob.me)])
    note.allow_all_writers()
    assert note.writers is None


class Notes(Model[dict[str, str]]):
    """A model of which there are two versions: mutations are `key=value`."""

    name = "test/notes"
    commands = frozenset({"put"})

    def initial(self) -> dict[str, str]:
        return {}

    def put(self, state: dict[str, str], key: str, value: str, *, feed: bytes = b"") -> bytes:
        return f"{key}={value}".encode()

    def apply(self, state: dict[str, str], mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        key, _, value = mutation.decode().partition("=")
        if not void:
            state[key] = value

    def snapshot(self, state: dict[str, str]) -> bytes:
        return "&".join(f"{key}={state[key]}" for key in sorted(state)).encode()

    def restore(self, data: bytes) -> dict[str, str]:
        return dict(part.split("=") for part in data.decode().split("&") if part)

    def value(self, state: dict[str, str]) -> dict[str, str]:
        return dict(state)


class LoudNotes(Notes):
    version = 2

    def migrate(self, from_version: int, snapshot: bytes, feed: bytes) -> list[bytes]:
        return [part.upper().encode() for part in snapshot.decode().split("&") if part]


@pytest.fixture
def noted(party: Party) -> Handle:
    """A note of the older version, with all kinds of metadata."""
    party.store.models.register(Notes)
    note = party.create("test/notes", name="Note", type="note", parent=party.object(name="Board"))
    note.edit("put", "a", "milk")
    note.embed(party.object(name="Picture"))
    note.set_metadata("colour", "red")
    note.restrict_writers(party.store.me)
    party.store.models.register(LoudNotes)
    return note


def test_a_fork_takes_along_what_is_known_and_hides_the_tombstone(party: Party, noted: Handle) -> None:
    made = noted.fork(version=2)

    assert made.value == {"A": "MILK"}
    assert (made.name, made.type, made.parent) == (noted.name, noted.type, noted.parent)
    assert made.embedded == noted.embedded
    assert made.metadata["colour"] == "red"
    assert made.writers == (bytes(party.store.me),)
    assert list(party.query(type="note")) == [made]
    assert made.parent is not None
    assert made.parent.children == [made]


def test_a_fork_embeds_nothing_if_a_peer_wrote_something_else_there(party: Party, noted: Handle) -> None:
    with party.processor.batch() as batch:
        state = party.processor.engine.entry(noted.id).item
        assert state is not None
        batch.describe(bytes(noted.id), META.set(state.meta, EMBEDDED, 5, feed=batch.feed))
    made = noted.fork(version=2)
    assert (made.name, list(made.embedded)) == ("Note", [])


def test_a_fork_embeds_what_is_here_whatever_else_a_peer_has_named(party: Party, noted: Handle) -> None:
    picture, nobody = noted.embedded[0], (1).to_bytes(6) + bytes(10)
    named: Value = {Reference(bytes(picture.id)), Reference(nobody)}
    with party.processor.batch() as batch:
        state = party.processor.engine.entry(noted.id).item
        assert state is not None
        batch.describe(bytes(noted.id), META.set(state.meta, EMBEDDED, named, feed=batch.feed))
    assert len(noted.item.embedded) == 2
    assert noted.fork(version=2).embedded == [picture]


def test_everything_leads_to_the_fork(ada: Store, bob: Store, party: Party, theirs: Party, noted: Handle) -> None:
    shelf, card = party.object({"note": noted}), party.object()
    link = party.link(card, noted)
    board = party.create_view("org.example:board", name="Board")
    board.embed(noted)
    made = noted.fork(version=2)

    assert party.item(noted.id) == made
    assert shelf["note"] == made
    assert link.target == made
    assert ada.resolve(noted.reference) == made
    assert set(board.closure()) == {board, made, *made.embedded}
    assert party.item(made.id) == made

    factory = ModelFactory.standard()
    assert factory.keys <= bob.models.keys
    sync(ada, bob)
    assert theirs.item(noted.id).id == made.id, "also where its code is not"


def test_a_fork_of_a_view_is_found_by_the_views_locator(ada: Store, party: Party) -> None:
    party.store.models.register(Notes)
    view = party.create_view("org.example:notes", name="Notes", model="test/notes")
    locator = view.locator
    party.store.models.register(LoudNotes)
    made = view.fork(version=2)
    assert ada.resolve(str(locator)) == party.view(locator.key) == made


def test_the_root_has_what_hangs_nowhere(party: Party) -> None:
    top = party.object({"a": 1})
    below = party.object({"b": 1}, parent=top)
    explicit = party.object({"c": 1}, parent=party.root)
    assert party.root.children == [top, explicit]
    assert top.children == [below]


def test_a_snapshot_is_the_items_bytes(party: Party) -> None:
    note = party.text("hello")
    assert note.snapshot() == party.processor.snapshot(note.id)
    assert not note.opaque
