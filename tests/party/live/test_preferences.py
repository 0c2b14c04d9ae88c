"""Preferences and configuration in a `MetaStore`: JSON values by scope and key, bounded, given back as they were."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import InvalidInput, StoreError, TooLarge
from antiphon.core.keys import PublicKey
from antiphon.party.store import meta_store
from antiphon.party.store.meta_store import MetaStore

PARTY, OTHER = PublicKey(b"p" * 32), PublicKey(b"q" * 32)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MetaStore]:
    with MetaStore.open(tmp_path / "meta.db") as store:
        yield store


def test_preferences_are_kept_by_scope(store: MetaStore) -> None:
    store.subscribe(PARTY)
    store.set("theme", "dark")
    store.set("theme", "light", party=PARTY)
    store.set("size", 12)

    assert store.get("theme", "none") == "dark"
    assert store.get("theme", "none", party=PARTY) == "light"
    assert store.get("size", 1, party=PARTY) == 1, "a party does not fall back to what is set for everything"
    assert store.get("theme", "none", party=OTHER) == "none"
    assert store.preferences() == {"size": 12, "theme": "dark"}
    assert list(store.preferences()) == ["size", "theme"]

    assert store.unset("theme") is True
    assert store.unset("theme") is False
    assert store.preferences() == {"size": 12}
    assert store.preferences(PARTY) == {"theme": "light"}
    with pytest.raises(StoreError, match="subscribe"):
        store.set("theme", "dark", party=OTHER)


def test_a_value_has_the_type_of_its_default(store: MetaStore) -> None:
    store.set("whole", 3)
    store.set("flag", True)

    assert store.get("whole") == 3
    ratio = store.get("whole", 0.5)
    assert (ratio, type(ratio)) == (3.0, float)
    for key, default in (("flag", 1), ("whole", True), ("whole", "3")):
        with pytest.raises(InvalidInput, match="default of its own type"):
            store.get(key, default)


def test_a_value_that_was_read_can_be_changed_without_harm(store: MetaStore) -> None:
    store.set("list", [1])
    store.get("list", [0]).append(2)
    assert store.get("list", [0]) == [1]


def nested(depth: int) -> Any:
    return 0 if depth == 1 else [nested(depth - 1)]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (None, InvalidInput),
        (math.nan, InvalidInput),
        (math.inf, InvalidInput),
        (b"bytes", InvalidInput),
        ({1: 2}, InvalidInput),
        ((1, 2), InvalidInput),
        ({"a": {1, 2}}, InvalidInput),
        ("\ud800", InvalidInput),
        ("x" * (meta_store.PREFERENCE_VALUE_SIZE_MAX - 1), TooLarge),
        (nested(meta_store.PREFERENCE_DEPTH_MAX + 1), TooLarge),
        (nested(900), TooLarge),
        ([10**5000], InvalidInput),
    ],
)
def test_what_is_no_small_json_value_is_refused(store: MetaStore, value: object, error: type[InvalidInput]) -> None:
    with pytest.raises(error, match="'key'"):
        store.set("key", value)
    assert store.preferences() == {}


def test_a_value_that_holds_itself_is_refused(store: MetaStore) -> None:
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(InvalidInput, match="no JSON value"):
        store.set("ring", ring)


@pytest.mark.parametrize("key", ["", "x" * 129, "ä" * 65, "a\nb", "\ud800", "\x00"])
def test_keys_are_short_and_printable(store: MetaStore, key: str) -> None:
    for act in (lambda: store.set(key, 1), lambda: store.get(key, 1), lambda: store.unset(key)):
        with pytest.raises(InvalidInput, match="printable"):
            act()


def test_limits_are_reached_but_not_passed(store: MetaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.set("large", "x" * (meta_store.PREFERENCE_VALUE_SIZE_MAX - 2))
    store.set("deep", nested(meta_store.PREFERENCE_DEPTH_MAX))
    store.set("k" * 128, 1)

    monkeypatch.setattr(meta_store, "PREFERENCES_PER_SCOPE_MAX", 3)
    with pytest.raises(TooLarge, match="3 preferences"):
        store.set("fourth", 1)
    store.set("deep", 1)
    assert store.get("deep", 0) == 1


Json = (
    st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=12,
    ).filter(lambda value: value is not None)
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetaStore]:
    with MetaStore.open(tmp_path_factory.mktemp("shared") / "meta.db") as store:
        yield store


@given(value=Json)
def test_every_json_value_comes_back(shared: MetaStore, value: Any) -> None:
    shared.set("value", value)

    back = shared.get("value")

    assert back == value
    assert json.dumps(back, sort_keys=True) == json.dumps(value, sort_keys=True), "types and signs as well"
    assert shared.get("value", value) == value
    assert shared.preferences() == {"value": value}
