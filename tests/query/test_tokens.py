"""Words are found by one rule, and FTS5, which knows none of it, finds the same."""

from __future__ import annotations

import random
import sqlite3
import sys
import unicodedata

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import InvalidInput
from antiphon.query.index.tables import CREATE_WORDS
from antiphon.query.tokens import (
    ASKED_WORDS_MAX,
    LENGTH_MAX,
    MARKS_MAX,
    TERMS_MAX,
    WORD_CACHE,
    fts_query,
    matches,
    parse,
    stream_safe,
    to_fts,
    tokens,
    word_text,
)

letters = st.sampled_from([*'abBxé\u0301ß日ア한𠀀_-  "*'])
any_letters = st.characters(codec="utf-8")
asking = st.text(letters, max_size=8) | st.text(any_letters, max_size=6)
texts = st.lists(st.text(letters, max_size=8), max_size=3)


def found_by_fts(asked: str, said: list[list[str]]) -> list[int]:
    db = sqlite3.connect(":memory:")
    db.execute(CREATE_WORDS)
    rows = [(n, to_fts(each)) for n, each in enumerate(said, start=1)]
    db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)
    return [
        n for (n,) in db.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY 1", (fts_query(parse(asked)),))
    ]


def found(asked: str, said: list[list[str]]) -> list[int]:
    return [n for n, each in enumerate(said, start=1) if matches(parse(asked), word_text(each))]


@given(asking, st.lists(texts | st.lists(st.text(any_letters, max_size=6), max_size=3), max_size=5))
def test_fts5_agrees(asked: str, said: list[list[str]]) -> None:
    try:
        parse(asked)
    except InvalidInput:
        return
    assert found_by_fts(asked, said) == found(asked, said)


@pytest.mark.parametrize(
    ("asked", "text", "is_there"),
    [
        ("word", "Some WORDS and a word.", True),
        ("word", "words", False),
        ("word*", "words", True),
        ("two words", "words, then two", True),
        ('"two words"', "words, then two", False),
        ('"two words"', "the two words", True),
        ('"two wor"*', "two words", True),
        ("two three", "two words", False),
        ("STRASSE", "straße", True),
        ("ﬁne", "fine", True),
        ("café", "cafe\u0301", True),
        ("東京", "京東と東京", True),
        ("東京", "京東", False),
        ("well-known", "a well known thing", True),
        ("well-known", "known well", False),
        ('"never closed', "never closed", True),
        ("a" * 70, "a" * 80, True),  # beyond 64 characters words are the same
        ("a" * 63, "a" * 80, False),
    ],
)
def test_examples(asked: str, text: str, is_there: bool) -> None:
    assert found(asked, [[text]]) == ([1] if is_there else [])
    assert found_by_fts(asked, [[text]]) == ([1] if is_there else [])


@given(st.text(st.characters(max_codepoint=127), max_size=100))
def test_plain_text_has_the_words_that_it_has_among_others(text: str) -> None:
    assert tokens(text) == tokens(text + " é")[:-1]


def test_a_row_of_words_does_not_span_two_texts() -> None:
    said = [["one two"], ["one", "two"]]
    assert found('"one two"', said) == found_by_fts('"one two"', said) == [1]
    assert found("one two", said) == found_by_fts("one two", said) == [1, 2]


@pytest.mark.parametrize("asked", ["", "  ", "...", '""', "*", '"-" *'])
def test_where_there_is_no_word_there_is_nothing_to_match(asked: str) -> None:
    with pytest.raises(InvalidInput, match="no word to match"):
        parse(asked)


def test_what_is_asked_for_is_bounded() -> None:
    assert len(parse("a " * TERMS_MAX)) == TERMS_MAX
    with pytest.raises(InvalidInput, match="at most"):
        parse("a " * (TERMS_MAX + 1))
    with pytest.raises(InvalidInput, match="at most"):
        parse("a" * 5000)
    assert len(parse("日" * ASKED_WORDS_MAX)[0].words) == ASKED_WORDS_MAX
    with pytest.raises(InvalidInput, match="at most"):
        parse("日" * (ASKED_WORDS_MAX + 1))


# -- texts that are meant to cost


def marks_in_a_row(text: str) -> int:
    """What normalising has to sort."""
    longest = run = 0
    for character in unicodedata.normalize("NFKD", text):
        run = run + 1 if unicodedata.combining(character) else 0
        longest = max(longest, run)
    return longest


MARKS = [
    character
    for character in map(chr, range(sys.maxunicode + 1))
    if not "\ud800" <= character <= "\udfff" and unicodedata.combining(unicodedata.normalize("NFKD", character)[0])
]


def test_no_mark_comes_more_than_a_few_times_in_a_row() -> None:
    assert len(MARKS) > 800
    for mark in MARKS:
        assert stream_safe("a" + 2 * MARKS_MAX * mark + "b") == "a" + MARKS_MAX * mark + "b"


@given(st.text(st.sampled_from([*"aé -ᾂ", "\u0344", "\uff9e", "\u0f81", *MARKS[:9], *MARKS[-9:]]), max_size=300))
def test_marks_are_left_out_wherever_they_are(text: str) -> None:
    assert marks_in_a_row(stream_safe(text)) <= 2 * MARKS_MAX + 3
    if marks_in_a_row(text) <= MARKS_MAX:
        assert stream_safe(text) == text


def test_a_text_of_nothing_but_marks_is_looked_at_all_the_same() -> None:
    hostile = "a" + "\u0300" * 300_000 + "\u0316" * 300_000 + " milk"
    assert found("milk", [[hostile]]) == found_by_fts("milk", [[hostile]]) == [1]
    assert found("a\u0300", [[hostile]]) == found_by_fts("a\u0300", [[hostile]]) == [1]


@pytest.mark.parametrize("letter", ["\ufdfa", "ΐ", "日", "ﬃ", "\u0f81", "a", "a "])
def test_of_an_item_so_many_characters_are_looked_at(letter: str) -> None:
    long = letter * (LENGTH_MAX // len(letter))
    said = [["milk", long, "beer"], ["milk " + long + " beer"]]
    assert all(len(word_text(each)) < 3 * LENGTH_MAX for each in said)
    assert found("milk", said) == found_by_fts("milk", said) == [1, 2]
    assert found("beer", said) == found_by_fts("beer", said) == []


def test_a_row_of_very_many_words_is_found_where_all_but_the_last_are_everywhere() -> None:
    row = '"' + "a " * (ASKED_WORDS_MAX - 1) + 'b"'
    said = [["a " * 100_000], ["a " * 100_000 + "b"]]
    assert found(row, said) == found_by_fts(row, said) == [2]


# -- long texts are looked at in pieces


@pytest.mark.parametrize("seed", range(20))
def test_pieces_have_the_words_of_the_whole(seed: int) -> None:
    chance = random.Random(seed)
    parts = ["word ", "e\u0301\n", "日本。", "\u0301\u0316", "x" * 100, "\t\u0308", "ﬁ\u3000", "ΣΑΣ,", "ᄒ", "ᅡᆫ"]
    text = "".join(chance.choices(parts, k=3000))
    assert word_text([text]) == f" {' '.join(tokens(text))} "


def test_no_character_is_one_with_the_end_of_a_piece_before_it() -> None:
    for end in " \t\n\u3000\u3001\u3002":
        for character in map(chr, range(0x300, 0x10000)):
            apart = unicodedata.normalize("NFKC", end) + unicodedata.normalize("NFKC", character)
            assert unicodedata.normalize("NFKC", end + character) == apart


def test_of_a_long_text_only_what_changed_is_looked_at_again() -> None:
    text = " ".join(random.Random(1).choices(["some", "word", "or", "another", "that", "is", "here"], k=40_000))
    word_text([text])
    for at in (10, 100_000, len(text) - 5):
        before = WORD_CACHE.made
        text = text[:at] + "!" + text[at:]
        assert word_text([text]).split() == tokens(text)
        assert 1 <= WORD_CACHE.made - before < 20  # of a hundred
