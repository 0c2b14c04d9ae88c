"""Queries travel: one encoding each, and whatever comes from outside is a query or refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge
from antiphon.core.v1 import query_pb2 as pb
from antiphon.query.codec import json_form, protobuf
from antiphon.query.filters import All, Any, Compare, Fact, Filter, Match, Not, prop
from antiphon.query.query import Query
from antiphon.testing.query_strategies import queries

TASKS = Query(Fact.TYPE.is_("task") & prop("done").is_(False)).children().order_by("due").take(3)


@given(queries())
def test_a_query_comes_back_as_it_was_sent(query: Query) -> None:
    data = protobuf.encode(query)
    found = protobuf.decode(data)
    assert json_form.to_json(found) == json_form.to_json(query)  # where NaN is equal to itself
    assert protobuf.encode(found) == data


@given(queries())
def test_a_query_comes_back_from_json(query: Query) -> None:
    text = json.dumps(json_form.to_json(query), allow_nan=False)
    assert protobuf.encode(json_form.from_json(json.loads(text))) == protobuf.encode(query)


@given(st.binary(max_size=60))
def test_any_bytes_are_one_query_or_refused(data: bytes) -> None:
    try:
        query = protobuf.decode(data)
    except BadEncoding:
        return
    assert protobuf.encode(query) == data


@given(queries(), st.integers(0, 400), st.integers(0, 255))
def test_a_changed_byte_gives_another_query_or_none(query: Query, at: int, byte: int) -> None:
    data = bytearray(protobuf.encode(query))
    data[at % len(data)] = byte
    try:
        found = protobuf.decode(bytes(data))
    except BadEncoding:
        return
    assert protobuf.encode(found) == data


def test_equal_numbers_of_two_types_are_two_queries() -> None:
    assert len({protobuf.encode(Query(Compare(("a",), "=", value))) for value in (1, 1.0, True)}) == 3


def test_what_this_version_does_not_know_is_refused() -> None:
    data = protobuf.encode(TASKS)
    more = pb.Query.FromString(data)
    more.where.all.parts.add()
    newer = pb.Query.FromString(data)
    newer.steps[0].way = 99  # type: ignore[assignment]

    for unknown in (b"", data + b"\x78\x01", more.SerializeToString(), newer.SerializeToString()):
        with pytest.raises(BadEncoding, match="know"):
            protobuf.decode(unknown)


def test_a_varint_that_is_longer_than_it_must_be_is_refused() -> None:
    data = protobuf.encode(Query().take(3))
    assert data.endswith(b"\x20\x03")
    with pytest.raises(BadEncoding, match="one encoding"):
        protobuf.decode(data[:-1] + b"\x83\x00")


def nested(depth: int) -> Filter:
    return Match("a") if depth == 1 else Not(nested(depth - 1))


def test_the_depth_is_bounded() -> None:
    assert protobuf.decode(protobuf.encode(Query(nested(16)))) == Query(nested(16))
    with pytest.raises(InvalidInput, match="nested more than 16"):
        protobuf.encode(Query(nested(17)))
    deep = pb.Filter(match="a")
    for _ in range(40):
        deep = pb.Filter(negated=deep)
    with pytest.raises(BadEncoding, match="nested more than 16"):
        protobuf.decode(pb.Query(where=deep).SerializeToString())
    with pytest.raises(BadEncoding):
        protobuf.decode(b"\x0a\x02\x1a\x00" * 1000)


def test_values_nested_as_deep_as_may_be_travel() -> None:
    value: object = 1
    for _ in range(16):
        value = {"a": value}
    where: Filter = Compare((), "=", value)
    for _ in range(15):
        where = All((where,))

    assert protobuf.decode(protobuf.encode(Query(where))) == Query(where)
    with pytest.raises(InvalidInput, match="nested more than 16"):
        protobuf.encode(Query(Compare((), "=", [value])))


def test_the_size_is_bounded() -> None:
    with pytest.raises(TooLarge):
        protobuf.decode(bytes((1 << 16) + 1))
    with pytest.raises(TooLarge):
        protobuf.encode(Query(prop("a") == "x" * (1 << 16)))
    with pytest.raises(InvalidInput, match="more than 1000 filters"):
        protobuf.encode(Query(prop("a").in_(range(1000))))
    many = pb.Query(where=pb.Filter(any=pb.FilterList(parts=[pb.Filter(any=pb.FilterList())] * 1001)))
    with pytest.raises(BadEncoding, match="more than 1000 filters"):
        protobuf.decode(many.SerializeToString())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "the query: an object is wanted, not"),
        ({"were": 1}, "the query: there is no 'were'"),
        ({"where": {}}, "where: a filter is an object with one field"),
        ({"where": {"any": {}}}, "where.any: a list is wanted"),
        ({"where": {"not": {"has": "due"}}}, "where.not.has: a path is a list of keys"),
        ({"where": {"has": {"fact": "tipe"}}}, "where.has.fact: 'tipe' is none of id, type"),
        ({"where": {"compare": {"path": ["a"], "value": 1}}}, "where.compare: 'op' is missing"),
        ({"where": {"compare": {"path": ["a"], "op": "!", "value": 1}}}, "there is no comparison '!'"),
        ({"where": {"compare": {"path": ["a"], "op": ["="], "value": 1}}}, "there is no comparison"),
        ({"where": {"contains": {"path": [], "value": {"a": 1}}}}, "where.contains.value: a map is written"),
        ({"where": {"contains": {"path": [], "value": [{"$bytes": "x"}]}}}, r"value\[0\]: 'x' is no bytes"),
        ({"where": {"contains": {"path": [], "value": {"$reference": "00"}}}}, "is no reference"),
        ({"where": {"contains": {"path": [], "value": {"$real": "1"}}}}, "is no real"),
        ({"where": {"match": 1}}, "the words to match"),
        ({"steps": [{"way": "up"}]}, r"steps\[0\].way: 'up' is none of children"),
        ({"order": [{"path": ["a"], "descending": 1}]}, r"order\[0\].descending: true or false"),
        ({"limit": -1}, "the limit of a query"),
        ({"limit": 1 << 64}, "above 2"),
        ({"aggregate": {"function": "median", "path": ["a"]}}, "there is no aggregate 'median'"),
        ({"aggregate": {"function": ["sum"], "path": ["a"]}}, "there is no aggregate"),
        ({"deleted": "no"}, "deleted: 'no' is none of hidden"),
    ],
)
def test_json_that_is_no_query_is_refused_by_place(data: object, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        json_form.from_json(data)


def test_deep_json_is_refused_and_not_followed() -> None:
    where: dict[str, object] = {"match": "a"}
    value: list[object] = []
    for _ in range(5000):
        where, value = {"not": where}, [value]
    for deep in (where, {"contains": {"path": ["a"], "value": value}}):
        with pytest.raises(InvalidInput, match="nested more than 16"):
            json_form.from_json({"where": deep})


def test_an_empty_list_of_parts_is_kept() -> None:
    assert json_form.to_json(Query(Any())) == {"where": {"any": []}}
    assert json_form.from_json({}) == Query()
