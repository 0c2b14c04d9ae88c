"""`Account`: the expected members, and the expected ends of revoked members' feeds, from the acts of the simulator.

It does not use the state of the party, because laws compare that state with the account. Only the known feeds and the
final epochs come from the founder's peer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.halo.finality.epoch_values import FinalEpoch
from antiphon.sim.peer import SimPeer
from antiphon.sim.workload import Written


class Revoked(NamedTuple):
    """A revocation: its position in the founder's control feed, and the length of each feed that the founder held."""

    name: str
    seq: int
    lengths: Mapping[bytes, int]


@dataclass(slots=True)
class Account:
    """Admissions and revocations, recorded while acts are played."""

    members: dict[str, int] = field(default_factory=dict)  # by name, the seq of the admission in the founder's feed
    revoked: list[Revoked] = field(default_factory=list)
    _begun: dict[str, Revoked] = field(default_factory=dict)  # the founder may crash just before or after the write

    @property
    def names(self) -> set[str]:
        """Names of all peers that were ever revoked."""
        return {revoked.name for revoked in self.revoked}

    def admitted(self, name: str, stamp: Stamp) -> None:
        """Record an admission."""
        self.members[name] = stamp.seq

    def revoking(self, founder: SimPeer, name: str) -> None:
        """Record a revocation about to be written. It cuts a feed at zero if the founder lacks its admission."""
        known = founder.member.machine.authority.owners()
        held = {record.feed: record.valid_length for record in founder.store.feeds(founder.key)}
        lengths = {feed: length for feed, length in held.items() if feed in known}
        self._begun[name] = Revoked(name, lengths[founder.genesis_feed], lengths)

    def is_revoked(self, name: str) -> None:
        """Record that a revocation is in the founder's control feed, also if the founder crashed right after it."""
        revoked = self._begun.pop(name, None)
        if revoked is not None:
            self.revoked.append(revoked)
            self.members.pop(name, None)


class Ends:
    """The expected ends of revoked members' feeds, computed when all is quiet."""

    def __init__(self, account: Account, founder: SimPeer, opened: Mapping[bytes, int]) -> None:
        self._genesis_feed = bytes(founder.genesis_feed)
        self._final: Sequence[FinalEpoch] = founder.epochs.chain().final
        self._account = account
        self._opened = opened  # by data feed, the length of the founder's control feed that its writer knew on opening

    def counts(self, written: Written) -> bool:
        """True if a write must count. A write in an epoch that was final before the revocation still counts."""
        return all(
            written.stamp.seq < self._end(bytes(written.stamp.feed), revoked)
            for revoked in self._account.revoked
            if revoked.name == written.peer and self._opened[bytes(written.stamp.feed)] <= revoked.seq
        )

    def _end(self, feed: bytes, revoked: Revoked) -> int:
        before = [epoch for epoch in self._final if epoch.control.get(self._genesis_feed, -1) < revoked.seq]
        return max([revoked.lengths.get(feed, 0), *(epoch.cut.get(feed, 0) for epoch in before)])
