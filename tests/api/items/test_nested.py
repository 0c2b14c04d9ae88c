"""Lists and dicts that are values inside an item refuse to be changed in place: the change would be lost."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from antiphon import InvalidInput, Party


@pytest.mark.parametrize(
    "change",
    [
        lambda task: task["tags"].append("new"),
        lambda task: task["tags"].extend(["new"]),
        lambda task: task["tags"].insert(0, "new"),
        lambda task: task["tags"].remove("a"),
        lambda task: task["tags"].sort(),
        lambda task: task["tags"].__setitem__(0, "new"),
        lambda task: task["tags"].__delitem__(0),
        lambda task: task["rows"][0].update(n=2),
        lambda task: task["rows"][0].pop("n"),
        lambda task: task["rows"][0].__setitem__("n", 2),
    ],
)
def test_a_change_that_would_be_lost_is_refused(party: Party, change: Callable[[Any], object]) -> None:
    task = party.object({"tags": ["a", "b"], "rows": [{"n": 1}]})
    with pytest.raises(InvalidInput, match="cannot be changed in place; write a changed copy back"):
        change(task)
    assert task.value == {"tags": ["a", "b"], "rows": [{"n": 1}]}


def test_elements_of_a_list_item_are_closed_too(party: Party) -> None:
    rows = party.list([{"n": 1}, [1, 2]])
    with pytest.raises(InvalidInput, match="this dict is a value inside an item"):
        rows[0]["n"] = 2
    with pytest.raises(InvalidInput, match="this list is a value inside an item"):
        rows[1].append(3)


def test_adding_to_a_nested_list_by_operator_writes_it(party: Party) -> None:
    task = party.object({"tags": ["a"]})
    task["tags"] += ["b"]
    assert task.value == {"tags": ["a", "b"]}


def test_a_nested_value_reads_and_copies_like_any_other(party: Party) -> None:
    tags = party.object({"tags": ["a", {"n": 1}]})["tags"]
    assert tags == ["a", {"n": 1}]
    assert json.dumps(tags) == '["a", {"n": 1}]'
    for copied in (list(tags), copy.copy(tags), copy.deepcopy(tags), pickle.loads(pickle.dumps(tags))):
        assert type(copied) is list
        copied.append("b")
    assert tags == ["a", {"n": 1}]
