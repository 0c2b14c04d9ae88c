"""`Disagreement`: what a device holds against a final epoch."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.core.cid import Cid


@dataclass(frozen=True, slots=True)
class Disagreement:
    """This device came to another snapshot than the party did. It goes on with its own until somebody decides."""

    number: int
    theirs: Cid
    ours: Cid
