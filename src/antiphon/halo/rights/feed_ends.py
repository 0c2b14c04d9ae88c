"""Feed ends: a revocation that leaves a writer without any role ends its feeds permanently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from antiphon.core.stamp import Stamp
from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act
from antiphon.halo.acts.grant import Owner
from antiphon.halo.rights.grant_checks import means
from antiphon.halo.rights.inheritance import cut_at, is_ended
from antiphon.halo.rights.narrowings import After

if TYPE_CHECKING:
    from antiphon.halo.rights.authority import Authority
    from antiphon.halo.rights.runs import NarrowingRun


def ended_feeds(authority: Authority) -> Iterator[bytes]:
    """Yield the feeds that acts end. A device may have a thousand: what is taken is asked once for an identity."""
    taken: dict[bytes, bool] = {}
    for feed, owner in authority.feeds:
        identity = owner.identity
        if identity not in taken:
            above = authority.above(identity, None, None)
            taken[identity] = any(any(authority.narrowing_runs(subject)) for subject in above)
        if (
            is_ended(authority, identity, owner.device) or taken[identity] or feed in authority.fork_ends
        ) and authority.has_ended(feed, owner):
            yield feed


def ending(authority: Authority, feed: bytes, owner: Owner, limit: Stamp | None) -> int:
    """Return the least cut by a revocation that left the feed's writer without any role: it never opens again."""
    least = NO_END
    for subject in authority.above(owner.identity, None, limit):
        for run in authority.narrowing_runs(subject):
            if not run.key.left and not _anchored(authority, owner, run, limit):
                least = min(least, _least(authority, feed, owner, run, subject, limit, least))
    return least


def _least(
    authority: Authority, feed: bytes, owner: Owner, run: NarrowingRun, subject: bytes, limit: Stamp | None, least: int
) -> int:
    opening = owner.opened.place
    found = []
    for index in range(run.seen(opening), len(run.acts)):
        narrowing = run.acts[index]
        cuts = [cut_at(authority, narrowing, grant, feed) for grant in _bound(authority, run, index, subject, limit)]
        if cuts:
            found.append((min(cuts), narrowing))
    for cut, narrowing in sorted(found, key=lambda pair: pair[0]):
        if cut >= least:
            break
        after = After(feed, cut, narrowing.place.seen, authority, narrowing)
        # The issuer can only have meant groups that it had seen the writer in.
        meant = subject in authority.above(owner.identity, narrowing.place, limit)
        if meant and not authority.roles(owner.identity, after, limit):
            return cut
    return least


def _bound(authority: Authority, run: NarrowingRun, index: int, subject: bytes, limit: Stamp | None) -> Iterator[Act]:
    """Yield a grant, older than `limit`, of each run of grants to the subject that a narrowing binds."""
    narrowing = run.acts[index]
    for grants in authority.runs(subject):
        last = min(grants.seen(narrowing.place), grants.older(limit)) - 1
        while last >= 0 and means(authority, narrowing, grants.acts[last]):
            grant = grants.acts[last]
            if authority.binding(run, grant).first(index) == index:
                yield grant
                break
            last = min(last, grants.upto(authority.home(narrowing).rank(run.feed, grant.stamp))) - 1


def _anchored(authority: Authority, owner: Owner, run: NarrowingRun, limit: Stamp | None) -> bool:
    """True if the writer has a role that no narrowing takes, and that every later narrowing of a run had seen."""
    later = run.seen(owner.opened.place)
    return later == len(run.acts) or any(
        not grants.key.group
        and not grants.key.expires_ms
        and min(grants.seen(run.acts[later].place), grants.older(limit)) > 0
        and not _ever_taken(authority, grants.acts[0])
        for grants in authority.runs(owner.identity)
    )


def _ever_taken(authority: Authority, grant: Act) -> bool:
    """True if some narrowing takes from a valid grant at some place."""
    return any(
        authority.binding(run, grant).first(run.seeing(grant.position)) < len(run.acts)
        for run in authority.narrowings_of(grant)
        if not run.key.echo or authority.inherited(grant)
    )
