"""Values about epochs: the electorate of a number, its proposals, and final epochs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256

from antiphon.core.codec import u64
from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.halo.acts.act import Act
from antiphon.halo.credentials.claims import Cuts, EpochEndorsement, EpochGenesis, EpochRefusal, ModelKey, Policy

_RANK_TAG = b"antiphon.rank.v1"
SKEW_MS = 300_000  # default, if policy has none
EPOCH_MESSAGES = 10_000  # begin an epoch after this many messages, if policy has no threshold at all
SILENT_MS = 60_000


def ranked(number: int, party: bytes, attesters: Iterable[bytes]) -> list[bytes]:
    """Return the attesters by rank, different in each epoch. Without a generator, the first declares.

    >>> one, two = b"1" * 32, b"2" * 32
    >>> ranked(1, b"p" * 32, (one, two)) == ranked(1, b"p" * 32, (two, one))
    True
    """
    return sorted(attesters, key=lambda device: sha256(_RANK_TAG + party + u64(number) + device).digest())


@dataclass(frozen=True, slots=True)
class EpochConfig:
    """The electorate of one number. It follows from the final epoch before it, so no later act changes it."""

    number: int
    attesters: tuple[bytes, ...]  # devices
    generator: bytes  # the device that declares in term 0
    policy: Policy
    feed: bytes = b""  # if set, acts in this feed precede those in other feeds of the founder's device

    @classmethod
    def of(cls, number: int, party: bytes, policy: Policy | None, founder: bytes, feed: bytes) -> EpochConfig:
        """Make the electorate by policy, or of the founder's device alone: in its first `feed`, if that is not lost."""
        if policy is None:
            return cls(number, (founder,), founder, Policy(), feed)
        attesters = policy.attesters or (founder,)
        return cls(number, attesters, policy.generator or ranked(number, party, attesters)[0], policy)

    @property
    def declarers(self) -> frozenset[bytes]:
        """Return the devices whose geneses count. No other can be elected: who endorses it lies."""
        return frozenset((*self.attesters, self.generator))

    @property
    def quorum(self) -> int:
        """Return the quorum: more than half, or more than two thirds if attesters may lie."""
        count = len(self.attesters)
        return count * 2 // 3 + 1 if self.policy.liars else count // 2 + 1

    @property
    def liars_max(self) -> int:
        """Return how many attesters may lie without harm."""
        return len(self.attesters) - self.quorum if self.policy.liars else 0


@dataclass(frozen=True, slots=True)
class FinalEpoch:
    """A final epoch; the same for everybody, in whichever term and feed it was declared."""

    number: int
    previous: bytes
    cut: Cuts
    control: Timeframe
    snapshot: bytes
    created_ms: int
    models: tuple[ModelKey, ...]
    control_hash: bytes = b""
    term: int = field(default=0, compare=False)
    declared: Stamp = field(default=Stamp(0, b"", 0), compare=False)
    genesis: bytes = field(default=b"", compare=False)  # the digest of its genesis
    declarers: frozenset[bytes] = field(default=frozenset(), compare=False, repr=False)  # of its number

    @classmethod
    def of(cls, proposal: Proposal) -> FinalEpoch:
        """Make the final epoch of a proposal."""
        claim = proposal.genesis
        return cls(
            claim.number,
            claim.previous,
            claim.cut,
            claim.control,
            claim.snapshot,
            claim.created_ms,
            claim.models,
            claim.control_hash,
            claim.term,
            proposal.stamp,
            proposal.digest,
            proposal.declarers,
        )

    def length(self, feed: bytes) -> int:
        """Return how many blocks of a data or control feed the epoch holds."""
        return max(self.cut.get(feed, 0), self.control.get(feed, -1) + 1)


def folded(genesis: EpochGenesis, previous: FinalEpoch | None) -> EpochGenesis:
    """Return a genesis with all feeds: those that it does not name stay where the previous final epoch has them."""
    if previous is None:
        return genesis
    control = previous.control.merge(genesis.control)
    return replace(genesis, cut={**previous.cut, **genesis.cut}, control=control)


def moved(genesis: EpochGenesis, previous: FinalEpoch | None) -> EpochGenesis:
    """Return a genesis with the feeds that move, as it is written."""
    if previous is None:
        return replace(genesis, cut={feed: length for feed, length in genesis.cut.items() if length})
    cut = {feed: length for feed, length in genesis.cut.items() if length != previous.cut.get(feed, 0)}
    control = {feed: seq for feed, seq in genesis.control.items() if seq != previous.control.get(feed, -1)}
    return replace(genesis, cut=cut, control=Timeframe(control))


@dataclass(frozen=True, slots=True)
class Proposal:
    """A genesis for the open number, with its votes."""

    stamp: Stamp
    genesis: EpochGenesis  # with all feeds
    digest: bytes
    device: bytes  # that declared it
    reason: str  # why it is not to be attested; "" if it may be
    sound: bool  # whether it is final once a quorum has attested it
    attested: tuple[bytes, ...]  # devices
    confirmed: tuple[bytes, ...]  # devices that attested twice; needed only if attesters may lie
    declarers: frozenset[bytes] = field(compare=False, repr=False)  # of its number
    act: Act = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Endorsed:
    """An endorsement that counts."""

    stamp: Stamp
    device: bytes
    claim: EpochEndorsement
    act: Act = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """A published refusal of a genesis: the first one of its feed."""

    stamp: Stamp
    device: bytes
    claim: EpochRefusal


@dataclass(frozen=True, slots=True)
class OpenNumber:
    """The number after the last final epoch."""

    config: EpochConfig
    proposals: tuple[Proposal, ...]  # by stamp
    endorsements: tuple[Endorsed, ...]  # by stamp
    lacks: str = ""  # what keeps this peer from taking over an epoch that a quorum has attested

    @property
    def number(self) -> int:
        return self.config.number
