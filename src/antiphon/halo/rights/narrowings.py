"""Narrowings: how much of a grant they leave at a place, asked of a run at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.grant import given
from antiphon.halo.credentials.claims import OWNERS, Narrowing, Roles
from antiphon.halo.rights.grant_checks import binds, may_take, means
from antiphon.halo.rights.inheritance import cut_at

if TYPE_CHECKING:
    from antiphon.halo.rights.authority import Authority
    from antiphon.halo.rights.runs import GrantRun, NarrowingRun


class Left(NamedTuple):
    """The roles of a grant that are left at a place."""

    roles: Roles
    since: Stamp | None  # the same is left of grants that are younger than this; None: of all older ones, too


class Ends:
    """Where the narrowings of a run cut one feed, and which of those cuts is the least from each narrowing on."""

    def __init__(self, cuts: list[int]) -> None:
        self.cuts = cuts
        self._least = list(range(len(cuts)))
        for index in range(len(cuts) - 2, -1, -1):
            if cuts[self._least[index + 1]] < cuts[index]:
                self._least[index] = self._least[index + 1]

    def least(self, start: int) -> int:
        """Return the index of the least cut from an index on."""
        return self._least[start]


class Binding:
    """Which narrowings of a run bind the grants that give their issuer's right the same rank. Each is asked once."""

    def __init__(self, home: Authority, run: NarrowingRun, grant: Act) -> None:
        self._home, self._run, self._grant = home, run, grant
        self._stop = run.before(home.fork_ends.get(run.feed, NO_END))
        self._next: dict[int, int] = {}  # an index that does not bind → where to look next

    def first(self, start: int) -> int:
        """Return the first index from `start` on that binds; the number of narrowings if there is none."""
        passed = []
        while start < self._stop:
            if start not in self._next:
                if may_take(self._home, self._run.acts[start], self._grant):
                    break
                self._next[start] = start + 1
            passed.append(start)
            start = self._next[start]
        if start >= self._stop:
            start = len(self._run.acts)
        self._next.update(dict.fromkeys(passed, start))
        return start

    def all(self, start: int) -> Iterator[int]:
        """Yield the indexes from `start` on that bind."""
        while (start := self.first(start)) < len(self._run.acts):
            yield start
            start += 1


@dataclass(frozen=True, slots=True)
class After(Place):
    """The view of a narrowing's issuer, and the grants that it had not seen and could not have taken."""

    authority: Authority
    narrowing: Act

    def reach(self, feed: bytes) -> int:
        """Return how many blocks of a feed the issuer had seen, or are kept."""
        narrowing = self.narrowing
        own = narrowing.stamp.seq + 1 if feed == narrowing.stamp.feed else 0
        return max(Place.reach(self, feed), narrowing.place.reach(feed), own)

    def counts(self, grant: Act) -> bool:
        """True if a grant was seen, or does not follow the narrowing and its issuer had no right to take it."""
        narrowing, authority = self.narrowing, self.authority
        if self.sees(grant.position):
            return True
        if grant.place.sees(narrowing.position):
            return False
        apart = authority.inherited(narrowing) and not authority.inherited(grant)  # a parent never sees its child
        return apart or not authority.permits(narrowing.place, OWNERS, grant.stamp)

    def rank(self, grant: Act) -> Stamp | None:
        """Return since when the issuer has the right by which it could have taken a grant."""
        return self.authority.home(self.narrowing).rank(self.narrowing.stamp.feed, grant.stamp)


def takes(authority: Authority, narrowing: Act) -> bool:
    """True if a narrowing binds the last grant of some run that it has seen."""
    assert isinstance(narrowing.claim, Narrowing)
    counts = ((run, run.seen(narrowing.place)) for run in authority.runs(narrowing.claim.subject))
    return any(count and binds(authority, narrowing, run.acts[count - 1]) for run, count in counts)


def left_at(authority: Authority, grant: Act, place: Place) -> Left:
    """Return the roles of a valid grant that are left at a place."""
    roles: Roles = given(grant)
    since: Stamp | None = None
    for run in authority.narrowings_of(grant):
        if roles <= run.key.left or not _takes(authority, run, grant, place):
            continue
        roles &= run.key.left
        if not run.key.own_word:
            rank = authority.home(run.acts[0]).rank(run.feed, grant.stamp)
            since = rank if since is None or rank is None else max(rank, since)
        if not roles:
            break
    return Left(roles, since)


def left_of(authority: Authority, run: GrantRun, place: Place, limit: Stamp | None) -> Roles:
    """Return the roles that the grants of a run give at a place, by those older than `limit`.

    They say the same, so the last one that counts there speaks for those before it: whatever takes from it takes from
    them, too. Only a narrowing whose issuer's right is younger than such a grant does not. So they are asked from one
    change of an issuer's right to the one before.
    """
    seen = run.seen(place)
    count = max(seen, run.seeing(place.narrowing.position)) if isinstance(place, After) else seen
    if count == seen < len(run.acts) and run.acts[seen].position == (place.feed, place.seq):
        count += 1  # the genesis counts in its own block
    index = min(count, run.older(limit)) - 1
    if index < 0 or authority.floors.expired(run.acts[index], place):
        return frozenset()
    roles: Roles = frozenset()
    while index >= 0:
        grant = run.acts[index]
        if isinstance(place, After) and not place.counts(grant):
            index = min(index, max(seen, run.upto(place.rank(grant)))) - 1
            continue
        left, since = left_at(authority, grant, place)
        roles |= left
        if roles == run.key.given:
            break
        index = min(index, run.upto(since)) - 1
    return roles


def _takes(authority: Authority, run: NarrowingRun, grant: Act, place: Place) -> bool:
    """True if one of the narrowings of a run binds a grant, and is seen at a place, or cuts its feed before it."""
    start = run.seeing(grant.position)
    if start == len(run.acts) or not means(authority, run.acts[start], grant):
        return False
    binding = authority.binding(run, grant)
    first = binding.first(start)
    if first == len(run.acts):
        return False
    if first < run.seen(place) and not authority.floors.below(run.acts[first], place):
        return True
    if authority.inherited(run.acts[0]):  # what a parent's narrowing cuts here depends on the grant
        return any(place.seq >= cut_at(authority, run.acts[at], grant, place.feed) for at in binding.all(first))
    ends = authority.ends_of(run, place.feed)
    least = ends.least(first)
    if ends.cuts[least] > place.seq or binding.first(least) == least:
        return ends.cuts[least] <= place.seq
    return any(ends.cuts[index] <= place.seq for index in binding.all(first))
