"""Child parties that lie about their parent, and the law: the same state in every order of arrival."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from tests.halo.member.family import Family, echo, family, roles

from antiphon.feed.header import Entry
from antiphon.halo.credentials.claims import MemberAdmission, Narrowing, Role
from antiphon.testing.parties import Rehearsal, pair_of

pytestmark = pytest.mark.slow

# -- hostile beginnings


def test_a_strangers_child_gives_the_stranger_nothing() -> None:
    club = Rehearsal("club")
    alice = club.founder("alice")
    trap = Rehearsal("trap", club)
    mallory = trap.founder("mallory", alice)
    mallory.admit(pair_of("puppet").key, Role.OWNER)
    mallory.open_data(pair_of("mallory's data"))
    assert roles(mallory, "mallory") == set()
    assert roles(mallory, "puppet") == set()
    assert roles(mallory, "alice") == {Role.OWNER}
    assert mallory.machine.judge_data(pair_of("mallory's data").key, 0, dict(mallory.machine.timeframe())) != ""
    assert {void.stamp.seq for void in mallory.voids} == {0, 1, 2}


def test_a_reader_of_the_parent_founds_nothing() -> None:
    played = family(("alice", "dave"))
    own = Rehearsal("dave's own", played.club)
    dave = own.founder("dave", played.parents["dave"])
    assert [void.reason for void in dave.voids] == ["its founder may not write in the parent party [rights.role]"]


def test_a_child_of_a_parent_that_begins_elsewhere_has_no_members() -> None:
    """Mallory's child names the club, but a feed of Mallory's own as the one that begins it."""
    club = Rehearsal("club")
    alice = club.founder("alice")
    false = Rehearsal("club")
    false.genesis_feed = pair_of("mallory laptop control").key
    mallory = false.actor("mallory")
    mallory.join(seen=[])
    trap = Rehearsal("trap", false)
    founder = trap.founder("mallory", mallory)
    assert founder.machine.parent is not None
    founder.machine.parent.add(alice.written)
    founder.machine.hear_parent()
    assert founder.state.members == ()


def test_a_child_of_a_child_has_no_members() -> None:
    """Who could be in the middle would decide over those below: a parent has no parent itself."""
    played = family(("alice", "bob"))
    below = Rehearsal("a game in the game", played.game)
    alice = below.founder("alice", played.children["alice"])
    assert alice.machine.parent is not None
    assert alice.machine.parent.parent is None
    assert alice.state.members == ()


def test_an_entry_about_the_parent_that_lies_ends_the_feed() -> None:
    played = family(("alice", "bob"))
    bob, alice = played.children["bob"], played.parents["alice"]
    alice.admit(pair_of("eve").key, Role.READER)
    block = alice.written[-1]
    played.children["alice"].attend(alice)
    seq = len(bob.written)
    lie = Entry(block.feed, block.seq, block.lamport + 5, block.hash)
    bob.write(MemberAdmission(pair_of("puppet").key, frozenset({Role.READER})), seen=[lie])
    played.children["alice"].hear(bob)
    reasons = [void.reason for void in played.children["alice"].voids]
    assert reasons == [f"block {seq}: its entry for feed {block.feed.hex()[:8]} tells a wrong lamport [feed.lamport]"]


# -- the law


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(("admit", "narrow", "demote", "echo", "leave", "guest", "tell", "listen", "back-date")),
        st.sampled_from(("alice", "bob", "carol")),
        st.sampled_from(("alice", "bob", "carol")),
        st.integers(0, 4),
        st.booleans(),
    ),
    max_size=8,
)


def _play(steps: list[tuple[str, str, str, int, bool]]) -> Family:
    played = family()
    for what, who, whom, number, below in steps:
        actor = played.children[who] if below else played.parents[who]
        other = played.children[whom] if below else played.parents[whom]
        if what == "admit":
            actor.admit(other, Role(1 + number % 3))
        elif what == "narrow":
            actor.narrow(other, cuts=dict.fromkeys(played.game.blocks(), number))
        elif what == "demote":
            actor.narrow(other, Role.READER)
        elif what == "leave":
            actor.narrow(actor, signers=[actor.identity])
        elif what == "echo":
            echo(played, who, {other.control.key: number, played.data(whom).key: number}, whom)
        elif what == "guest":
            actor.admit(pair_of(f"guest {number}").key, Role.OWNER)
        elif what == "listen":
            played.children[who].attend(played.parents[whom])
        elif what == "back-date":
            actor.narrow(other, seen=[])
        else:
            played.tell()
    return played


@settings(max_examples=60, deadline=None)
@given(_STEPS, st.randoms(use_true_random=False))
def test_law_the_childs_state_is_the_same_in_every_order_of_arrival(
    steps: list[tuple[str, str, str, int, bool]], chance: object
) -> None:
    played = _play(steps)
    order = [feed for feed, blocks in played.game.blocks().items() for _ in blocks]
    first = played.game.machine(order)
    for _ in range(3):
        chance.shuffle(order)  # type: ignore[attr-defined]
        other = played.game.machine(order)
        assert other.state() == first.state()
        for name in played.children:
            feed = played.data(name).key
            for seq in (0, 1, 3, 10):
                seen = dict(first.timeframe())
                assert other.judge_data(feed, seq, seen) == first.judge_data(feed, seq, seen)
                assert other.judge_data(feed, seq, {}) == first.judge_data(feed, seq, {})


@settings(max_examples=60, deadline=None)
@given(_STEPS)
def test_law_nobody_without_a_role_in_either_writes_past_a_cut(steps: list[tuple[str, str, str, int, bool]]) -> None:
    """Whoever everybody knows to be revoked has an end in the child, whatever they say that they have seen."""
    played = _play([step for step in steps if step[0] != "back-date"])
    played.tell()
    machine = played.children["alice"].machine
    members = {member.subject for member in machine.state().members}
    for name, actor in played.children.items():
        if actor.identity.key not in members:
            assert machine.authority.end(played.data(name).key) < 1 << 62, name
            assert machine.judge_data(played.data(name).key, 1 << 60, dict(actor.machine.timeframe())) != ""


def test_a_narrowing_of_the_parent_takes_no_grant_of_the_child() -> None:
    """A narrowing in the club that names a guest of the game takes nothing there."""
    played = family()
    played.children["alice"].admit(pair_of("guest").key, Role.EDITOR)
    played.parents["alice"].write(Narrowing(pair_of("guest").key, frozenset(), {}))
    played.tell()
    assert roles(played.children["bob"], "guest") == {Role.EDITOR}
