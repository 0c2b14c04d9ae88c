"""Idle votes: those that count for nobody, by the attesters of their number. They are set aside, and found again.

A vote counts for its writer, or, if others have signed it, as a copy of theirs. If none of them is an attester of its
number, or the number is not open yet, no answer about epochs depends on it. The attesters of a number may become
others: the first policy of the founder comes, an epoch becomes final, or attesters lie. Then their votes are *woken*.

A genesis counts if an attester of its number has signed it, or the device that declares in term 0: only these can be
elected. Any other is idle like a vote.

A refusal counts for nobody, and is told to people. It is idle as long as nobody has declared what it refuses, and if
its feed has refused the same before.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act
from antiphon.halo.acts.barren_acts import SIGNED, BarrenActs, BarrenKind, name_of
from antiphon.halo.acts.grant import expired
from antiphon.halo.credentials.claims import EpochAttestation, EpochEndorsement, EpochGenesis, EpochRefusal
from antiphon.halo.finality.epoch_chain import EpochChain, may_refuse


def idle_kind(chain: EpochChain, act: Act) -> BarrenKind | None:
    """Return how an idle vote is set aside; None for a vote that may count, and for any other act."""
    claim, device = act.claim, chain.feeds.get(act.stamp.feed)
    if isinstance(claim, EpochRefusal):
        return _idle_refusal(chain, act, claim)
    if not isinstance(claim, EpochGenesis | EpochAttestation | EpochEndorsement) or device is None:
        return None
    if expired(act) or (device not in act.signers and isinstance(claim, EpochEndorsement)):
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
    if not may_refuse(act, device) or _first(chain, act.stamp.feed, name) < (act.stamp.seq, act.hash):
        return BarrenKind.NOTHING  # for ever
    return None if name in chain.declared else BarrenKind.REFUSAL


def _first(chain: EpochChain, feed: bytes, name: bytes) -> tuple[int, bytes]:
    """Return seq and hash of the first refusal of an epoch by a feed, of those that are not set aside."""
    return chain.refused.get((feed, name), (NO_END, b""))


def woken(chain: EpochChain, barren: BarrenActs) -> list[int]:
    """Return the seqs of the votes and geneses of a control feed, of those set aside, that may count by this chain."""
    found: list[int] = barren.seqs[may_count(chain, barren)].tolist()
    for name, seq in barren.refusals(chain.declared).items():
        if seq < _first(chain, barren.feed, name)[0]:
            found.append(seq)
    return found


def refused_first(chain: EpochChain, feed: bytes, refusals: Mapping[bytes, tuple[int, bytes]]) -> list[bytes]:
    """Return the hashes of the refusals, of these by name, that come before all that are known of their feed."""
    names = refusals.keys() & chain.declared
    return [refusals[name][1] for name in names if refusals[name] < _first(chain, feed, name)]


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
            config = configs[number - 1]
            voters = config.declarers if kind is BarrenKind.GENESIS else config.attesters
            found += barren.signed(places[numbers == number], voters)
    return found
