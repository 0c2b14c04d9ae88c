"""`JudgingOrder`: the grants and policies of an `Authority`, in the order in which it judges them, oldest first."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter

from antiphon.core.stamp import Stamp
from antiphon.halo.acts.act import Act
from antiphon.halo.credentials.claims import Policy
from antiphon.halo.rights.policies import PolicyIndex
from antiphon.halo.rights.runs import GrantIndex

STAMP = attrgetter("stamp")


class JudgingOrder:
    """Grants and policies that were judged, valid or void, oldest first; and those that are to be judged.

    Each depends on older ones only. So if one comes late, or the answer about one is in doubt, those from there on are
    judged again, and the older ones stay.
    """

    def __init__(self) -> None:
        self.judged: list[Act] = []  # oldest first
        self._fresh: list[Act] = []

    def copy(self) -> JudgingOrder:
        """Return an order of its own."""
        made = JudgingOrder()
        made.judged, made._fresh = list(self.judged), list(self._fresh)
        return made

    @property
    def settled(self) -> bool:
        """True if all of them were judged."""
        return not self._fresh

    def add(self, act: Act) -> None:
        """Take a grant or a policy that is to be judged."""
        self._fresh.append(act)

    def restart(self) -> None:
        """Have all of them judged again."""
        self._fresh += self.judged
        self.judged = []

    def reaches(self, stamp: Stamp) -> bool:
        """True if one was judged that is not older than a stamp."""
        return bool(self.judged) and stamp <= self.judged[-1].stamp

    def take(self, doubt: Stamp | None, granted: GrantIndex, policies: PolicyIndex) -> list[Act]:
        """Return those that are to be judged, oldest first: new ones, and all from the oldest of them, or a doubt, on.

        The indexes of valid grants and policies forget them. If they are most of all, all are judged again.
        """
        stamps = [act.stamp for act in self._fresh] + ([] if doubt is None else [doubt])
        start = bisect_left(self.judged, min(stamps), key=STAMP) if stamps else len(self.judged)
        if 2 * start <= len(self.judged):
            start = 0
            granted.clear()
            policies.clear()
        for act in self.judged[start:] if start else ():
            (policies if isinstance(act.claim, Policy) else granted).unsettle(act)
        fresh = sorted([*self.judged[start:], *self._fresh], key=STAMP)
        self.judged[start:] = fresh
        self._fresh = []
        return fresh
