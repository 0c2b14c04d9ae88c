"""A device that is admitted again goes on with new feeds: those that a revocation has ended never come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.halo.acts.grant import NO_END
from antiphon.halo.credentials.claims import FeedKind

if TYPE_CHECKING:
    from antiphon.feed.writer import FeedWriter
    from antiphon.halo.member.membership import Membership
    from antiphon.party.live.processor import PartyProcessor


def drop_ended_feeds(party: PartyProcessor, member: Membership) -> bool:
    """Let go of the device's feeds that have ended, as opening the party anew does; False if its identity is no member.

    `join` and `open_data_feed` then open others. Who may not join keeps them, and is told where they ended.
    """
    with party.locked() as engine:
        member.sync()
        if not member.machine.roles_of(member.device.identity):
            return False
        if _has_ended(member, member.control):
            member.control = member._own_feed(FeedKind.CONTROL)
        if _has_ended(member, member.data):
            member.data = member._own_feed(FeedKind.DATA)
            party.moved.update(engine.delivery.lanes)  # the new feed has seen none of them yet
        return True


def _has_ended(member: Membership, writer: FeedWriter | None) -> bool:
    return writer is not None and member.machine.authority.end(writer.feed) != NO_END
