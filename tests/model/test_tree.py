"""Trees are derived from claims: the same for every order of arrival, without circles, orphans kept."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.stamp import Stamp
from antiphon.model.tree import Claim, components, derive, settle

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


def test_an_item_below_a_long_chain_is_settled_without_recursion() -> None:
    chain = [number.to_bytes(16, "big") for number in range(1, 5000)]
    above = dict(itertools.pairwise(chain))

    assert settle(chain[:1], lambda item: [(at(1), above[item])] if item in above else []) == {chain[0]: chain[1]}
