"""The claims of credentials, as immutable values; `credential` turns them into signed bytes and back."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from antiphon.core.timeframe import Timeframe


class Role(enum.IntEnum):
    """A role of a member."""

    OWNER = 1  # admits, narrows, sets policy; and everything below
    EDITOR = 2  # writes; and reads
    READER = 3  # reads
    EPOCH_GENERATOR = 4  # declares epochs


Roles = frozenset[Role]
OWNERS: Roles = frozenset({Role.OWNER})
EDITORS: Roles = frozenset({Role.EDITOR})
WRITERS: Roles = OWNERS | EDITORS
_IMPLIED: dict[Role, Roles] = {
    Role.OWNER: frozenset(Role),
    Role.EDITOR: frozenset({Role.EDITOR, Role.READER}),
    Role.READER: frozenset({Role.READER}),
    Role.EPOCH_GENERATOR: frozenset({Role.EPOCH_GENERATOR}),
}


def with_implied(roles: Roles) -> Roles:
    """Add the roles that these include: an owner who is demoted to editor keeps that role."""
    return frozenset().union(*(_IMPLIED[role] for role in roles))


def without_implied(roles: Roles) -> Roles:
    """Remove the roles that others among these include."""
    return frozenset(role for role in roles if not any(role in _IMPLIED[other] for other in roles if other is not role))


class FeedKind(enum.IntEnum):
    """The kind of a feed. Each device has one feed of each kind in each party."""

    CONTROL = 1
    DATA = 2


class Position(NamedTuple):
    """The feed and the seq of a block."""

    feed: bytes
    seq: int


Cuts = Mapping[bytes, int]  # feed → how many of its blocks stay


@dataclass(frozen=True, slots=True)
class DeviceAdmission:
    """An identity vouches for a device in this party."""

    identity: bytes
    device: bytes


@dataclass(frozen=True, slots=True)
class FeedAdmission:
    """A device vouches for a feed."""

    feed: bytes
    kind: FeedKind
    identity: bytes
    device: bytes
    device_credential: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class PartyGenesis:
    """The party begins: its founder, and its first feed. A child names its parent, and the parent's first feed."""

    identity: bytes
    admission: FeedAdmission
    admission_credential: bytes = field(repr=False)
    parent: bytes = b""
    parent_feed: bytes = b""


@dataclass(frozen=True, slots=True)
class MemberAdmission:
    """An identity, or a group, becomes a member. If it `is_group`, its own key may take others into it."""

    subject: bytes
    roles: Roles
    is_group: bool = False


@dataclass(frozen=True, slots=True)
class GroupAdmission:
    """An identity, or a group, becomes part of a group."""

    group: bytes
    subject: bytes
    is_group: bool = False  # the subject, too: its own key may take others into it


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Revocation (no roles left) or demotion: of all admissions of a subject that its view has seen, valid or void."""

    subject: bytes
    roles: Roles
    cuts: Cuts
    expired: bool = False  # only of admissions whose own expiry has passed
    group: bytes = b""  # only of admissions into this group
    echo: bool = False  # in a child party: only of admissions by the parent


@dataclass(frozen=True, slots=True)
class FeedEnd:
    """A device's feeds end. Signed by the identity, or by the device itself."""

    identity: bytes
    device: bytes
    cuts: Cuts


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of a party. The last one in the total order holds. A limit of 0 means no limit."""

    editors_admit: bool = False
    generator: bytes = b""  # a device; none: the attester that ranks first
    attesters: tuple[bytes, ...] = ()  # devices; none: the founder's first one
    attestations_min: int = 0  # attestations that a joiner requires
    tightens: bool = False  # it replaces all policies that its view has seen, for blocks past the cuts, too
    cuts: Cuts = field(default_factory=dict)
    liars: bool = False  # attesters may lie: two thirds must agree, in two rounds
    silent_ms: int = 0  # how long a term is silent before the next in rank opens another
    skew_ms: int = 0  # how far an epoch's `created_ms` may be ahead of an attester's clock
    epoch_messages: int = 0  # begin an epoch after this many messages,
    epoch_bytes: int = 0  # this many bytes,
    epoch_age_ms: int = 0  # this time since the last epoch,
    epoch_idle_ms: int = 0  # or this time without a message
    message_age_ms: int = 0  # discard posts of messengers that are older,
    message_count: int = 0  # all but this many of the newest posts,
    deleted_epochs: int = 0  # and items that were deleted this many epochs ago
    keep_epochs: int = 0  # epochs before the last one whose messages are kept


class ModelKey(NamedTuple):
    """A model whose items an epoch reifies."""

    name: str
    version: int
    codec: int


@dataclass(frozen=True, slots=True)
class EpochGenesis:
    """Declares an epoch: a cut of all data feeds, the control timeframe that judges it, and the snapshot there.

    It is written with the feeds that move (`moved`), and read with all of them (`folded`).
    """

    term: int
    number: int  # from 1 on
    previous: bytes
    cut: Cuts
    control: Timeframe
    snapshot: bytes
    created_ms: int
    models: tuple[ModelKey, ...] = ()
    control_hash: bytes = b""  # which blocks the control timeframe names: a forked feed has several at one position


@dataclass(frozen=True, slots=True)
class EpochAttestation:
    """An attester has recomputed an epoch's snapshot with the same CID. The second time, it has seen a quorum do so."""

    term: int
    number: int
    snapshot: bytes
    genesis: bytes  # the digest of the genesis, so that the vote cannot be used for another cut


@dataclass(frozen=True, slots=True)
class EpochRefusal:
    """An attester has computed another snapshot, or none, for this reason."""

    term: int
    number: int
    snapshot: bytes
    computed: bytes = b""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EpochEndorsement:
    """An attester endorses a candidate for a term, and names the snapshot that it has attested for that number."""

    number: int
    term: int  # from 1 on
    candidate: bytes  # a device
    accepted_term: int = 0
    accepted: bytes = b""


@dataclass(frozen=True, slots=True)
class Erasure:
    """Data messages that are void everywhere."""

    positions: tuple[Position, ...]


@dataclass(frozen=True, slots=True)
class Continuation:
    """The lists of the act before it in its batch go on."""

    cuts: Cuts
    control: Cuts = field(default_factory=dict)  # of an epoch only


EpochAct = EpochGenesis | EpochAttestation | EpochRefusal | EpochEndorsement


@dataclass(frozen=True, slots=True)
class Equivocated:
    """Proof that a feed's writer signed two histories; `length` blocks are common to both."""

    feed: bytes
    length: int
    evidence: bytes = field(repr=False)


Claim = (
    PartyGenesis
    | DeviceAdmission
    | FeedAdmission
    | MemberAdmission
    | GroupAdmission
    | Narrowing
    | FeedEnd
    | Policy
    | EpochGenesis
    | EpochAttestation
    | EpochRefusal
    | EpochEndorsement
    | Erasure
    | Equivocated
    | Continuation
)
