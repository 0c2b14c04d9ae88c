"""A seed becomes 24 words and comes back; what is mistyped is named."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import InvalidInput
from antiphon.halo.keys.recovery_phrase import from_recovery_phrase, to_recovery_phrase

# BIP-39's own vectors for 256 bits: entropy and words.
VECTORS = [
    ("00" * 32, "abandon " * 23 + "art"),
    (
        "7f" * 32,
        "legal winner thank year wave sausage worth useful " * 2 + "legal winner thank year wave sausage worth title",
    ),
    (
        "80" * 32,
        "letter advice cage absurd amount doctor acoustic avoid " * 2
        + "letter advice cage absurd amount doctor acoustic bless",
    ),
    ("ff" * 32, "zoo " * 23 + "vote"),
    (
        "68a79eaca2324873eacc50cb9c6eca8cc68ea5d936f98787c60c7ebc74e6ce7c",
        "hamster diagram private dutch cause delay private meat slide toddler razor book happy fancy gospel tennis "
        "maple dilemma loan word shrug inflict delay length",
    ),
]


@pytest.mark.parametrize(("seed", "phrase"), VECTORS)
def test_agrees_with_the_vectors_of_bip39(seed: str, phrase: str) -> None:
    assert to_recovery_phrase(bytes.fromhex(seed)) == phrase
    assert from_recovery_phrase(phrase).hex() == seed


@given(st.binary(min_size=32, max_size=32))
def test_every_seed_comes_back(seed: bytes) -> None:
    assert from_recovery_phrase(to_recovery_phrase(seed)) == seed


@given(st.binary(min_size=32, max_size=32), st.data())
def test_case_and_white_space_do_not_matter(seed: bytes, data: st.DataObject) -> None:
    words = to_recovery_phrase(seed).split()
    gap = st.sampled_from([" ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u3000"])
    spoilt = "".join(
        data.draw(gap) + data.draw(st.sampled_from([word, word.upper(), word.title()])) for word in words
    ) + data.draw(gap)

    assert from_recovery_phrase(spoilt) == seed


def test_an_unknown_word_is_named_by_its_position_with_a_near_one() -> None:
    words = ["abandon"] * 23 + ["art"]
    words[2] = "Abandun"

    with pytest.raises(InvalidInput, match=r"word 3 of the phrase, 'abandun', is not in the list.*'abandon' is near"):
        from_recovery_phrase(" ".join(words))


def test_a_known_word_in_the_wrong_place_breaks_the_checksum() -> None:
    words = to_recovery_phrase(bytes(range(32))).split()
    words[0], words[1] = words[1], words[0]

    with pytest.raises(InvalidInput, match="checksum"):
        from_recovery_phrase(" ".join(words))


def test_an_error_does_not_repeat_the_phrase() -> None:
    words = to_recovery_phrase(bytes(range(32))).split()

    with pytest.raises(InvalidInput) as caught:
        from_recovery_phrase(" ".join([*words[:-1], "zzzz"]))

    assert not any(word in str(caught.value).split() for word in words[:-1])


@pytest.mark.parametrize("count", [0, 1, 12, 23, 25])
def test_any_other_number_of_words_is_refused(count: int) -> None:
    with pytest.raises(InvalidInput, match=f"24 words, not {count}"):
        from_recovery_phrase("abandon " * count)


@given(st.text(max_size=2000))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        from_recovery_phrase(text)


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_only_a_whole_seed_has_a_phrase(size: int) -> None:
    with pytest.raises(InvalidInput, match=f"not {size}"):
        to_recovery_phrase(bytes(size))
