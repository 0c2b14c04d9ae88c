"""What a model shows to queries; one that shows nothing of use must not stand in the way of the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon.core.stamp import Stamp
from antiphon.model.factory import ModelFactory
from antiphon.model.interface import Model
from antiphon.model.object import ObjectModel
from antiphon.query.filters import Fact
from antiphon.query.index import ItemIndex
from antiphon.query.query import Query
from antiphon.testing.peers import Peers


class Broken(Model[list[bytes]]):
    """Its value is what no query can hold, or an error."""

    name = "example/broken"

    def initial(self) -> list[bytes]:
        return []

    def apply(self, state: list[bytes], mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        state.append(mutation)

    def value(self, state: list[bytes]) -> Any:
        if state == [b"fail"]:
            raise RuntimeError("no value today")
        return {1: object()}


@pytest.mark.parametrize("mutation", [b"fail", b"odd"])
def test_a_model_that_shows_no_value_is_saved_and_found_all_the_same(tmp_path: Path, mutation: bytes) -> None:
    models = ModelFactory(ObjectModel, Broken)
    with Peers(tmp_path, models=models) as peers:
        party = peers.add("alice").party
        index = party.attach(ItemIndex)
        assert isinstance(index, ItemIndex)
        odd = party.create("example/broken")
        odd.mutate(mutation)
        odd.describe("display_name", "Odd")
        other = party.create("antiphon/object")
        party.save()
        assert index.run(Query(Fact.NAME.is_("Odd"))).ids == (odd.id,)
        assert index.facts([odd.id])[odd.id].value is None
        assert index.run(Query(Fact.MODEL.is_("antiphon/object"))).ids == (other.id,)
