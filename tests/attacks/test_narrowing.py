"""What narrows can always be written, and nobody comes back from it (rule 24; attacks 3, 7 and 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from antiphon.core.errors import NotAuthorised
from antiphon.core.keys import KeyPair
from antiphon.feed import writer
from antiphon.feed.header import Kind
from antiphon.feed.writer import FeedWriter
from antiphon.halo.credentials import credential, fields, lists
from antiphon.halo.credentials.claims import (
    EDITORS,
    Continuation,
    EpochGenesis,
    FeedEnd,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    Narrowing,
    Policy,
    Role,
)
from antiphon.halo.limits import DEVICE_FEEDS_MAX
from antiphon.halo.member.membership import Membership
from antiphon.testing.parties import Actor, Rehearsal, pair_of
from antiphon.testing.peers import Peer, Peers


def member(peer: Peer) -> Membership:
    assert peer.member is not None
    return peer.member


def company(*names: str, role: Role = Role.OWNER) -> tuple[Rehearsal, list[Actor]]:
    """A party of Alice and these others, who have all joined and heard of everything."""
    rehearsal = Rehearsal()
    actors = [rehearsal.founder("alice"), *(rehearsal.actor(name) for name in names)]
    for actor in actors[1:]:
        actors[0].admit(actor, role)
    for actor in actors[1:]:
        actor.hear(actors[0])
        actor.join()
    tell(actors)
    return rehearsal, actors


def tell(actors: list[Actor]) -> None:
    for actor in actors:
        actor.hear(*actors)


def roles(of: Actor, who: Actor | bytes) -> set[Role]:
    found = of.state.member(who.identity.key if isinstance(who, Actor) else who)
    return set() if found is None else set(found.roles)


# -- a revoked editor comes back


def test_a_revoked_editor_stays_out_when_another_who_narrowed_it_ends_its_own_feed() -> None:
    """X narrows Eve, then Alice narrows her, too; X ends its own feed before its narrowing. Alice's still holds."""
    rehearsal, (alice, x) = company("x")
    eve = rehearsal.actor("eve")
    x.admit(eve, Role.EDITOR)
    alice.hear(x)
    eve.hear(x)
    eve.join()
    tell([alice, x, eve])
    x.narrow(eve)
    alice.hear(x)
    assert roles(alice, eve) == set(), "there is no admission with roles left that Alice could name"
    alice.narrow(eve)
    assert not alice.voids
    phone = rehearsal.actor("x", "phone")
    phone.hear(alice)
    phone.join()
    phone.write(FeedEnd(x.identity.key, x.device.key, {x.control.key: 2}), [x.identity])  # keeps Eve's admission
    tell([alice, phone, eve])
    for actor in (alice, phone, eve):
        assert roles(actor, eve) == set()
    eve.admit(pair_of("puppet").key, Role.READER)
    alice.hear(eve)
    assert roles(alice, pair_of("puppet").key) == set()


def test_a_void_admission_that_comes_back_was_narrowed(tmp_path: Path) -> None:
    """Y admits Eve past the cut by which X revoked Y, so the admission is void; X takes its revocation back."""
    rehearsal, (alice, x, y) = company("x", "y")
    eve = rehearsal.actor("eve")
    y.admit(eve, Role.EDITOR)
    x.narrow(y, cuts={y.control.key: 1})
    tell([alice, x, y])
    assert roles(alice, eve) == set()
    alice.narrow(eve)
    assert [void.stamp.feed for void in alice.voids] == [y.control.key], "Alice's narrowing may take nothing now"
    phone = rehearsal.actor("x", "phone")
    phone.hear(alice)
    phone.join()
    phone.write(FeedEnd(x.identity.key, x.device.key, {x.control.key: 1}), [x.identity])
    tell([alice, phone])
    assert Role.OWNER in roles(alice, y), "X has taken it back"
    assert roles(alice, eve) == set()


def test_whoever_is_out_can_be_revoked_again(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice, x, eve = peers.add("alice"), peers.add("x", Role.OWNER), peers.add("eve", Role.EDITOR)
        peers.sync()
        member(x).revoke(eve.key)
        peers.sync()
        member(alice).revoke(eve.key)
        peers.sync()
        assert not member(alice).voids
        member(x).end_device(bytes(x.device.key), x.identity)
        peers.sync()
        alice.restart()
        assert member(alice).state.member(eve.key) is None
        with pytest.raises(NotAuthorised):
            member(eve).admit(pair_of("puppet").key, EDITORS)


# -- a tighter policy is escaped


def test_void_policies_push_nothing_out_of_what_a_tighter_policy_replaces() -> None:
    """Bob, an editor, writes 300 void policies: Alice's tighter one still replaces the loose one that he has seen."""
    rehearsal, (alice, bob) = company("bob", role=Role.EDITOR)
    alice.write(Policy(editors_admit=True))
    bob.hear(alice)
    for _ in range(300):
        bob.write(Policy(editors_admit=True))
    alice.hear(bob)
    alice.write(Policy(tightens=True, cuts={bob.control.key: bob.machine.length(bob.control.key)}))
    bob.admit(pair_of("puppet").key, Role.EDITOR)  # has not heard of it, or says so
    alice.hear(bob)
    assert roles(alice, pair_of("puppet").key) == set()
    assert (
        rehearsal.machine([feed for feed, blocks in rehearsal.blocks().items() for _ in blocks]).state() == alice.state
    )


# -- an identity's key is no group's


def test_the_key_of_an_identity_lets_nobody_in() -> None:
    """Eve, an editor, calls her own identity a group, and takes a puppet into it."""
    rehearsal, (alice, eve) = company("eve", role=Role.EDITOR)
    puppet = rehearsal.actor("puppet")
    eve.group(eve.identity.key, puppet.identity.key, [eve.identity])
    alice.hear(eve)
    assert roles(alice, puppet) == set()
    assert [void.reason for void in alice.voids] == ["its issuer may not admit this [rights.admits]"]
    eve.write(GroupAdmission(eve.identity.key, pair_of("team").key, is_group=True), [eve.identity])
    eve.group(pair_of("team").key, puppet.identity.key, [pair_of("team")])
    alice.hear(eve)
    assert roles(alice, puppet) == set()


def test_the_key_of_a_group_that_an_owner_admitted_as_one_lets_others_in() -> None:
    rehearsal, (alice, eve) = company("eve", role=Role.EDITOR)
    team, crew, puppet = pair_of("team"), pair_of("crew"), rehearsal.actor("puppet")
    alice.admit(team.key, Role.EDITOR, is_group=True)
    eve.hear(alice)
    eve.write(GroupAdmission(team.key, crew.key, is_group=True), [team])
    eve.group(crew.key, puppet.identity.key, [crew])
    alice.hear(eve)
    assert roles(alice, puppet) == {Role.EDITOR}
    alice.narrow(team.key)
    assert roles(alice, puppet) == set()
    eve.hear(alice)
    eve.group(team.key, pair_of("late").key, [team])
    alice.hear(eve)
    assert roles(alice, pair_of("late").key) == set(), "it has no more than the group"
    alice.admit(team.key, Role.EDITOR, is_group=True)
    assert roles(alice, puppet) == roles(alice, pair_of("late").key) == {Role.EDITOR}


def test_editors_admit_no_groups_whose_keys_let_others_in() -> None:
    """By a policy that lets editors admit, Eve could admit a key that goes on after a tighter policy."""
    _, (alice, eve) = company("eve", role=Role.EDITOR)
    alice.write(Policy(editors_admit=True))
    eve.hear(alice)
    eve.write(MemberAdmission(pair_of("team").key, EDITORS, is_group=True))
    eve.admit(pair_of("friend").key, Role.READER)
    alice.hear(eve)
    assert roles(alice, pair_of("team").key) == set()
    assert roles(alice, pair_of("friend").key) == {Role.READER}


# -- too many feeds


def open_feeds(peer: Peer, count: int) -> list[KeyPair]:
    """Admit data feeds of a peer's device in its control feed, as only a hostile program does."""
    mine = member(peer)
    assert mine.control is not None
    seeds = [sha256(b"feed" + bytes(peer.key) + number.to_bytes(4, "big")).digest() for number in range(count)]
    pairs = [KeyPair.from_seed(seed) for seed in seeds]
    words = [mine._admission(FeedKind.DATA, pair, mine._known_word())[1] for pair in pairs]
    for word in words:
        mine._append(word)
    return pairs


def use_feeds(peer: Peer, pairs: list[KeyPair]) -> None:
    for pair in pairs:
        feed = FeedWriter.open(peer.store, pair, member(peer).party)
        feed.see(*member(peer).machine.entries())
        feed.append(Kind.METADATA, bytes(16), b"")


def carries_on(peers: Peers, alice: Peer, others: Sequence[Peer]) -> None:
    """After an attack the others write, declare an epoch, set policy, restart and let a newcomer in."""
    title = alice.party.create("antiphon/object")
    title.edit("set", "title", "Milk")
    peers.sync()
    genesis = alice.epochs.declare()
    peers.settle()
    member(alice).set_policy(Policy(editors_admit=True))
    peers.sync()
    alice.restart()
    newcomer = peers.add("newcomer")
    peers.settle()
    for peer in (alice, newcomer, *others):
        assert peer.party.item(title.id).value == {"title": "Milk"}
        assert peer.epochs.number == genesis.number
        assert member(peer).state.digest == member(alice).state.digest
        assert not member(peer).machine.waiting()


def test_many_feeds_of_a_reader_stand_in_no_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader admits more feeds than a list may have. Nobody has to name them."""
    monkeypatch.setattr(fields, "LIST_MAX", 12)
    monkeypatch.setattr(lists, "CONTINUATIONS_MAX", 0)
    with Peers(tmp_path) as peers:
        alice, bob, mallory = peers.add("alice"), peers.add("bob"), peers.add("mallory", Role.READER)
        pairs = open_feeds(mallory, 30)
        peers.sync()
        carries_on(peers, alice, [bob])
        use_feeds(mallory, pairs)
        peers.sync()
        member(alice).revoke(mallory.key)
        peers.sync()
        claim = member(bob).machine.acts()[-1].claim
        assert isinstance(claim, Narrowing)
        assert claim.cuts == {}, "an epoch holds her control feed, and her data feeds never had a right to write"


def test_long_lists_go_on_in_the_next_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor writes into more feeds than one act can name. Epochs and revocations name them all, in a batch."""
    monkeypatch.setattr(fields, "LIST_MAX", 12)
    with Peers(tmp_path) as peers:
        alice, bob, mallory = peers.add("alice"), peers.add("bob"), peers.add("mallory", Role.EDITOR)
        use_feeds(mallory, open_feeds(mallory, 30))
        peers.sync()
        carries_on(peers, alice, [bob])
        acts = member(bob).machine.acts()
        geneses = [act for act in acts if isinstance(act.claim, EpochGenesis)]
        assert [act.continued > 0 for act in geneses] == [True]
        alice.epochs.declare()
        peers.settle()
        second = next(act for act in reversed(member(bob).machine.acts()) if isinstance(act.claim, EpochGenesis))
        assert second.continued == 0, "of the second epoch only the feeds that move are named"
        member(alice).revoke(mallory.key)
        peers.sync()
        narrowing = next(act for act in reversed(member(bob).machine.acts()) if isinstance(act.claim, Narrowing))
        assert narrowing.continued == 0, "what an epoch holds need not be named"
        state = member(bob).state
        assert state.member(mallory.key) is None
        assert state.digest == member(alice).state.digest


def test_a_revocation_of_many_feeds_keeps_what_they_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "LIST_MAX", 4)
    with Peers(tmp_path) as peers:
        alice, bob, mallory = peers.add("alice"), peers.add("bob"), peers.add("mallory", Role.EDITOR)
        note = mallory.party.create("antiphon/object")
        note.edit("set", "title", "Milk")
        use_feeds(mallory, open_feeds(mallory, DEVICE_FEEDS_MAX - 1))
        peers.sync()
        member(alice).revoke(mallory.key)
        peers.sync()
        narrowing = next(act for act in reversed(member(bob).machine.acts()) if isinstance(act.claim, Narrowing))
        assert narrowing.continued == 2
        for peer in (alice, bob):
            assert peer.party.item(note.id).value == {"title": "Milk"}
            assert member(peer).state.member(mallory.key) is None
            assert not member(peer).voids
        carries_on(peers, alice, [bob])


def test_an_act_that_takes_has_seen_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More control feeds have moved than one header can name: empty acts go ahead."""
    monkeypatch.setattr(writer, "ADVANCE_MAX", 2)
    with Peers(tmp_path) as peers:
        alice, *others = (peers.add(name, Role.EDITOR) for name in ("alice", "bob", "carol", "dora", "emil", "frida"))
        for peer in others:
            peer.party.create("antiphon/object")
        peers.sync()
        member(alice).revoke(others[-1].key)
        peers.sync()
        acts = member(others[0]).machine.acts()
        narrowing = next(act for act in reversed(acts) if isinstance(act.claim, Narrowing))
        for peer in others:
            control = member(peer).control
            assert control is not None
            assert narrowing.place.reach(bytes(control.feed)) == member(peer).machine.length(bytes(control.feed))
        assert Continuation({}) in [act.claim for act in acts]
        assert not member(others[0]).voids
        carries_on(peers, alice, others[:-1])


def test_half_a_list_is_no_act() -> None:
    """Bob, an owner, announces more than follows, or something else: the act is void, and cuts nothing."""
    _, (alice, bob) = company("bob")
    dave = pair_of("dave")
    bob.admit(dave.key, Role.EDITOR)
    cuts = {bytes([number]) * 32: 1 for number in range(5)}
    claim = Narrowing(dave.key, frozenset(), cuts)
    whole = credential.sign_all(alice.party, claim, [bob.device], size=2)
    assert len(whole) == 3
    other = credential.sign_all(alice.party, replace(claim, cuts={**cuts, b"\4" * 32: 7}), [bob.device], size=2)
    for words in (whole[:1], whole[:2], [whole[0], whole[2], whole[1]], [whole[0], other[1], other[2]], whole[1:]):
        bob.write_batch(words)
    alice.hear(bob)
    assert roles(alice, dave.key) == {Role.EDITOR}
    bob.write_batch(whole)
    alice.hear(bob)
    assert roles(alice, dave.key) == set()
    assert {act.claim.cuts == cuts for act in alice.machine.acts() if isinstance(act.claim, Narrowing)} == {True}
