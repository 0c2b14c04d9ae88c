"""Barren acts in an `Authority`: which acts are barren, and the few questions that still concern them.

A barren act takes part in no answer about rights. It counts in budgets (`budgets.py`), a narrowing may mean it, and the
reason of a data message may rest on an admission beyond a budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.barren_acts import GRANTS, BarrenActs, BarrenKind
from antiphon.halo.credentials.claims import (
    Continuation,
    FeedAdmission,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    Policy,
)

if TYPE_CHECKING:
    from antiphon.halo.rights.authority import Authority


def is_barren(authority: Authority, generous: Authority, act: Act) -> bool:
    """True if an act of a history is void whatever else arrives, or beyond its feed's budget until an epoch is final.

    `generous` are the rights if nothing were ever taken away, no budget counted and every policy let editors admit. The
    true ones are never more, and both depend on nothing but what the act has seen.
    """
    claim = act.claim
    if claim is None or isinstance(claim, Continuation):
        return True  # unreadable; or a part of the act before it, which has read it
    if isinstance(claim, FeedAdmission):
        return claim.kind is FeedKind.DATA and authority.feeds.is_spent(act, claim)
    if isinstance(claim, Policy):
        return not generous.valid_policy(act)
    return isinstance(claim, MemberAdmission | GroupAdmission) and not generous.valid_grant(act)


class BarrenIndex:
    """The barren acts that an authority counts, by control feed: those below a seq."""

    def __init__(self) -> None:
        self._tables: dict[bytes, tuple[BarrenActs, int]] = {}

    def add(self, barren: BarrenActs, stop: int) -> None:
        """Take the barren acts of a feed before `stop`."""
        self._tables[barren.feed] = barren, stop

    def means(self, subject: bytes) -> bool:
        """True if a barren grant has this subject."""
        tables = self._tables.values()
        return any(barren.about(subject, says, stop) for barren, stop in tables for says in GRANTS)

    def seen_last(self, subject: bytes, group: bytes, place: Place) -> Iterator[tuple[bytes, BarrenActs, int]]:
        """Yield the last barren grant to a subject that a place has seen in each feed: its group, table and seq."""
        for barren, stop in self._tables.values():
            reach = min(stop, place.reach(barren.feed))
            last = {barren.group_at(seq): seq for seq in barren.about(subject, BarrenKind.GROUP, reach)}
            roles = barren.about(subject, BarrenKind.MEMBER, reach)
            if roles:
                last[b""] = roles[-1]
            yield from ((into, barren, seq) for into, seq in last.items() if group in (b"", into))

    def admissions(self, feed: bytes) -> Iterator[Act]:
        """Yield the admissions of a data feed, by its own device, that are beyond the budget."""
        for barren, stop in self._tables.values():
            yield from map(barren.recall, barren.about(feed, BarrenKind.ADMISSION, stop))
