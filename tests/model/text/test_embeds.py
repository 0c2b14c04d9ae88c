"""Items in a text: they must have been made before."""

from __future__ import annotations

import pytest

from antiphon.core.errors import InvalidMutation
from antiphon.core.ids import ItemId
from antiphon.core.stamp import Stamp
from antiphon.model.text.model import TextModel

TEXT = TextModel()
ALICE = b"a" * 32


def made_at(lamport: int) -> ItemId:
    return ItemId.derive(lamport, party=bytes(32), feed=ALICE, genesis=bytes(16))


@pytest.mark.parametrize("lamport", [1, 6, 7])
def test_an_item_made_before_or_in_the_same_batch_is_embedded(lamport: int) -> None:
    state = TEXT.initial()
    TEXT.apply(state, TEXT.embed(state, 0, made_at(lamport), feed=ALICE), Stamp(7, ALICE, 0))
    assert TEXT.embeds(state) == [(0, made_at(lamport))]


def test_an_item_of_a_later_time_is_refused() -> None:
    state = TEXT.initial()
    with pytest.raises(InvalidMutation, match="embedded after it was made"):
        TEXT.apply(state, TEXT.embed(state, 0, made_at(8), feed=ALICE), Stamp(7, ALICE, 0))
    assert TEXT.value(state) == ""
