"""Commands, reading and refusals of the text model; and the attacks of rules 14 and 15, replayed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import InvalidInput, InvalidMutation, TooLarge
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2
from antiphon.model.model import Feeding
from antiphon.model.text.codec import QUICK_TEXT_MAX, Draft, decode, quick, quick_bytes
from antiphon.model.text.marks import TextState
from antiphon.model.text.model import TextModel
from antiphon.model.text.runs import LAMPORT
from antiphon.model.value import Reference

TEXT = TextModel()
ALICE, BOB, EVE = b"a" * 32, b"b" * 32, b"e" * 32


class Desk:
    """A state, and a hand that counts lamports and seqs."""

    def __init__(self, text: str = "", feed: bytes = ALICE) -> None:
        self.state: TextState = TEXT.initial()
        self.lamport = 0
        if text:
            self.do(TEXT.insert(self.state, 0, text, feed=feed), feed)

    def do(self, mutation: bytes, feed: bytes = ALICE, *, void: bool = False, lamport: int | None = None) -> None:
        self.lamport = self.lamport + 1 if lamport is None else lamport
        TEXT.apply(self.state, mutation, Stamp(self.lamport, feed, self.lamport), void=void)

    @property
    def text(self) -> str:
        return str(TEXT.value(self.state))


def made(**fields: object) -> bytes:
    return text_pb2.TextMutation(**fields).SerializeToString()  # type: ignore[arg-type]


def insertion(text: str = "x", **fields: object) -> bytes:
    return made(inserts=[text_pb2.TextInsert(text=text, **fields)])  # type: ignore[arg-type]


# -- commands and reading


def test_it_is_what_the_collection_says() -> None:
    assert TEXT.key == ("antiphon/text", 1)
    assert TEXT.feeding is Feeding.COMMUTATIVE
    assert TEXT.canonical
    assert TEXT.has_snapshot


def test_text_is_inserted_deleted_and_replaced_by_code_points() -> None:
    desk = Desk("héllo 😀 world")
    desk.do(TEXT.delete(desk.state, 6, 2, feed=ALICE))
    assert desk.text == "héllo world"
    desk.do(TEXT.replace(desk.state, 0, 5, "good bye", feed=BOB), BOB)
    desk.do(TEXT.insert(desk.state, 14, "!", feed=BOB), BOB)
    assert desk.text == "good bye world!"
    assert TEXT.length(desk.state) == 15
    assert TEXT.read(desk.state, 3, 10) == "d bye w"
    assert TEXT.read(desk.state, 15, 15) == ""


def test_what_the_commands_cannot_do_is_said_at_once() -> None:
    desk = Desk("abc")
    for wrong in (
        lambda: TEXT.insert(desk.state, 4, "x", feed=ALICE),
        lambda: TEXT.insert(desk.state, -1, "x", feed=ALICE),
        lambda: TEXT.delete(desk.state, 2, 2, feed=ALICE),
        lambda: TEXT.delete(desk.state, 0, -1, feed=ALICE),
        lambda: TEXT.insert(desk.state, 0, "", feed=ALICE),
        lambda: TEXT.insert(desk.state, 0, "\ud800", feed=ALICE),
        lambda: TEXT.insert(desk.state, 0, "x", feed=b"short"),
        lambda: TEXT.embed(desk.state, 0, b"short", feed=ALICE),
        lambda: TEXT.mark(desk.state, 1, 1, "bold", feed=ALICE),
        lambda: TEXT.mark(desk.state, 0, 1, "", feed=ALICE),
        lambda: TEXT.mark(desk.state, 0, 1, "bold", object(), feed=ALICE),
        lambda: TEXT.read(desk.state, 2, 1),
        lambda: TEXT.cursor(desk.state, 4),
        lambda: TEXT.index_of(desk.state, b"\xff"),
        lambda: TEXT.index_of(desk.state, text_pb2.TextCursor(feed=b"x").SerializeToString()),
        lambda: TEXT.index_of(desk.state, text_pb2.TextCursor(feed=BOB, lamport=9).SerializeToString()),
    ):
        with pytest.raises(InvalidInput):
            wrong()
    with pytest.raises(TooLarge):
        TEXT.insert(desk.state, 0, "x" * (LAMPORT + 1), feed=ALICE)
    with pytest.raises(TooLarge):
        TEXT.insert(desk.state, 0, "x", feed=ALICE, offset=LAMPORT)
    assert desk.text == "abc"


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("insert", (0, b"x")),
        ("insert", ("0", "x")),
        ("insert", (0, 5)),
        ("insert", (0, None)),
        ("insert", (0.0, "x")),
        ("delete", (True, 1)),
        ("delete", (0, 1.0)),
        ("delete", (0, True)),
        ("replace", (0, "1", "x")),
        ("embed", (None, bytes(5) + b"i" * 11)),
        ("mark", (0, 1.0, "b")),
        ("mark", (False, 1, "b")),
        ("mark", (0, 1, b"b")),
        ("unmark", (0, 1, 7)),
        ("cursor", (True,)),
        ("read", (0, "1")),
        ("index_of", ("cursor",)),
    ],
)
def test_arguments_of_wrong_types_are_said_to_be_so(command: str, arguments: tuple[Any, ...]) -> None:
    desk = Desk("abc")
    with pytest.raises(InvalidInput):
        getattr(TEXT, command)(desk.state, *arguments)
    with pytest.raises(InvalidInput):
        TEXT.insert(desk.state, 0, "x", feed="a" * 32)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        TEXT.insert(desk.state, 0, "x", feed=ALICE, offset="0")  # type: ignore[arg-type]


def test_typing_needs_few_bytes_and_no_key_of_ones_own() -> None:
    desk = Desk("a" * 100)
    desk.lamport = 900_000
    desk.do(TEXT.insert(desk.state, 100, "x", feed=ALICE))

    assert len(TEXT.insert(desk.state, 101, "y", feed=ALICE)) == 9
    assert len(TEXT.delete(desk.state, 100, 1, feed=ALICE)) == 6
    assert ALICE in TEXT.delete(desk.state, 100, 1, feed=BOB)


def test_commands_without_a_feed_name_every_feed() -> None:
    desk = Desk("ac")
    desk.do(TEXT.insert(desk.state, 1, "b"), ALICE)
    assert desk.text == "abc"


def test_embedded_items_are_one_character_and_listed() -> None:
    desk = Desk("before after")
    item = bytes(5) + bytes(range(11))
    desk.do(TEXT.embed(desk.state, 7, item, feed=BOB), BOB)
    desk.do(TEXT.insert(desk.state, 8, "\N{OBJECT REPLACEMENT CHARACTER}", feed=BOB), BOB)

    assert desk.text == "before \N{OBJECT REPLACEMENT CHARACTER}\N{OBJECT REPLACEMENT CHARACTER}after"
    assert TEXT.embeds(desk.state) == [(7, item)]
    assert TEXT.spans(desk.state) == [
        ("before ", {}),
        (Reference(item), {}),
        ("\N{OBJECT REPLACEMENT CHARACTER}after", {}),
    ]
    desk.do(TEXT.delete(desk.state, 7, 1, feed=ALICE))
    assert TEXT.embeds(desk.state) == []
    restored = TEXT.restore(TEXT.snapshot(desk.state))
    assert TEXT.spans(restored) == TEXT.spans(desk.state)


def test_a_batch_shares_a_lamport_and_counts_on() -> None:
    desk = Desk()
    for word in ("one", " two", " three"):
        offset = TEXT.next_offset(desk.state, ALICE, 5)
        desk.do(TEXT.insert(desk.state, desk.state.length, word, feed=ALICE, offset=offset), lamport=5)
    desk.do(TEXT.delete(desk.state, 0, 4, feed=ALICE), lamport=5)

    desk.do(TEXT.mark(desk.state, 0, 3, "bold", feed=ALICE), lamport=5)
    desk.do(TEXT.in_batch(desk.state, TEXT.replace(desk.state, 8, 1, "e!", feed=ALICE), ALICE, 5), lamport=5)

    assert TEXT.spans(desk.state) == [("two", {"bold": True}), (" three!", {})]
    assert TEXT.next_offset(desk.state, ALICE, 5) == 15
    assert TEXT.next_offset(desk.state, ALICE, 6) == TEXT.next_offset(desk.state, BOB, 5) == 0
    with pytest.raises(InvalidMutation, match="has used"):
        desk.do(TEXT.insert(desk.state, 0, "x", feed=ALICE, offset=12), lamport=5)


# -- marks


def test_marks_cover_what_is_typed_at_their_end_only_if_they_expand() -> None:
    desk = Desk("bold link")
    desk.do(TEXT.mark(desk.state, 0, 4, "bold", feed=ALICE))
    desk.do(TEXT.mark(desk.state, 5, 9, "link", "x:y", expand=False, feed=ALICE))
    desk.do(TEXT.insert(desk.state, 9, "!", feed=BOB), BOB)
    desk.do(TEXT.insert(desk.state, 4, "er", feed=BOB), BOB)
    desk.do(TEXT.insert(desk.state, 0, "the ", feed=BOB), BOB)

    assert TEXT.spans(desk.state) == [
        ("the ", {}),
        ("bolder", {"bold": True}),
        (" ", {}),
        ("link", {"link": "x:y"}),
        ("!", {}),
    ]


def test_the_latest_mark_wins_and_unmark_is_one() -> None:
    desk = Desk("0123456789")
    desk.do(TEXT.mark(desk.state, 0, 8, "size", 1, feed=ALICE))
    desk.do(TEXT.mark(desk.state, 2, 6, "size", 2, feed=BOB), BOB)
    desk.do(TEXT.unmark(desk.state, 3, 4, "size", feed=ALICE))
    desk.do(TEXT.mark(desk.state, 5, 10, "bold", None, feed=ALICE))

    assert TEXT.spans(desk.state) == [
        ("01", {"size": 1}),
        ("2", {"size": 2}),
        ("3", {}),
        ("4", {"size": 2}),
        ("5", {"bold": None, "size": 2}),
        ("67", {"bold": None, "size": 1}),
        ("89", {"bold": None}),
    ]


def test_a_mark_set_again_and_again_does_not_grow_the_state() -> None:
    desk = Desk("abc")
    for value in range(50):
        desk.do(
            TEXT.mark(desk.state, 0, 2, "size", value, feed=ALICE if value % 2 else BOB), ALICE if value % 2 else BOB
        )
    assert len(desk.state.marks) == 1
    assert TEXT.spans(desk.state) == [("ab", {"size": 49}), ("c", {})]


def test_a_mark_on_what_has_not_come_waits_for_it() -> None:
    there = Desk("seen")
    word = TEXT.insert(there.state, 4, " later", feed=BOB)
    mark = text_pb2.TextMark(
        name="bold",
        start=text_pb2.TextAnchor(feed=1, lamport=2, offset=1),
        end=text_pb2.TextAnchor(feed=1, lamport=2, offset=5, after=True),
    )
    mark.value.boolean = True
    early = made(feeds=[BOB], marks=[mark])
    there.do(early, EVE, lamport=7)
    assert TEXT.spans(there.state) == [("seen", {})]
    there.do(word, BOB, lamport=2)
    assert TEXT.spans(there.state) == [("seen ", {}), ("later", {"bold": True})]


# -- cursors


def test_cursors_survive_edits() -> None:
    desk = Desk("hello world")
    before, after = TEXT.cursor(desk.state, 6), TEXT.cursor(desk.state, 5, after=True)
    start, end = TEXT.cursor(desk.state, 0, after=True), TEXT.cursor(desk.state, 11)
    desk.do(TEXT.insert(desk.state, 0, ">> ", feed=BOB), BOB)
    desk.do(TEXT.insert(desk.state, 8, ",", feed=BOB), BOB)
    desk.do(TEXT.insert(desk.state, 15, "!", feed=BOB), BOB)
    assert desk.text == ">> hello, world!"
    assert [TEXT.index_of(desk.state, cursor) for cursor in (start, after, before, end)] == [0, 8, 10, 16]

    desk.do(TEXT.delete(desk.state, 5, 8, feed=BOB), BOB)
    assert desk.text == ">> held!"[:5] + "ld!"
    assert [TEXT.index_of(desk.state, cursor) for cursor in (start, after, before, end)] == [0, 5, 5, 8]


# -- what is refused


@pytest.mark.parametrize(
    "mutation",
    [
        b"",
        b"\xff",
        insertion(""),
        made(inserts=[text_pb2.TextInsert(text="x", item=bytes(5) + b"i" * 11, place="TEXT_PLACE_ROOT")]),
        made(inserts=[text_pb2.TextInsert(item=b"short", place="TEXT_PLACE_ROOT")]),
        insertion(lamport=10),
        insertion(lamport=11),
        insertion(feed=1, lamport=3),
        insertion(lamport=3, offset=LAMPORT),
        insertion(place="TEXT_PLACE_NEXT"),
        insertion(place=4),
        insertion("x" * 5, lamport=3).replace(b"xxxxx", b"\xed\xa0\x80xx"),
        made(offset=LAMPORT, inserts=[text_pb2.TextInsert(text="x", place="TEXT_PLACE_ROOT")]),
        made(offset=LAMPORT - 1, inserts=[text_pb2.TextInsert(text="xy", place="TEXT_PLACE_ROOT")]),
        made(deletes=[text_pb2.TextDelete(lamport=11)]),
        made(deletes=[text_pb2.TextDelete(lamport=9, span=2 * LAMPORT)]),
        made(feeds=[BOB], deletes=[text_pb2.TextDelete(feed=1, lamport=10)]),
        made(feeds=[BOB], deletes=[text_pb2.TextDelete(feed=1, lamport=0, span=10 * LAMPORT)]),
        made(feeds=[BOB], deletes=[text_pb2.TextDelete(feed=2, lamport=1)]),
        made(feeds=[b"short"], deletes=[text_pb2.TextDelete(lamport=1)]),
        made(marks=[text_pb2.TextMark(name="b", start=text_pb2.TextAnchor(lamport=11))]),
        made(marks=[text_pb2.TextMark(name="b", start=text_pb2.TextAnchor(inserted=1))]),
        made(marks=[text_pb2.TextMark(start=text_pb2.TextAnchor(edge=True), end=text_pb2.TextAnchor(edge=True))]),
        made(marks=[text_pb2.TextMark(name="n" * 257)]),
    ],
)
@pytest.mark.parametrize("void", [False, True])
def test_a_mutation_that_breaks_the_rules_leaves_no_trace(mutation: bytes, void: bool) -> None:
    desk = Desk("abc")
    before = TEXT.snapshot(desk.state)
    with pytest.raises(InvalidMutation):
        desk.do(mutation, lamport=10, void=void)
    assert TEXT.snapshot(desk.state) == before


def test_it_is_taken_whole_or_not_at_all() -> None:
    desk = Desk("abc")
    before = TEXT.snapshot(desk.state)
    good, bad = text_pb2.TextDelete(lamport=1, span=1), text_pb2.TextInsert(text="x", lamport=99)
    with pytest.raises(InvalidMutation):
        desk.do(made(deletes=[good], inserts=[bad]))
    assert TEXT.snapshot(desk.state) == before


@given(
    st.one_of(
        st.binary(min_size=1, max_size=12),
        st.builds(lambda lamport, text: insertion(text, lamport=lamport), st.integers(0, 1 << 63), st.text(max_size=9)),
        st.builds(lambda lamport: made(deletes=[text_pb2.TextDelete(lamport=lamport)]), st.integers(0, 1 << 63)),
        st.builds(
            lambda head, size, tail: bytes([head, size, 0x10]) + tail,
            st.sampled_from([0x1A, 0x22]),
            st.integers(0, 12),
            st.binary(max_size=9),
        ),
    )
)
def test_the_quick_decoder_agrees_with_the_general_one(mutation: bytes) -> None:
    try:
        found = quick(mutation)
    except (IndexError, UnicodeDecodeError):
        return
    if found is None:
        return
    lamport, text = found
    ops = decode(mutation, Stamp(1 << 60, ALICE, 3))
    if text:
        assert [(ALICE, lamport * LAMPORT, False, text)] == [(i.feed, i.parent, i.left, i.text) for i in ops.inserts]
        assert not ops.deletes
    else:
        assert [tuple(delete) for delete in ops.deletes] == [(ALICE, lamport * LAMPORT, lamport * LAMPORT)]
        assert not ops.inserts


@given(st.integers(0, 1 << 63), st.integers(0, 1), st.text(max_size=9))
def test_the_quick_encoder_writes_what_the_general_one_does(lamport: int, offset: int, text: str) -> None:
    draft = Draft(ALICE)
    if text:
        draft.insert(text, ALICE, lamport * LAMPORT + offset)
    else:
        draft.delete(ALICE, lamport * LAMPORT + offset, lamport * LAMPORT + offset)
    assert quick_bytes(lamport * LAMPORT + offset, text) in (None, draft.bytes())
    fits = 0 < lamport < 1 << 56 and len(text.encode()) <= QUICK_TEXT_MAX
    assert (quick_bytes(lamport * LAMPORT, text) is not None) is fits


# -- attacks


def test_rule_14_nobody_can_mute_another() -> None:
    """An 11-byte Yjs update in Alice's name mutes her for ever. Here a name is the feed's own, the future safe."""
    desk = Desk("Alice: ")
    with pytest.raises(InvalidMutation, match="cannot have seen"):
        desk.do(made(feeds=[ALICE], deletes=[text_pb2.TextDelete(feed=1, lamport=2, span=1 << 60)]), EVE, lamport=2)
    # Eve deletes all that Alice may have written by now, seen or not ...
    desk.do(made(feeds=[ALICE], deletes=[text_pb2.TextDelete(feed=1, span=40 * LAMPORT - 1)]), EVE, lamport=40)
    assert desk.text == ""
    assert desk.state.writers[ALICE].doomed
    # ... and what Alice wrote without knowing of it goes too, everywhere alike; but not what she writes then.
    desk.do(TEXT.insert(desk.state, 0, "unseen ", feed=ALICE), ALICE, lamport=12)
    assert desk.text == ""
    desk.do(TEXT.insert(desk.state, 0, "still here", feed=ALICE), ALICE, lamport=41)
    assert desk.text == "still here"
    assert not desk.state.writers[ALICE].doomed, "and nothing of it is kept"


def test_rule_14_a_deletion_of_what_has_not_come_is_part_of_the_snapshot() -> None:
    early, late = Desk("ab"), Desk("ab")
    word = TEXT.insert(early.state, 2, "cd", feed=BOB)
    delete = made(feeds=[BOB], deletes=[text_pb2.TextDelete(feed=1, lamport=2, offset=1)])
    early.do(delete, EVE, lamport=9)
    early.state = TEXT.restore(TEXT.snapshot(early.state))
    early.do(word, BOB, lamport=2)
    late.do(word, BOB, lamport=2)
    late.do(delete, EVE, lamport=9)

    assert early.text == late.text == "abc"
    assert TEXT.snapshot(early.state) == TEXT.snapshot(late.state)


def test_rule_14_a_reused_id_is_refused() -> None:
    """A reused client id splits texts: here ids are the message's own, and one that is not new is refused."""
    desk = Desk("first")
    with pytest.raises(InvalidMutation, match="has used"):
        desk.do(insertion("second", place="TEXT_PLACE_ROOT"), ALICE, lamport=1)
    assert desk.text == "first"


def test_an_insertion_waits_for_its_parent_and_so_do_those_after_it() -> None:
    one, other = Desk("ab"), Desk("ab")
    parent = (TEXT.insert(one.state, 2, "c", feed=BOB), BOB, 2)
    child = (made(feeds=[BOB], inserts=[text_pb2.TextInsert(feed=1, lamport=2, text="de")]), EVE, 3)
    grandchild = (insertion("f", lamport=3, offset=1), EVE, 4)
    for mutation, feed, lamport in (child, grandchild):
        one.do(mutation, feed, lamport=lamport)
    assert one.text == "abdef", "it is shown where nobody typed yet"
    one.state = TEXT.restore(TEXT.snapshot(one.state))
    one.do(*parent[:2], lamport=parent[2])
    for mutation, feed, lamport in (parent, child, grandchild):
        other.do(mutation, feed, lamport=lamport)

    assert one.text == other.text == "abcdef"
    assert TEXT.snapshot(one.state) == TEXT.snapshot(other.state)


def test_rule_15_text_typed_after_a_voided_insertion_survives() -> None:
    desk = Desk("Dear ")
    desk.do(TEXT.insert(desk.state, 5, "XXX", feed=EVE), EVE)
    seen = TEXT.insert(desk.state, 8, "all", feed=BOB)  # hangs on what Eve had no right to write

    judged = Desk("Dear ")
    judged.do(TEXT.insert(judged.state, 5, "XXX", feed=EVE), EVE, void=True)
    assert judged.text == "Dear "
    judged.do(seen, BOB)
    assert judged.text == "Dear all"


def test_rule_15_a_void_message_deletes_and_marks_nothing() -> None:
    desk = Desk("kept")
    desk.do(TEXT.delete(desk.state, 0, 4, feed=EVE), EVE, void=True)
    desk.do(TEXT.mark(desk.state, 0, 4, "bold", feed=EVE), EVE, void=True)
    desk.do(TEXT.replace(desk.state, 0, 4, "lost", feed=EVE), EVE, void=True)
    assert TEXT.spans(desk.state) == [("kept", {})]


def test_honest_deletions_leave_nothing_but_ids() -> None:
    desk = Desk("secret text")
    desk.do(TEXT.delete(desk.state, 0, 7, feed=BOB), BOB)
    assert not desk.state.writers[ALICE].doomed
    assert b"secret" not in TEXT.snapshot(desk.state)
