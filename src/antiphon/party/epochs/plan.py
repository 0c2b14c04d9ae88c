"""The plan of a declared epoch: cut, control state, models, and the policy at that control state."""

from __future__ import annotations

from dataclasses import replace

from antiphon.core.timeframe import Timeframe
from antiphon.halo.acts.act import Place
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import EpochGenesis, Policy
from antiphon.halo.finality import voting
from antiphon.halo.finality.epoch_chain import EpochChain
from antiphon.halo.finality.epoch_values import FinalEpoch
from antiphon.model.model import Discard
from antiphon.party.epochs.snapshot_fold import EpochPlan


def policy_at(machine: PartyMachine, control: Timeframe, control_hash: bytes = b"") -> Policy:
    """Return the party's policy at a timeframe of its control feeds; beyond a fork the hash tells the branch."""
    now = machine.authority
    if machine.parent is None and not now.forks and control == machine.timeframe():
        now.settle()  # that timeframe is the present: no second judge is needed
        return now.policy(Place(b"", 0, dict(control)))
    return machine.at(control, control_hash).policy(Place(b"", 0, dict(control)))


def common_control(machine: PartyMachine) -> Timeframe:
    """Return the timeframe of the control feeds here, each up to its fork: beyond it other peers hold other blocks."""
    machine.authority.settle()
    ends = machine.fork_ends
    common = {feed: min(seq, ends.get(feed, seq + 1) - 1) for feed, seq in machine.timeframe().items()}
    return Timeframe({feed: seq for feed, seq in common.items() if seq >= 0})


def declared_again(chain: EpochChain, term: int, snapshot: bytes) -> EpochGenesis:
    """Return the genesis that endorsers attested in an earlier term, unchanged but for the new term."""
    known = voting.declared(chain, snapshot)
    assert known is not None  # or it would not be this device's turn
    return replace(known, term=term)


def plan_of(machine: PartyMachine, declared: EpochGenesis | FinalEpoch) -> EpochPlan:
    """Return the plan to compute the snapshot of a declared epoch."""
    policy = policy_at(machine, declared.control, declared.control_hash)
    return EpochPlan(
        declared.number,
        dict(declared.cut),
        declared.control,
        declared.created_ms,
        tuple((key[0], key[1], key[2]) for key in declared.models),
        Discard(declared.created_ms, policy.message_age_ms, policy.message_count),
        policy.deleted_epochs,
        declared.control_hash,
    )
