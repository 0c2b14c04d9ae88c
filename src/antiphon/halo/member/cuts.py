"""The cuts that an act of this device names: where feeds stand now, as far as it matters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from antiphon.halo.acts.grant import Owner
from antiphon.halo.credentials.claims import EDITORS, FeedKind, Roles
from antiphon.halo.credentials.lists import block_count

if TYPE_CHECKING:
    from antiphon.halo.member.membership import Membership


def open_lengths(member: Membership, feeds: Iterable[tuple[bytes, Owner]]) -> dict[bytes, int]:
    """Return the length held of each feed that ever had a right to write and goes beyond the last final epoch.

    Any other feed ends at that epoch, or at nothing, without being named: else one who has the right to open feeds
    could make the list as long as it likes.
    """
    authority, last = member.machine.authority, member.machine.epochs().last
    authority.settle()
    lengths, known = member.lengths(), dict[bytes, Roles]()
    found: dict[bytes, int] = {}
    for feed, owner in feeds:
        length = lengths[feed]
        if length <= (0 if last is None else last.length(feed)):
            continue
        if owner.identity not in known:
            known[owner.identity] = authority.once(owner.identity)
        roles = known[owner.identity]
        if roles if owner.kind is FeedKind.CONTROL else roles & EDITORS:
            found[feed] = length
    return found


def with_own(member: Membership, cuts: dict[bytes, int]) -> dict[bytes, int]:
    """Add the blocks of the act itself, if it cuts the feed that it stands in: they still count."""
    control = None if member.control is None else bytes(member.control.feed)
    if control is None or control not in cuts:
        return cuts
    return {**cuts, control: cuts[control] + block_count(cuts)}
