"""Barren acts in an `Authority`: which acts are barren, and the few questions that still concern them.

A barren act takes part in no answer about rights. It counts in budgets (`budgets.py`), a narrowing may mean it, and the
reason of a data message may rest on an admission beyond a budget. Admissions beyond a budget are recalled when an epoch
begins a new count, and for the rights without budgets if their subject has a control feed, or members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.barren_acts import GRANTS, MEMBERS, SPENT, BarrenActs, BarrenKind
from antiphon.halo.credentials.claims import (
    OWNERS,
    Continuation,
    DeviceAdmission,
    Equivocated,
    FeedAdmission,
    FeedEnd,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    Narrowing,
    Policy,
)
from antiphon.halo.rights.grant_checks import may_take_at_all
from antiphon.halo.rights.inheritance import may_end
from antiphon.halo.rights.runs import group_of

if TYPE_CHECKING:
    from antiphon.halo.rights.authority import Authority
    from antiphon.halo.rights.budgets import Budgets


def is_barren(authority: Authority, generous: Authority, act: Act) -> bool:
    """True if an act of a history is void whatever else arrives, or beyond its feed's budget until an epoch is final.

    `generous` are the rights if nothing were ever taken away, no budget counted and every policy let editors admit. The
    true ones are never more, and both depend on nothing but what the act has seen.
    """
    claim = act.claim
    if claim is None or isinstance(claim, Continuation):
        return True  # unreadable; or a part of the act before it, which has read it
    if isinstance(claim, DeviceAdmission):
        return True  # a device is admitted with a feed
    if isinstance(claim, FeedAdmission):
        return claim.kind is FeedKind.DATA and authority.feeds.is_spent(act, claim)
    if isinstance(claim, Policy):
        return not generous.valid_policy(act)
    if isinstance(claim, Narrowing):
        return not may_take_at_all(generous, act)
    if isinstance(claim, FeedEnd):
        return not may_end(generous, act, claim)
    if isinstance(claim, Equivocated):
        return repeats_evidence(authority, act, claim)
    return isinstance(claim, MemberAdmission | GroupAdmission) and not generous.valid_grant(act)


def repeats_evidence(authority: Authority, act: Act, claim: Equivocated) -> bool:
    """True if the history of the same feed has evidence before this that a feed is forked there, or earlier."""
    places = (place for place in authority.forks.get(claim.feed, ()) if place is not None)
    before = (authority.act(place) for place in places if place.feed == act.stamp.feed and place.seq < act.stamp.seq)
    told = (first.claim for first in before if first is not None)
    return any(isinstance(first, Equivocated) and first.length <= claim.length for first in told)


def spent_kind(authority: Authority, generous: Authority, act: Act) -> BarrenKind | None:
    """Return which budget an admission of a member is beyond, so that it is void until an epoch is final; or None.

    What an editor may give is less than what an owner may; whoever is no owner by the `generous` rights is none at all.
    """
    if not isinstance(act.claim, MemberAdmission) or act.claim.subject in authority.mentioned:
        return None
    if authority.budgets.overspent_by_editor(act) and not generous.permits(act.place, OWNERS, act.stamp):
        return BarrenKind.EDITOR_SPENT
    return BarrenKind.SPENT if authority.budgets.spent(act) else None


class BarrenIndex:
    """The barren acts that an authority counts, by control feed: those below a seq."""

    def __init__(self) -> None:
        self._tables: dict[bytes, tuple[BarrenActs, int]] = {}

    def copy(self) -> BarrenIndex:
        """Return an index of its own."""
        made = BarrenIndex()
        made._tables = dict(self._tables)
        return made

    def add(self, barren: BarrenActs, stop: int) -> None:
        """Take the barren acts of a feed before `stop`."""
        self._tables[barren.feed] = barren, stop

    def means(self, subject: bytes) -> bool:
        """True if a barren grant has this subject."""
        tables = self._tables.values()
        return any(barren.about(subject, says, stop) for barren, stop in tables for says in GRANTS)

    def or_last(self, grants: Iterable[Act], subject: bytes, group: bytes, place: Place) -> Iterable[Act]:
        """Return the last grants to a subject that a place has seen in each feed, or barren ones that are later."""
        found = {(group_of(grant), grant.stamp.feed): grant for grant in grants}
        for into, barren, seq in self._seen_last(subject, group, place):
            known = found.get((into, barren.feed))
            if known is None or known.stamp.seq < seq:
                found[into, barren.feed] = barren.recall(seq)
        return found.values()

    def _seen_last(self, subject: bytes, group: bytes, place: Place) -> Iterator[tuple[bytes, BarrenActs, int]]:
        """Yield the last barren grant to a subject that a place has seen in each feed: its group, table and seq."""
        for barren, stop in self._tables.values():
            reach = min(stop, place.reach(barren.feed))
            last = {barren.group_at(seq): seq for seq in barren.about(subject, BarrenKind.GROUP, reach)}
            roles = [seq for says in MEMBERS for seq in barren.about(subject, says, reach)[-1:]]
            if roles:
                last[b""] = max(roles)
            yield from ((into, barren, seq) for into, seq in last.items() if group in (b"", into))

    def counting(self, budgets: Budgets) -> Iterator[Act]:
        """Yield the admissions of members that were beyond a budget, and are within it now."""
        for barren, stop in self._tables.values():
            for says in SPENT if barren.those(SPENT, 0, stop) else ():
                for low, high in budgets.counting(barren.feed, says):
                    yield from map(barren.recall, barren.seqs_of((says,), low, min(high, stop)))

    def spent(self, subjects: Collection[bytes]) -> Iterator[Act]:
        """Yield the admissions of some subjects that are beyond a budget."""
        tables = [table for table in self._tables.values() if subjects and table[0].those(SPENT, 0, table[1])]
        for subject in subjects if tables else ():
            for barren, stop in tables:
                for says in SPENT:
                    yield from map(barren.recall, barren.about(subject, says, stop))

    def admissions(self, feed: bytes) -> Iterator[Act]:
        """Yield the admissions of a data feed, by its own device, that are beyond the budget."""
        for barren, stop in self._tables.values():
            yield from map(barren.recall, barren.about(feed, BarrenKind.ADMISSION, stop))
