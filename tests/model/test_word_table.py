"""A word table is a list of words; once settled, it is the sorted list of the words that are used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from antiphon.model import word_table
from antiphon.model.word_table import WordTable

WORDS = st.lists(st.binary(max_size=3) | st.sampled_from([b"", b"\0", b"a", b"a\0", b"a\0\0", b"ab", b"n" * 70]))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are looked up and moved a few at a time."""
    monkeypatch.setattr(word_table, "_LAST_MAX", 2)
    monkeypatch.setattr(word_table, "_PORTION", 3)


@given(WORDS, WORDS, st.data())
def test_settling_sorts_the_words_that_are_used(first: list[bytes], later: list[bytes], data: Any) -> None:
    """Given words, of which some are used, then equal ones have one number, and numbers ascend with words."""
    table = WordTable([b""])
    words: list[bytes] = []
    numbers: list[int] = []
    for some in (first, later):
        numbers += [table.number(word) for word in some]
        words += some
        assert [table[number] for number in numbers] == words
        kept = data.draw(st.sets(st.sampled_from(range(len(words))))) if words else set()
        words = [words[at] for at in sorted(kept)]
        new = table.settle([np.array([numbers[at] for at in sorted(kept)], np.int64)], always=[0])
        numbers = new[[numbers[at] for at in sorted(kept)]].tolist()
        assert list(table) == sorted({b"", *words})
        assert [table[number] for number in numbers] == words
