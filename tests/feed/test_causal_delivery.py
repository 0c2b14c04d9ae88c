"""The law of causal delivery: any order of arrival delivers exactly the blocks that a plain fixpoint finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from tests.budget import budget
from tests.feed.causal_reference import History, disagreements, hash_of, histories, link_of, make_history

from antiphon.feed import causal_delivery
from antiphon.feed.branches import BranchBlock, Branches
from antiphon.feed.causal_delivery import CausalQueue, Cursor, Link, Shown, Standing, entry_standing
from antiphon.feed.header import NO_END, Entry

Rule = Callable[..., Standing]


@settings(max_examples=budget(300, 10_000))
@given(histories())
def test_the_core_delivers_what_the_reference_does_and_names_the_same_obstacles(history: History) -> None:
    assert disagreements(history) == []


def one_too_few(entry: Entry, position: int, link: Link, shown: Shown, base: int = 0, lamport: int = 0) -> Standing:
    return entry_standing(entry, max(position - 1, 0), link, shown, base, lamport)


def one_too_many(entry: Entry, position: int, link: Link, shown: Shown, base: int = 0, lamport: int = 0) -> Standing:
    return entry_standing(entry, position + 1, link, shown, base, lamport)


def any_hash(entry: Entry, position: int, link: Link, shown: Shown, base: int = 0, lamport: int = 0) -> Standing:
    return entry_standing(entry, position, lambda named: (named.hash, link(named)[1]), shown, base, lamport)


def any_lamport(entry: Entry, position: int, link: Link, shown: Shown, base: int = 0, lamport: int = 0) -> Standing:
    return entry_standing(entry, position, lambda named: (link(named)[0], named.lamport), shown, base, lamport)


def claims_believed(entry: Entry, position: int, link: Link, shown: Shown, base: int = 0, lamport: int = 0) -> Standing:
    known = shown(entry) is not None
    return entry_standing(entry, position, link, lambda named: named.lamport if known else None, base, lamport)


def branches_ignored(
    entry: Entry, position: int, link: Link, shown: Shown, base: int = 0, lamport: int = 0
) -> Standing:
    return entry_standing(entry, position, link, lambda named: None, base, lamport)


def base_ignored(entry: Entry, position: int, link: Link, shown: Shown, base: int = 0, lamport: int = 0) -> Standing:
    return entry_standing(entry, position, link, shown)


def base_believed(entry: Entry, position: int, link: Link, shown: Shown, base: int = 0, lamport: int = 0) -> Standing:
    return entry_standing(entry, position, link, shown, base, NO_END)


def above_the_root_a_fault(
    entry: Entry, position: int, link: Link, shown: Shown, base: int = 0, lamport: int = 0
) -> Standing:
    found = entry_standing(entry, position, link, shown, base, lamport)
    return Standing.LIE if found is Standing.WAITING and entry.seq < base else found


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
    claims_believed,
    branches_ignored,
    base_ignored,
    base_believed,
    above_the_root_a_fault,
)


def nothing(*args: Any) -> None:
    """A method that forgets to do anything."""


METHODS = {
    "passes": last_obstacle,
    "wake_waiters": nothing,
    "_wake_grown": nothing,
    "wake_all": nothing,
    "wake_ended": nothing,
    "doubt": nothing,
}


def caught() -> bool:
    """True if some history shows the planted bug."""
    return any(disagreements(make_history(seed, 4, 4, 30)) for seed in range(3_000))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_wrong_rule_is_caught(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causal_delivery, "entry_standing", rule)
    assert caught()


@pytest.mark.parametrize("name", METHODS)
def test_a_wrong_method_of_the_queue_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CausalQueue, name, METHODS[name])
    assert caught()


def unbound(self: Branches, before: Entry, position: int, link: Link, base: int, lamport: int) -> int | None:
    return None if bound(self, before, position, link, base, lamport) is None else NO_END


def dangling(self: Branches, before: Entry, position: int, link: Link, base: int, lamport: int) -> int | None:
    return bound(self, before, position, link, base, lamport) or 0


def blind(self: Branches, before: Entry, position: int, link: Link, base: int, lamport: int) -> int | None:
    return bound(self, before, position, link, 0, 0)


bound = Branches._bound


@pytest.mark.parametrize("rule", [unbound, dangling, blind], ids=lambda rule: rule.__name__)
def test_a_wrong_bound_of_a_branch_is_caught(rule: Callable[..., int | None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Branches, "_bound", rule)
    assert caught()


def hasty(self: Branches, *args: Any) -> bool:
    return show(self, *args[:6])


show = Branches.show


def test_taking_history_to_come_for_a_branch_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Branches, "show", hasty)
    assert caught()


def test_a_long_branch_is_looked_at_about_once_for_each_block() -> None:
    queue = CausalQueue(lambda _: 0)
    branches, looks, feed = Branches(queue), 0, bytes([1]) * 32
    blocks = [
        BranchBlock(feed, seq, hash_of(feed, seq, 1), hash_of(feed, seq - 1, 1), 1 + seq, ()) for seq in range(200)
    ]
    branches.add(reversed(blocks))

    def advance(name: bytes) -> Iterable[bytes]:
        nonlocal looks
        looks += 1
        found = branches.show(branches.blocks[name], lambda _: Standing.COVERED, 0, link_of)
        return [name] if found else []

    assert len(list(queue.deliver(advance))) == 200
    assert looks <= 400
