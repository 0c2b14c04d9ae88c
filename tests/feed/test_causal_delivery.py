"""The law of causal delivery: any order of arrival delivers exactly the blocks that a plain fixpoint finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from tests.budget import budget
from tests.feed.causal_reference import History, disagreements, histories, make_history

from antiphon.feed import causal_delivery
from antiphon.feed.causal_delivery import CausalQueue, Cursor, Standing, entry_standing
from antiphon.feed.header import NO_END, Entry

Link = Callable[[Entry], tuple[bytes, int]]
Rule = Callable[..., Standing]


@settings(max_examples=budget(300, 10_000))
@given(histories())
def test_the_core_delivers_what_the_reference_does_and_names_the_same_obstacles(history: History) -> None:
    assert disagreements(history) == []


def one_too_few(entry: Entry, position: int, end: int, link: Link, base: int = 0, lamport: int = 0) -> Standing:
    return entry_standing(entry, max(position - 1, 0), end, link, base, lamport)


def one_too_many(entry: Entry, position: int, end: int, link: Link, base: int = 0, lamport: int = 0) -> Standing:
    return entry_standing(entry, position + 1, end, link, base, lamport)


def any_hash(entry: Entry, position: int, end: int, link: Link, base: int = 0, lamport: int = 0) -> Standing:
    return entry_standing(entry, position, end, lambda named: (named.hash, link(named)[1]), base, lamport)


def any_lamport(entry: Entry, position: int, end: int, link: Link, base: int = 0, lamport: int = 0) -> Standing:
    return entry_standing(entry, position, end, lambda named: (link(named)[0], named.lamport), base, lamport)


def forks_ignored(entry: Entry, position: int, end: int, link: Link, base: int = 0, lamport: int = 0) -> Standing:
    return entry_standing(entry, position, NO_END, link, base, lamport)


def cut_not_awaited(entry: Entry, position: int, end: int, link: Link, base: int = 0, lamport: int = 0) -> Standing:
    return entry_standing(entry, end if entry.seq >= end else position, end, link, base, lamport)


def base_ignored(entry: Entry, position: int, end: int, link: Link, base: int = 0, lamport: int = 0) -> Standing:
    return entry_standing(entry, position, end, link)


def base_believed(entry: Entry, position: int, end: int, link: Link, base: int = 0, lamport: int = 0) -> Standing:
    return entry_standing(entry, position, end, link, base, NO_END)


def last_obstacle(
    self: CausalQueue, cursor: Cursor, seq: int, entries: Iterable[Entry], standing: Callable[[Entry], Standing]
) -> bool:
    return passes(self, cursor, seq, reversed(tuple(entries)), standing)


passes = CausalQueue.passes
RULES = (
    one_too_few,
    one_too_many,
    any_hash,
    any_lamport,
    forks_ignored,
    cut_not_awaited,
    base_ignored,
    base_believed,
)


def nothing(*args: Any) -> None:
    """A method that forgets to do anything."""


METHODS = {"passes": last_obstacle, "wake_waiters": nothing, "wake_waiters_where": nothing, "doubt": nothing}


def caught() -> bool:
    """True if some history shows the planted bug."""
    return any(disagreements(make_history(seed, 4, 4, 20)) for seed in range(3_000))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_wrong_rule_is_caught(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causal_delivery, "entry_standing", rule)
    assert caught()


@pytest.mark.parametrize("name", METHODS)
def test_a_wrong_method_of_the_queue_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CausalQueue, name, METHODS[name])
    assert caught()
