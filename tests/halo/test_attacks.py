"""What reviewers tried against the party state machine, and what must not come of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from antiphon.core.errors import InvalidInput
from antiphon.core.v1 import message_pb2
from antiphon.feed.block import Block
from antiphon.feed.chain import sign_head
from antiphon.feed.encoder import Append, Draft, build
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.fork import Fork
from antiphon.feed.header import Kind
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.control.control_feeds import fold_control_feeds
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.control.state import PartyState
from antiphon.halo.credentials.claims import (
    Equivocated,
    FeedEnd,
    GroupAdmission,
    MemberAdmission,
    Role,
)
from antiphon.testing.parties import Actor, Rehearsal, pair_of


def machine_with(rehearsal: Rehearsal, *parts: Iterable[Block]) -> PartyMachine:
    machine = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
    for part in parts:
        machine.add(part)
        machine.state()  # an answer given on the way must not be remembered wrongly
    return machine


def branch(actor: Actor, at: int) -> Span:
    """The blocks of a control feed from `at` on, under one head."""
    span = actor.raw[at]
    for raw in actor.raw[at + 1 :]:
        span = span.joined(raw)
    signature = sign_head(actor.control, span.party, span.end, span.hashes[-32:])
    return Span(
        span.party, span.feed, span.first, span.previous, signature, span.headers, span.advance, b"", span.hashes
    )


def twin(rehearsal: Rehearsal, founder: Actor, name: str) -> Actor:
    """The same device once more, which may write another history of the same feed."""
    other = Rehearsal()
    other.genesis_feed = rehearsal.genesis_feed
    actor = other.actor(name)
    actor.machine = rehearsal.machine([founder.control.key] * len(founder.written))
    actor.join()
    return actor


def test_a_strangers_group_admission_ends_nobodys_feed() -> None:
    """Mallory, who was never admitted, says that Xavier is part of a "group" that is really revoked Bob."""
    rehearsal = Rehearsal()
    alice, dora, bob = rehearsal.founder("alice"), rehearsal.actor("dora"), rehearsal.actor("bob")
    xavier, mallory = rehearsal.actor("xavier"), rehearsal.actor("mallory")
    alice.admit(dora, Role.OWNER)
    alice.admit(bob, Role.READER)
    for actor in (dora, bob):
        actor.hear(alice)
        actor.join()
    alice.hear(dora, bob)
    dora.admit(xavier, Role.OWNER)
    xavier.hear(dora)
    xavier.join()
    alice.narrow(bob)
    xavier.admit(pair_of("yan").key, Role.READER)
    mallory.join(seen=[])
    mallory.write(GroupAdmission(bob.identity.key, xavier.identity.key), seen=[])
    honest = (alice.written, dora.written, bob.written, xavier.written)
    first = machine_with(rehearsal, mallory.written, *honest).state()
    last = machine_with(rehearsal, *honest, mallory.written).state()
    assert first == last
    assert first.member(pair_of("yan").key) is not None
    assert first.feed(xavier.control.key) is not None


def test_many_ways_through_many_groups_cost_little() -> None:
    """4 ways on each of 60 levels: 4 to the 60th paths, and 61 subjects."""
    rehearsal = Rehearsal()
    alice, mallory = rehearsal.founder("alice"), rehearsal.actor("mallory")
    alice.admit(mallory, Role.OWNER)
    mallory.hear(alice)
    mallory.join()
    below = alice.identity.key
    for level in range(60):
        group = pair_of(f"group {level}")
        for _ in range(4):
            mallory.group(group.key, below, [group])
        below = group.key
    alice.hear(mallory)
    assert len(alice.state.groups) == 60
    assert not alice.voids


def test_a_data_feed_belongs_to_the_admission_that_is_in_force() -> None:
    """One branch of a forked control feed admits a data feed that another feed admits later: the latter counts."""
    rehearsal = Rehearsal()
    alice, mallory = rehearsal.founder("alice"), rehearsal.actor("mallory")
    alice.admit(mallory, Role.OWNER)
    mallory.hear(alice)
    mallory.join()
    other = twin(rehearsal, alice, "mallory")
    data = pair_of("data")
    mallory.open_data(data)
    other.admit(pair_of("puppet").key, Role.READER)
    second = Actor(rehearsal, mallory.identity, mallory.device, pair_of("second control"))
    second.machine = rehearsal.machine([alice.control.key] * len(alice.written))
    second.join()
    for n in range(3):
        second.admit(pair_of(f"q{n}").key, Role.READER)
    second.open_data(data)
    evidence = Fork.between(branch(mallory, 1), branch(other, 1)).encode()
    states: list[PartyState] = []
    for held in (mallory.written, other.written):
        machine = machine_with(rehearsal, alice.written, held, second.written)
        machine.add_fork(evidence)
        states.append(machine.state())
    assert states[0].digest == states[1].digest
    assert states[0].feed(data.key) is not None


def test_a_branch_that_is_shown_wakes_those_who_wait() -> None:
    rehearsal = Rehearsal()
    alice, bob = rehearsal.founder("alice"), rehearsal.actor("bob")
    alice.admit(rehearsal.actor("mallory"), Role.OWNER)
    alice.admit(bob, Role.OWNER)
    known = len(alice.written)
    one, two, three = (twin(rehearsal, alice, "mallory") for _ in range(3))
    for actor, tag in ((one, "a"), (two, "a"), (three, "c")):
        for n in range(5):
            actor.admit(pair_of(f"{tag}{n}").key, Role.READER)
    one.admit(pair_of("a9").key, Role.READER)
    two.admit(pair_of("b9").key, Role.READER)
    late = Fork.between(branch(one, 6), branch(two, 6)).encode()
    early = Fork.between(branch(one, 1), branch(three, 1)).encode()
    bob.machine = rehearsal.machine([alice.control.key] * known)
    bob.machine.add(three.written)
    bob.join()
    bob.admit(pair_of("zed").key, Role.READER)
    alice.write(Equivocated(one.control.key, 6, late))
    alice.write(Equivocated(one.control.key, 1, early))
    start, told = alice.written[:known], alice.written[known:]
    asleep = machine_with(rehearsal, start, one.written, bob.written, told[:1], told[1:])
    awake = machine_with(rehearsal, start, one.written, told, bob.written)
    for machine in (asleep, awake):
        assert [found.entry for found in machine.waiting()] == [three.written[-1].entry]
        for span in three.raw[1:]:
            machine.show(span)
    assert asleep.waiting() == awake.waiting() == ()
    assert asleep.state() == awake.state()
    assert awake.state().member(pair_of("zed").key) is not None


def test_a_fork_inside_a_batch_cuts_the_batch_for_those_who_only_heard_of_it(tmp_path: Path) -> None:
    """One peer's store finds the fork and cuts at the batch's start; the other only reads the credential."""
    rehearsal = Rehearsal()
    alice, mallory = rehearsal.founder("alice"), rehearsal.actor("mallory")
    alice.admit(mallory, Role.OWNER)
    mallory.hear(alice)
    mallory.join()
    base = mallory.raw[0]
    record = FeedRecord(
        base.feed, base.party, True, length=1, hash=base.hashes[-32:], lamport=mallory.written[0].lamport
    )
    spans = [_batch(mallory, record, names) for names in (("p", "x"), ("p", "y"))]
    with FeedStore.open(tmp_path) as store:
        for span in (*alice.raw, base, spans[0]):
            store.ingest(span)
        with pytest.raises(Exception, match="two different blocks 2"):
            store.ingest(spans[1])
        evidence = store.fork(base.feed)
        assert evidence is not None
        assert store.bounds(base.feed).end == 1
        cut = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
        fold_control_feeds(cut, store)
    told = machine_with(rehearsal, alice.written, mallory.written, [spans[1].block(0), spans[1].block(1)])
    assert told.state().member(pair_of("p").key) is not None
    told.add_fork(evidence)
    assert told.state().member(pair_of("p").key) is None
    assert told.state().digest == cut.state().digest


def _batch(actor: Actor, record: FeedRecord, names: tuple[str, ...]) -> Span:
    drafts = [Draft(Kind.CREDENTIAL, bytes(16), _admission(actor, name)) for name in names]
    salts = bytes(16 * len(names))
    append = Append(actor.control, record.party, drafts, (), atomic=True, created_ms=1, salts=salts)
    return build(record, [append], lambda _: None).spans[0]


def _admission(actor: Actor, name: str) -> bytes:
    scratch = Rehearsal()
    clone = scratch.actor("mallory")
    clone.admit(pair_of(name).key, Role.READER)
    message = clone.written[0].message
    assert message is not None
    assert clone.device.key == actor.device.key
    return message


def test_a_control_feed_is_not_pruned(tmp_path: Path) -> None:
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    alice.admit(pair_of("bob").key, Role.READER)
    with FeedStore.open(tmp_path) as store:
        for span in alice.raw:
            store.ingest(span)
        with pytest.raises(InvalidInput, match="control feed"):
            store.prune(alice.control.key, 1)


def test_a_grant_that_is_hidden_from_a_narrowing_still_counts() -> None:
    """A reader makes a void admission of Bob, narrows it with no cuts, and shows nothing of Bob's real admission."""
    rehearsal = Rehearsal()
    alice, bob, mallory = rehearsal.founder("alice"), rehearsal.actor("bob"), rehearsal.actor("mallory")
    alice.admit(mallory, Role.READER)
    alice.admit(bob, Role.OWNER)
    bob.hear(alice)
    bob.join()
    alice.hear(bob)
    before = alice.state.digest
    group = pair_of("mallory's group")
    mallory.join(seen=[])
    mallory.write(GroupAdmission(group.key, bob.identity.key), [group], seen=[])
    mallory.narrow(bob, cuts={}, group=group.key, signers=[group], seen=[])
    alice.hear(mallory)
    assert alice.state.digest == before
    assert len(alice.voids) == 3


def test_a_junior_owner_cannot_end_a_seniors_feeds_by_narrowing_an_admission_of_its_own() -> None:
    rehearsal = Rehearsal()
    alice, bob, carol = rehearsal.founder("alice"), rehearsal.actor("bob"), rehearsal.actor("carol")
    for actor in (bob, carol):
        alice.admit(actor, Role.OWNER)
        actor.hear(alice)
        actor.join()
    alice.hear(bob, carol)
    carol.write(MemberAdmission(bob.identity.key, frozenset({Role.READER})))
    carol.narrow(bob, cuts={})
    alice.hear(carol)
    feed = alice.state.feed(bob.control.key)
    assert feed is not None
    assert feed.end is None


def test_a_copy_of_a_groups_word_does_not_bring_back_who_was_removed() -> None:
    rehearsal = Rehearsal()
    alice, bob = rehearsal.founder("alice"), rehearsal.actor("bob")
    team = pair_of("team")
    alice.admit(team.key, Role.OWNER)
    alice.admit(bob, Role.READER)
    alice.group(team.key, bob.identity.key, [team])
    message = alice.written[-1].message
    bob.hear(alice)
    bob.join()
    alice.hear(bob)
    alice.narrow(bob, cuts={bob.control.key: 1}, group=team.key)
    bob.hear(alice)
    assert message is not None
    bob.write_signed(message_pb2.Message.FromString(message).credential.SerializeToString())
    alice.hear(bob)
    member = alice.state.member(bob.identity.key)
    assert member is not None
    assert member.roles == {Role.READER}
    alice.group(team.key, bob.identity.key, [team])
    member = alice.state.member(bob.identity.key)
    assert member is not None
    assert member.roles == {Role.OWNER}, "the group may take him back itself"


def test_a_demotion_inside_a_group_counts() -> None:
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    team, bob = pair_of("team"), pair_of("bob")
    alice.admit(team.key, Role.OWNER)
    alice.group(team.key, bob.key)
    alice.narrow(bob.key, Role.READER, cuts={}, group=team.key)
    member = alice.state.member(bob.key)
    assert member is not None
    assert member.roles == {Role.READER}


def test_acts_in_a_data_feed_are_no_control_acts() -> None:
    """A feed that is admitted as a data feed cannot grant, nor end anything, whatever it says."""
    rehearsal = Rehearsal()
    alice, mallory = rehearsal.founder("alice"), rehearsal.actor("mallory")
    alice.admit(mallory, Role.READER)
    mallory.hear(alice)
    mallory.join()
    data = Actor(rehearsal, mallory.identity, mallory.device, pair_of("data as control"))
    mallory.open_data(data.control)
    data.machine = rehearsal.machine([])
    data.write(FeedEnd(mallory.identity.key, mallory.device.key, {}), [mallory.identity], seen=[])
    data.admit(mallory, Role.OWNER)
    state = machine_with(rehearsal, alice.written, mallory.written, data.written).state()
    member = state.member(mallory.identity.key)
    assert member is not None
    assert member.roles == {Role.READER}
    feed = state.feed(mallory.control.key)
    assert feed is not None
    assert feed.end is None


def test_a_fork_of_the_genesis_block_leaves_the_founder() -> None:
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    other = Rehearsal()
    twin_founder = other.founder("alice")
    twin_founder.write_signed(b"")
    alice.admit(pair_of("bob").key, Role.READER)
    alice.machine.end_fork(alice.control.key, 0)
    assert alice.state.member(alice.identity.key) is not None


def test_many_void_or_leaving_acts_are_judged_in_little_time() -> None:
    """A reader's void admissions of itself, and a member that leaves again and again: the work stays small."""
    rehearsal = Rehearsal()
    alice, mallory, bob = rehearsal.founder("alice"), rehearsal.actor("mallory"), rehearsal.actor("bob")
    alice.admit(bob, Role.READER)
    alice.admit(mallory, Role.READER)
    bob.hear(alice)
    bob.join()
    mallory.join(seen=[])
    for _ in range(300):
        mallory.write(MemberAdmission(mallory.identity.key, frozenset({Role.OWNER})), seen=[])
        bob.narrow(bob, signers=[bob.identity], cuts={bob.control.key: 1000})
    machine = machine_with(rehearsal, alice.written, mallory.written, bob.written)
    member = machine.state().member(mallory.identity.key)
    assert member is not None
    assert member.roles == {Role.READER}
    assert len(machine.voids()) >= 300
