"""Batches of the API: results of queries inside them, and their cost."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from antiphon import Object, Party, Store, prop, sync
from antiphon.api.query import queries
from antiphon.core.errors import TooLarge


def numbers(party: Party) -> list[int]:
    return sorted(item["n"] for item in party.query(prop("n").exists()).of(Object))


def test_a_query_in_a_batch_finds_what_was_there_before_it(party: Party) -> None:
    one = party.object({"n": 1})
    with party.batch():
        one["n"] = 2
        other = party.object({"n": 3})
        assert (one["n"], other["n"]) == (2, 3)
        assert [item.id for item in party.query(prop("n") == 1)] == [one.id]
        assert len(party.query(prop("n") >= 2)) == 0
        one["n"] = 4
        assert [item.id for item in party.query(prop("n") == 1)] == [one.id], "the second query in it too"
    assert numbers(party) == [3, 4]


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_batch_did_before_a_query_stays_or_goes_with_it(ada: Store, party: Party, fails: bool) -> None:
    one, listed, text = party.object({"n": 1}), party.list([1]), party.text("a")
    before = [item.snapshot() for item in (one, listed, text)]

    def work() -> None:
        with party.batch():
            one["n"] = 2
            listed.append(2)
            text.append("b")
            one.name = "One"
            one.restrict_writers()
            assert len(party.query(prop("n") == 1)) == 1
            assert (one["n"], listed.value, text.value, one.name) == (2, [1, 2], "ab", "One")
            listed.append(3)
            if fails:
                raise ZeroDivisionError

    if fails:
        with pytest.raises(ZeroDivisionError):
            work()
        assert [item.snapshot() for item in (one, listed, text)] == before
    else:
        work()
        assert (one["n"], listed.value, text.value, one.name) == (2, [1, 2, 3], "ab", "One")
    held = [item.snapshot() for item in (one, listed, text)]
    party.processor.pause()
    party.processor.resume()
    assert [item.snapshot() for item in (one, listed, text)] == held
    assert len(party.query(prop("n") == (1 if fails else 2))) == 1
    assert len(one.history()) == len({event.stamp for event in one.history()})


def test_a_batch_saves_nothing_unless_it_is_asked(party: Party) -> None:
    """Otherwise the batch would cost many times as much as the same writes without it."""
    item = party.object({"n": 0})
    for number in range(3):
        with party.batch():
            item["n"] = number
    with party.processor.locked() as engine:
        assert bytes(item.id) in engine.cache.dirty
        assert engine.items.load([bytes(item.id)]) == {}
    assert numbers(party) == [2]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["set", "query", "new", "name"])), max_size=6),
        min_size=1,
        max_size=4,
    )
)
def test_queries_in_batches_change_nothing(party: Party, batches: list[list[tuple[int, str]]]) -> None:
    """Batches have the same result with and without queries; a query finds the state at the start."""
    items = [party.object({"n": number}) for number in range(3)]
    plain = {item.id: dict(item.value) for item in items}
    for steps in batches:
        then = {key: dict(value) for key, value in plain.items()}
        with party.batch():
            for which, step in steps:
                if step == "set":
                    plain[items[which].id]["n"] += 10
                    items[which]["n"] += 10
                elif step == "new":
                    made = party.object({"n": 100 + which})
                    plain[made.id] = {"n": 100 + which}
                elif step == "name":
                    items[which].name = str(which)
                else:
                    found = {key for key in then if then[key]["n"] >= 10}
                    assert {item.id for item in party.query(prop("n") >= 10)} & plain.keys() == found
                assert all(party.item(key).value == value for key, value in plain.items())
    party.processor.pause()
    party.processor.resume()
    assert all(party.item(key).value == value for key, value in plain.items())


def test_what_came_from_others_is_found_in_a_batch(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    item = party.object({"n": 1})
    sync(ada, bob)
    theirs.item(item.id, Object)["n"] = 2
    sync(ada, bob)
    with party.batch():
        item["n"] = 3
        assert [found.id for found in party.query(prop("n") == 2)] == [item.id]
        assert item["n"] == 3
    sync(ada, bob)
    assert theirs.item(item.id).snapshot() == item.snapshot()


def test_a_closure_that_is_too_large_is_told(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    top = party.object()
    for _ in range(5):
        party.object(parent=top)
    assert len(top.closure()) == 6
    monkeypatch.setattr(queries, "CLOSURE_MAX", 4)
    with pytest.raises(TooLarge, match="more than 4 items belong to it"):
        top.closure()
