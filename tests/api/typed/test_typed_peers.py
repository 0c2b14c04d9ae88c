"""Typed objects where something goes wrong: batches that are rolled back, and peers that write anything."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.api.conftest import Task

import antiphon
from antiphon import InvalidInput, Object, Party, Schema, SchemaViolation, Store, sync
from antiphon.api.typed.schemas import SCHEMA_TYPE
from antiphon.schema import Counter, to_document
from antiphon.schema.checker import Checker, checker_of


@dataclass
class Poll:
    votes: Counter = 0


# -- batches that came to nothing


def undone(party: Party, work: Callable[[], None]) -> None:
    """Do something in a batch that is then rolled back."""

    def fail() -> None:
        with party.batch():
            work()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


def test_what_was_saved_in_a_batch_that_failed_is_saved_again(party: Party) -> None:
    item = party.object(Task("Plan", tags={"a"}))
    task = item.read_as(Task).object
    task.title = "Draft"
    task.tags.add("b")
    undone(party, lambda: item.save(task))
    assert item["title"] == "Plan"
    item.save(task)
    assert item.value == {"title": "Draft", "done": False, "tags": ["a", "b"]}


def test_what_was_read_in_a_batch_that_failed_was_not_read(party: Party) -> None:
    item = party.object(Task("Plan"))
    read: list[Task] = []

    def write_and_read() -> None:
        item["title"] = "Draft"
        read.append(item.read_as(Task).object)

    undone(party, write_and_read)
    with pytest.raises(InvalidInput, match="this Task was not read from it"):
        item.save(read[0])
    assert item["title"] == "Plan"


def test_a_counter_counts_what_two_devices_add(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    item = party.object(Poll(1))
    plain = party.object({"votes": 1})
    sync(ada, bob)
    for where, by in ((party, 2), (theirs, 3)):
        there = where.item(item.id, Object)
        poll = there.read_as(Poll).object
        poll.votes += by
        there.save(poll)
    sync(ada, bob)
    assert item["votes"] == theirs.item(item.id, Object)["votes"] == 6

    plain.save(Poll(5), since=plain.read_as(Poll))
    assert plain["votes"] == 5, "it was a value, and counts from now on"
    plain.increment("votes")
    assert plain["votes"] == 6


def test_saving_twice_in_a_batch_counts_once(party: Party) -> None:
    item = party.object(Poll(1))
    poll = item.read_as(Poll).object
    with party.batch():
        poll.votes += 2
        item.save(poll)
        with party.batch():
            poll.votes += 3
            item.save(poll)
        item.save(poll)
    item.save(poll)
    assert item["votes"] == 6


def test_a_batch_that_a_check_refuses_is_forgotten_too(party: Party) -> None:
    item, other = party.object(Task("Plan")), party.object(Task("Other"))
    task = item.read_as(Task).object
    task.title = "Draft"

    def save_and_fail() -> None:
        with party.batch():
            item.save(task)
            other["done"] = "soon"

    with pytest.raises(SchemaViolation):
        save_and_fail()
    item.save(task)
    assert item["title"] == "Draft"


# -- what a batch touches


def test_what_peers_broke_keeps_nobody_from_naming_it(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    task = party.object(Task("Plan"))
    sync(ada, bob)
    theirs.processor.checks.clear()
    theirs.item(task.id, Object)["done"] = "soon"
    sync(ada, bob)
    task.name = "The plan"
    task.set_metadata("colour", "red")
    task.embed(party.object())
    task.restrict_writers(ada.me)
    task.delete()
    task.restore()
    with pytest.raises(SchemaViolation):
        party.schemas.assign(task, Task)
    with pytest.raises(SchemaViolation):
        task.set_metadata("schema", party.schemas.register(Task))


# -- peers that rewrite schemas

NOTHING_FITS: dict[str, Any] = {"type": "object", "not": {}}


def test_a_schema_that_a_peer_rewrote_holds_for_nothing(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    task = party.object(Task("Plan"))
    sync(ada, bob)
    hostile = theirs.query(type=SCHEMA_TYPE).of(Object)[0]
    hostile.update(to_document(Schema.of(NOTHING_FITS, name="task", version=1)))
    sync(ada, bob)

    for where in (party, theirs):
        there = where.item(task.id, Object)
        assert where.schemas.of(there) is None
        there["done"] = "soon"
        there.save(there.read_as(Task).object)
    sync(ada, bob)

    more = party.object(Task("More"))
    assert len(party.query(type=SCHEMA_TYPE)) == 2, "a right one is made"
    with pytest.raises(SchemaViolation, match="expected a bool"):
        more["done"] = "soon"
    with pytest.raises(SchemaViolation, match="expected a bool"):
        task["done"] = "later"
    sync(ada, bob)
    theirs.object(Task("His"))
    assert len(theirs.query(type=SCHEMA_TYPE)) == 2
    with pytest.raises(SchemaViolation, match="expected a bool"):
        theirs.item(task.id, Object)["done"] = "later"


def test_a_schema_is_sealed_with_its_name_and_version(party: Party) -> None:
    task = party.object(Task("Plan"))
    item = party.schemas.register(Task)
    for key, value in (("version", 7), ("name", "other")):
        before = item[key]
        item[key] = value
        assert party.schemas.of(task) is None
        item[key] = before
        assert party.schemas.of(task) is not None


def test_an_object_without_a_seal_has_the_schema_of_the_item(party: Party) -> None:
    """As another program may write it."""
    note = party.object({"title": "Plan"})
    note.set_metadata("schema", party.schemas.register(Task))
    with pytest.raises(SchemaViolation):
        note["done"] = "soon"
    note.set_metadata("schema_seal", 5)
    note["done"] = "soon"
    assert party.schemas.of(note) is None


def test_a_schema_that_was_written_in_a_batch_that_failed_is_not_remembered(party: Party) -> None:
    """Its stamps come again with the next batch, and with other content."""
    item = party.object(to_document(Schema.of(Task)), type=SCHEMA_TYPE)
    note = party.object({"title": "Plan"})
    note.set_metadata("schema", item)

    def break_and_look() -> None:
        item.update(to_document(Schema.of(NOTHING_FITS, name="task")))
        assert party.schemas.of(note) is not None

    undone(party, break_and_look)
    item.update(to_document(Schema.of({"type": "object"}, name="task")))
    note["title"] = "Draft"
    assert note["title"] == "Draft"


def test_a_schema_holds_again_when_what_a_peer_wrote_over_it_does_not_count_any_more(
    ada: Store, bob: Store, party: Party, theirs: Party, tmp_path: Path
) -> None:
    """Void messages are in the item's timeframe, so an equal timeframe does not prove an equal value."""
    task = party.object(Task("Plan"))
    with antiphon.open(tmp_path / "carol", unprotected=True) as carol:
        carol.join(party.invite(carol.me))
        sync(ada, carol)
        sync(ada, bob)
        party.revoke(bob.me)  # which Carol does not know yet
        theirs.query(type=SCHEMA_TYPE).of(Object)[0].update(to_document(Schema.of(NOTHING_FITS, name="task")))
        sync(bob, carol)
        hers = carol.party(party.key)
        there = hers.item(task.id, Object)
        assert hers.schemas.of(there) is None
        there["done"] = "soon"

        sync(ada, carol)
        assert hers.schemas.of(there) is not None
        with pytest.raises(SchemaViolation, match="expected a bool"):
            there["done"] = "later"


def test_what_a_peer_wrote_is_not_compiled_to_be_compared(
    ada: Store, bob: Store, party: Party, theirs: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        hostile = Schema.of({"properties": {f"k{number}": {"pattern": "^.{200}$"}}}, name="task")
        theirs.object(to_document(hostile), type=SCHEMA_TYPE)
        theirs.object({**to_document(hostile), "digest": b"other"}, type=SCHEMA_TYPE)
    sync(ada, bob)
    compiled: list[str] = []
    monkeypatch.setattr(Checker, "__init__", _recording(compiled))
    checker_of.cache_clear()
    party.object(Task("Plan"))["done"] = True
    assert set(compiled) == {Schema.of(Task).text}
    assert len(party.schemas.all()) == 4, "now all of them are"
    assert len(set(compiled)) == 4


def _recording(into: list[str]) -> Callable[[Checker, str], None]:
    make = Checker.__init__

    def recorded(checker: Checker, text: str) -> None:
        into.append(text)
        make(checker, text)

    return recorded


def test_a_schema_of_a_peer_is_compiled_without_the_lock(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    party.object(to_document(Schema.of(Task)), type=SCHEMA_TYPE)
    checker_of.cache_clear()
    monkeypatch.setattr(Checker, "__init__", _recording(_Unlocked(party)))
    assert len(party.schemas.all()) == 1


class _Unlocked(list[str]):
    """Takes a text while another thread gets at the party."""

    def __init__(self, party: Party) -> None:
        super().__init__()
        self._party = party

    def append(self, text: str) -> None:
        with ThreadPoolExecutor() as other:
            assert other.submit(lambda: self._party.root.value).result(timeout=10) == {}
