"""New feeds for a device that was revoked and admitted again: a feed that a revocation has ended stays ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.feed.header import NO_END
from antiphon.halo.credentials.claims import FeedKind

if TYPE_CHECKING:
    from antiphon.feed.writer import FeedWriter
    from antiphon.halo.member.membership import Membership
    from antiphon.party.live.processor import PartyProcessor


def drop_ended_feeds(party: PartyProcessor, member: Membership) -> bool:
    """Forget the device's ended feeds, as reopening the party does. False if its identity is no member.

    `join` and `open_data_feed` then open new feeds. A device that may not join keeps its feeds, and writing to them
    raises an error that says where they ended.
    """
    with party.locked() as engine:
        member.refresh()
        if not member.machine.roles_of(member.device.identity):
            return False
        if _has_ended(member, member.control):
            member.control = member._own_feed(FeedKind.CONTROL)
        if _has_ended(member, member.data):
            member.data = member._own_feed(FeedKind.DATA)
            party.moved.update(engine.delivery.lanes)  # the new feed has recorded none of them as seen
        return True


def _has_ended(member: Membership, writer: FeedWriter | None) -> bool:
    return writer is not None and member.machine.authority.end(writer.feed) != NO_END
