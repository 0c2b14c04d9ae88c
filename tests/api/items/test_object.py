"""An object is like a dict: the same operations give the same result, and each writes no more than it must."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from antiphon import InvalidInput, Object, Party, Store, sync
from antiphon.api.items.object import Map

KEYS = st.sampled_from("abcd")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=4,
)
Act = Callable[[Any], Any]


def act(make: Callable[..., Act], *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Act]:
    return st.builds(make, *arguments)


def merged(it: Any, values: dict[str, Any]) -> Any:
    it |= values
    return it


ACTS = st.one_of(
    act(lambda key, value: lambda it: it.__setitem__(key, value), KEYS, VALUES),
    act(lambda key: lambda it: it.__delitem__(key), KEYS),
    act(lambda key: lambda it: it[key], KEYS),
    act(lambda key: lambda it: it.get(key, 7), KEYS),
    act(lambda key: lambda it: key in it, KEYS),
    act(lambda key: lambda it: it.pop(key), KEYS),
    act(lambda key: lambda it: it.pop(key, "none"), KEYS),
    act(lambda key, value: lambda it: it.setdefault(key, value), KEYS, VALUES),
    act(lambda values: lambda it: it.update(values), st.dictionaries(KEYS, VALUES, max_size=3)),
    act(lambda values: lambda it: it.update(list(values.items())), st.dictionaries(KEYS, VALUES, max_size=3)),
    act(lambda values: lambda it: merged(it, values) is it, st.dictionaries(KEYS, VALUES, max_size=3)),
    act(lambda key, value: lambda it: it[key].__setitem__("z", value), KEYS, VALUES),
    act(lambda key: lambda it: it[key].update(x=1, y=[2]), KEYS),
    act(lambda key: lambda it: it[key].pop("z", None), KEYS),
    act(lambda key: lambda it: isinstance(it[key], list) or it[key].clear(), KEYS),  # a list is a value of its own
    act(lambda key: lambda it: it.setdefault(key, {}).__setitem__("deep", 1), KEYS),
    st.just(lambda it: it.clear()),
    st.just(lambda it: len(it)),
    st.just(lambda it: sorted(it)),
    st.just(lambda it: sorted(it.keys())),
    st.just(lambda it: {key: plain(value) for key, value in it.items()}),
    st.just(lambda it: dict(zip(it, map(plain, it.values()), strict=True))),
)


def plain(value: Any) -> Any:
    return value.plain() if isinstance(value, Map) else value


def outcome(act: Act, it: Any) -> Any:
    try:
        return plain(act(it))
    except Exception as error:
        return type(error) if isinstance(error, KeyError) else Exception


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=st.lists(ACTS, max_size=12))
def test_an_object_does_what_a_dict_does(party: Party, acts: list[Act]) -> None:
    ours, theirs = party.object(), dict[str, Any]()
    for one in acts:
        kept = {key: dict(value) if isinstance(value, dict) else value for key, value in theirs.items()}
        expected = outcome(one, theirs)
        if expected is Exception:  # `5["z"] = 1` and the like: both refuse it, each in its own words
            theirs = kept
        assert outcome(one, ours) == expected
        assert ours.value == theirs


def test_maps_write_through_one_path_at_a_time(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    task = party.object({"owner": {"name": "Ada", "phone": {"home": "1"}}})
    sync(ada, bob)
    there = theirs.item(task.id, Object)

    task["owner"]["name"] = "Ada L."
    there["owner"]["phone"]["home"] = "2"
    there["owner"].update(mail="a@b", age=36)
    sync(ada, bob)

    assert task.value == there.value
    assert task.value == {"owner": {"name": "Ada L.", "phone": {"home": "2"}, "mail": "a@b", "age": 36}}


def test_a_map_is_compared_and_shown_like_a_dict(party: Party) -> None:
    task = party.object({"owner": {"name": "Ada"}, "maker": {"name": "Ada"}})
    owner = task["owner"]
    assert owner == {"name": "Ada"}
    assert owner == task["maker"]
    assert owner != {"name": "Bob"}
    assert owner != "Ada"
    assert repr(owner) == "{'name': 'Ada'}"
    assert {**owner} == {"name": "Ada"}
    with pytest.raises(TypeError):
        hash(owner)
    del task["owner"]
    with pytest.raises(KeyError, match="owner"):
        len(owner)


def test_maps_and_objects_can_be_written_into_others(party: Party) -> None:
    task = party.object({"owner": {"name": "Ada"}})
    other = party.object(task)
    other["maker"] = task["owner"]
    other.update(task["owner"])
    assert other.value == {"owner": {"name": "Ada"}, "maker": {"name": "Ada"}, "name": "Ada"}


def test_what_was_popped_is_a_value_of_its_own(party: Party) -> None:
    task = party.object({"owner": {"name": "Ada"}})
    owner = task.pop("owner")
    assert owner == {"name": "Ada"}
    assert type(owner) is dict
    assert task.value == {}
    with pytest.raises(KeyError, match="it is empty"):
        task.popitem()


def test_items_can_be_edited_while_they_are_gone_through(party: Party) -> None:
    task = party.object({"a": 1, "b": 2, "c": {"d": 3}})
    for key, value in task.items():
        if value == 1:
            del task["b"]
        task[f"{key}{key}"] = True
    for key in task:
        del task[key]
    assert task.value == {}


def test_an_update_and_a_clear_are_one_change_each(party: Party) -> None:
    task = party.object({"a": 1})
    undo = party.undo_stack()
    task.update(b=2, c=3)
    task.clear()
    assert undo.undo()
    assert task.value == {"a": 1, "b": 2, "c": 3}
    assert undo.undo()
    assert task.value == {"a": 1}
    undo.close()


def test_equal_objects_are_the_same_item(party: Party) -> None:
    one, other = party.object({"a": 1}), party.object({"a": 1})
    assert one == party.item(one.id)
    assert one != other
    assert one != {"a": 1}
    assert one.value == other.value == {"a": 1}
    assert len({one, party.item(one.id), other}) == 2


def test_sets_and_counters(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    task = party.object({"votes": {}})
    task.add("tags", "urgent")
    task.increment(("votes", "yes"), 2)
    sync(ada, bob)
    there = theirs.item(task.id, Object)
    there.discard("tags", "urgent")
    there.add("tags", "home")
    there.increment(("votes", "yes"))
    task.add("tags", "urgent")
    task.increment(("votes", "yes"), 10)
    sync(ada, bob)
    assert task.value == there.value == {"votes": {"yes": 13}, "tags": ["home", "urgent"]}


def test_concurrent_values_are_conflicts_until_somebody_decides(
    ada: Store, bob: Store, party: Party, theirs: Party
) -> None:
    task = party.object({"title": "Plan"})
    sync(ada, bob)
    there = theirs.item(task.id, Object)
    assert task.conflicts("title") == []
    task["title"], there["title"] = "Draft", "Sketch"
    sync(ada, bob)
    assert {value for _, value in task.conflicts("title")} == {"Draft", "Sketch"}
    assert task.conflicts("title") == there.conflicts("title")
    assert task["title"] == there["title"] == task.conflicts("title")[0][1]
    there["title"] = "Final"
    sync(ada, bob)
    assert (task["title"], task.conflicts("title")) == ("Final", [])


def test_what_is_no_value_or_no_key_is_refused(party: Party) -> None:
    task = party.object({"a": 1})
    with pytest.raises(InvalidInput, match="a object is no value"):
        task["b"] = object()
    with pytest.raises(InvalidInput, match="no time zone"):
        task["b"] = datetime(2026, 1, 1)  # noqa: DTZ001
    task["b"] = datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(KeyError):
        _ = task[5]  # type: ignore[index]
    with pytest.raises(InvalidInput):
        task[5] = 1  # type: ignore[index]
    assert task.value == {"a": 1, "b": datetime(2026, 1, 1, tzinfo=UTC)}


def test_a_key_that_is_missing_does_not_spoil_a_batch(party: Party) -> None:
    task = party.object({"a": 1})
    with party.batch():
        with pytest.raises(KeyError, match="b → c"):
            task.unset(("b", "c"))
        assert task.pop("b", 5) == 5
        task["a"] = 2
    assert task.value == {"a": 2}


def test_paths_are_written_and_taken_away(party: Party) -> None:
    task = party.object()
    task.set(("owner", "name"), "Ada")
    task.set("done", False)
    assert task.at_path(("owner", "name")) == "Ada"
    assert task.value == {"owner": {"name": "Ada"}, "done": False}
    task.unset(("owner", "name"))
    task.unset("done")
    assert task.value == {"owner": {}}


def test_an_object_is_there_however_little_it_holds(party: Party) -> None:
    empty = party.object({"inside": {}})
    assert not empty["inside"], "a map inside it is a value, like a dict"
    del empty["inside"]
    assert bool(empty)
    assert len(empty) == 0


def test_an_object_is_copied_into_another(party: Party) -> None:
    one = party.object({"a": 1, "deep": {"b": 2}})
    assert party.object(one).value == one.value
    assert party.object(one["deep"]).value == {"b": 2}
