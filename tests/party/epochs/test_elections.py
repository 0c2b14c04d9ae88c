"""Elections of who declares an epoch, in virtual time: they come to an end, and survive whoever is lost."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.party.epochs.epoch_acts import honest as would_declare, member, say, twin
from tests.party.town import NAMES, SILENT_MS, Town, numbers, snapshots, terms, town, write

from antiphon.halo.credentials.claims import Policy
from antiphon.model.object.model import ObjectModel
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow

_HOURS_MS = 3 * 3_600_000

# -- elections


def test_the_next_in_rank_takes_over_from_a_silent_generator(peers: Peers) -> None:
    one = town(peers, 3, epoch_messages=1)
    first, second, third = one.by_rank()
    one.sleep(first)
    write(third)
    one.run(SILENT_MS - 1)
    assert numbers(peers.all) == [0, 0, 0]
    one.run(1)
    assert numbers([second, third]) == [1, 1]
    assert terms(second) == [1]
    chain = third.epochs.chain()
    assert chain.feeds[chain.final[0].declared.feed] == one.device(second)

    one.wake(first)
    one.talk()
    assert numbers(peers.all) == [1, 1, 1], "who comes back has lost nothing"


def test_a_generator_who_is_no_attester_is_replaced_too(peers: Peers) -> None:
    everybody = [peers.add(name) for name in NAMES[:4]]
    devices = [bytes(peer.member.device.key) for peer in everybody if peer.member is not None]
    founder = everybody[0].member
    assert founder is not None
    policy = Policy(attesters=tuple(sorted(devices[:3])), generator=devices[3], silent_ms=SILENT_MS, epoch_messages=1)
    founder.set_policy(policy)
    peers.sync()
    one = Town(peers)
    one.sleep(everybody[3])
    write(everybody[0])
    one.run(SILENT_MS)
    assert numbers(everybody[:3]) == [1, 1, 1]
    assert terms(everybody[0]) == [1]


def test_a_term_that_lives_is_not_left(peers: Peers) -> None:
    """The generator has declared; one attester is slow. Every attestation is a sign of life."""
    one = town(peers, 5, epoch_messages=1)
    first, *others = one.by_rank()
    one.sleep(*others)
    write(first)
    one.talk()
    for late in others[:2]:
        one.run(SILENT_MS * 10)
        one.wake(late)
        one.talk()
    assert terms(first) == [0]


def test_who_hears_of_a_candidate_waits_until_the_term_is_silent_here_too(peers: Peers) -> None:
    one = town(peers, 3, epoch_messages=4)
    first, second, third = one.by_rank()
    one.sleep(first, third)
    write(second, 2)
    one.run(SILENT_MS)  # it endorses itself
    one.wake(third)
    one.talk()
    assert third.epochs.chain().open.endorsements[0].claim.candidate == one.device(second)
    assert len(third.epochs.chain().open.endorsements) == 1
    one.run(SILENT_MS)
    assert numbers([second, third]) == [1, 1]
    assert terms(third) == [1]


def test_of_two_candidates_the_one_of_lower_rank_is_endorsed(peers: Peers) -> None:
    one = town(peers, 5, epoch_messages=1)
    first, second, third, fourth, fifth = one.by_rank()
    write(fifth)
    one.sync()
    one.sleep(first, second, fourth, fifth)
    one.run(SILENT_MS * 2)  # the third endorses itself, alone
    one.awake = [second]
    one.begin(second)
    one.run(SILENT_MS)  # and so does the second
    one.awake = [second, third, fourth, fifth]
    one.run(SILENT_MS)
    assert numbers(one.awake) == [1, 1, 1, 1]
    chain = fifth.epochs.chain()
    assert chain.feeds[chain.final[0].declared.feed] == one.device(second)
    assert terms(fifth) == [1]


def test_a_split_vote_leads_to_the_next_term(peers: Peers) -> None:
    one = town(peers, 4, epoch_messages=1)
    first, second, third, fourth = one.by_rank()
    write(fourth)
    one.sync()
    for candidate, voter in ((second, first), (third, fourth)):
        for peer in (candidate, voter):
            assert peer.member is not None
            peer.member.endorse(1, one.device(candidate))
    one.run(SILENT_MS)
    assert numbers(peers.all) == [1, 1, 1, 1]
    assert terms(first) == [2]


def test_who_votes_last_endorses_the_one_that_is_elected(peers: Peers) -> None:
    """Her turn is this one: it does not put her behind others yet."""
    one = town(peers, 5, epoch_messages=1)
    first, second, third, fourth, fifth = one.by_rank()
    write(fifth)
    one.sync()
    for peer in (second, third, fourth):
        member(peer).endorse(1, one.device(second))
    peers.pass_on(second, third)
    peers.pass_on(third, fourth)  # who knows of a quorum now
    one.sleep(first, second, third)
    one.run(SILENT_MS)
    (found,) = [found for found in fifth.epochs.chain().open.endorsements if found.device == one.device(fifth)]
    assert (found.claim.term, found.claim.candidate) == (1, one.device(second))


def test_a_device_alone_does_not_fill_its_feed_with_endorsements(peers: Peers) -> None:
    one = town(peers, 3, epoch_messages=1)
    first, second, third = one.by_rank()
    write(second)
    one.sleep(first, third)
    one.run(SILENT_MS * 1_000)
    assert len(second.epochs.chain().open.endorsements) == 1
    assert "1 of 2 endorsements" in one.drivers[second.name].status
    one.wake(third)
    one.run(SILENT_MS)
    assert numbers([second, third]) == [1, 1]


def test_nobody_can_use_up_the_terms(peers: Peers) -> None:
    """An attester that endorses itself for a term far away is not followed there."""
    one = town(peers, 4, epoch_messages=1)
    liar, *honest = reversed(one.by_rank())
    assert liar.member is not None
    liar.member.endorse(2**40, one.device(liar))
    one.sync()
    one.sleep(liar)
    write(honest[0])
    one.run(SILENT_MS * 4)
    assert numbers(honest) == [1, 1, 1]
    assert max(terms(honest[0])) < 3


# -- attesters that lie, and policy allows for it


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_liar_that_is_always_the_first_candidate_stops_nobody(peers: Peers, place: int, early: bool) -> None:
    """It endorses itself for each term as soon as that counts. It declares nothing, or before anybody endorsed it."""
    one = town(peers, 4, epoch_messages=1, liars=True)
    liar = one.by_rank()[place]
    honest = [peer for peer in peers.all if peer is not liar]
    write(honest[0])
    one.sync()
    one.sleep(liar)
    for _ in range(30):
        if 1 in numbers(honest):
            break
        term = 1 + max((found.claim.term for found in honest[0].epochs.chain().open.endorsements), default=0)
        member(liar).endorse(term, one.device(liar))
        if early:
            say(liar, would_declare(liar, term))
        one.wake(liar)
        one.sync()
        one.sleep(liar)
        one.run(SILENT_MS)
    assert numbers(honest) == [1, 1, 1]
    assert max(terms(honest[0])) <= 2


def test_a_liar_that_declares_again_and_again_is_left(peers: Peers) -> None:
    """It was elected, and signs ever more histories, each with another genesis in its term."""
    one = town(peers, 4, epoch_messages=1, liars=True)
    first, liar, *others = one.by_rank()
    honest = [first, *others]
    write(others[0])
    one.sync()
    for peer in peers.all:
        member(peer).endorse(1, one.device(liar))
    one.sync()
    genesis = would_declare(liar, 1)
    branches = [twin(liar, replace(genesis, created_ms=genesis.created_ms + at)) for at in range(1, 41)]
    one.sleep(liar)
    for at, branch in enumerate(branches):
        for peer in honest:
            if at:
                peer.store.ingest_branch([branch])
            else:
                peer.store.ingest(branch)
        one.run(SILENT_MS * 9 // 10)
        known = len(first.epochs.chain().open.proposals)
        assert 1 in numbers(honest) or known == at + 1
    assert numbers(honest) == [1, 1, 1]
    assert terms(first) == [2]


# -- wrong clocks, missing code


def test_a_genesis_from_the_future_binds_nobody_who_refuses_it(peers: Peers) -> None:
    """Its declarer has attested it, in a later term than anybody else. All later terms had to declare it again."""
    one = town(peers, 3, epoch_messages=1)
    first, second, third = one.by_rank()
    one.skews_ms[second.name] = _HOURS_MS
    write(third)
    one.sleep(first)
    one.run(SILENT_MS)
    assert [found.genesis.term for found in third.epochs.chain().open.proposals] == [1]
    one.wake(first)
    one.run(SILENT_MS * 20)
    assert numbers([first, second, third]) == [1, 1, 1]
    assert first.epochs.chain().final[0].created_ms < one.now_ms


def test_terms_that_cannot_succeed_become_rare(peers: Peers) -> None:
    """Two of three endorse, and lack the code to attest whatever is declared."""
    one = town(peers, 3, epoch_messages=1, without_code=2)
    alice, bob, _ = peers.all
    write(alice)
    one.run(SILENT_MS * 600)
    assert numbers(peers.all) == [0, 0, 0]
    found = alice.epochs.chain().open.endorsements
    assert 6 < max(endorsed.claim.term for endorsed in found) < 20, "and not hundreds"
    bob.models.register(ObjectModel)
    one.run(SILENT_MS * 300)
    assert numbers([alice, bob]) == [1, 1]


# -- the loss of the winner


def elected(peers: Peers) -> tuple[Town, Peer, list[Peer]]:
    """Five attesters, of whom the first is gone; the second is endorsed by a quorum, and does not know it yet."""
    one = town(peers, 5, epoch_messages=1)
    first, second, *others = one.by_rank()
    write(others[0])
    one.sync()
    one.sleep(first)
    for peer in (second, *others):
        assert peer.member is not None
        peer.member.endorse(1, one.device(second))
    peers.pass_on(second, others[0])
    one.sleep(second)
    one.sync()
    return one, second, others


def test_the_winner_is_lost_before_it_declares(peers: Peers) -> None:
    one, winner, others = elected(peers)
    one.run(SILENT_MS - 1)
    assert numbers(others) == [0, 0, 0]
    one.run(1)
    assert numbers(others) == [1, 1, 1]
    assert terms(others[0]) == [2]

    one.wake(winner)
    one.run(SILENT_MS * 10)
    assert numbers([winner]) == [1]
    assert snapshots([winner, *others]) == snapshots(others)


def test_the_winner_is_lost_after_it_declared_to_nobody(peers: Peers) -> None:
    one, winner, others = elected(peers)
    for other in others:
        peers.pass_on(other, winner)
    winner.epochs.declare()
    write(others[1])
    one.run(SILENT_MS)
    assert numbers(others) == [1, 1, 1]
    assert terms(others[0]) == [2]

    one.wake(winner)
    one.run(SILENT_MS)
    assert numbers([winner]) == [1]
    assert winner.snapshots() == others[0].snapshots(), "what it declared was final nowhere"


def test_the_winner_is_lost_after_one_has_attested_what_it_declared(peers: Peers) -> None:
    one, winner, others = elected(peers)
    for other in others:
        peers.pass_on(other, winner)
    genesis = winner.epochs.declare()
    peers.pass_on(winner, others[0])
    one.awake = [others[0]]
    one.talk()
    assert numbers(others) == [0, 0, 0]

    one.awake = list(others)
    one.run(SILENT_MS)
    assert numbers(others) == [1, 1, 1]
    assert snapshots(others) == {genesis.snapshot}, "its genesis was passed on, and is attested by the others"


def test_what_was_attested_is_declared_again(peers: Peers) -> None:
    """Two of five have attested in term 0, and one of them is lost: a quorum without it must come to the same."""
    one = town(peers, 5, epoch_messages=1)
    first, second, third, fourth, _ = one.by_rank()
    write(second)
    one.sync()
    one.awake = [first]
    one.talk()
    (proposal,) = first.epochs.chain().open.proposals
    one.awake = [second]
    peers.pass_on(first, second)
    one.talk()
    assert numbers([first, second]) == [0, 0]
    write(third)  # whoever declares afresh would take this in
    one.awake = [second, third, fourth]
    for peer in one.awake:
        assert peer.member is not None
        peer.member.endorse(1, one.device(third))
    one.run(SILENT_MS)
    assert terms(third)[0] == 1
    assert {peer.epochs.chain().final[0].snapshot for peer in one.awake} == {proposal.genesis.snapshot}
    assert numbers(one.awake)[0] > 0


def test_winner_after_winner_is_lost(peers: Peers) -> None:
    one = town(peers, 5, epoch_messages=1)
    first, second, third, fourth, fifth = one.by_rank()
    write(fifth)
    one.sync()
    one.sleep(first)
    for term, winner in ((1, second), (2, third)):
        for peer in (second, third, fourth, fifth):
            assert peer.member is not None
            peer.member.endorse(term, one.device(winner))
    one.sync()
    one.sleep(third)
    one.run(SILENT_MS * 2)  # the silence doubles with each further term
    assert numbers(one.awake) == [1, 1, 1]
    assert terms(fourth) == [3]
    chain = fourth.epochs.chain()
    assert chain.feeds[chain.final[0].declared.feed] == one.device(fourth), "who has had no turn yet comes first"


# -- anything at all


@pytest.mark.parametrize("seed", range(6))
def test_whoever_comes_and_goes_epochs_go_on(peers: Peers, seed: int) -> None:
    """Devices sleep, wake and restart at random; when most are awake for a while, the party is on one epoch again."""
    chance = random.Random(seed)
    one = town(peers, chance.choice([3, 4, 5]), epoch_messages=chance.choice([1, 5]), liars=chance.random() < 0.3)
    for _ in range(40):
        peer = chance.choice(peers.all)
        what = chance.random()
        if what < 0.3:
            write(peer)
        elif what < 0.6:
            one.awake = chance.sample(peers.all, chance.randint(1, len(peers.all)))
        elif what < 0.7:
            peer.restart(crash=chance.random() < 0.5)
            one.begin(peer)
        else:
            one.run(chance.choice([1, SILENT_MS // 2, SILENT_MS, SILENT_MS * 3]))
    one.awake = list(peers.all)
    one.run(SILENT_MS * 20)
    before = max(numbers(peers.all))
    write(chance.choice(peers.all), 3)
    one.run(SILENT_MS * 20)

    assert len(set(numbers(peers.all))) == 1
    assert numbers(peers.all)[0] > before
    chains = [peer.epochs.chain().final for peer in peers.all]
    assert all(chain == chains[0] for chain in chains)
    assert len({tuple(sorted(peer.snapshots().items())) for peer in peers.all}) == 1
    assert max(terms(peers.all[0])) < 20
    assert [peer.epochs.disagreement for peer in peers.all] == [None] * len(peers.all)
