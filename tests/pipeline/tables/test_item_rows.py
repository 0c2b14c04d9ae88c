"""What an item shows, as JSON for analysts. The stage itself is in `test_tables`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given

from antiphon.core.ids import ItemId
from antiphon.model.value import Reference
from antiphon.pipeline.tables.state_json import state_json
from antiphon.query.packed_json import pack, unpack
from antiphon.testing.query_strategies import values

NOON = datetime(2026, 1, 2, 12, tzinfo=timezone(timedelta(hours=2)))
NO_NUMBERS = [float("nan"), float("inf"), -float("inf")]


def shown(value: Any) -> str:
    return state_json(value).text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("δ", '"δ"'),
        ({"b": [1, 1.0, True], "a": ()}, '{"b":[1,1.0,true],"a":[]}'),
        (b"raw", '"726177"'),
        (NOON, '"2026-01-02T10:00:00+00:00"'),
        (Reference(b"r" * 16), f'"{"72" * 16}"'),
        (Reference(b"r" * 16, b"p" * 32), f'"{"70" * 32}/{"72" * 16}"'),
        (ItemId(b"r" * 16), f'"{"72" * 16}"'),
        (NO_NUMBERS, '["nan","inf","-inf"]'),
    ],
)
def test_every_value_has_a_form_in_json(value: Any, text: str) -> None:
    assert shown(value) == text
    assert shown({"in": [value]}) == '{"in":[' + text + "]}"
    assert json.loads(shown({"in": [value, *NO_NUMBERS, NOON.astimezone(UTC)]}))["in"] == [
        json.loads(text),
        "nan",
        "inf",
        "-inf",
        "2026-01-02T10:00:00+00:00",
    ]


@given(values)
def test_what_is_said_to_be_exact_gives_the_value_back(value: Any) -> None:
    made = state_json(value)

    assert made.exact == (pack(unpack(made.text)) == pack(value))
