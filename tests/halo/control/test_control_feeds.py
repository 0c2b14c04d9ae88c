"""Control feeds from a store, whatever part of them came first."""

from __future__ import annotations

from pathlib import Path

from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.control.control_feeds import fold_control_feeds
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import Role
from antiphon.testing.parties import Rehearsal


def test_a_feed_whose_last_blocks_came_first_as_a_branch_is_taken_when_its_beginning_comes(tmp_path: Path) -> None:
    """A branch comes from its end on: the identity was looked for in a later block, and never again."""
    rehearsal = Rehearsal()
    alice, bob = rehearsal.founder("alice"), rehearsal.actor("bob")
    alice.admit(bob, Role.OWNER)
    bob.hear(alice)
    bob.join()
    bob.admit(rehearsal.actor("carol"), Role.READER)
    machine = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
    with FeedStore.open(tmp_path, durable=False) as store:
        for span in alice.raw:
            store.ingest(span)
        store.ingest_branch(bob.raw[1:])
        fold_control_feeds(machine, store)
        assert not machine.is_control(bob.control.key)
        store.ingest_branch(bob.raw[:1])
        fold_control_feeds(machine, store)
        assert machine.is_control(bob.control.key)
        assert not machine.strays_at(bob.control.key, 1), "it follows the history, and so is still to come"
        for span in bob.raw:
            store.ingest(span)
        fold_control_feeds(machine, store)
    alice.hear(bob)
    assert machine.state() == alice.state
