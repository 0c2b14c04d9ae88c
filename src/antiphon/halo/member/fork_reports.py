"""Publish forks to the party: the evidence, and the credentials past a fork that other members need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from antiphon.core.stamp import Stamp
from antiphon.feed.fork import Fork
from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act, credential_of
from antiphon.halo.credentials.claims import (
    EpochAttestation,
    EpochGenesis,
    Equivocated,
    FeedAdmission,
    FeedKind,
)
from antiphon.halo.finality.epoch_chain import EpochChain

if TYPE_CHECKING:
    from antiphon.halo.member.membership import Membership

_WORDS_MAX = 2  # votes of one device that say the same: the second confirms the first where attesters may lie


def publish_forks(member: Membership, known: Iterable[Fork]) -> list[Stamp]:
    """Publish the forks known here that no control block common to all members proves yet."""
    ends = member.machine.authority.fork_ends
    told: dict[bytes, int] = {}
    found = {fork.feed: fork for fork in known if fork.party == member.party}
    for act in member.machine.acts():
        if not isinstance(act.claim, Equivocated):
            continue
        feed, length = act.claim.feed, act.claim.length
        if act.stamp.seq < ends.get(act.stamp.feed, NO_END):
            told[feed] = min(length, told.get(feed, NO_END))
        elif feed not in found or length < found[feed].seq:  # reported only on a branch that other peers may lack
            found[feed] = Fork.decode(act.claim.evidence)
    new = [fork for feed, fork in sorted(found.items()) if fork.seq < told.get(feed, NO_END)]
    return [member.write_claim(Equivocated(fork.feed, fork.seq, fork.encode())) for fork in new]


def untold(member: Membership) -> list[list[bytes]]:
    """Return the credentials that other peers need, but may lack, because they are only past forks; each with its rest.

    About epochs, those are the votes that gave a genesis its quorum, and the geneses that this device has attested. So
    nobody can make a device repeat more than one genesis for each of its own votes, and each vote of a genesis with a
    quorum. Admissions of data feeds are repeated as well. They are void past the fork, but members have seen messages
    of those feeds, and a peer that does not know such a feed would wait for it and for all that they wrote since. Only
    as many are repeated as count, first those of feeds with blocks here; the others wait for the next final epoch.
    """
    new = _votes(member) + _admissions(member)
    return [[credential_of(block) for block in member.machine.blocks(act)] for act in new]


def _admissions(member: Membership) -> list[Act]:
    machine = member.machine
    authority = machine.authority
    past: dict[bytes, Act | bytes] = dict(machine.settled.admitted())  # the act, or the hash of its block
    told: set[bytes] = set()
    for act in machine.acts():
        admission = act.claim
        if not isinstance(admission, FeedAdmission) or admission.kind is not FeedKind.DATA:
            continue
        if act.stamp.seq < machine.common(act.stamp.feed):
            if not authority.feeds.is_spent(act, admission):  # else nobody knows the feed by it
                told.add(admission.feed)
        else:
            if not isinstance(past.get(admission.feed), Act):
                past[admission.feed] = act
    new = [feed for feed in past if feed not in told]
    if not new or member.control is None:
        return []
    left = authority.budgets.repeats_left(member.control.feed, machine.delivered(member.control.feed))
    chosen = sorted(new, key=lambda feed: (not member.holds(feed), feed))[: max(0, left)]
    found = [past[feed] for feed in chosen]
    acts = [machine.stray(one) if isinstance(one, bytes) else one for one in found]
    return [act for act in acts if act is not None]


def _votes(member: Membership) -> list[Act]:
    machine = member.machine
    chain = machine.epochs()
    wanted = _needed(chain, bytes(member.device.key))
    past: list[Act] = []
    told: dict[tuple[object, bytes], set[bytes]] = defaultdict(set)  # what others can read, by what it says and signer
    for act in machine.acts():
        if isinstance(act.claim, EpochGenesis | EpochAttestation) and _name(act) in wanted and not act.expires_ms:
            if act.stamp.seq < machine.common(act.stamp.feed):
                for signer in _signers(act, chain):
                    told[_said(act), signer].add(act.digest)
            else:
                past.append(act)
    found: list[Act] = []
    for act in sorted(past, key=lambda act: act.digest):
        words = [told[_said(act), signer] for signer in _signers(act, chain)]
        most = 1 if isinstance(act.claim, EpochGenesis) else _WORDS_MAX
        if any(act.digest not in known and len(known) < most for known in words):
            for known in words:
                known.add(act.digest)
            found.append(act)
    return found


def _needed(chain: EpochChain, device: bytes) -> set[tuple[int, bytes]]:
    """Return the geneses, by number and digest, that others must be able to read."""
    own = chain.own(device).attested.values()
    return set(chain.won) | {(chain.open.number, choice.digest) for choices in own for choice in choices}


def _name(act: Act) -> tuple[int, bytes]:
    claim = act.claim
    assert isinstance(claim, EpochGenesis | EpochAttestation)
    return claim.number, act.digest if isinstance(claim, EpochGenesis) else claim.genesis


def _said(act: Act) -> object:
    """Return what a vote says: however often it is signed, two are as good as many. Each genesis is one of its own."""
    return act.digest if isinstance(act.claim, EpochGenesis) else act.claim


def _signers(act: Act, chain: EpochChain) -> frozenset[bytes]:
    """Return the signers who matter: of a genesis, those who can declare it; of a vote, those who gave a quorum."""
    if isinstance(act.claim, EpochGenesis):
        config = chain.electorate(act.claim.number)
        return frozenset() if config is None else act.signers & config.declarers
    return act.signers.intersection(chain.won.get(_name(act), ()))
