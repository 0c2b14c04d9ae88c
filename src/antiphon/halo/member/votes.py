"""Votes of a device about epochs. Each is checked against the device's earlier votes before it is written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from antiphon.core.errors import InvalidInput, NotAuthorised
from antiphon.core.stamp import Stamp
from antiphon.halo.acts.act import Act
from antiphon.halo.credentials.claims import EpochGenesis, EpochRefusal
from antiphon.halo.finality import voting
from antiphon.halo.finality.epoch_chain import EpochChain
from antiphon.halo.finality.epoch_values import FinalEpoch, moved
from antiphon.halo.member.genesis_checks import scrutinise

if TYPE_CHECKING:
    from antiphon.halo.member.membership import Membership


def declare(member: Membership, genesis: EpochGenesis, *, recovered: bool) -> Stamp:
    member.look_around()
    chain = _chain(member, recovered)
    device = bytes(member.device.key)
    if not genesis.control_hash:  # one that is declared again keeps its own: it may rest on other branches
        genesis = replace(genesis, control_hash=member.machine.control_hash(genesis.control))
    written = moved(genesis, chain.last)
    act = member.draft(written, frozenset({device}))
    _check(member, voting.may_declare(chain, device, genesis) or scrutinise(member.machine, act, member.now_ms()))
    return member.write_claim(written)


def attest(member: Membership, genesis: Act, *, recovered: bool) -> Stamp:
    chain = _chain(member, recovered)
    reason = voting.may_attest(chain, bytes(member.device.key), genesis)
    found = voting.find(chain, genesis)
    if not reason and found is not None:
        reason = scrutinise(member.machine, found.act, member.now_ms())
    _check(member, reason)
    return member.write_claim(voting.attestation(genesis))


def witness(member: Membership, epoch: FinalEpoch) -> Stamp | None:
    """Attest an epoch that is final already, if policy wants more attestations than it has."""
    try:
        claim = voting.witness(_chain(member, recovered=False), bytes(member.device.key))
    except NotAuthorised:  # it may not vote, or has lost a part of its feed
        return None
    known = claim is not None and claim.snapshot == epoch.snapshot
    return member.write_claim(claim) if claim is not None and known else None


def endorse(member: Membership, term: int, candidate: bytes, *, recovered: bool) -> Stamp:
    chain = _chain(member, recovered)
    device = bytes(member.device.key)
    _check(member, voting.may_endorse(chain, device, term, bytes(candidate)))
    return member.write_claim(voting.endorsement(chain, device, term, bytes(candidate)))


def refuse(member: Membership, genesis: Act, reason: str, computed: bytes) -> Stamp:
    member.refresh()
    claim = genesis.claim
    if not isinstance(claim, EpochGenesis):
        raise InvalidInput(f"{genesis.stamp} is no genesis of an epoch")
    if not member.is_heard:
        _check(member, "the control feed of this device has ended, so nobody would hear its refusal")
    return member.write_claim(EpochRefusal(claim.term, claim.number, claim.snapshot, computed, reason))


def _chain(member: Membership, recovered: bool) -> EpochChain:
    """Return the chain of epochs by everything in the store, if the device may vote at all."""
    member.refresh()
    chain = member.machine.epochs()
    if member.control is None:
        _check(member, "this device has no control feed; `join` first")
    else:
        device, feed = bytes(member.device.key), bytes(member.control.feed)
        _check(member, voting.forgetful(chain, device, feed, recovered=recovered or member.recovered))
    return chain


def _check(member: Membership, reason: str) -> None:
    if reason:
        raise NotAuthorised(f"party {member.party.short}: {reason}")
