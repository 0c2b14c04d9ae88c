"""The author of a message at its place, and the messages that were erased with the right to do so."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from antiphon.core.reasons import Reason, because
from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.barren_acts import Seqs
from antiphon.halo.acts.grant import expired
from antiphon.halo.credentials.claims import OWNERS, FeedKind, Position
from antiphon.halo.rights.kept_acts import KeptActs
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
    found: list[int] = []
    last, floor = None, 0
    for act, seq in authority.erasures.of(feed):
        if act is not last:  # the positions of an act come together, and are judged once: they are of one feed
            last, takes = act, erasable(authority, act, Position(feed, seq))
            floor = authority.floors.of(act.position, feed) if takes else NO_END
        if seq >= floor:
            found.append(seq)
    parts = [np.array(found, dtype=np.int64)]
    for kept, rows, seqs in authority.erasures.rows(feed):
        taking = _taking(authority, kept, rows, feed)
        parts.append(seqs[taking[rows] & (seqs >= authority.floors.at(kept.feed, kept.acts.seqs[rows], feed))])
    return authority.erasures.seqs(feed, np.concatenate(parts))


def _taking(authority: Authority, kept: KeptActs, rows: Seqs, feed: bytes) -> npt.NDArray[np.bool_]:
    """Return for each row of columns whether its act is among these, and an erasure that takes messages of a feed."""
    erased, writer, about = authority.owner(feed), authority.owner(kept.feed), Position(feed, 0)
    found, wanted = np.zeros((2, len(kept.acts)), dtype=np.bool_)
    if erased is None or writer is None:
        return found
    wanted[rows] = True
    own = erased.identity == writer.identity
    for act, same in kept.by_word(kept.lasting(np.flatnonzero(wanted))):
        if own:  # if the first takes, so do all before the end of the control feed
            found[same[: bisect_left(same, True, key=lambda row: not erasable(authority, kept.act(row), about))]] = True
        elif writer.identity in act.signers and not OWNERS.isdisjoint(authority.once(writer.identity)):
            found[same] = [erasable(authority, kept.act(row), about) for row in same.tolist()]
    return found
