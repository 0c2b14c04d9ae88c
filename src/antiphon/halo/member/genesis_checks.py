"""Checks of an epoch genesis before it is attested: all that follow from the control feeds.

`antiphon.party` checks that the cut is closed over the data feeds, and that the snapshot is right.
"""

from __future__ import annotations

from collections.abc import Iterator

from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import (
    EpochGenesis,
    Equivocated,
    Erasure,
    FeedEnd,
    FeedKind,
    Narrowing,
    Policy,
    Role,
)
from antiphon.halo.finality.epoch_chain import genesis_problem
from antiphon.halo.finality.epoch_values import SKEW_MS, folded
from antiphon.halo.rights import narrowings
from antiphon.halo.rights.authority import Authority

_GENERATORS = frozenset({Role.OWNER, Role.EPOCH_GENERATOR})


def scrutinise(machine: PartyMachine, act: Act, now_ms: int) -> str:
    """Return why a genesis must be refused; "" if nothing in the control feeds speaks against it.

    Raises `MissingBlocks` if control blocks are missing: that is no refusal, and the caller waits.
    """
    said, chain = act.claim, machine.epochs()
    assert isinstance(said, EpochGenesis)
    claim = folded(said, chain.last)
    within = machine.at(claim.control, claim.control_hash)
    bound = forced(machine, act, claim)  # it may be final: what has come since then takes effect after this epoch
    reason = genesis_problem(act, said, chain.open.config, chain.last, chain.witnesses)
    reason = reason or ("" if bound else machine.rights.open_control(claim.control))
    if reason:
        return reason
    if machine.rights.rests_on(act):
        return "it rests on other blocks of control feeds than are here"
    if claim.created_ms > now_ms + (chain.open.config.policy.skew_ms or SKEW_MS):
        return "it claims to be created in the future, by more than policy allows"
    if act.signers.isdisjoint(chain.open.config.attesters) and not _may_generate(within, act, claim):
        return "its writer is no attester, and has not the role to declare epochs"
    if bound:
        return ""
    for feed, length in [*claim.cut.items(), *((feed, seq + 1) for feed, seq in claim.control.items())]:
        if length > machine.fork_ends.get(feed, length):
            return f"it goes beyond the fork of feed {feed.hex()[:8]}"
    unknown = next(_unknown(machine, claim, within), None)
    if unknown is not None:
        return f"its control timeframe lacks the {_name(unknown)} {unknown.stamp}, which is known here"
    return ""


def _may_generate(within: Authority, act: Act, claim: EpochGenesis) -> bool:
    """True if a device that signed a genesis has the role. A device that repeats the genesis does not matter."""
    place = Place(b"", 0, dict(claim.control))
    return any(
        owner.kind is FeedKind.CONTROL
        and owner.device in act.signers
        and within.end(feed) == NO_END
        and not _GENERATORS.isdisjoint(within.roles(owner.identity, place))
        for feed, owner in within.owners().items()
    )


def is_vouched(machine: PartyMachine, act: Act) -> bool:
    """True if a snapshot that cannot be computed here is right, and must become final for the party to proceed.

    The snapshot holds one branch of a forked feed, and is declared again because attesters have attested it. So at
    least one honest attester has computed it. Nobody else will ever hold that branch.
    """
    claim = act.claim
    assert isinstance(claim, EpochGenesis)
    ends, cut = machine.fork_ends, folded(claim, machine.epochs().last).cut
    return any(length > ends.get(feed, length) for feed, length in cut.items()) and forced(machine, act, claim)


def forced(machine: PartyMachine, act: Act, claim: EpochGenesis) -> bool:
    """True if a genesis declares again the snapshot that its endorsers have attested."""
    if not claim.term:
        return False
    ballot = machine.epochs().ballot
    demands = [ballot.demand(ballot.endorsers(claim.term, device, act.place)) for device in act.signers]
    return any(not demand.reason and demand.snapshot == claim.snapshot for demand in demands)


def _unknown(machine: PartyMachine, claim: EpochGenesis, within: Authority) -> Iterator[Act]:
    """Yield acts in force that take rights or messages away and would come too late for this epoch."""
    authority = machine.authority
    authority.settle()
    for act in (*machine.acts(), *machine.checkpoints.kept(claim.control)):
        if claim.control.includes(*act.position):
            continue
        if machine.is_stray(act) and not isinstance(act.claim, Equivocated):
            continue
        takes = isinstance(act.claim, FeedEnd | Erasure)
        takes = takes or (isinstance(act.claim, Policy) and act.claim.tightens)
        if isinstance(act.claim, Narrowing):  # one that takes nothing keeps nobody waiting
            takes = narrowings.takes(authority, act)
        if isinstance(act.claim, Equivocated):  # several members may report one fork: one report is enough
            takes = act.claim.length < within.common(act.claim.feed)
        if takes and not machine.judge(act):
            yield act
    if machine.parent is not None and within.parent is not None:
        yield from _unknown(machine.parent, claim, within.parent)


def _name(act: Act) -> str:
    names = {Narrowing: "narrowing", FeedEnd: "end of a device's feeds", Erasure: "erasure", Policy: "policy"}
    return names.get(type(act.claim), "evidence of a fork")
