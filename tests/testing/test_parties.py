"""The kit for parties in memory does what it says: repeatable, and in every order."""

from __future__ import annotations

from antiphon.halo.credentials.claims import Role
from antiphon.testing.parties import Rehearsal, pair_of


def test_a_rehearsal_depends_on_names_alone() -> None:
    digests = set()
    for _ in range(2):
        rehearsal = Rehearsal()
        alice = rehearsal.founder("alice")
        alice.admit(rehearsal.actor("bob"), Role.EDITOR)
        digests.add(alice.state.digest)
    assert len(digests) == 1


def test_orders_are_all_the_ways_to_interleave_feeds() -> None:
    rehearsal = Rehearsal()
    alice, bob = rehearsal.founder("alice"), rehearsal.actor("bob")
    alice.admit(bob, Role.EDITOR)
    bob.hear(alice)
    bob.join()
    orders = list(rehearsal.orders())
    assert len(orders) == len(set(orders)) == 3
    assert all(sorted(order) == sorted(orders[0]) for order in orders)


def test_key_pairs_are_told_apart_by_name() -> None:
    assert pair_of("a").key == pair_of("a").key != pair_of("b").key
