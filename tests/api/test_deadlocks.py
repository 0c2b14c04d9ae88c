"""No deadlocks: between parties, the store, and code of the application."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import antiphon
from antiphon import InvalidInput, Object, Party, Reference, Schema, Store, prop, sync
from antiphon.api.query.deltas import Delta
from antiphon.core.errors import MovedOn, StoreClosed
from antiphon.schema import Migrations
from antiphon.testing.copy_feeds import copy_feeds

SECONDS = 30.0


def background(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def finishes(work: Callable[[], object]) -> bool:
    """True if another thread completes the action in time."""
    thread = background(work)
    thread.join(SECONDS)
    return not thread.is_alive()


@contextmanager
def busy(party: Party) -> Iterator[None]:
    """Another thread is in a batch of a party meanwhile."""
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with party.batch():
            inside.set()
            leave.wait()  # longer than anybody waits for it

    thread = background(hold)
    assert inside.wait(SECONDS)
    try:
        yield
    finally:
        leave.set()
        thread.join(SECONDS)


@pytest.fixture
def club(ada: Store) -> Party:
    return ada.create_party("Club")


# -- references


def test_inside_a_batch_no_other_party_is_looked_into(party: Party, club: Party) -> None:
    book, note = club.object({"title": "Emma"}), party.object({"n": 1})
    shelf, books = party.object({"book": book, "note": note}), party.list([book, note])
    seen: list[Any] = []

    def read() -> None:
        with party.batch():
            seen.extend([*books, books[0], shelf["book"], dict(shelf), shelf.setdefault("book", 1)])
            seen.extend([books.pop(0), shelf.pop("book"), shelf["note"]])
            books.sort(key=repr)
            books.remove(note)

    with busy(club):
        assert finishes(read)
    there = book.reference
    assert seen == [there, note, there, there, {"book": there, "note": note}, there, there, there, note]
    assert (books.value, shelf.value) == ([], {"note": Reference(bytes(note.id))})


def test_outside_of_one_it_is_looked_into_without_the_partys_own_lock(party: Party, club: Party) -> None:
    book = club.object({"title": "Emma"})
    shelf, books, note = party.object({"a": book, "b": book}), party.list([book] * 4), party.object()
    reading: list[Callable[[], object]] = [
        lambda: list(books),
        lambda: books.sort(key=lambda one: one["title"]),
        lambda: books.remove(book),
        books.pop,
        books.reverse,
        lambda: shelf.setdefault("a", 1),
        lambda: shelf.pop("a"),
        shelf.popitem,
    ]
    for read in reading:
        with busy(club):
            reader = background(read)
            assert finishes(lambda: note.increment("n"))
        reader.join(SECONDS)
        assert not reader.is_alive()
    assert note["n"] == len(reading)
    assert (books.value, shelf.value) == ([book.reference] * 2, {})


def test_in_a_batch_of_its_party_a_reference_from_elsewhere_is_an_item(party: Party, club: Party) -> None:
    book = club.object({"title": "Emma"})
    shelf = party.object({"book": book})
    with club.batch():
        assert shelf["book"] == book
    with party.batch():
        assert shelf["book"] == book.reference
        with club.batch():
            assert shelf["book"] == book


def test_two_parties_sort_lists_of_each_others_items(party: Party, club: Party) -> None:
    mine = party.list([club.object({"n": number}) for number in range(9)])
    theirs = club.list([party.object({"n": number}) for number in range(9)])

    def sort(items: Any, other: Any) -> None:
        for turn in range(20):
            items.sort(key=lambda one: -one["n"] if turn % 2 else one["n"])
            list(other)

    threads = [background(lambda: sort(mine, theirs)), background(lambda: sort(theirs, mine))]
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert [one["n"] for one in mine] == [one["n"] for one in theirs] == list(range(8, -1, -1))


# -- the store


def test_finding_a_party_waits_for_none(ada: Store, party: Party, club: Party) -> None:
    with busy(club), busy(party):
        for which in ("Club", club.key, "Household"):
            assert finishes(lambda which=which: ada.party(which))  # type: ignore[misc]
        assert finishes(lambda: ada.create_party("Third"))
    club.name = "Books"
    with busy(club):
        asking = background(lambda: ada.party("Books"))  # its name is asked of the party itself
        assert finishes(lambda: ada.party("Household"))
    asking.join(SECONDS)
    assert not asking.is_alive()


def test_a_party_that_an_error_stopped_holds_up_no_other(
    ada: Store, party: Party, club: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is started again when it is opened, and waits for the batch that the error is in."""
    with busy(club), monkeypatch.context() as stopped:
        stopped.setattr(club.processor, "_engine", None)
        stopped.setattr(club.processor, "failed", True)
        asking = background(lambda: ada.party("Club"))
        assert finishes(lambda: ada.party("Household"))
        assert asking.is_alive()
    asking.join(SECONDS)
    assert not asking.is_alive()


def test_threads_that_open_a_party_at_once_get_the_same(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "ada", unprotected=True) as store:
        store.create_party("Household").object(Chore("Wash up"))
    with antiphon.open(tmp_path / "ada", unprotected=True) as store:
        found: list[Party] = []
        ready = threading.Barrier(4)

        def look() -> None:
            ready.wait(SECONDS)
            found.append(store.party("Household"))

        for thread in [background(look) for _ in range(4)]:
            thread.join(SECONDS)
        assert len(found) == 4
        assert len(set(map(id, found))) == 1
        assert len(found[0].processor.checks) == 1


def test_a_callback_that_asks_for_a_party_keeps_no_store_from_closing(tmp_path: Path) -> None:
    raised: list[BaseException] = []
    inside, closing = threading.Event(), threading.Event()
    with antiphon.open(tmp_path / "ada", unprotected=True) as ada:
        bob = antiphon.open(tmp_path / "bob", live=True, unprotected=True)
        party = ada.create_party("Household")
        bob.join(party.invite(bob.me))
        sync(ada, bob)

        def tell(delta: Delta) -> None:
            if delta.added:
                inside.set()
                closing.wait(SECONDS)
                while not raised:  # until it is being closed, it may well get one
                    try:
                        bob.party("Household")
                    except StoreClosed as error:
                        raised.append(error)

        bob.party("Household").subscribe(prop("n") == 1, tell)
        party.object({"n": 1})
        copy_feeds(ada.manager.feeds, bob.manager.feeds, party.key)
        assert inside.wait(SECONDS)
        closing.set()
        assert finishes(bob.close)
    assert [str(error) for error in raised] == [f"the store {str(bob.path)!r} was closed; open it again"]


def test_a_store_is_not_closed_inside_a_batch(ada: Store, party: Party) -> None:
    with pytest.raises(InvalidInput, match="a batch is open"), party.batch():
        ada.close()
    assert party.object({"n": 1})["n"] == 1


# -- code of the application's


@dataclass
class Chore:
    title: str


@antiphon.typed("chore", version=2)
@dataclass
class NewChore:
    title: str
    done: bool = False


class Picky:
    """Equal to a text; comparing it runs a function."""

    def __init__(self, ask: Callable[[], object]) -> None:
        self._ask = ask

    def __eq__(self, other: object) -> bool:
        self._ask()
        return other == "salt"

    __hash__ = None  # type: ignore[assignment]


def test_what_the_application_hands_in_runs_without_a_lock(party: Party) -> None:
    names, log = party.list(["salt", "milk"]), party.object()
    party.object(Chore("Wash up"))
    passed: list[bool] = []

    def ask() -> int:
        passed.append(finishes(lambda: log.increment("n")))
        return len(passed)

    def values() -> Iterator[str]:
        ask()
        yield "salt"

    steps = Migrations(Schema.of(NewChore))

    @steps.step(1)
    def nothing(value: dict[str, Any]) -> dict[str, Any]:
        ask()
        return value

    names.sort(key=lambda _: ask())
    names[:1] = values()
    names.extend(values())
    names.remove(Picky(ask))
    party.list(values())
    party.schemas.migrate(steps)
    assert passed
    assert all(passed)
    assert len(passed) == log["n"] == 7


def test_queries_in_a_key_function_find_what_is_there(party: Party) -> None:
    one, other = party.object(), party.object()
    assert one.children == []
    items = party.list([one, other])
    for _ in range(3):
        party.object(parent=one)
    items.sort(key=lambda item: len(item.children))
    assert list(items) == [other, one]


def test_a_list_that_changes_while_it_is_sorted_is_sorted_again(party: Party) -> None:
    numbers, asked = party.list([3, 1]), list[int]()

    def key(number: int) -> int:
        if len(asked) < 2:
            numbers.append(2 + len(asked))
        asked.append(number)
        return number

    numbers.sort(key=key)
    assert numbers.value == [1, 2, 3, 3]

    def restless(number: int) -> int:
        numbers[0] = number
        return number

    with pytest.raises(MovedOn, match="was changed during each of"):
        numbers.sort(key=restless)


def test_an_object_that_changes_while_it_is_migrated_is_migrated_again(party: Party) -> None:
    chore = party.object(Chore("Wash up"))
    steps = Migrations(Schema.of(NewChore))
    seen: list[str] = []

    @steps.step(1)
    def to_new(value: dict[str, Any]) -> dict[str, Any]:
        if not seen:
            chore["title"] = "Sweep"
        seen.append(value["title"])
        return {**value, "title": value["title"] + "!"}

    assert party.schemas.migrate(steps) == 1
    assert seen == ["Wash up", "Sweep"]
    assert party.item(chore.id, Object).value == {"title": "Sweep!"}
