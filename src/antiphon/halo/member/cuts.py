"""The cuts that an act of this device names: where feeds stand now, as far as it matters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Flag
from antiphon.feed.store.reader import FeedReader
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
        may = roles if owner.kind is FeedKind.CONTROL else roles & EDITORS
        if may and authority.budgets.counts(feed, owner):
            found[feed] = length
    return found


def earlier(member: Membership, store: FeedReader, cuts: dict[bytes, int], before: Stamp) -> dict[bytes, int]:
    """Move cuts back to what was written before a message, by the total order: not below the last final epoch.

    A batch counts as a whole or not at all. The feed in which the act will stand keeps its cut: else it would be void.
    """
    last = member.machine.epochs().last
    if last is not None and before.seq < last.length(before.feed):
        raise InvalidInput(
            f"epoch {last.number} holds block {before.seq} of feed {before.feed.hex()[:8]}, and what it holds is "
            "final; name a later message"
        )
    own = None if member.control is None else bytes(member.control.feed)
    found = {}
    for feed, length in cuts.items():
        end = length
        if feed != own:
            floor = max(store.bounds(feed).start, 0 if last is None else last.length(feed))
            seqs = range(floor, length)
            end = floor + bisect_left(seqs, before, key=lambda seq, feed=feed: store.block(feed, seq).stamp)  # type: ignore[misc]
            while floor < end < length and store.block(feed, end - 1).flags & Flag.MORE:
                end -= 1
        found[feed] = end
    return found


def with_own(member: Membership, cuts: dict[bytes, int]) -> dict[bytes, int]:
    """Add the blocks of the act itself, if it cuts the feed that it stands in: they still count."""
    control = None if member.control is None else bytes(member.control.feed)
    if control is None or control not in cuts:
        return cuts
    return {**cuts, control: cuts[control] + block_count(cuts)}
