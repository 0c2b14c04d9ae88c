"""Erasing messages: they are void everywhere at once. `party.epochs.erasing` takes their bytes away later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.halo.credentials.claims import Position

if TYPE_CHECKING:
    from antiphon.api.party import Party


def erase(party: Party, stamps: Iterable[Stamp]) -> None:
    """Make messages void everywhere: one's own, or as an owner anybody's. What a final epoch holds stays in it."""
    named = list(stamps)
    if not named or not all(isinstance(stamp, Stamp) for stamp in named):
        raise InvalidInput(
            f"party {party.key.short}: what is erased is named by the stamps of messages, as `history` has them"
        )
    with party.processor.locked():
        party.member.erase(*{Position(stamp.feed, stamp.seq) for stamp in named})
    party.refresh()
