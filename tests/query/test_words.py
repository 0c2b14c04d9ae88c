"""Words are found by one rule, and FTS5, which knows none of it, finds the same."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.errors import InvalidInput
from antiphon.query.tables import CREATE_WORDS
from antiphon.query.words import TERMS_MAX, fts_query, matches, parse, to_fts, tokens

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
    return [n for n, each in enumerate(said, start=1) if matches(parse(asked), map(tokens, each))]


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
