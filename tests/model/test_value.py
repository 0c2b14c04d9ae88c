"""Values: all of JSON, bytes, aware datetimes and references; one encoding each, and nothing else."""

from __future__ import annotations

import enum
import math
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, strategies as st

from antiphon.core.errors import InvalidInput, TooLarge
from antiphon.core.ids import ItemId
from antiphon.core.v1 import value_pb2
from antiphon.model.model import InvalidMutation
from antiphon.model.value import VALUE_DEPTH_MAX, Reference, read_value, to_proto, value_bytes

ITEM, PARTY = b"i" * 16, b"p" * 32
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TIMES = st.datetimes(timezones=st.just(UTC))
SCALARS = (
    st.none()
    | st.booleans()
    | INT64
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | TIMES
    | st.builds(Reference, st.just(ITEM), st.sampled_from([b"", PARTY]))
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


class Colour(str, enum.Enum):  # noqa: UP042 - its str() is not what it stands for
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


class NoZone(tzinfo):
    def utcoffset(self, _: datetime | None) -> None:
        return None

    def dst(self, _: datetime | None) -> None:
        return None

    def tzname(self, _: datetime | None) -> None:
        return None


def again(value: Any) -> Any:
    return read_value(value_pb2.Value.FromString(value_bytes(value)))


def nested(depth: int, inner: Any = 0) -> Any:
    for _ in range(depth):
        inner = [inner]
    return inner


@given(value=VALUES)
def test_every_value_goes_round(value: Any) -> None:
    assert again(value) == value
    assert value_bytes(again(value)) == value_bytes(value)


@pytest.mark.parametrize(
    "value", [None, True, False, 0, -1, (1 << 63) - 1, -(1 << 63), 0.0, 1.5, math.inf, "", "é\0", b"", [], {}, [{}]]
)
def test_a_value_keeps_its_type(value: Any) -> None:
    assert again(value) == value
    assert type(again(value)) is type(value)


def test_a_bool_is_no_int_and_a_float_is_neither() -> None:
    assert len({value_bytes(value) for value in (1, True, 1.0, "1", b"1")}) == 5
    assert again([True, 1, 1.0]) == [True, 1, 1.0]
    assert [type(part) for part in again([True, 1, 1.0])] == [bool, int, float]


def test_nan_has_one_encoding_and_minus_zero_is_not_zero() -> None:
    odd = value_pb2.Value.FromString(b"\x21\x01\x00\x00\x00\x00\x00\xf8\xff")
    assert math.isnan(odd.real)
    assert value_bytes(read_value(odd)) == value_bytes(math.nan) == value_bytes(-math.nan)
    assert math.copysign(1, again(-0.0)) == -1
    assert value_bytes(-0.0) != value_bytes(0.0)


@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1])
def test_an_integer_beyond_64_bits_is_refused(value: int) -> None:
    with pytest.raises(InvalidInput, match=r"does not fit into 64 bits; keep it as text or bytes"):
        to_proto({"deep": [value]})


def test_a_time_is_kept_to_the_microsecond_and_shown_in_utc() -> None:
    local = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert again(local) == local
    assert again(local).utcoffset() == timedelta(0)
    for edge in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        assert again(edge) == edge


@pytest.mark.parametrize("zone", [None, NoZone()])
def test_a_time_without_a_zone_is_refused(zone: tzinfo | None) -> None:
    with pytest.raises(InvalidInput, match=r"has no time zone; give it one"):
        to_proto(datetime(2026, 1, 2, tzinfo=zone))


def test_a_time_that_its_zone_carries_out_of_the_calendar_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"outside the years 1 to 9999"):
        to_proto(datetime.min.replace(tzinfo=timezone(timedelta(hours=14))))


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, date(2026, 1, 2), {1: "a"}, [print], "\ud800", {"\ud800": 1}])
def test_what_is_no_value_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        to_proto(value)


def test_subclasses_are_kept_as_what_they_stand_for() -> None:
    assert again([Colour.RED, Number.ONE]) == ["red", 1]
    assert [type(part) for part in again([Colour.RED, Number.ONE])] == [str, int]
    assert again((1, (2,))) == [1, [2]]
    assert again([bytearray(b"a"), memoryview(b"b")]) == [b"a", b"b"]


def test_an_item_id_is_a_reference() -> None:
    assert again(ItemId(ITEM)) == Reference(ITEM)
    assert str(Reference(ITEM, PARTY)) == f"{PARTY.hex()}/{ITEM.hex()}"
    with pytest.raises(InvalidInput, match=r"an item id of 16 bytes, and a party key of 32 or none"):
        Reference(b"short")


@pytest.mark.parametrize("inner", [0, "text", b"bytes", datetime(2026, 1, 2, tzinfo=UTC), Reference(ITEM), None])
def test_what_may_be_written_at_the_greatest_depth_may_be_read_there(inner: Any) -> None:
    assert again(nested(VALUE_DEPTH_MAX, inner)) == nested(VALUE_DEPTH_MAX, inner)


def test_deeper_is_refused_on_both_sides() -> None:
    with pytest.raises(TooLarge, match=r"nested more than 32 deep"):
        to_proto(nested(VALUE_DEPTH_MAX + 1))
    with pytest.raises(TooLarge):
        to_proto(nested(VALUE_DEPTH_MAX, {}))
    deep = value_pb2.Value(integer=0)
    for _ in range(VALUE_DEPTH_MAX + 1):
        deep = value_pb2.Value(list=value_pb2.ValueList(values=[deep]))
    with pytest.raises(InvalidMutation, match=r"nested more than 32 deep"):
        read_value(deep)


@pytest.mark.parametrize(
    ("proto", "reason"),
    [
        (value_pb2.Value(), "kind that this version does not know"),
        (value_pb2.Value(time_us=(1 << 63) - 1), "outside the years"),
        (value_pb2.Value(time_us=-(1 << 63)), "outside the years"),
        (value_pb2.Value(reference=value_pb2.Reference(item=b"short")), "an item id of 16 bytes"),
        (
            value_pb2.Value(map=value_pb2.ValueMap(fields=[value_pb2.ValueField(key="a", value=to_proto(1))] * 2)),
            "a key twice",
        ),
        (value_pb2.Value(list=value_pb2.ValueList(values=[value_pb2.Value()])), "does not know"),
    ],
)
def test_a_hostile_value_is_refused(proto: value_pb2.Value, reason: str) -> None:
    with pytest.raises(InvalidMutation, match=reason):
        read_value(proto)


@given(data=st.binary(max_size=60))
def test_whatever_is_read_has_one_encoding(data: bytes) -> None:
    try:
        value = read_value(value_pb2.Value.FromString(data))
    except (InvalidMutation, DecodeError):
        return
    assert value_bytes(again(value)) == value_bytes(value)


@given(st.text(max_size=40))
def test_the_bytes_of_a_short_text_by_hand_are_the_library_s(text: str) -> None:
    assert value_bytes(text) == to_proto(text).SerializeToString(deterministic=True)
