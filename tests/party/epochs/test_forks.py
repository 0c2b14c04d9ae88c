"""Forks: control feeds with two epochs, and data feeds of which an epoch holds one branch. Nobody is split for good."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.party.epochs.epoch_acts import (
    agree_on,
    change,
    control_pen,
    device,
    epoch,
    first,
    held,
    honest,
    join,
    member,
    note,
    pen,
    same,
    say,
    settle,
    takes_over,
    twin,
)
from tests.party.forked import Forked, confront

from antiphon.core.cid import Cid
from antiphon.core.errors import Equivocation, FeedRetired, MissingBlocks, NotAuthorised
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.stamp import Stamp
from antiphon.core.v1.credential_pb2 import Signature, SignedCredential
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.span import Span
from antiphon.halo.acts.act import credential_of
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import EpochAttestation, EpochGenesis, Policy, Role
from antiphon.halo.member.fork_reports import untold
from antiphon.party.epochs.driver import EpochDriver
from antiphon.party.epochs.epochs import PATIENT_TERMS
from antiphon.pipeline.plan.party_plan import Planner
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow


def two_histories(peers: Peers, bob: Peer, one: Peer, other: Peer) -> None:
    """Bob shows one of them an epoch, and the other another. Both are right, and both speak for what they saw."""
    peers.sync()
    late = note(bob, "inside one epoch, and outside the other")
    peers.sync()
    genesis = honest(bob)
    feed = bytes(member(bob).open_data_feed().feed)
    before = late.history()[0].stamp.seq
    plan = bob.epochs._planned(1, {**genesis.cut, feed: before}, genesis.control, genesis.created_ms, genesis.models)
    shorter = replace(genesis, cut={**genesis.cut, feed: before}, snapshot=bob.epochs._compute(plan).cid)
    assert shorter.snapshot != genesis.snapshot
    branch = twin(bob, shorter)
    other.store.ingest(branch)
    other.epochs.step()
    say(bob, genesis)
    peers.pass_on(bob, one)
    one.epochs.step()


def test_a_generator_that_signs_two_histories_splits_nobody(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Bob only generates. Alice attests one epoch, Carol the other; Dave hears Alice's first, and that one is final."""
    carol, dave = peers.add("carol"), peers.add("dave")
    member(alice).admit(bob.key, [Role.EPOCH_GENERATOR])
    agree_on(peers, alice, carol, dave, generator=device(bob))
    note(alice)
    two_histories(peers, bob, alice, carol)
    peers.all.remove(bob)  # nobody needs him
    assert [proposal.attested for proposal in carol.epochs.chain().open.proposals] == [(device(carol),)]
    peers.pass_on(alice, dave)
    dave.epochs.step()
    confront(peers)
    settle(peers)
    assert (alice.epochs.number, dave.epochs.number) == (1, 1)
    same(alice, carol, dave)
    assert {peer.epochs.chain().conflict for peer in peers.all} == {""}
    lied = member(bob).control
    assert lied is not None
    for peer in peers.all:
        assert lied.feed in member(peer).machine.authority.fork_ends, "that he lied is known to all"
    note(carol, "she goes on")
    peers.sync()
    takes_over(peers, dave, alice, carol, dave)
    same(alice, carol, dave)
    assert dave.epochs.number == 2


def signed_by_herself(mallory: Peer, holder: Peer) -> None:
    """Mallory writes each genesis that somebody holds into her own feed, word for word, under her own signature."""
    for act in member(holder).machine.acts():
        if isinstance(act.claim, EpochGenesis):
            block = member(holder).machine.block(act)
            said, pair = SignedCredential.FromString(credential_of(block)), member(mallory).device.pair
            signature = pair.sign(credential.TAG + mallory.party.key + said.payload)
            word = SignedCredential(payload=said.payload, signatures=[Signature(key=pair.key, signature=signature)])
            member(mallory)._append(word.SerializeToString(deterministic=True))


@pytest.mark.parametrize("attests", [False, True])
def test_a_copy_without_its_signature_is_no_reason_not_to_repeat_a_genesis(
    peers: Peers, alice: Peer, bob: Peer, attests: bool
) -> None:
    """Mallory signs the generator's genesis herself: void for all who read it, also if she is an attester."""
    carol, dave, mallory = peers.add("carol"), peers.add("dave"), peers.add("mallory")
    member(alice).admit(bob.key, [Role.EPOCH_GENERATOR])
    agree_on(peers, alice, carol, *([mallory] if attests else []), generator=device(bob))
    note(alice)
    two_histories(peers, bob, alice, dave)
    for giver in (bob, dave, mallory):
        alice.take(giver.ranges({}))
    member(alice).refresh()
    before = untold(member(alice))
    signed_by_herself(mallory, alice)
    alice.take(mallory.ranges({}))
    member(alice).refresh()
    assert len(before) == 1
    assert untold(member(alice)) == before


def test_votes_that_say_the_same_are_repeated_twice_at_most(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Bob signs the same vote again and again on a branch: two confirm it, and no more of them do anything."""
    agree_on(peers, alice, bob, generator=device(alice))
    note(alice)
    genesis = honest(alice)
    say(alice, genesis)
    digest = next(act.digest for act in member(alice).machine.acts() if act.claim == genesis)
    peers.pass_on(alice, bob)
    member(bob).refresh()
    branch = twin(bob, *[EpochAttestation(0, 1, genesis.snapshot, digest)] * 5)
    say(bob, Policy())
    peers.pass_on(bob, alice)
    with pytest.raises(Equivocation):
        alice.store.ingest(branch)
    member(alice).refresh()
    assert member(alice).machine.epochs().final, "his vote counts on any branch"
    assert len(untold(member(alice))) == 2


def test_a_device_whose_control_feed_has_forked_publishes_no_refusals(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Nobody would be told of them, so it would publish one at each step."""
    agree_on(peers, alice, bob, generator=device(alice))
    note(alice)
    say(alice, honest(alice))
    peers.pass_on(alice, bob)
    member(bob).refresh()
    control = member(bob).control
    assert control is not None
    member(bob).machine.end_fork(control.feed, member(bob).machine.length(control.feed))  # as others have told
    genesis = next(act for act in member(bob).machine.acts() if isinstance(act.claim, EpochGenesis))
    with pytest.raises(NotAuthorised):
        member(bob).refuse(genesis, "no")


def test_devices_tell_by_themselves_what_stands_on_one_branch_only(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Dave attests nothing, and holds the branch without the genesis: Alice and Carol see to it that he can read it."""
    carol, dave = peers.add("carol"), peers.add("dave")
    member(alice).admit(bob.key, [Role.EPOCH_GENERATOR])
    agree_on(peers, alice, carol, generator=device(bob))
    note(alice)
    two_histories(peers, bob, alice, dave)
    peers.all.remove(bob)
    peers.pass_on(alice, carol)
    carol.epochs.step()
    drivers = [EpochDriver(peer.party, member(peer), peer.epochs) for peer in peers.all]
    for taker in peers.all:
        for giver in peers.all:
            taker.take(giver.ranges({}))
    for _ in range(4):
        for driver in drivers:
            driver.tick(alice.party.clock.now_ms())
        settle(peers)
    same(alice, carol, dave)
    before = {peer.name: member(peer).machine.act_count for peer in peers.all}
    for driver in drivers:
        driver.tick(alice.party.clock.now_ms())
    assert before == {peer.name: member(peer).machine.act_count for peer in peers.all}, "nothing is told twice"


def test_who_cannot_tell_of_a_fork_votes_all_the_same(
    peers: Peers, alice: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = EpochDriver(alice.party, member(alice), alice.epochs)
    member(alice).set_policy(Policy(epoch_messages=1))
    note(alice)

    def full() -> list[Stamp]:
        raise NotAuthorised("not now")

    monkeypatch.setattr(member(alice), "publish_forks", full)
    driver.tick(alice.party.clock.now_ms())
    assert alice.epochs.number == 1
    assert driver.status == "not now"


def test_what_is_final_stays_so_after_a_restart_if_its_feed_was_forked(peers: Peers, alice: Peer, bob: Peer) -> None:
    carol, dave = peers.add("carol"), peers.add("dave")
    member(alice).admit(bob.key, [Role.EPOCH_GENERATOR])
    agree_on(peers, alice, carol, dave, generator=device(bob))
    note(alice)
    two_histories(peers, bob, alice, carol)
    peers.all.remove(bob)
    peers.pass_on(alice, dave)
    dave.epochs.step()
    confront(peers)
    settle(peers)
    final = alice.epochs.chain().final
    assert (alice.epochs.number, len(final)) == (1, 1)
    alice.restart()
    assert alice.epochs.chain().final == final
    alice.epochs.prune()


def test_a_new_term_declares_again_what_may_be_final_of_two_histories(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Dave has attested neither. Alice names hers as she endorses him, and Carol might have attested that one, too."""
    carol, dave = peers.add("carol"), peers.add("dave")
    member(alice).admit(bob.key, [Role.EPOCH_GENERATOR])
    agree_on(peers, alice, carol, dave, generator=device(bob))
    note(alice)
    two_histories(peers, bob, alice, carol)
    (proposal,) = alice.epochs.chain().open.proposals
    member(dave).endorse(1, device(dave))  # before he hears of any, so he attests none of term 0
    peers.all.remove(bob)
    peers.pass_on(alice, dave)
    confront(peers)
    settle(peers)
    assert {peer.epochs.number for peer in peers.all} == {0}
    member(alice).endorse(1, device(dave))
    peers.sync()
    genesis = dave.epochs.declare()
    settle(peers)
    assert (genesis.term, genesis.snapshot) == (1, proposal.genesis.snapshot)
    same(alice, carol, dave)
    assert carol.epochs.number == 1, "it stands in Dave's feed, which she holds"
    assert {peer.epochs.chain().conflict for peer in peers.all} == {""}


@pytest.mark.parametrize("winner", ["alice", "bob"])
def test_what_is_declared_again_rests_on_the_same_branch(peers: Peers, alice: Peer, bob: Peer, winner: str) -> None:
    """Alice has attested control blocks that turn out to be beyond a fork, and may have to declare them (seed 4000030).

    Whoever declares it again, it keeps its control hash, and all find the blocks by the first genesis.
    """
    carol, mallory = peers.add("carol"), peers.add("mallory")
    agree_on(peers, alice, bob, carol)
    note(alice)
    peers.sync()
    branch = twin(mallory, honest(alice))
    member(mallory).end_device(mallory.device.key, mallory.identity)
    peers.sync()
    feed = bytes(branch.feed)
    peers.all.remove(mallory)
    genesis = honest(alice)
    assert genesis.control[feed] == branch.first
    say(alice, genesis)
    for peer in peers.all:
        with pytest.raises(Equivocation):
            peer.store.ingest(branch)
        peer.party.process()
        assert member(peer).machine.delivered(feed) == branch.first
    peers.sync()
    again = takes_over(peers, next(peer for peer in peers.all if peer.name == winner), alice, bob)
    assert again == replace(genesis, term=1)
    same(alice, bob, carol)
    assert member(carol).machine.timeframe()[feed] == branch.first


def shown_after_its_end(peers: Peers, kind: str) -> tuple[Span, Span]:
    """Mallory shows Alice and Bob a block after her feed's end, as a branch; a block of Eve's has seen it."""
    alice, bob, mallory, eve = peers.all[:4]
    items = [note(peer, peer.name) for peer in (alice, mallory, eve)]
    peers.sync()
    writers = [pen(peer) if kind == "data" else control_pen(peer) for peer in (mallory, eve)]
    drafts = [change(peer, item.id, "title", "ours") for peer, item in zip((mallory, eve), items[1:], strict=True)]
    if kind == "control":
        drafts = [Draft(Kind.CREDENTIAL, SYSTEM_ITEM, b"no credential")] * 2
    (hidden,) = writers[0].extend(drafts[:1])
    (seen,) = writers[1].extend(drafts[1:], seen=[hidden.block(0).entry])
    peers.all = [alice, bob]
    for peer in peers.all:
        peer.store.ingest(seen)
        peer.store.ingest_branch([hidden])
        peer.party.process()
        assert member(peer).machine.fork_ends == {}
    return hidden, seen


@pytest.mark.parametrize("kind", ["data", "control"])
def test_a_branch_that_nobody_holds_as_history_stops_no_epoch(peers: Peers, kind: str) -> None:
    """No cut has it. It may still come as history, so for some terms data feeds wait for it (seed 6001886)."""
    alice, bob, *_ = (peers.add(name) for name in ("alice", "bob", "mallory", "eve"))
    agree_on(peers, alice, bob)
    hidden, seen = shown_after_its_end(peers, kind)
    if kind == "control":  # who has seen it waits
        genesis = epoch(peers)
        assert genesis.control[bytes(hidden.feed)] == hidden.first - 1
        assert genesis.control[bytes(seen.feed)] == seen.first - 1
    else:
        with pytest.raises(MissingBlocks, match="which is here as a branch only"):
            first(peers).epochs.declare()
        genesis = takes_over(peers, alice, alice, bob, term=PATIENT_TERMS)
        assert (genesis.cut[bytes(hidden.feed)], genesis.cut[bytes(seen.feed)]) == (hidden.first, seen.end)
    same(alice, bob)


def test_blocks_that_came_since_do_not_stop_what_is_declared_again(peers: Peers) -> None:
    """Its cut was closed where it was declared first, and may be final; Bob has more by now (seed 7000850)."""
    alice, bob, *_, carol = (peers.add(name) for name in ("alice", "bob", "mallory", "eve", "carol"))
    agree_on(peers, alice, bob, carol)
    hidden, _ = shown_after_its_end(peers, "data")
    genesis = replace(honest(alice, PATIENT_TERMS), term=0)
    say(alice, genesis)
    bob.store.ingest(hidden)
    bob.party.process()
    peers.pass_on(alice, bob)
    bob.epochs.step()
    assert bob.epochs.number == 0
    again = takes_over(peers, alice, alice, bob)
    assert again == replace(genesis, term=1)
    same(alice, bob)


def test_an_attester_that_lies_where_policy_trusts_it_is_told_of(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Bob is an attester, too, and so two epochs have a majority. All take the same one, and say that there are two."""
    carol = peers.add("carol")
    agree_on(peers, alice, bob, carol, generator=device(bob))
    note(alice)
    two_histories(peers, bob, alice, carol)
    assert (alice.epochs.number, carol.epochs.number) == (1, 1)
    mine = {peer.name: peer.epochs.chain().final[0] for peer in (alice, carol)}
    assert mine["alice"].snapshot != mine["carol"].snapshot
    peers.all.remove(bob)
    confront(peers)
    settle(peers)
    for peer in (alice, carol):
        assert "two geneses of epoch 1 have a quorum" in peer.epochs.chain().conflict
    assert alice.epochs.chain().final == carol.epochs.chain().final
    assert alice.epochs.base is not None
    assert carol.epochs.base is not None
    assert alice.epochs.base.cid == carol.epochs.base.cid


# -- data feeds


@pytest.mark.parametrize("longer", [0, 2])
def test_a_fork_that_is_known_before_the_epoch_ends_the_feed_for_all(peers: Peers, longer: int) -> None:
    case = Forked(peers, longer=longer)
    confront(peers)
    assert case.known()
    epoch(peers, case.alice)
    same(case.alice, case.carol)
    assert case.titles() == ["common", "common"]


def test_a_change_of_the_root_item_beyond_a_fork_leaves_nothing_in_an_epoch(peers: Peers) -> None:
    """Carol delivered it and took it back: an empty row was left, which went into her snapshots (seed 4000082)."""
    alice, mallory, carol = (peers.add(name) for name in ("alice", "mallory", "carol"))
    item = note(mallory, "common")
    epoch(peers, alice)
    paper = pen(mallory)
    item.edit("set", "title", "for Alice")
    peers.pass_on(mallory, alice)
    carol.take(paper.extend([change(mallory, SYSTEM_ITEM, "title", "for Carol")]))
    assert carol.party.root.value == {"title": "for Carol"}
    peers.all.remove(mallory)
    confront(peers)
    assert carol.party.root.value == {}
    alice.party.create("antiphon/text")  # the next epoch lists one more model, and so looks at the rows of all items
    assert alice.party.root.value == {}
    epoch(peers, alice)
    same(alice, carol)


@pytest.mark.parametrize("longer", [0, 20])
def test_what_was_delivered_beyond_a_fork_is_read_until_it_is_taken_back(peers: Peers, longer: int) -> None:
    """The store cuts the feed as the other branch arrives; reading or folding before the engine hears of it raised."""
    case = Forked(peers, longer=longer)
    (other,) = [span for span in case.alice.ranges({}) if span.feed == case.feed]
    with pytest.raises(Equivocation):
        case.carol.store.ingest(other)
    item = case.carol.party.item(case.item.id)
    assert len(item.history()) == 3 + longer
    case.carol.party.process()
    assert item.value["title"] == "common"
    assert len(item.history()) == 2


@pytest.mark.parametrize("longer", [0, 2])
@pytest.mark.parametrize("found", ["before she hears of the epoch", "after she differs from it"])
def test_the_root_of_an_epoch_picks_the_branch_of_a_fork(peers: Peers, longer: int, found: str) -> None:
    """Alice makes an epoch on her branch. Carol holds the other one: she ends up on Alice's."""
    case = Forked(peers, longer=longer)
    case.alice.epochs.declare()
    if found == "after she differs from it":
        peers.sync()
        case.carol.epochs.step()
        assert case.carol.epochs.disagreement is not None
        assert case.titles() == ["for Alice", "for Carol"]
    confront(peers)
    settle(peers)
    assert case.known()
    assert case.alice.epochs.number == 1
    same(case.alice, case.carol)
    assert case.titles() == ["for Alice", "for Alice"]
    dora = join(peers, "dora", of=case.alice)
    same(case.alice, case.carol, dora)
    note(case.carol, "she goes on")
    epoch(peers, case.alice)
    same(case.alice, case.carol, dora)


def test_who_hears_of_two_epochs_at_once_leaves_the_other_branch_too(peers: Peers) -> None:
    """Carol differs from the first epoch, whose blobs nobody has any more, and was stuck before it until a restart."""
    case = Forked(peers)
    first = case.alice.epochs.declare()
    note(case.alice, "after the first")
    case.alice.epochs.declare()
    assert case.alice.epochs.number == 2
    held(case.alice).delete([Cid(first.snapshot)])
    settle(peers)
    assert case.carol.epochs.disagreement is not None
    confront(peers)
    settle(peers)
    same(case.alice, case.carol)
    assert case.carol.epochs.number == 2
    assert case.titles() == ["for Alice", "for Alice"]


def test_an_attester_that_comes_late_speaks_if_joiners_wait_for_it(peers: Peers, alice: Peer, bob: Peer) -> None:
    """Two of three make the epoch final before Carol hears of it; policy lets nobody join with fewer than three."""
    carol = peers.add("carol")
    agree_on(peers, alice, bob, carol, generator=device(alice), attestations_min=3)
    note(alice)
    peers.sync()
    peers.all.remove(carol)
    epoch(peers, alice)
    peers.all.append(carol)
    settle(peers)
    assert carol.epochs.number == 1
    assert len(alice.epochs.chain().votes[0]) == 3
    before = member(carol).machine.act_count
    settle(peers)
    assert member(carol).machine.act_count == before, "once"
    same(alice, carol, join(peers, "dora", of=alice))


def test_a_feed_that_goes_on_from_another_branch_than_the_epoch_holds_says_so(peers: Peers, alice: Peer) -> None:
    """Carol begins at an epoch with a history of her feed that is not the one in her store, and hears of no fork."""
    carol = peers.add("carol")
    item = note(carol, "common")
    peers.sync()
    feed = bytes(member(carol).open_data_feed().feed)
    alice.take(pen(carol).extend([change(carol, item.id, "title", "for Alice")]))
    item.edit("set", "title", "her own")
    item.edit("set", "title", "her own again")
    alice.epochs.declare()
    carol.take([span for span in alice.ranges(carol.lengths()) if span.feed != feed])
    carol.blobs.put_all((cid, alice.blobs.get(cid)) for cid in held(alice))
    carol.rebuild()
    (blocked,) = carol.party.status().blocked

    assert carol.epochs.number == 1
    assert carol.party.item(item.id).value["title"] == "for Alice"
    assert (blocked.feed, blocked.reason) == (
        feed,
        "the epoch below it holds another branch of this feed [waits.branch]",
    )
    assert blocked.seq == carol.party.timeframe[feed] + 1 < carol.store.record(feed).length
    with pytest.raises(FeedRetired, match="another branch of it"):  # it was `MovedOn`, again and again
        note(carol, "on a feed that does not go on")
    carol.restart()
    again = note(carol, "in a new feed")
    assert member(carol).open_data_feed().feed != feed
    peers.sync()
    assert alice.party.item(again.id).value["title"] == "in a new feed"


@pytest.mark.parametrize(("taken", "left"), [(1, 2), (1, 1), (3, 1)], ids=["longer", "as long", "shorter"])
def test_blocks_of_another_branch_than_the_epoch_holds_are_shown_from_the_store(
    peers: Peers, alice: Peer, bob: Peer, taken: int, left: int
) -> None:
    """Bob has seen what he holds of Mallory's feed, and Alice's epoch takes another branch, which she prunes.

    So nobody can prove the fork. What Bob holds is no history any more, but his messages have seen it (seed 100002935).
    """
    mallory = peers.add("mallory")
    item = note(mallory, "common")
    peers.sync()
    feed = bytes(member(mallory).open_data_feed().feed)
    alice.take(pen(mallory).extend([change(mallory, item.id, "title", f"for Alice {n}") for n in range(taken)]))
    for number in range(8):
        note(bob, f"for a greater lamport {number}")
    peers.pass_on(bob, mallory)
    for number in range(left):
        item.edit("set", "title", f"for Bob {number}")
    peers.pass_on(mallory, bob)
    seen = note(bob, "has seen it")
    alice.epochs.declare()
    alice.epochs.prune()
    bob.take([span for span in alice.ranges(bob.lengths()) if span.feed != feed])
    bob.blobs.put_all((cid, alice.blobs.get(cid)) for cid in held(alice))
    bob.rebuild()

    assert bob.epochs.number == 1
    assert bob.party.item(seen.id).value == {"title": "has seen it"}
    bob.epochs.prune()
    bob.rebuild()
    assert bob.party.item(seen.id).value == {"title": "has seen it"}, "he keeps what he has seen"
    assert [blocked for blocked in bob.party.status().blocked if blocked.feed != feed] == []
    note(bob, "he can write")
    plan = Planner("", bob.store, bob.blobs, bob.party.key).plan()
    assert {lane.feed: lane.position - 1 for lane in plan.lanes if lane.position} == dict(bob.party.timeframe)
    alice.store.ingest_branch(list(bob.store.spans(feed)))
    alice.take(bob.ranges(alice.lengths()))
    same(alice, bob)
