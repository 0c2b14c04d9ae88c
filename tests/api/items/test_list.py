"""A list is like Python's: slices, negative indices, methods and errors; concurrent changes are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from antiphon import InvalidInput, List, Party, Store, sync

VALUES = st.integers(0, 9) | st.text(max_size=2) | st.lists(st.integers(0, 3), max_size=2)
PLACES = st.integers(-7, 7)
SLICES = st.builds(slice, st.none() | PLACES, st.none() | PLACES, st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3]))
MANY = st.lists(VALUES, max_size=4)
Act = Callable[[Any], Any]


def act(make: Callable[..., Act], *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Act]:
    return st.builds(make, *arguments)


def added(it: Any, values: list[Any]) -> Any:
    it += values
    return it


ACTS = st.one_of(
    act(lambda index: lambda it: it[index], PLACES | SLICES),
    act(lambda index, value: lambda it: it.__setitem__(index, value), PLACES, VALUES),
    act(lambda index, values: lambda it: it.__setitem__(index, values), SLICES, MANY),
    act(lambda index: lambda it: it.__delitem__(index), PLACES | SLICES),
    act(lambda index, value: lambda it: it.insert(index, value), PLACES, VALUES),
    act(lambda value: lambda it: it.append(value), VALUES),
    act(lambda values: lambda it: it.extend(values), MANY),
    act(lambda values: lambda it: added(it, values) is it, MANY),
    act(lambda index: lambda it: it.pop(index), PLACES),
    act(lambda value: lambda it: it.remove(value), VALUES),
    act(lambda value: lambda it: it.index(value), VALUES),
    act(lambda value, start, stop: lambda it: it.index(value, start, stop), VALUES, PLACES, PLACES),
    act(lambda value: lambda it: it.count(value), VALUES),
    act(lambda value: lambda it: value in it, VALUES),
    act(lambda last: lambda it: it.sort(key=repr, reverse=last), st.booleans()),
    st.just(lambda it: it.pop()),
    st.just(lambda it: it.reverse()),
    st.just(lambda it: it.clear()),
    st.just(lambda it: it.extend(it)),
    st.just(lambda it: it.sort()),
    st.just(lambda it: len(it)),
    st.just(lambda it: list(reversed(it))),
    st.just(lambda it: list(it)),
)


def outcome(act: Act, it: Any) -> Any:
    try:
        return act(it)
    except (IndexError, ValueError, TypeError) as error:
        return type(error)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(begin=MANY, acts=st.lists(ACTS, max_size=12))
def test_a_list_does_what_pythons_does(party: Party, begin: list[Any], acts: list[Act]) -> None:
    ours, theirs = party.list(begin), list(begin)
    for one in acts:
        before = list(theirs)
        expected = outcome(one, theirs)
        assert outcome(one, ours) == expected
        if expected is TypeError:
            theirs = before  # Python's own sort may leave anything behind
        assert ours.value == theirs


def test_both_of_two_insertions_at_one_place_stay(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    books = party.list(["Emma", "Ulysses"])
    sync(ada, bob)
    there = theirs.item(books.id, List)
    books[1:1] = ["Middlemarch", "Persuasion"]
    there.insert(1, "Beowulf")
    sync(ada, bob)
    assert books.value == there.value
    assert sorted(books.value) == ["Beowulf", "Emma", "Middlemarch", "Persuasion", "Ulysses"]
    assert books.index("Persuasion") == books.index("Middlemarch") + 1, "they do not mix"


def test_what_is_written_to_an_element_goes_along_when_it_moves(
    ada: Store, bob: Store, party: Party, theirs: Party
) -> None:
    books = party.list(["c", "a", "b"])
    sync(ada, bob)
    there = theirs.item(books.id, List)
    books.sort()
    there[0] = "C"
    sync(ada, bob)
    assert books.value == there.value == ["a", "b", "C"]
    books.move(-1, 0)
    assert books.value == ["C", "a", "b"]
    with pytest.raises(IndexError, match="index 3 of a list of 3"):
        books.move(0, 3)


def test_concurrent_values_of_an_element_are_conflicts(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    books = party.list(["Emma"])
    sync(ada, bob)
    there = theirs.item(books.id, List)
    books[0], there[0] = "Ulysses", "Beowulf"
    sync(ada, bob)
    assert {value for _, value in books.conflicts(-1)} == {"Ulysses", "Beowulf"}
    assert books.conflicts(0) == there.conflicts(0)
    books[0] = "Emma"
    assert books.conflicts(0) == []


def test_each_method_is_one_change(party: Party) -> None:
    books = party.list(list("dacb"))
    undo = party.undo_stack()
    books.sort()
    books.reverse()
    books[::2] = ["x", "y"]
    del books[::3]
    books.clear()
    states = [["c", "y"], ["x", "c", "y", "a"], ["d", "c", "b", "a"], ["a", "b", "c", "d"], ["d", "a", "c", "b"]]
    for state in states:
        assert undo.undo()
        assert books.value == state
    undo.close()


def test_items_are_elements(party: Party) -> None:
    emma, ulysses = party.object({"title": "Emma"}), party.object({"title": "Ulysses"})
    books = party.list([emma, "a magazine", ulysses])
    assert books[0] == emma
    assert books[-1]["title"] == "Ulysses"
    assert [book for book in books if book == ulysses] == [ulysses]
    assert books.index(ulysses) == 2
    assert emma in books
    books.remove(emma)
    assert emma not in books
    assert books.pop() == ulysses


def test_a_list_can_be_edited_while_it_is_gone_through(party: Party) -> None:
    numbers = party.list([1, 2, 3, 4])
    for number in numbers:
        if number % 2:
            numbers.remove(number)
    assert numbers.value == [2, 4]


def test_equal_lists_are_the_same_item(party: Party) -> None:
    one = party.list([1])
    assert one == party.item(one.id)
    assert one != party.list([1])
    assert one != [1]
    assert one.value == [1]


def test_a_wrong_index_is_a_type_error_and_changes_nothing(party: Party) -> None:
    numbers = party.list([1, 2])
    with pytest.raises(TypeError):
        _ = numbers["0"]  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        numbers["0"] = 1  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="1 values for the 2 places"):
        numbers[::-1] = [1]
    assert numbers.value == [1, 2]


def test_a_list_is_there_however_little_it_holds(party: Party) -> None:
    empty = party.list()
    assert bool(empty)
    assert len(empty) == 0
    child = party.object(parent=empty)
    assert child.parent


def test_a_text_is_no_list_of_values(party: Party) -> None:
    for wrong in ("abc", b"abc", {"a": 1}, 5):
        with pytest.raises(InvalidInput, match="a list is made of several values, not of a"):
            party.list(wrong)  # type: ignore[arg-type]
    assert party.list(list("abc")).value == ["a", "b", "c"]
