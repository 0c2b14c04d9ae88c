"""The author of a message at its place, and the messages that were erased with the right to do so."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from antiphon.core.reasons import Reason, because
from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.grant import expired
from antiphon.halo.credentials.claims import OWNERS, FeedKind, Position
from antiphon.halo.rights.narrowings import left_of

if TYPE_CHECKING:
    from antiphon.halo.rights.authority import Authority

GROUPS_MAX = 256  # that count for the author of a message
NOT_ERASABLE = because(
    Reason.ERASES,
    "only an owner, or the identity whose feed it is, may erase a message, with the identity's own key; "
    "a device alone erases messages of its own feeds",
)


def author_at(authority: Authority, place: Place) -> tuple[bytes, tuple[bytes, ...], bool]:
    """Return the author of a message: the identity, its groups at that place, and if it is an owner."""
    owner = authority.owner(place.feed)
    if owner is None:
        opener = authority.untaken(place.feed).owner(place.feed)
        return place.feed if opener is None else opener.identity, (), False
    groups: dict[bytes, bool] = {}
    for last in (False, True):  # the key of a group may take anybody into it: those come last, and not all
        fresh = deque([owner.identity, *groups])
        while fresh:
            for run in authority.runs(fresh.popleft()):
                group = run.key.group
                wanted = group and group not in groups and (last or not run.key.own_word)
                if wanted and len(groups) < GROUPS_MAX and left_of(authority, run, place, None):
                    groups[group] = True
                    fresh.append(group)
    return owner.identity, tuple(sorted(groups)), authority.permits(place, OWNERS)


def erasable(authority: Authority, act: Act, position: Position) -> bool:
    """True if an erasure takes a message (rule 27).

    A device erases messages of its own feeds. Any other message takes the key of an identity: the writer's, or an
    owner's. So a stolen device cannot hide what the other devices of its identity wrote.
    """
    if not authority.signed_by_writer(act) or expired(act) or not authority.alive(act.place):
        return False
    erased, writer = authority.owner(position.feed), authority.owner(act.stamp.feed)
    if erased is None or writer is None or erased.kind is not FeedKind.DATA:
        return False
    own = erased.identity == writer.identity
    if writer.identity in act.signers:
        return own or authority.permits(act.place, OWNERS)
    return own and erased.device == writer.device


def erased_in(authority: Authority, feed: bytes) -> frozenset[int]:
    """Return the messages of a data feed that an erasure makes void. Messages in an earlier epoch stay in its base."""
    found: set[int] = set()
    last, floor = None, 0
    for act, seq in authority.erasures.get(feed, ()):
        if act is not last:  # the positions of an act come together, and are judged once: they are of one feed
            last, takes = act, erasable(authority, act, Position(feed, seq))
            floor = authority.floors.of(act.position, feed) if takes else NO_END
        if seq >= floor:
            found.add(seq)
    return frozenset(found)
