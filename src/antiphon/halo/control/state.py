"""The state of a party: who is in it, with which devices and feeds, under which policy."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from antiphon.core.codec import u32, u64
from antiphon.core.stamp import Stamp
from antiphon.feed.header import NO_END
from antiphon.halo.credentials.claims import FeedKind, Policy, Roles
from antiphon.halo.finality.epoch_values import FinalEpoch

_TAG = b"antiphon.party.1"
_LIMITS = (
    "silent_ms",
    "skew_ms",
    "epoch_messages",
    "epoch_bytes",
    "epoch_age_ms",
    "epoch_idle_ms",
    "message_age_ms",
    "message_count",
    "deleted_epochs",
    "keep_epochs",
)


@dataclass(frozen=True, slots=True)
class Member:
    """An identity or a group that was admitted; without roles it is no longer a member."""

    subject: bytes
    roles: Roles
    since: Stamp  # the oldest of its admissions that hold


@dataclass(frozen=True, slots=True)
class GroupMember:
    """An identity or a group inside a group."""

    group: bytes
    subject: bytes


@dataclass(frozen=True, slots=True)
class FeedState:
    """A feed that was admitted; `end` is how many of its blocks count, None while it is open."""

    feed: bytes
    kind: FeedKind
    identity: bytes
    device: bytes
    end: int | None


@dataclass(frozen=True, slots=True)
class PartyState:
    """The state of a party by its control feeds. Equal on all peers that hold the same blocks, in any order."""

    party: bytes
    members: tuple[Member, ...]  # by subject
    groups: tuple[GroupMember, ...]  # by group and subject
    feeds: tuple[FeedState, ...]  # by feed
    policy: Policy
    epochs: tuple[FinalEpoch, ...]  # by number; `PartyMachine.epochs` has the votes on the next one

    def member(self, subject: bytes) -> Member | None:
        """Return the member with this key, or None."""
        return next((member for member in self.members if member.subject == subject), None)

    def feed(self, feed: bytes) -> FeedState | None:
        """Return the state of an admitted feed, or None."""
        return next((state for state in self.feeds if state.feed == feed), None)

    def encode(self) -> bytes:
        """Encode the acts in force canonically. Void acts are no part of it: a peer need not hold blocks past a cut."""
        policy = self.policy
        parts = [_TAG, self.party, u32(len(self.members))]
        parts += [member.subject + _roles(member.roles) + member.since.encode() for member in self.members]
        parts += [u32(len(self.groups)), *(group.group + group.subject for group in self.groups)]
        parts.append(u32(len(self.feeds)))
        for feed in self.feeds:
            end = NO_END if feed.end is None else feed.end
            parts.append(feed.feed + bytes((feed.kind,)) + feed.identity + feed.device + u64(end))
        parts.append(bytes((policy.editors_admit, bool(policy.generator))) + policy.generator)
        parts += [u32(len(policy.attesters)), *policy.attesters, u32(policy.attestations_min)]
        parts.append(bytes((policy.liars,)) + b"".join(u64(getattr(policy, name)) for name in _LIMITS))
        parts.append(u32(len(self.epochs)))
        parts += [u64(epoch.number) + epoch.snapshot for epoch in self.epochs]
        return b"".join(parts)

    @property
    def digest(self) -> bytes:
        """Hash the state: two peers with the same digest agree on the party."""
        return sha256(self.encode()).digest()


def _roles(roles: Roles) -> bytes:
    return bytes((sum(1 << role for role in roles),))
