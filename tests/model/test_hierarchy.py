"""Trees are derived from claims: the same for every order of arrival, without circles, orphans kept."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, strategies as st

from antiphon.core.stamp import Stamp
from antiphon.model.hierarchy import Claim, components, derive, lineage, settle

IDS = [bytes([number]) * 16 for number in range(6)]
A, B, C = IDS[:3]


def at(lamport: int) -> Stamp:
    return Stamp(lamport, b"f" * 32, lamport)


def test_rule_16_its_counterexample_has_one_result() -> None:
    claims: list[Claim] = [(at(5), A, B), (at(6), B, A), (at(7), B, C), (at(3), C, A)]
    results = [derive(order) for order in itertools.permutations(claims)]
    assert all(result == {C: A, A: B} for result in results)


def test_the_last_claim_moves_an_item_and_orphans_are_kept() -> None:
    assert derive([(at(1), A, B), (at(2), A, C)]) == {A: C}
    assert derive([(at(1), A, B), (at(2), A, b"")]) == {}


@given(st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from([*IDS, b""])), max_size=20), st.randoms())
def test_any_order_gives_the_same_tree_without_circles(edges: list[tuple[bytes, bytes]], chance: object) -> None:
    claims: list[Claim] = [(at(number), child, parent) for number, (child, parent) in enumerate(edges, start=1)]
    tree = derive(claims)
    chance.shuffle(claims)  # type: ignore[attr-defined]
    assert derive(claims) == tree
    for item in tree:
        seen = [item]
        while (above := tree.get(seen[-1])) is not None:
            assert above not in seen
            seen.append(above)


edges_of_claims = st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from([*IDS, b""])), max_size=20)


@given(edges_of_claims, st.sets(st.sampled_from(IDS)))
def test_settling_some_items_agrees_with_deriving_all_of_them(
    edges: list[tuple[bytes, bytes]], some: set[bytes]
) -> None:
    claims: list[Claim] = [(at(number), child, parent) for number, (child, parent) in enumerate(edges, start=1)]
    tree = derive(claims)

    found = settle(some, lambda item: [(stamp, parent) for stamp, child, parent in claims if child == item])

    assert some <= set(found)
    assert found == {item: tree.get(item, b"") for item in found}


@given(edges_of_claims, st.sampled_from(IDS))
def test_a_lineage_is_what_the_tree_has_above_an_item(edges: list[tuple[bytes, bytes]], item: bytes) -> None:
    claims: list[Claim] = [(at(number), child, parent) for number, (child, parent) in enumerate(edges, start=1)]
    tree = derive(claims)
    above = [item]
    while above[-1] in tree:
        above.append(tree[above[-1]])

    found = lineage(item, lambda one: [(stamp, parent) for stamp, child, parent in claims if child == one])

    assert found == above[1:]


def test_a_lineage_asks_for_each_item_no_more_than_twice() -> None:
    chain = numbered(1000)
    above, asked = dict(itertools.pairwise(chain)), []

    def claims_of(item: bytes) -> list[tuple[Stamp, bytes]]:
        asked.append(item)
        return [(at(1), above[item])] if item in above else []

    assert lineage(chain[0], claims_of) == chain[1:]
    assert len(asked) == 2 * len(chain)


@given(edges_of_claims)
def test_components_are_the_items_that_reach_each_other(edges: list[tuple[bytes, bytes]]) -> None:
    above = {item: {item} for item in IDS}
    for _ in IDS:
        for child, parent in edges:
            for reached in above.values():
                if child in reached and parent:
                    reached.add(parent)
    wanted = {frozenset(other for other in IDS if other in above[item] and item in above[other]) for item in IDS}

    found = components(IDS, lambda item: [(at(1), parent) for child, parent in edges if child == item])

    assert sorted(map(sorted, found)) == sorted(map(sorted, wanted))


def naive(claims: list[Claim]) -> dict[bytes, bytes]:
    """What a tree is, as the rule says it."""
    tree: dict[bytes, bytes] = {}
    for _, child, parent in sorted(claims):
        above, circle = parent, False
        while above and not circle:
            circle, above = above == child, tree.get(above, b"")
        if not circle:
            tree[child] = parent
    return {child: parent for child, parent in tree.items() if parent}


def numbered(count: int) -> list[bytes]:
    return [number.to_bytes(16, "big") for number in range(1, count + 1)]


def test_a_long_ring_is_a_chain_without_its_last_claim() -> None:
    ring = numbered(3000)
    claims: list[Claim] = [
        (at(number), child, parent) for number, (parent, child) in enumerate(itertools.pairwise(ring))
    ]
    tree = derive([*claims, (at(len(ring)), ring[0], ring[-1])])
    assert tree == {child: parent for _, child, parent in claims} == naive(claims)


@pytest.mark.parametrize("seed", range(8))
def test_deep_trees_are_derived_as_the_rule_says(seed: int) -> None:
    """Chains that hang themselves under each other, at any place, also with claims that would close circles."""
    chance = random.Random(seed)
    ids = numbered(chance.choice([300, 900]))
    moves = [(child, parent) for parent, child in itertools.pairwise(ids)]
    moves += [(chance.choice(ids), chance.choice([*ids, b""])) for _ in range(400)]
    claims: list[Claim] = [(at(number), child, parent) for number, (child, parent) in enumerate(moves, start=1)]
    assert derive(claims) == naive(claims)


def test_an_item_below_a_long_chain_is_settled_without_recursion() -> None:
    chain = [number.to_bytes(16, "big") for number in range(1, 5000)]
    above = dict(itertools.pairwise(chain))

    assert settle(chain[:1], lambda item: [(at(1), above[item])] if item in above else []) == {chain[0]: chain[1]}
