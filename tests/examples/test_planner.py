"""The planner: its nesting item by item, what merges, and that the page shows what the program prints."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from examples.planner import VIEW_CLASS, WIDTH, Devices, build, comments_of, devices, edit_apart, invite, play
from examples.session import session
from rich.console import Console

from antiphon import Handle, List, Object, Reference, Text, Thread, UnknownItem
from antiphon.api import Locator
from antiphon.core import PublicKey
from examples import planner

pytestmark = pytest.mark.slow

STORY, SESSION = "<!-- the story -->", "<!-- the session -->"


def page_block(root: Path, marker: str) -> list[str]:
    """The lines of the text block after a marker on the page."""
    page = (root / "docs" / "examples" / "planner.md").read_text(encoding="utf-8")
    return page.split(f"{marker}\n\n```text\n", 1)[1].split("\n```", 1)[0].splitlines()


def trimmed(text: str) -> list[str]:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n").splitlines()


def quiet() -> Console:
    return Console(file=io.StringIO(), highlight=False, width=WIDTH)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Devices, dict[str, Any]]]:
    """The whole example, run once, for tests that only read."""
    with devices(tmp_path_factory.mktemp("planner")) as both:
        yield both, play(both, quiet())


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Devices]:
    """The devices just after Bob has joined, for tests that write."""
    with devices(tmp_path) as made:
        build(made.ada)
        invite(made)
        yield made


# -- the program


def test_the_page_shows_what_the_program_prints(root: Path) -> None:
    command = [sys.executable, "examples/planner.py", "--messages", "--json"]
    ended = subprocess.run(command, cwd=root, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    *printed, last = ended.stdout.splitlines()
    head = next(number for number, line in enumerate(printed) if line.lstrip().startswith("lamport"))
    hint = "paste what `examples/planner.py --messages` prints into docs/examples/planner.md"
    assert page_block(root, STORY) == trimmed("\n".join(printed[:head])), hint
    assert page_block(root, SESSION) == trimmed("\n".join(printed[head:])), hint
    found = json.loads(last)
    assert found["agreed"]
    assert found["devices"]["ada"] == found["devices"]["bob"]
    assert f"ada: 20 items of the view, {found['devices']['ada']['snapshot'][:16]}" in ended.stdout


def test_the_demonstration_tells_the_story_too(root: Path) -> None:
    recipe = (root / "Makefile").read_text().split("\ndemo:", 1)[1].split("\n\n", 1)[0]
    assert recipe.index("examples/three_devices.py") < recipe.index("examples/planner.py")


def test_a_folder_with_something_in_it_is_left_alone(root: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    command = [sys.executable, "examples/planner.py", "--home", str(tmp_path)]
    ended = subprocess.run(command, cwd=root, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert ended.returncode == 1
    assert "is not empty" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_the_same_seed_writes_the_same_blocks_also_after_a_restart(tmp_path: Path) -> None:
    def heads(home: Path) -> list[tuple[bytes, int, bytes, bytes]]:
        with devices(home) as both:
            build(both.ada)
            invite(both)
            edit_apart(both)
            both.meet()
        with devices(home) as both:
            (party,) = both.ada
            party.invite(PublicKey(b"c" * 32))
            both.meet()
            return sorted((one.feed, one.length, one.hash, one.signature) for one in party.store.manager.feeds.feeds())

    first = heads(tmp_path / "one")
    assert len(first) == 4
    assert heads(tmp_path / "two") == first


# -- the nesting of the specification


def check(item: Handle, model: str, parent: Handle | None, embeds: list[Handle]) -> None:
    """One item: its model, where it hangs, and what is embedded in it: its direct children, and nothing else."""
    assert item.model == f"antiphon/{model}"
    assert item.parent == parent
    assert set(item.embedded) == set(embeds)
    assert item.metadata.get("embedded_items", []) == sorted(Reference(bytes(child.id)) for child in embeds)


def to(item: Handle) -> Reference:
    return Reference(bytes(item.id))


def walk(root: Object) -> list[Handle]:
    """Every item of the planner, each checked against the seed's words."""
    board = root["board"]
    assert isinstance(board, List)
    check(root, "object", None, [board])
    assert root.value == {"board": to(board)}
    assert root.metadata["view_class"] == VIEW_CLASS
    found: list[Handle] = [root, board]

    lists = list(board)
    check(board, "array", root, lists)
    assert board.value == [to(one) for one in lists]
    for one in lists:
        tasks = one["tasks"]
        check(one, "object", board, [tasks])
        assert one.value["tasks"] == to(tasks)
        assert isinstance(tasks, List)
        check(tasks, "array", one, list(tasks))
        assert tasks.value == [to(task) for task in tasks]
        found += [one, tasks]
        for task in tasks:
            comments, chat = task["comments"], task["chat"]
            check(task, "object", tasks, [comments, chat])
            assert {key: task.value[key] for key in ("comments", "chat")} == {
                "comments": to(comments),
                "chat": to(chat),
            }
            assert isinstance(comments, Text)
            assert isinstance(chat, Thread)
            check(comments, "text", task, [])
            check(chat, "messenger", task, [])
            found += [task, comments, chat]
    return found


def test_the_nesting_is_that_of_the_specification_on_both_devices(told: tuple[Devices, Any]) -> None:
    both, _ = told
    for found in both.all.values():
        items = walk(found.root)
        assert [len(found.tasks(one)) for one in found.lists] == [2, 2, 0]
        assert len(items) == len(set(items)) == 20


def test_the_closure_of_the_view_is_exactly_its_items(both: Devices) -> None:
    mine, _ = both.all.values()
    note = mine.party.object({"text": "no part of it"})
    task = mine.find_task("Mend the sail")
    task["see"] = note  # a reference alone embeds nothing
    above = mine.party.link(mine.root, note)
    inside = mine.party.link(task, mine.find_task("Order varnish"))
    both.meet()
    for found in both.all.values():
        assert {bytes(item.id) for item in found.root.closure()} == {bytes(item.id) for item in walk(found.root)} | {
            bytes(inside.id)
        }
        assert found.party.has(above.id)
        assert found.party.has(note.id)


def test_the_view_is_found_by_class_and_by_locator_where_its_party_is(told: tuple[Devices, dict[str, Any]]) -> None:
    both, ended = told
    (party,) = both.bob
    (root,) = party.views(VIEW_CLASS)
    assert not party.views("org.example:chess")
    assert both.bob.resolve(ended["locator"]) == root == both.all["bob"].root
    assert both.bob.resolve(ended["locator"]).id == both.ada.resolve(ended["locator"]).id
    assert root.name == "Spring"
    locator = Locator.parse(ended["locator"])
    with pytest.raises(UnknownItem):
        both.bob.resolve(Locator(locator.party, PublicKey(b"v" * 32)))
    record = both.ada.registry.find(VIEW_CLASS)
    assert record is not None
    assert record.kind == "view class"


# -- what merges


def test_what_both_did_apart_is_all_there(told: tuple[Devices, dict[str, Any]]) -> None:
    _, ended = told
    todo, now, done = ended["devices"]["bob"]["board"]
    empty = {"comments": "", "chat": []}
    assert todo == ("To do", [{"title": title, "done": False, **empty} for title in ("Mend the sail", "Buy a rope")])
    assert done == ("Done", [])
    varnish, paint = now[1]
    assert varnish == {"title": "Order varnish and tape", "done": True, **empty}  # one ticked it, the other renamed it
    assert paint["comments"] == "White, not red. Two coats. The hull first."
    assert paint["chat"] == ["Who has the brushes?", "I do, in the shed."]
    assert ended["told"] == [
        "+ Paint the boat, + Mend the sail, + Order varnish",
        "~ Paint the boat",
        "− Order varnish",
        "+ Buy a rope",
    ]
    assert ended["devices"]["ada"]["open"] == [("To do", 2), ("Now", 1), ("Done", 0)]


def test_every_item_has_the_same_bytes_on_both_devices(told: tuple[Devices, dict[str, Any]]) -> None:
    both, ended = told
    ada, bob = ({bytes(item.id): item.item.snapshot() for item in found.root.closure()} for found in both.all.values())
    assert ada == bob
    assert len(ada) == 20
    assert ended["devices"]["ada"]["snapshot"] == ended["devices"]["bob"]["snapshot"]


def test_apart_the_bytes_differ(both: Devices) -> None:
    ada, bob = both.all.values()
    assert ada.fingerprint() == bob.fingerprint()
    comments_of(bob.find_task("Mend the sail")).append("!")
    assert ada.fingerprint() != bob.fingerprint()
    both.meet()
    assert ada.fingerprint() == bob.fingerprint()


@pytest.mark.parametrize("target", ["Doing", "Done"])
def test_a_task_that_both_move_at_once_shows_once(both: Devices, target: str) -> None:
    ada, bob = both.all.values()
    ada.move(ada.find_task("Paint the boat"), ada.find_list("Done"))
    bob.move(bob.find_task("Paint the boat"), bob.find_list(target))
    both.meet()
    assert ada.as_value() == bob.as_value()
    assert ada.fingerprint() == bob.fingerprint()
    shown = [task["title"] for found in bob.lists for task in bob.tasks(found)]
    assert sorted(shown) == ["Mend the sail", "Order varnish", "Paint the boat"]
    assert sum(count for _, count in bob.open_by_list()) == 3
    in_arrays = [task for found in bob.lists for task in found["tasks"] if task["title"] == "Paint the boat"]
    assert len(in_arrays) == 2, "the arrays keep both, and the tree decides where it hangs"

    bob.move(bob.find_task("Paint the boat"), bob.find_list("To do"))
    both.meet()
    assert [task["title"] for task in ada.tasks(ada.find_list("To do"))] == ["Mend the sail", "Paint the boat"]


def test_others_may_put_anything_there_and_the_application_says_so(both: Devices) -> None:
    ada, bob = both.all.values()
    bob.find_task("Mend the sail")["comments"] = "just words"
    both.meet()
    with pytest.raises(TypeError, match="'just words' is no Text"):
        comments_of(ada.find_task("Mend the sail"))


# -- restart


def test_a_restart_changes_nothing_and_they_go_on(tmp_path: Path) -> None:
    with devices(tmp_path) as both:
        ended = play(both, quiet())
        lines = session(both.all["ada"].party, planner.names_of(both))
    with devices(tmp_path) as both:
        for name, found in both.all.items():
            assert len(walk(found.root)) == 20
            assert found.fingerprint() == ended["devices"][name]["snapshot"]
            assert found.as_value() == ended["devices"][name]["board"]
            assert session(found.party, planner.names_of(both)) == lines
        both.all["bob"].add_list("Later")
        assert both.meet() == 7
        assert [found["title"] for found in both.all["ada"].lists] == ["To do", "Now", "Done", "Later"]


# -- the session


def test_the_session_has_every_message_in_the_total_order(told: tuple[Devices, Any]) -> None:
    both, _ = told
    names = planner.names_of(both)
    ada, bob = (session(found.party, names) for found in both.all.values())
    assert ada == bob
    assert len(ada) == sum(record.length for record in both.ada.manager.feeds.feeds())
    assert [line.lamport for line in ada] == sorted(line.lamport for line in ada)
    assert {line.kind for line in ada} == {"credential", "genesis", "change", "mutation", "metadata"}
    assert sum(line.kind == "genesis" for line in ada) == 20
    says = [line.says for line in ada]
    assert "bob is admitted, as editor" in says
    assert 'reply to "Who has the brushes?": "I do, in the shed."' in says
    assert "moved under tasks 2" in says


def test_a_list_comes_with_its_array_and_its_place_or_not_at_all(both: Devices) -> None:
    mine = both.all["ada"]
    made = mine.add_list("Later")
    lamports = {event.stamp.lamport for item in (made, made["tasks"]) for event in item.history()}
    assert lamports == {mine.board.history()[-1].stamp.lamport}
    assert mine.lists[-1] == made
