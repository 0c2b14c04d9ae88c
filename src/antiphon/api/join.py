"""Open the feeds of this device in a party, once its identity is admitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.api import child_party
from antiphon.party.epochs.renewal import drop_ended_feeds

if TYPE_CHECKING:
    from antiphon.api.party import Party


def join(party: Party) -> None:
    """Open the feeds of this device, unless they are open, or its identity is no member."""
    if party.processor.rest() is not None:
        return  # nothing has come since they were open
    member = party.member
    admitted = party.store.may_vouch and drop_ended_feeds(party.processor, member)
    if member.control is not None or not admitted:
        child_party.apply_parent_revocations(party)
        return
    with party.processor.locked():
        if child_party.genesis_in_force(party) and member.control is None:  # no other thread was quicker
            member.join(member.vouch(party.store.identity))
