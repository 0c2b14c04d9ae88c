"""Keys, invitations and locators as text: they are read back unchanged, and a wrong character is detected."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from antiphon import InvalidInput
from antiphon.api import Invitation, Locator
from antiphon.api.key_text import TEXT_SIZE, from_text, to_text
from antiphon.core import PublicKey

KEYS = st.binary(min_size=32, max_size=32).map(PublicKey)


@given(key=KEYS)
def test_a_key_comes_back_from_its_text(key: PublicKey) -> None:
    text = to_text(key)
    assert len(text) == TEXT_SIZE
    assert from_text(text, "a key") == from_text(text.upper(), "a key") == key


@given(key=KEYS, place=st.integers(0, TEXT_SIZE - 1), letter=st.sampled_from("abcdefghijklmnopqrstuvwxyz234567"))
def test_a_slip_is_found(key: PublicKey, place: int, letter: str) -> None:
    text = to_text(key)
    slip = text[:place] + letter + text[place + 1 :]
    if slip != text:
        with pytest.raises(InvalidInput, match="cut, mistyped"):
            from_text(slip, "a key")


@given(text=st.text(max_size=80))
def test_other_text_is_refused(text: str) -> None:
    for parse in (Invitation.parse, Locator.parse, lambda text: from_text(text, "a key")):
        with pytest.raises(InvalidInput):
            parse(text)


@given(party=KEYS, other=KEYS, label=st.text(max_size=50))
def test_invitations_and_locators_come_back_from_their_text(party: PublicKey, other: PublicKey, label: str) -> None:
    invitation = Invitation(party, other, label)
    assert Invitation.parse(f"  {invitation}\n") == invitation
    locator = Locator(party, other)
    assert Locator.parse(f"  {locator}\n") == locator


def test_each_says_what_it_should_be() -> None:
    key = PublicKey(b"k" * 32)
    with pytest.raises(InvalidInput, match="one begins with antiphon-join:"):
        Invitation.parse(str(Locator(key, key)))
    with pytest.raises(InvalidInput, match="one looks like echo://"):
        Locator.parse(str(Invitation(key, key)))
    with pytest.raises(InvalidInput, match="not the text of a view's inception key"):
        Locator.parse(str(Locator(key, key))[:-1])
    with pytest.raises(InvalidInput, match="not the text of a party's key"):
        Invitation.parse("antiphon-join:x.y")
