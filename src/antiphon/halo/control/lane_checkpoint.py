"""`LaneCheckpoint`: what was found out about the blocks of one control feed, so that an opening reads few of them.

It is derived from blocks whose signatures and causes were checked, and is bound to the hash of the last of them. That
hash names all the blocks before it and all that their writer had seen; so a checkpoint is right wherever a feed has
that block at that place, and is used only there. Losing it costs time and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from antiphon.core.sightings import Sightings
from antiphon.halo.acts.act_columns import ActColumns
from antiphon.halo.acts.barren_acts import BarrenActs, Seqs
from antiphon.halo.control.branch_checkpoint import BranchCheckpoint


@dataclass(frozen=True, slots=True)
class LaneCheckpoint:
    """A control feed up to a block: its barren acts, acts that were read, what its writer had seen, and branches."""

    feed: bytes
    length: int
    hash: bytes  # of the last block
    barren: BarrenActs
    acts: ActColumns
    seen: Sightings
    valid: Seqs | None = None  # grants and policies in force, by all acts of all checkpoints; None: that is not known
    branches: BranchCheckpoint | None = None

    def __len__(self) -> int:
        """Return how many rows there are."""
        beyond = 0 if self.branches is None else len(self.branches)
        return len(self.barren) + len(self.acts) + len(self.seen) + beyond

    def live(self) -> list[int]:
        """Return the seqs of the acts that must be read from their blocks, in order."""
        wanted = np.ones(self.length, dtype=np.bool_)
        wanted[self.barren.seqs] = wanted[self.acts.seqs] = False
        seqs: list[int] = np.flatnonzero(wanted).tolist()
        return seqs
