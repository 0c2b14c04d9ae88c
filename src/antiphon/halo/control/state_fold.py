"""Fold the acts of a party, and of its parent if it has one, into a `PartyState`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from antiphon.core.stamp import Stamp
from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.grant import subject_of
from antiphon.halo.control.state import FeedState, GroupMember, Member, PartyState
from antiphon.halo.credentials.claims import GroupAdmission, MemberAdmission, PartyGenesis, without_implied
from antiphon.halo.finality.epoch_chain import EpochChain
from antiphon.halo.rights.authority import Authority
from antiphon.halo.rights.verdict import judge


def fold_state(party: bytes, authority: Authority, chain: EpochChain, acts: Iterable[Act], now: Place) -> PartyState:
    """Return the state at a place that has seen everything. A child's members are its parent's and its own."""
    authority.settle()
    force = [
        act for act in sorted(acts, key=lambda act: act.stamp) if not judge(authority, act) and not chain.reason(act)
    ]
    above = () if authority.parent is None else authority.parent.granted.all.values()
    grants = sorted([*force, *(grant for known in above for grant in known)], key=lambda act: act.stamp)
    return PartyState(
        party=party,
        members=_members(authority, grants, now),
        groups=_groups(authority, grants, now),
        feeds=_feeds(authority),
        policy=authority.policy(now),
        epochs=chain.final,
    )


def _members(authority: Authority, grants: Sequence[Act], now: Place) -> tuple[Member, ...]:
    since: dict[bytes, Stamp] = {}
    for act in grants:
        claim = act.claim
        admits = isinstance(claim, MemberAdmission | GroupAdmission)
        admits = admits or (isinstance(claim, PartyGenesis) and not claim.parent)
        if admits and authority.left(act, now):
            since.setdefault(subject_of(act), act.stamp)
    roles = {subject: without_implied(authority.roles(subject, now)) for subject in since}
    return tuple(Member(subject, roles[subject], since[subject]) for subject in sorted(since) if roles[subject])


def _groups(authority: Authority, grants: Sequence[Act], now: Place) -> tuple[GroupMember, ...]:
    pairs = {
        (act.claim.group, act.claim.subject)
        for act in grants
        if isinstance(act.claim, GroupAdmission) and authority.left(act, now)
    }
    return tuple(GroupMember(group, subject) for group, subject in sorted(pairs))


def _feeds(authority: Authority) -> tuple[FeedState, ...]:
    """Return the feeds with blocks that count. Peers need not know a feed whose admission is void."""
    feeds = []
    for feed, owner in sorted(authority.owners().items()):
        end = authority.end(feed)
        if authority.alive(owner.opened.place) and end > 0:
            feeds.append(FeedState(feed, owner.kind, owner.identity, owner.device, None if end == NO_END else end))
    return tuple(feeds)
