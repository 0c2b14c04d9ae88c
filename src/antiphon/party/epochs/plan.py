"""What an epoch is computed from, as it was declared: cut, control state, models, and the policy of that time."""

from __future__ import annotations

from antiphon.core.timeframe import Timeframe
from antiphon.halo.acts.act import Place
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import EpochGenesis, Policy
from antiphon.halo.finality import voting
from antiphon.halo.finality.epoch_chain import EpochChain
from antiphon.halo.finality.epoch_values import FinalEpoch
from antiphon.model.model import Discard
from antiphon.party.epochs.snapshot_fold import EpochPlan


def policy_at(machine: PartyMachine, control: Timeframe) -> Policy:
    """What the party had agreed on at a timeframe of its control feeds."""
    now = machine.authority
    if machine.parent is None and not now.forks and control == machine.timeframe():
        now.settle()  # it is what stands there now: no other judge need be made
        return now.policy(Place(b"", 0, dict(control)))
    return machine.at(control).policy(Place(b"", 0, dict(control)))


def common_control(machine: PartyMachine) -> Timeframe:
    """What is here of the control feeds, without what lies beyond forks: others hold other blocks there."""
    machine.authority.settle()
    ends = machine.fork_ends
    common = {feed: min(seq, ends.get(feed, seq + 1) - 1) for feed, seq in machine.timeframe().items()}
    return Timeframe({feed: seq for feed, seq in common.items() if seq >= 0})


def declared_again(chain: EpochChain, term: int, snapshot: bytes) -> EpochGenesis:
    """What endorsers have attested in an earlier term, declared as it was."""
    known = voting.declared(chain, snapshot)
    assert known is not None  # or it would not be this device's turn
    return EpochGenesis(
        term, known.number, known.previous, known.cut, known.control, snapshot, known.created_ms, known.models
    )


def plan_of(machine: PartyMachine, declared: EpochGenesis | FinalEpoch) -> EpochPlan:
    """How to compute the snapshot of an epoch that somebody has declared."""
    policy = policy_at(machine, declared.control)
    return EpochPlan(
        declared.number,
        dict(declared.cut),
        declared.control,
        declared.created_ms,
        tuple((key[0], key[1], key[2]) for key in declared.models),
        Discard(declared.created_ms, policy.message_age_ms, policy.message_count),
        policy.deleted_epochs,
    )
