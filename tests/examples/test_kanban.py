"""The kanban: a model composed of models keeps their laws; and a text with one in it, whose cards hold texts."""

from __future__ import annotations

import doctest
import io
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from examples.composed import pack, unpack
from examples.kanban import (
    EMBEDDED,
    WIDTH,
    Devices,
    Document,
    devices,
    edit_apart,
    invite,
    load_code,
    names_of,
    play,
    write,
)
from examples.kanban_model import Kanban, KanbanModel
from examples.session import session
from rich.console import Console

from antiphon import Handle, InvalidInput, InvalidMutation, Object, Reference, Text, UnknownModel
from antiphon.core import Stamp
from antiphon.core.errors import BadEncoding
from antiphon.testing import run_model_tests
from antiphon.testing.model_laws import LAWS
from examples import kanban_model

pytestmark = pytest.mark.slow

ANN, BEN = b"a" * 32, b"b" * 32
CARDS = [Reference(bytes([number]) * 16) for number in range(6)]

# -- the model


def test_the_model_keeps_the_laws_of_models() -> None:
    assert len(run_model_tests(KanbanModel, examples=20)) == len(LAWS)


def test_its_docstring_runs() -> None:
    results = doctest.testmod(kanban_model)
    assert results.attempted
    assert not results.failed


class Hand:
    """One writer of a kanban in memory."""

    def __init__(self, feed: bytes, state: Kanban, lamport: int = 0) -> None:
        self.model, self.state, self.feed = KanbanModel(), state, feed
        self.lamport, self.sent = lamport, list[tuple[bytes, Stamp]]()

    def do(self, command: str, *arguments: Any) -> None:
        mutation = getattr(self.model, command)(self.state, *arguments, feed=self.feed)
        self.lamport += 1
        self.sent.append((mutation, Stamp(self.lamport, self.feed, self.lamport)))
        self.model.apply(self.state, *self.sent[-1])

    def hear(self, other: Hand) -> None:
        for mutation, stamp in other.sent:
            self.model.apply(self.state, mutation, stamp)

    def fork(self, feed: bytes) -> Hand:
        """Another writer who has heard all of this one."""
        return Hand(feed, self.model.restore(self.model.snapshot(self.state)), self.lamport)

    @property
    def board(self) -> list[tuple[str, list[int]]]:
        return [(column["title"], [CARDS.index(card) for card in column["cards"]]) for column in self.value]

    @property
    def value(self) -> list[dict[str, Any]]:
        return self.model.value(self.state)


@pytest.fixture
def ann() -> Hand:
    """Two columns, three cards in the first."""
    hand = Hand(ANN, KanbanModel().initial())
    for key, title in (("todo", "To do"), ("done", "Done")):
        hand.do("add_column", key, title)
    for card in CARDS[:3]:
        hand.do("add_card", "todo", card)
    return hand


def test_cards_have_their_places_in_columns(ann: Hand) -> None:
    assert ann.board == [("To do", [0, 1, 2]), ("Done", [])]
    ann.do("move_card", CARDS[2], "todo", 0)
    assert ann.board == [("To do", [2, 0, 1]), ("Done", [])]
    ann.do("move_card", CARDS[2], "todo", 1)
    assert ann.board == [("To do", [0, 2, 1]), ("Done", [])]
    ann.do("move_card", CARDS[0], "todo")
    assert ann.board == [("To do", [2, 1, 0]), ("Done", [])]
    ann.do("move_card", CARDS[1], "done")
    ann.do("add_card", "done", CARDS[3], 0)
    ann.do("add_card", "todo", CARDS[4], 1)
    ann.do("move_card", CARDS[2], "done", 1)
    assert ann.board == [("To do", [4, 0]), ("Done", [3, 2, 1])]
    ann.do("rename", "done", "Finished")
    assert [title for title, _ in ann.board] == ["To do", "Finished"]


@pytest.mark.parametrize("seed", range(5))
def test_places_are_those_of_plain_lists(ann: Hand, seed: int) -> None:
    """Any moves of one person come to what they would with a Python list for each column."""
    chance = random.Random(seed)
    plain = {"todo": [0, 1, 2], "done": list[int]()}
    for _ in range(40):
        card, key = chance.choice([0, 1, 2]), chance.choice(list(plain))
        for column in plain.values():
            if card in column:
                column.remove(card)
        index = chance.randint(0, len(plain[key]))
        plain[key].insert(index, card)
        ann.do("move_card", CARDS[card], key, index)
        assert [cards for _, cards in ann.board] == list(plain.values())


def test_a_card_that_two_people_move_at_once_is_in_one_column(ann: Hand) -> None:
    ben = ann.fork(BEN)
    ann.sent.clear()
    ann.do("move_card", CARDS[0], "done")
    ben.do("add_column", "later", "Later")
    ben.do("move_card", CARDS[0], "later")
    ann.hear(ben)
    ben.hear(ann)
    assert ann.value == ben.value
    assert ann.model.snapshot(ann.state) == ben.model.snapshot(ben.state)
    assert ann.board == [("To do", [1, 2]), ("Done", []), ("Later", [0])]


def test_two_people_who_add_one_column_or_one_card_at_once_add_one(ann: Hand) -> None:
    ben = ann.fork(BEN)
    ann.sent.clear()
    for hand, title in ((ann, "Later"), (ben, "Some day")):
        hand.do("add_column", "later", title)
        hand.do("add_card", "later", CARDS[5])
    ann.hear(ben)
    ben.hear(ann)
    assert ann.board == ben.board == [("To do", [0, 1, 2]), ("Done", []), ("Some day", [5])]


@pytest.mark.parametrize(
    ("command", "arguments", "said"),
    [
        ("add_column", ("todo", "Again"), "a column 'todo' already"),
        ("add_card", ("later", CARDS[5]), "no column 'later'; there are todo, done"),
        ("add_card", ("done", CARDS[0]), "on the board already"),
        ("add_card", ("done", Reference(bytes(16), ANN)), "of another party"),
        ("add_card", ("todo", CARDS[5], 4), "has the places 0 to 3, not 4"),
        ("move_card", (CARDS[0], "todo", 3), "has the places 0 to 2, not 3"),
        ("move_card", (CARDS[5], "done"), "not on the board"),
        ("rename", ("later", "Later"), "no column 'later'"),
    ],
)
def test_what_cannot_be_done_is_refused_by_the_command(
    ann: Hand, command: str, arguments: tuple[Any, ...], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        ann.do(command, *arguments)


def test_a_mutation_is_taken_whole_or_not_at_all(ann: Hand) -> None:
    """One part is good and the other is not: neither is applied."""
    before, stamp = ann.model.snapshot(ann.state), Stamp(99, ANN, 99)
    good = unpack(ann.model.rename(ann.state, "todo", "Changed", feed=ANN), 3)[0]
    for parts in ([good, b"rubbish", b""], [good, b"", b"\xff"], [b"", b"", b""]):
        with pytest.raises(InvalidMutation):
            ann.model.apply(ann.state, pack(parts), stamp)
    for cut in (b"", b"short", pack([good, b"", b""])[:-1], pack([good, b"", b""]) + b"x"):
        with pytest.raises(InvalidMutation, match="no 3 parts"):
            ann.model.apply(ann.state, cut, stamp)
        with pytest.raises(BadEncoding):
            ann.model.restore(cut)
    assert ann.model.snapshot(ann.state) == before


def test_what_makes_no_sense_in_the_parts_is_not_shown(ann: Hand) -> None:
    """Each part takes what is good for it; the whole shows what it understands."""
    about, columns, cards = ann.state
    object_, array, _ = ann.model.parts
    for number, parts in enumerate(
        [
            [object_.set(about, ("columns", "done"), 7), b"", b""],
            [b"", array.append(columns, "nameless"), b""],
            [b"", array.append(columns, ["no key"]), b""],
            [object_.set(about, ("cards", CARDS[0].item.hex()), "nowhere"), b"", b""],
            [b"", b"", array.append(cards, "no reference")],
            [b"", b"", array.append(cards, CARDS[5])],
        ]
    ):
        ann.model.apply(ann.state, pack(parts), Stamp(50 + number, BEN, number))
    assert ann.board == [("To do", [1, 2])]
    ann.model.apply(ann.state, pack([object_.set(about, "columns", "gone"), b"", b""]), Stamp(60, BEN, 10))
    assert ann.board == []


# -- the document


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Devices, dict[str, Any]]]:
    with devices(tmp_path_factory.mktemp("kanban")) as both:
        yield both, play(both, Console(file=io.StringIO(), highlight=False, width=WIDTH))


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Devices]:
    """The devices just after they met; Bob has no code for kanbans."""
    with devices(tmp_path) as made:
        write(made.ada)
        invite(made)
        yield made


def test_the_page_shows_what_the_program_prints(root: Path) -> None:
    command = [sys.executable, "examples/kanban.py", "--json"]
    ended = subprocess.run(command, cwd=root, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    *printed, last = ended.stdout.splitlines()
    assert json.loads(last)["agreed"]
    page = (root / "docs" / "examples" / "kanban.md").read_text(encoding="utf-8")
    shown = page.split("<!-- the story -->\n\n```text\n", 1)[1].split("\n```", 1)[0]
    assert shown.splitlines() == [line.rstrip() for line in printed], "paste what `examples/kanban.py` prints"


def check(item: Handle, model: str, parent: Handle | None, embeds: list[Handle]) -> None:
    assert item.model == model
    assert item.parent == parent
    assert set(item.embedded) == set(embeds)


def walk(document: Document) -> list[Handle]:
    """A text with a kanban in it, which contains cards, each with a field that is itself a text."""
    text, kanban = document.text, document.kanban
    cards = [card for column in kanban.value for card in document.cards(column)]
    check(text, "antiphon/text", None, [kanban])
    assert text.items() == [(str(text).index(EMBEDDED), kanban)]
    check(kanban, KanbanModel.name, text, list(cards))
    found: list[Handle] = [text, kanban]
    for card in cards:
        assert isinstance(card, Object)
        inner = card["text"]
        assert isinstance(inner, Text)
        check(card, "antiphon/object", kanban, [inner])
        assert card.value["text"] == Reference(bytes(inner.id))
        check(inner, "antiphon/text", card, [])
        found += [card, inner]
    return found


def test_the_nesting_is_that_of_the_specification_on_both_devices(told: tuple[Devices, Any]) -> None:
    both, _ = told
    for document in both.all.values():
        items = walk(document)
        assert len(items) == 8
        assert {bytes(item.id) for item in document.text.closure()} == {bytes(item.id) for item in items}


def test_what_both_did_apart_is_all_there_and_the_bytes_are_the_same(told: tuple[Devices, dict[str, Any]]) -> None:
    both, ended = told
    assert ended["agreed"]
    assert ended["devices"]["bob"]["text"] == "Spring. The plan so far:\n[kanban]\nWe launch in June."
    todo, doing, finished = ended["devices"]["bob"]["kanban"]
    assert todo == ("To do", [("Hull", "Scrape, then paint."), ("Oars", "Two are missing.")])
    assert doing[0] == "Doing"
    assert finished[0] == "Finished"
    assert doing[1] + finished[1] == [("Sail", "Mine. Mend the tear. Use the strong thread.")]
    ada, bob = (
        {bytes(item.id): item.item.snapshot() for item in document.text.closure()} for document in both.all.values()
    )
    assert ada == bob


def test_without_the_code_the_text_is_edited_and_the_kanban_kept(both: Devices) -> None:
    ada, bob = both.all.values()
    assert bob.kanban.item.opaque
    bob.text.insert(0, "Here. ")
    both.meet()
    assert str(ada.text).startswith("Here. The plan")
    with pytest.raises(UnknownModel, match="its messages are safe"):
        bob.fingerprint()
    assert load_code(both) == [KanbanModel.name]
    assert not bob.kanban.item.opaque
    assert bob.kanban.value == ada.kanban.value
    assert bob.fingerprint() == ada.fingerprint()


def test_a_move_is_undone_by_the_parts(both: Devices) -> None:
    ada = both.all["ada"]
    stack = ada.text.party.undo_stack()
    before = ada.as_value()
    ada.move("Sail", "done")
    moved = ada.as_value()
    assert moved != before
    stack.undo()
    assert ada.as_value() == before
    stack.redo()
    assert ada.as_value() == moved


def test_a_restart_changes_nothing_and_they_go_on(tmp_path: Path) -> None:
    with devices(tmp_path) as both:
        write(both.ada)
        invite(both)
        load_code(both)
        edit_apart(both)
        both.meet()
        before = {name: (found.fingerprint(), found.as_value()) for name, found in both.all.items()}
        lines = session(both.all["ada"].text.party, names_of(both), KanbanModel())
        assert before["ada"] == before["bob"]
    with devices(tmp_path) as both:
        load_code(both)  # a process that starts has loaded nothing
        assert {name: (found.fingerprint(), found.as_value()) for name, found in both.all.items()} == before
        assert session(both.all["bob"].text.party, names_of(both), KanbanModel()) == lines
        assert 'cards → card 1 = "doing"; move → card 1' in {line.says for line in lines}
        both.all["bob"].add_card("doing", "Rudder", "Is stiff.")
        both.meet()
        assert both.all["ada"].card("Rudder")["text"].value == "Is stiff."
        assert both.all["ada"].fingerprint() == both.all["bob"].fingerprint()
