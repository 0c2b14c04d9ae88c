"""The policy at a place: the last one seen there, or a tightening policy with a cut before it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import TYPE_CHECKING

from antiphon.core.stamp import Stamp
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.grant import expired
from antiphon.halo.credentials.claims import OWNERS, Policy, Role
from antiphon.halo.rights.floors import Floors
from antiphon.halo.rights.runs import Run

if TYPE_CHECKING:
    from antiphon.halo.rights.authority import Authority

DEFAULT_POLICY = Policy()


class PolicyIndex:
    """The policies of a party in runs by feed: those in force, and those that tighten."""

    def __init__(self) -> None:
        self.first: Stamp | None = None  # that of the oldest
        self._valid: dict[bytes, Run[None]] = {}
        self._tightenings: dict[bytes, Run[None]] = {}  # in force or not

    def copy(self) -> PolicyIndex:
        """Return an index of its own."""
        made = PolicyIndex()
        made.first = self.first
        made._valid = {feed: run.copy() for feed, run in self._valid.items()}
        made._tightenings = {feed: run.copy() for feed, run in self._tightenings.items()}
        return made

    @property
    def tightens(self) -> bool:
        """True if a policy tightens, in force or not."""
        return bool(self._tightenings)

    def add(self, act: Act) -> Stamp:
        """Take a policy, valid or void. Return the stamp of the oldest."""
        self.first = act.stamp if self.first is None else min(act.stamp, self.first)
        if isinstance(act.claim, Policy) and act.claim.tightens:
            self._tightenings.setdefault(act.stamp.feed, Run(None, act.stamp.feed)).add(act)
        return self.first

    def clear(self) -> None:
        """Forget which policies are valid."""
        self._valid.clear()

    def settle(self, act: Act) -> None:
        """Take a valid policy. They come oldest first."""
        self._valid.setdefault(act.stamp.feed, Run(None, act.stamp.feed)).add(act)

    def unsettle(self, act: Act) -> None:
        """Forget that a policy is valid, and those that follow it in its feed."""
        run = self._valid.get(act.stamp.feed)
        if run is not None:
            run.cut(act.stamp.seq)

    def last(self, place: Place, limit: Stamp | None) -> Act | None:
        """Return the last policy in force, older than `limit`, that a place has seen."""
        counts = ((run, min(run.seen(place), run.older(limit))) for run in self._valid.values())
        return max((run.acts[count - 1] for run, count in counts if count), key=lambda act: act.stamp, default=None)

    def tightenings(self, authority: Authority, stamp: Stamp) -> Iterator[Act]:
        """Yield the tightening policies after one with this stamp, of writers who have owned the party before it."""
        writers = {feed: authority.owner(feed) for feed in self._tightenings}
        runs = [
            self._tightenings[feed].acts[self._tightenings[feed].upto(stamp) :]
            for feed, writer in writers.items()
            if writer is not None and Role.OWNER in authority.once(writer.identity, stamp)
        ]
        return merge(*runs, key=lambda act: act.stamp)


def policy_at(authority: Authority, place: Place, limit: Stamp | None) -> Policy:
    """Return the policy at a place: the last one seen there, or a tightening policy with a cut before it."""
    current = authority.policies.last(place, limit)
    while current is not None and (tighter := next(_replacing(authority, place, current), None)):
        current = tighter
    if current is None:
        return DEFAULT_POLICY
    assert isinstance(current.claim, Policy)
    return current.claim


def _replacing(authority: Authority, place: Place, current: Act) -> Iterator[Act]:
    """Yield the policies that replace one at a place that may not have seen them. They mean all that they have seen."""
    for act in authority.tighter(current):
        assert isinstance(act.claim, Policy)
        if place.seq >= act.claim.cuts.get(place.feed, 0) and not authority.floors.below(act, place):
            yield act


class Tighter:
    """The tightening policies that have seen another one, and whose writers had the right to replace it.

    They are looked for when they are asked for, once each: the first one is mostly the answer.
    """

    def __init__(self, authority: Authority, policy: Act) -> None:
        self.stamp = policy.stamp
        self._found: list[Act] = []
        self._rest = _find(authority, policy)

    def __iter__(self) -> Iterator[Act]:
        index = 0
        while index < len(self._found) or self._find_next():
            yield self._found[index]
            index += 1

    def _find_next(self) -> bool:
        found = next(self._rest, None)
        if found is not None:
            self._found.append(found)
        return found is not None


def _find(authority: Authority, policy: Act) -> Iterator[Act]:
    for act in authority.policies.tightenings(authority, policy.stamp):
        if (
            act.place.sees(policy.position)
            and authority.signed_by_writer(act)
            and not expired(act)
            and authority.permits(act.place, OWNERS, policy.stamp)
        ):
            yield act


def first_tightened(tightening: Act, judged: Sequence[Act], first: Stamp, floors: Floors) -> Stamp:
    """Return the stamp of the oldest act, of these by age, that a new tightening policy may take from; or its own.

    Acts before its cuts keep the policy that they had seen, and so does what an epoch holds without it. Acts that are
    older than the first policy have seen none.
    """
    assert isinstance(tightening.claim, Policy)
    cuts = tightening.claim.cuts
    since = bisect_left(judged, first, key=lambda act: act.stamp)
    past = (act for act in judged[since:] if act.stamp.seq >= cuts.get(act.stamp.feed, 0))
    taken = next((act.stamp for act in past if not floors.below(tightening, act.place)), tightening.stamp)
    return min(taken, tightening.stamp)
