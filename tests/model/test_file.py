"""The file model by example: contents and names, alone and at once, what is refused, the blobs that must stay, undo."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import BadEncoding, InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import object_pb2
from antiphon.model.file import NAME_SIZE_MAX, SIZE_MAX, FileModel
from antiphon.model.model import InvalidMutation
from antiphon.model.object.model import ObjectModel
from antiphon.model.object.mutation_codec import write_mutation
from antiphon.model.object.register import Counter, Mark
from antiphon.model.object.state import DELETE, Increment, ObjectState, Op
from antiphon.testing.model_laws import run_model_tests

FILE, OBJECT = FileModel(), ObjectModel()
ALICE, BOB = b"a" * 32, b"b" * 32
ONE, TWO = Cid.of(b"one"), Cid.of(b"\x80", DAG_CBOR)
GOOD = [bytes(ONE), 3, "text/plain"]


def apply(state: ObjectState, mutation: bytes, stamp: Stamp) -> Stamp:
    FILE.apply(state, mutation, stamp)
    return stamp


@pytest.fixture
def state() -> ObjectState:
    """Alice's file."""
    state = FILE.initial()
    apply(state, FILE.set(state, ONE, 3, "text/plain", "one.txt", feed=ALICE), Stamp(1, ALICE, 0))
    return state


def copy_of(state: ObjectState) -> ObjectState:
    return FILE.restore(FILE.snapshot(state))


def test_a_file_begins_with_nothing() -> None:
    state = FILE.initial()
    assert FILE.value(state) == {"content": None, "media_type": "", "name": "", "size": 0}
    assert FILE.content(state) is None
    assert not FILE.blobs(state)


def test_a_file_has_a_content_and_a_name(state: ObjectState) -> None:
    assert FILE.value(state) == {"content": ONE, "media_type": "text/plain", "name": "one.txt", "size": 3}
    assert FILE.document(state) == {**FILE.value(state), "content": str(ONE)}
    assert FILE.blobs(state) == [ONE]


def test_another_content_keeps_the_name(state: ObjectState) -> None:
    apply(state, FILE.set(state, TWO, 7, feed=BOB), Stamp(2, BOB, 0))
    assert FILE.value(state) == {
        "content": TWO,
        "media_type": "application/octet-stream",
        "name": "one.txt",
        "size": 7,
    }
    assert FILE.blobs(state) == [TWO]
    apply(state, FILE.rename(state, "two.txt", feed=ALICE), Stamp(3, ALICE, 1))
    assert FILE.value(state)["name"] == "two.txt"


def test_of_two_contents_at_once_the_last_by_stamp_shows_and_both_are_kept(state: ObjectState) -> None:
    """Given two who write without a word of each other, then content, size and type are those of one of them."""
    mine, theirs = FILE.set(state, ONE, 1, "a/a", "a", feed=ALICE), FILE.set(state, TWO, 2, "b/b", "b", feed=BOB)
    other = copy_of(state)
    apply(state, mine, Stamp(2, ALICE, 1))
    apply(state, theirs, Stamp(2, BOB, 0))
    apply(other, theirs, Stamp(2, BOB, 0))
    apply(other, mine, Stamp(2, ALICE, 1))
    assert FILE.snapshot(state) == FILE.snapshot(other)
    assert FILE.value(state) == {"content": TWO, "media_type": "b/b", "name": "b", "size": 2}
    assert FILE.conflicts(state) == [(Stamp(2, BOB, 0), (TWO, 2, "b/b")), (Stamp(2, ALICE, 1), (ONE, 1, "a/a"))]
    assert FILE.names(state) == [(Stamp(2, BOB, 0), "b"), (Stamp(2, ALICE, 1), "a")]
    assert FILE.blobs(state) == sorted([ONE, TWO])

    apply(state, FILE.set(state, ONE, 1, "a/a", "a", feed=ALICE), Stamp(3, ALICE, 2))

    assert (FILE.conflicts(state), FILE.names(state), FILE.blobs(state)) == ([], [], [ONE])


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\0b", "\n", "\x7f", "x" * (NAME_SIZE_MAX + 1), 7])
def test_a_name_that_leads_elsewhere_is_refused(state: ObjectState, name: Any) -> None:
    with pytest.raises(InvalidInput, match="a file's name"):
        FILE.rename(state, name)


@pytest.mark.parametrize(
    "arguments",
    [
        (b"short", 3),
        (ONE[:-1], 3),
        (b"\x02" + ONE[1:], 3),
        (ONE, -1),
        (ONE, SIZE_MAX + 1),
        (ONE, True),
        (ONE, 3, ""),
        (ONE, 3, "text"),
        (ONE, 3, "text/\nplain"),
        (ONE, 3, "a/" + "b" * 254),
        (ONE, 3, "text/plain", ".."),
    ],
)
def test_what_is_no_file_is_refused_before_it_is_written(state: ObjectState, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidInput):
        FILE.set(state, *arguments)


@pytest.mark.parametrize(
    "op",
    [
        Op(("other",), "x"),
        Op(("other",), DELETE),
        Op(("content", "x"), "x"),
        Op(("content",), "x"),
        Op(("content",), GOOD[:2]),
        Op(("content",), [*GOOD, 1]),
        Op(("content",), [bytes(ONE).hex(), 3, "text/plain"]),
        Op(("content",), [bytes(ONE), 3.0, "text/plain"]),
        Op(("content",), Mark.MAP),
        Op(("content",), Counter(1)),
        Op(("name",), Mark.SET),
        Op(("name",), Increment(1), [Stamp(1, ALICE, 0)]),
        Op(("name",), b"bytes"),
        Op(("name",), "../x"),
    ],
)
def test_what_is_no_file_is_refused_from_a_peer(state: ObjectState, op: Op) -> None:
    before = FILE.snapshot(state)
    with pytest.raises(InvalidMutation):
        FILE.apply(
            state, write_mutation([Op(("content",), GOOD), op][op.path == ("content",) :], BOB), Stamp(9, BOB, 0)
        )
    assert FILE.snapshot(state) == before


@pytest.mark.parametrize("path", ["other", "name", ("content", "x")])
def test_the_snapshot_of_an_object_is_none_of_a_file(path: Any) -> None:
    state = OBJECT.initial()
    OBJECT.apply(state, OBJECT.set(state, path, 7, feed=ALICE), Stamp(1, ALICE, 0))
    with pytest.raises(BadEncoding, match="snapshot of a file"):
        FILE.restore(OBJECT.snapshot(state))


@pytest.mark.parametrize("kept", ["other", "name"])
def test_a_snapshot_that_waits_for_what_no_file_has_is_refused(kept: str) -> None:
    rows = object_pb2.ObjectSnapshot(feeds=[ALICE])
    row = rows.kept.add(path=[kept])
    if kept == "name":
        row.increments.add(feed=1, lamport=3, seq=3, counter=b"\1")
    else:
        row.gone.add(feed=1, lamport=3, seq=3)
    OBJECT.restore(rows.SerializeToString())
    with pytest.raises(BadEncoding, match="it waits for what no file has"):
        FILE.restore(rows.SerializeToString())


def test_a_content_that_is_undone_gives_the_former_back(state: ObjectState) -> None:
    mutation, stamp = FILE.set(state, TWO, 7, "a/b", "two", feed=ALICE), Stamp(2, ALICE, 1)
    captured = FILE.capture(state, mutation, stamp)
    apply(state, mutation, stamp)
    (undoing,) = FILE.revert(state, captured, mutation, stamp, ALICE)
    apply(state, undoing, Stamp(3, ALICE, 2))
    assert FILE.value(state) == {"content": ONE, "media_type": "text/plain", "name": "one.txt", "size": 3}


def test_what_others_set_since_is_not_undone(state: ObjectState) -> None:
    mutation, stamp = FILE.set(state, TWO, 7, feed=ALICE), Stamp(2, ALICE, 1)
    captured = FILE.capture(state, mutation, stamp)
    apply(state, mutation, stamp)
    apply(state, FILE.set(state, ONE, 9, feed=BOB), Stamp(3, BOB, 0))
    assert FILE.revert(state, captured, mutation, stamp, ALICE) == []


def test_the_first_content_is_undone_to_nothing() -> None:
    state = FILE.initial()
    mutation, stamp = FILE.set(state, ONE, 3, feed=ALICE), Stamp(1, ALICE, 0)
    captured = FILE.capture(state, mutation, stamp)
    apply(state, mutation, stamp)
    (undoing,) = FILE.revert(state, captured, mutation, stamp, ALICE)
    apply(state, undoing, Stamp(2, ALICE, 1))
    assert FILE.content(state) is None


@pytest.mark.slow
def test_files_keep_the_laws_of_models() -> None:
    assert run_model_tests(FileModel, examples=40)


@given(seed=st.integers(0, 1 << 32))
def test_a_file_is_what_its_last_writers_said(seed: int) -> None:
    """A plain model of it: of what each writer had not seen replaced, the greatest stamp shows."""
    chance = random.Random(seed)
    states = {feed: FILE.initial() for feed in (ALICE, BOB)}
    logs: dict[bytes, list[tuple[bytes, Stamp]]] = {ALICE: [], BOB: []}
    heard = dict.fromkeys((ALICE, BOB), 0)
    lamport = dict.fromkeys((ALICE, BOB), 0)
    for _ in range(chance.randrange(1, 20)):
        feed, other = chance.sample((ALICE, BOB), 2)
        if chance.random() < 0.4:
            for mutation, stamp in logs[other][heard[feed] :]:
                apply(states[feed], mutation, stamp)
                lamport[feed] = max(lamport[feed], stamp.lamport)
            heard[feed] = len(logs[other])
        lamport[feed] += 1
        stamp = Stamp(lamport[feed], feed, len(logs[feed]))
        mutation = FILE.set(states[feed], Cid.of(stamp.encode()), stamp.seq, feed=feed)
        apply(states[feed], mutation, stamp)
        logs[feed].append((mutation, stamp))
    for feed, other in ((ALICE, BOB), (BOB, ALICE)):
        for mutation, stamp in logs[other][heard[feed] :]:
            apply(states[feed], mutation, stamp)
    last = max(stamp for log in logs.values() for _, stamp in log)
    assert FILE.snapshot(states[ALICE]) == FILE.snapshot(states[BOB])
    assert FILE.value(states[ALICE])["content"] == Cid.of(last.encode())
    assert FILE.value(states[ALICE])["size"] == last.seq
