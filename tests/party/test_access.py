"""Access lists on whole peers: one list, one verdict, one state on all of them, whoever is hostile."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from tests.party.helpers import OBJECT, all_of, equal, guarding, reasons, sent, setting

from antiphon.core.errors import InvalidInput, InvalidMutation
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.keys import KeyPair
from antiphon.feed.header import Kind
from antiphon.halo.credentials.claims import Role
from antiphon.model.access import EVERYONE, NAMES_MAX, NOT_NAMED, NOT_THEIRS
from antiphon.model.message import Change, wrap, write_change
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow


@pytest.fixture
def carol(peers: Peers, bob: Peer) -> Peer:
    """Another editor."""
    return peers.add("carol")


# -- who may write


def test_only_those_named_may_write(peers: Peers, alice: Peer, bob: Peer, carol: Peer) -> None:
    note = alice.party.create("antiphon/object")
    assert note.writers is None
    note.restrict_writers(bob.key)
    peers.sync()
    bob.party.item(note.id).edit("set", "by", "bob")
    with pytest.raises(InvalidMutation, match="does not name its writer"):
        carol.party.item(note.id).edit("set", "by", "carol")
    (void,) = sent(carol, note, (Kind.MUTATION, setting("by", "carol")))
    equal(peers)
    assert note.value == {"by": "bob"}
    assert reasons(bob, void) == [NOT_NAMED]
    assert note.writers == tuple(sorted([alice.key, bob.key])) == tuple(note.metadata["access"])


def test_a_list_binds_nobody_before_it(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    peers.sync()
    bob.party.item(note.id).edit("set", "by", "bob")
    peers.sync()
    note.restrict_writers()
    equal(peers)
    assert note.value == {"by": "bob"}
    assert alice.party.refused() == []


def test_what_was_not_here_when_the_list_was_written_does_not_count(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    peers.sync()
    late = bob.party.item(note.id).edit("set", "by", "bob")
    note.restrict_writers()
    equal(peers)
    assert note.value == {}
    assert reasons(bob, late) == [NOT_NAMED]


@pytest.mark.parametrize(
    "what",
    [
        lambda item: item.edit("set", "a", 1),
        lambda item: item.delete(),
        lambda item: item.move(None),
        lambda item: item.set_metadata("name", "mine"),
        lambda item: item.embed(bytes(SYSTEM_ITEM)),
        lambda item: item.release(bytes(SYSTEM_ITEM)),
        lambda item: item.allow_all_writers(),
        lambda item: item.restrict_writers(),
    ],
)
def test_nothing_at_all_may_be_written_by_others(peers: Peers, alice: Peer, bob: Peer, what: Any) -> None:
    note = alice.party.create("antiphon/object")
    note.embed(bytes(SYSTEM_ITEM))
    note.restrict_writers()
    peers.sync()
    before = bob.party.item(note.id).snapshot()
    with pytest.raises(InvalidMutation):
        what(bob.party.item(note.id))
    assert bob.party.item(note.id).snapshot() == before
    assert bob.party.items() == [note.id]
    what(note)  # which its creator may
    equal(peers)


def test_nor_past_the_program(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    note.restrict_writers()
    peers.sync()
    other = bob.party.create("antiphon/object")
    before = note.snapshot()
    void = sent(
        bob,
        note,
        (Kind.CHANGE, write_change(Change(deleted=True))),
        (Kind.CHANGE, write_change(Change(parent=other.id))),
        (Kind.CHANGE, write_change(Change(forked_to=other.id))),
        (Kind.METADATA, wrap(Kind.METADATA, OBJECT.set(OBJECT.initial(), "name", "mine"))),
    )
    equal(peers)
    assert reasons(alice, *void) == [NOT_NAMED] * 4
    assert note.snapshot() == before


def test_a_list_again_and_opened_and_closed(peers: Peers, alice: Peer, bob: Peer) -> None:
    note = alice.party.create("antiphon/object")
    for nth, step in enumerate(
        (note.restrict_writers, note.restrict_writers, note.allow_all_writers, note.restrict_writers)
    ):
        step()
        peers.sync()
        if bob.party.item(note.id).writers is None:
            bob.party.item(note.id).edit("set", f"bob {nth}", 1)
        else:
            sent(bob, note, (Kind.MUTATION, setting(f"bob {nth}", "1")), seen=all_of(bob))
        peers.sync()
    equal(peers)
    assert [*note.value] == ["bob 2"]


def test_groups_are_named_like_identities(peers: Peers, alice: Peer, bob: Peer, carol: Peer) -> None:
    """Who comes into the group may write; who is put out of it may not, nor into the past."""
    assert alice.member is not None
    group = KeyPair.from_seed(sha256(b"a group").digest()).key
    note = alice.party.create("antiphon/object")
    note.restrict_writers(group)
    alice.member.admit_to_group(group, bob.key)
    peers.sync()
    bob.party.item(note.id).edit("set", "by", "bob")
    with pytest.raises(InvalidMutation, match="does not name"):
        carol.party.item(note.id).edit("set", "by", "carol")
    peers.sync()
    alice.member.remove_from_group(group, bob.key)
    (unseen,) = sent(bob, note, (Kind.MUTATION, setting("unseen", "1")))
    equal(peers)
    assert reasons(carol, unseen) == [NOT_NAMED]
    with pytest.raises(InvalidMutation, match="does not name"):
        bob.party.item(note.id).edit("set", "by", "bob again")
    assert note.value == {"by": "bob"}


def test_an_admission_to_a_group_that_came_meanwhile_counts_from_where_it_was_seen(
    peers: Peers, alice: Peer, bob: Peer
) -> None:
    assert alice.member is not None
    group = KeyPair.from_seed(sha256(b"a group").digest()).key
    note = alice.party.create("antiphon/object")
    note.restrict_writers(group)
    peers.sync()
    (early,) = sent(bob, note, (Kind.MUTATION, setting("early", "1")))
    alice.member.admit_to_group(group, bob.key)
    peers.sync()
    bob.party.item(note.id).edit("set", "now", "1")
    equal(peers)
    assert reasons(alice, early) == [NOT_NAMED]
    assert note.value == {"now": "1"}


# -- who may change it


def test_a_first_list_is_the_creators_or_an_owners(peers: Peers, alice: Peer, bob: Peer, carol: Peer) -> None:
    note = bob.party.create("antiphon/object")
    peers.sync()
    with pytest.raises(InvalidMutation, match="by owners and by those it names"):
        carol.party.item(note.id).restrict_writers()
    (void,) = sent(carol, note, (Kind.CHANGE, guarding([carol.key], [EVERYONE, bob.key])))
    equal(peers)
    assert reasons(alice, void) == [NOT_THEIRS]
    assert alice.party.item(note.id).writers is None
    alice.party.item(note.id).restrict_writers(carol.key)  # an owner; and Bob, who made it, is out
    equal(peers)
    with pytest.raises(InvalidMutation, match="does not name"):
        note.edit("set", "a", 1)
    carol.party.item(note.id).edit("set", "a", 2)
    equal(peers)


def test_a_junior_is_told_that_seniors_stay(peers: Peers, alice: Peer, bob: Peer, carol: Peer) -> None:
    note = bob.party.create("antiphon/object")
    note.restrict_writers(carol.key)
    peers.sync()
    with pytest.raises(InvalidInput, match="was not named after you"):
        carol.party.item(note.id).restrict_writers()
    assert carol.party.item(note.id).writers == note.writers
    carol.party.item(note.id).restrict_writers(bob.key, alice.key)
    equal(peers)
    assert note.writers == tuple(sorted([alice.key, bob.key, carol.key]))


# -- the past is not to be rewritten


def test_rule_8_a_removed_writer_rewrites_no_past(peers: Peers, alice: Peer, bob: Peer, carol: Peer) -> None:
    note = alice.party.create("antiphon/object")
    note.restrict_writers(bob.key, carol.key)
    peers.sync()
    bob.party.item(note.id).edit("set", "bob", "inside")
    peers.sync()
    for nth in range(9):
        note.edit("set", "n", nth)
    removal = note.restrict_writers(carol.key)
    void = sent(bob, note, (Kind.MUTATION, setting("bob", "past")), (Kind.METADATA, wrap(Kind.METADATA, b"")))
    assert max(void) < removal  # by the total order alone it would count
    peers.pass_on(bob, carol)  # who does not know of the removal yet
    assert carol.party.item(note.id).value["bob"] == "past"
    equal(peers)
    assert reasons(carol, *void) == [NOT_NAMED] * 2
    assert carol.party.item(note.id).value == {"bob": "inside", "n": 8}


def test_rule_7_a_removed_writer_removes_nobody(peers: Peers, alice: Peer, bob: Peer, carol: Peer) -> None:
    note = alice.party.create("antiphon/object")
    note.restrict_writers(bob.key)
    peers.sync()
    note.restrict_writers(carol.key)
    coup = guarding([bob.key], [alice.key, carol.key, EVERYONE])
    (void,) = sent(bob, note, (Kind.CHANGE, coup))
    peers.pass_on(bob, carol)
    equal(peers)
    assert reasons(carol, void) == [NOT_THEIRS]
    note.edit("set", "still", "alice")
    carol.party.item(note.id).edit("set", "and", "carol")
    equal(peers)
    assert note.writers == tuple(sorted([alice.key, carol.key]))


def test_two_named_together_do_not_remove_each_other(peers: Peers, alice: Peer, bob: Peer, carol: Peer) -> None:
    note = alice.party.create("antiphon/object")
    note.restrict_writers(bob.key, carol.key)
    peers.sync()
    void = sent(bob, note, (Kind.CHANGE, guarding([], [carol.key])), seen=all_of(bob))
    void += sent(carol, note, (Kind.CHANGE, guarding([], [bob.key])), seen=all_of(carol))
    equal(peers)
    assert reasons(alice, *void) == ["", ""]  # they may change the list, but not so
    assert note.writers == tuple(sorted([alice.key, bob.key, carol.key]))


@pytest.mark.parametrize("how", ["revoked", "demoted"])
def test_an_owner_who_is_one_no_more_changes_a_list_in_vain(peers: Peers, alice: Peer, bob: Peer, how: str) -> None:
    owner = peers.add("owner", Role.OWNER)
    assert alice.member is not None
    note = bob.party.create("antiphon/object")
    note.restrict_writers()
    peers.sync()
    seen = all_of(owner)
    if how == "demoted":
        alice.member.demote(owner.key, [Role.EDITOR])
    else:
        alice.member.revoke(owner.key)
    void = sent(
        owner,
        note,
        (Kind.CHANGE, guarding([owner.key], [bob.key, EVERYONE])),
        (Kind.MUTATION, setting("by", "owner")),
        seen=seen,
    )
    peers.pass_on(owner, bob)  # to whom she is an owner still
    assert bob.party.item(note.id).writers == (owner.key,)
    equal(peers)
    assert "" not in reasons(bob, *void)
    assert bob.party.item(note.id).writers == (bob.key,)
    note.edit("set", "by", "bob")
    equal(peers)


def test_who_leaves_with_a_cut_before_the_leaving_splits_nobody(peers: Peers, alice: Peer, bob: Peer) -> None:
    """It once counted if and only if it did not, and which of the two depended on how many changes there were."""
    note = alice.party.create("antiphon/object")
    note.restrict_writers(bob.key)
    peers.sync()
    sent(bob, note, (Kind.CHANGE, guarding([], [bob.key])), seen=all_of(bob))
    equal(peers)
    assert note.writers == (alice.key,)
    sent(bob, note, (Kind.CHANGE, guarding([bob.key])))
    equal(peers)
    assert note.writers == (alice.key,)


def test_a_writer_who_names_more_than_one_change_holds_is_removed_all_the_same(
    peers: Peers, alice: Peer, bob: Peer
) -> None:
    note = alice.party.create("antiphon/object")
    note.restrict_writers(bob.key)
    peers.sync()
    keys = [sha256(bytes([nth % 256, nth // 256])).digest() for nth in range(NAMES_MAX + 100)]
    sent(bob, note, *((Kind.CHANGE, guarding(some)) for some in (keys[:700], keys[700:])), seen=all_of(bob))
    peers.sync()
    assert len(note.writers or ()) == NAMES_MAX + 102
    note.restrict_writers()
    equal(peers)
    assert note.writers == (alice.key,)
