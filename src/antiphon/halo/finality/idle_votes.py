"""Idle votes: those that count for nobody, by the attesters of their number. They are set aside, and found again.

A vote counts for its writer, or, if others have signed it, as a copy of theirs. If none of them is an attester of its
number, or the number is not open yet, no answer about epochs depends on it. The attesters of a number may become
others: the first policy of the founder comes, an epoch becomes final, or attesters lie. Then their votes are *woken*.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from antiphon.halo.acts.act import Act
from antiphon.halo.acts.barren_acts import BarrenActs, BarrenKind, Seqs, beginnings
from antiphon.halo.acts.grant import expired
from antiphon.halo.credentials.claims import EpochAttestation, EpochEndorsement
from antiphon.halo.finality.epoch_chain import EpochChain


def idle_kind(chain: EpochChain, act: Act) -> BarrenKind | None:
    """Return how an idle vote is set aside; None for a vote that may count, and for any other act."""
    claim, device = act.claim, chain.feeds.get(act.stamp.feed)
    if not isinstance(claim, EpochAttestation | EpochEndorsement) or device is None:
        return None
    if expired(act) or (device not in act.signers and isinstance(claim, EpochEndorsement)):
        return BarrenKind.NOTHING  # for ever
    kind, voters = BarrenKind.COPIED_VOTE, act.signers
    if device in act.signers:
        kind, voters = BarrenKind.VOTE, frozenset({device})
    config = chain.electorate(claim.number)
    return kind if config is None or voters.isdisjoint(config.attesters) else None


def woken(chain: EpochChain, barren: BarrenActs) -> list[int]:
    """Return the seqs of the votes of a control feed, of those that are set aside, that may count by this chain."""
    configs = (*chain.decided, chain.open.config)
    found: list[int] = []
    device = chain.feeds.get(barren.feed, b"")
    wanted = [config.number for config in configs if device in config.attesters]
    if wanted and BarrenKind.VOTE in barren.kinds:
        seqs, numbers, _ = barren.votes(BarrenKind.VOTE)
        found += seqs[np.isin(numbers, wanted)].tolist()
    if BarrenKind.COPIED_VOTE in barren.kinds:
        seqs, numbers, keys = barren.votes(BarrenKind.COPIED_VOTE)
        for number in np.unique(numbers[(numbers > 0) & (numbers <= len(configs))]).tolist():
            rows = numbers == number
            found += seqs[rows][_signed(keys[rows], configs[number - 1].attesters)].tolist()
    return found


def _signed(keys: Seqs, attesters: tuple[bytes, ...]) -> npt.NDArray[np.bool_]:
    """Return for each vote whether one of its keys begins like that of an attester."""
    known = np.frombuffer(b"".join(attesters), dtype=np.uint8).reshape(len(attesters), -1)
    found: npt.NDArray[np.bool_] = np.isin(keys, beginnings(known)).max(axis=1)
    return found
