"""Erase messages: they become void on all devices at once. `PartyEpochs.prune` deletes their bytes later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.halo.credentials.claims import Position

if TYPE_CHECKING:
    from antiphon.api.party import Party


def erase(party: Party, stamps: Iterable[Stamp]) -> None:
    """Implement `Party.erase`."""
    named = list(stamps)
    if not named or not all(isinstance(stamp, Stamp) for stamp in named):
        raise InvalidInput(
            f"party {party.key.short}: messages to erase are named by their stamps, as `history` lists them"
        )
    with party.processor.locked():
        party.member.erase(*{Position(stamp.feed, stamp.seq) for stamp in named})
    party.refresh()
