"""Idle votes: those that count for nobody, by the attesters of their number. They are set aside, and found again.

A vote counts for its writer, or, if others have signed it, as a copy of theirs. If none of them is an attester of its
number, or the number is not open yet, no answer about epochs depends on it. The attesters of a number may become
others: the first policy of the founder comes, an epoch becomes final, or attesters lie. Then their votes are *woken*.

A genesis counts if an attester of its number has signed it, or the device that declares in term 0: only these can be
elected. Any other is idle like a vote.

A refusal counts for nobody, and is told to people. It is idle as long as nobody has declared what it refuses, and for
ever if its feed has refused the same before, or if it stands beyond a fork.
"""

from __future__ import annotations

import numpy as np

from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act
from antiphon.halo.acts.barren_acts import SIGNED, BarrenActs, BarrenKind, name_of
from antiphon.halo.credentials.claims import EpochAttestation, EpochEndorsement, EpochGenesis, EpochRefusal
from antiphon.halo.finality.epoch_chain import EpochChain, may_refuse
from antiphon.halo.finality.epoch_values import EpochConfig


def idle_kind(chain: EpochChain, act: Act) -> BarrenKind | None:
    """Return how an idle vote is set aside; None for a vote that may count, and for any other act."""
    claim, device = act.claim, chain.feeds.get(act.stamp.feed)
    if isinstance(claim, EpochRefusal):
        return _idle_refusal(chain, act, claim)
    if not isinstance(claim, EpochGenesis | EpochAttestation | EpochEndorsement) or device is None:
        return None
    if act.expires_ms or (device not in act.signers and isinstance(claim, EpochEndorsement)):
        return BarrenKind.NOTHING  # for ever
    config = chain.electorate(claim.number)
    if isinstance(claim, EpochGenesis):
        return BarrenKind.GENESIS if config is None or act.signers.isdisjoint(config.declarers) else None
    kind, voters = BarrenKind.COPIED_VOTE, act.signers
    if device in act.signers:
        kind, voters = BarrenKind.VOTE, frozenset({device})
    return kind if config is None or voters.isdisjoint(config.attesters) else None


def _idle_refusal(chain: EpochChain, act: Act, claim: EpochRefusal) -> BarrenKind | None:
    name, device = name_of(claim), chain.feeds.get(act.stamp.feed)
    if device is None:
        return None
    if not may_refuse(act, device) or chain.refused.get((act.stamp.feed, name), NO_END) < act.stamp.seq:
        return BarrenKind.NOTHING  # for ever
    return None if name in chain.declared else BarrenKind.REFUSAL


def branch_kind(chain: EpochChain, act: Act) -> BarrenKind | None:
    """Return how an idle vote on a branch is kept; None for a vote that may count there, and for any other act.

    Another first block may show that the feed is of another device. So a vote has the keys of all that have signed it.
    A vote whose lists go on is read each time: on another branch they may go on otherwise.
    """
    claim = act.claim
    if isinstance(claim, EpochRefusal):
        return BarrenKind.NOTHING  # only those in a history are told
    if not isinstance(claim, EpochGenesis | EpochAttestation | EpochEndorsement) or act.continued:
        return None
    if act.expires_ms:
        return BarrenKind.NOTHING  # for ever
    kind = BarrenKind.GENESIS if isinstance(claim, EpochGenesis) else BarrenKind.COPIED_VOTE
    config = chain.electorate(claim.number)
    return kind if config is None or act.signers.isdisjoint(_voters(config, kind)) else None


def woken(chain: EpochChain, barren: BarrenActs) -> list[int]:
    """Return the seqs of the votes and geneses of a control feed, of those set aside, that may count by this chain."""
    found: list[int] = barren.seqs[may_count(chain, barren)].tolist()
    for name, seq in barren.refusals(chain.declared).items():
        if seq < chain.refused.get((barren.feed, name), NO_END):
            found.append(seq)
    return found


def may_count(chain: EpochChain, barren: BarrenActs) -> list[int]:
    """Return the places in columns of the votes and geneses of a feed that may count by this chain."""
    configs = (*chain.decided, chain.open.config)
    found: list[int] = []
    device = chain.feeds.get(barren.feed, b"")
    wanted = [config.number for config in configs if device in config.attesters]
    if wanted and BarrenKind.VOTE in barren.kinds:
        places, numbers = barren.votes(BarrenKind.VOTE)
        found += places[np.isin(numbers, wanted)].tolist()
    for kind in barren.kinds.intersection(SIGNED):
        places, numbers = barren.votes(kind)
        for number in np.unique(numbers[(numbers > 0) & (numbers <= len(configs))]).tolist():
            found += barren.signed(places[numbers == number], _voters(configs[number - 1], kind))
    return found


def _voters(config: EpochConfig, kind: BarrenKind) -> frozenset[bytes]:
    return config.declarers if kind is BarrenKind.GENESIS else frozenset(config.attesters)
