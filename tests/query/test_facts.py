"""What a model shows to queries; one that shows nothing of use must not stand in the way of the rest."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path
from typing import Any

import pytest

from antiphon.core.codec import u32
from antiphon.core.errors import DamagedItems
from antiphon.core.stamp import Stamp
from antiphon.model.factory import ModelFactory
from antiphon.model.model import Model
from antiphon.model.object.model import ObjectModel
from antiphon.model.value import Reference
from antiphon.query import packed_json
from antiphon.query.codec.facts import decode_facts, decode_parts, encode_facts
from antiphon.query.facts import Facts, facts_of
from antiphon.query.filters import Fact, Match, prop
from antiphon.query.index.index import ItemIndex
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
        odd.set_metadata("display_name", "Odd")
        other = party.create("antiphon/object")
        party.save()
        assert index.run(Query(Fact.NAME.is_("Odd"))).ids == (odd.id,)
        assert index.facts([odd.id])[odd.id].value is None
        assert index.run(Query(Fact.MODEL.is_("antiphon/object"))).ids == (other.id,)


# -- references are found when they are asked for


def references(*numbers: int) -> tuple[Reference, ...]:
    return tuple(Reference(bytes([number]) * 16, b"p" * 32 if number > 5 else b"") for number in numbers)


def test_references_of_a_live_item_are_all_in_its_value_each_once_and_ascending(tmp_path: Path) -> None:
    one, two, three, six = references(1, 2, 3, 6)
    with Peers(tmp_path) as peers:
        party = peers.add("alice").party
        item = party.create("antiphon/object")
        item.edit("set", "a", {"deep": [six, [two, "text", one]], "more": [one]})
        item.edit("set", "b", three)
        with party.locked() as engine:
            state = engine.entry(item.id).item
            assert state is not None
            facts = facts_of(state)
        item.edit("set", "b", 0)  # what was seen stays as it was
        assert facts.references == (one, two, three, six)
        assert facts == decode_facts(encode_facts(facts))
        assert list(facts.texts()) == ["text"]


def test_a_model_whose_references_are_none_shows_nothing(tmp_path: Path) -> None:
    class Odd(Model[list[bytes]]):
        name = "example/odd"

        def initial(self) -> list[bytes]:
            return []

        def apply(self, state: list[bytes], mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
            state.append(mutation)

        def value(self, state: list[bytes]) -> Any:
            return 1

        def references(self, state: list[bytes]) -> Any:
            return ["no reference"]

    with Peers(tmp_path, models=ModelFactory(ObjectModel, Odd)) as peers:
        party = peers.add("alice").party
        index = party.attach(ItemIndex)
        assert isinstance(index, ItemIndex)
        odd = party.create("example/odd")
        party.save()
        assert index.facts([odd.id])[odd.id] == Facts(
            odd.id, "example/odd", 1, None, created_ms=index.facts([odd.id])[odd.id].created_ms
        )


@pytest.mark.parametrize("bad", ['["zz",""]', '["00",""]', '["",""]', "[1,2]", '["00"]', "3"])
def test_references_that_are_none_are_damage(bad: str) -> None:
    good = encode_facts(Facts(b"i" * 16, "m", 1, None, references=references(1)))[8:].decode()
    data = good.replace('["01010101010101010101010101010101",""]', bad).encode()
    assert data != good.encode()
    facts = decode_parts(u32(zlib.crc32(data)) + data)
    with pytest.raises(DamagedItems, match="built again"):
        _ = facts.references


def test_the_encoding_is_one_list_of_json_whatever_the_value_holds() -> None:
    facts = Facts(b"i" * 16, "m", 1, {"a": ["😀", [*references(1, 6)], b"x"]}, name="😀", references=references(1, 6))
    assert decode_facts(encode_facts(facts)) == facts
    assert encode_facts(facts)[8:].startswith(b'["' + b"69" * 16 + b'","m",1,{"a":[')


def test_whether_references_are_the_same_is_seen_without_making_them() -> None:
    def again(value: object, *numbers: int) -> Facts:
        return decode_facts(encode_facts(Facts(b"i" * 16, "m", 1, value, references=references(*numbers))))

    one, same, other, none = again(1, 1, 6), again(2, 1, 6), again(1, 1), again(1)
    assert one.refers_like(same)
    assert not _made(one)
    assert not _made(same)
    assert not one.refers_like(other)
    assert not one.refers_like(none)
    assert none.refers_like(again(2))
    assert one.references == references(1, 6)
    assert one.refers_like(same)


def _made(facts: Facts) -> bool:
    """Whether the slot is filled."""
    try:
        object.__getattribute__(facts, "references")
    except AttributeError:
        return False
    return True


# -- a long value is stored after the other fields, and read when it is asked for


def test_a_long_value_is_read_when_it_is_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = Facts(
        b"i" * 16, "antiphon/array", 1, [None, "é", 1.0] * 20_000, name="long", claims=((Stamp(1, b"f" * 32, 2), b""),)
    )
    encoded = encode_facts(facts)
    assert encode_facts(decode_facts(encoded)) == encoded
    read: list[int] = []

    def unpack(text: str) -> Any:
        read.append(len(text))
        return packed_json.unpack(text)

    monkeypatch.setattr("antiphon.query.codec.facts.unpack", unpack)
    found = decode_facts(encoded)
    assert found.name == "long"
    assert max(read) < 1000
    assert found == facts
    assert max(read) > 100_000
    damaged = bytearray(encoded)
    damaged[-1] ^= 1
    with pytest.raises(DamagedItems):
        decode_facts(bytes(damaged))


def test_the_index_keeps_long_values_through_changes() -> None:
    index = ItemIndex(sqlite3.connect(":memory:", isolation_level=None))
    index.create()
    for words in (["alpha"] * 30_000, ["beta"] * 40_000, ["gamma"], ["delta"] * 50_000):
        facts = Facts(b"i" * 16, "antiphon/object", 1, {"words": words, "first": words[0]})
        index.put([(facts.id, encode_facts(facts))])
        assert index.facts([facts.id])[facts.id] == facts
        assert index.run(Query(prop("first") == words[0])).ids == (facts.id,)
        assert index.run(Query(Match(words[0]))).ids == (facts.id,)
