"""Fold the acts of a party, and of its parent if it has one, into a `PartyState`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.grant import admits, subject_of
from antiphon.halo.control.state import FeedState, GroupMember, Member, PartyState
from antiphon.halo.credentials.claims import PartyGenesis, without_implied
from antiphon.halo.finality.epoch_chain import EpochChain
from antiphon.halo.rights.authority import Authority
from antiphon.halo.rights.narrowings import left_of
from antiphon.halo.rights.verdict import judge


def fold_state(party: bytes, authority: Authority, chain: EpochChain, acts: Iterable[Act], now: Place) -> PartyState:
    """Return the state at a place that has seen everything. A child's members are its parent's and its own."""
    authority.settle()
    above = () if authority.parent is None else authority.parent.granted.all.values()
    grants: dict[bytes, list[Act]] = defaultdict(list)  # by subject
    for act in (*acts, *(grant for known in above for grant in known)):
        if admits(act) or (isinstance(act.claim, PartyGenesis) and not act.claim.parent):
            grants[subject_of(act)].append(act)
    return PartyState(
        party=party,
        members=tuple(_members(authority, grants, now)),
        groups=tuple(_groups(authority, grants, now)),
        feeds=_feeds(authority),
        policy=authority.policy(now),
        epochs=chain.final,
    )


def _members(authority: Authority, grants: Mapping[bytes, Sequence[Act]], now: Place) -> Iterator[Member]:
    for subject, given in sorted(grants.items()):
        roles = without_implied(authority.roles(subject, now))
        oldest = sorted(given, key=lambda act: act.stamp) if roles else ()
        since = next((act.stamp for act in oldest if _counts(authority, act) and authority.left(act, now)), None)
        if since is not None:
            yield Member(subject, roles, since)


def _counts(authority: Authority, grant: Act) -> bool:
    """True unless it claims to be the genesis of the party, and is another."""
    return not isinstance(grant.claim, PartyGenesis) or not judge(authority.home(grant), grant)


def _groups(authority: Authority, subjects: Iterable[bytes], now: Place) -> Iterator[GroupMember]:
    runs = ((run, subject) for subject in subjects for run in authority.runs(subject) if run.key.group)
    pairs = {(run.key.group, subject) for run, subject in runs if left_of(authority, run, now, None)}
    return (GroupMember(group, subject) for group, subject in sorted(pairs))


def _feeds(authority: Authority) -> tuple[FeedState, ...]:
    """Return the feeds with blocks that count. Peers need not know a feed whose admission is void."""
    feeds = []
    for feed, owner in sorted(authority.owners().items()):
        end = authority.end(feed)
        if authority.alive(owner.opened.place) and end > 0:
            feeds.append(FeedState(feed, owner.kind, owner.identity, owner.device, None if end == NO_END else end))
    return tuple(feeds)
