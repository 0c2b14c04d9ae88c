"""New feeds for a device whose feeds have ended: it was revoked and admitted again, or a feed of it was retired."""

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
        if _has_ended(party, member, member.control):
            member.control = member.find(FeedKind.CONTROL)
        if _has_ended(party, member, member.data):
            member.data = member.find(FeedKind.DATA)
            party.moved.update(engine.delivery.lanes)  # the new feed has recorded none of them as seen
        return True


def _has_ended(party: PartyProcessor, member: Membership, writer: FeedWriter | None) -> bool:
    if writer is None:
        return False
    return member.machine.authority.end(writer.feed) != NO_END or party.store.record(writer.feed).retired
