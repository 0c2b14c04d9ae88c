"""`Account`: who is a member, and where the writes of the revoked end, from what the simulator itself has had done.

Not from the party's own state, which is what the laws look at. Only which
feeds are known and which epochs are final is the founder's word.
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
    """Somebody was revoked: at which position of the founder's control feed, and what the founder held of all feeds."""

    name: str
    seq: int
    lengths: Mapping[bytes, int]


@dataclass(slots=True)
class Account:
    """Kept while acts are played."""

    members: dict[str, int] = field(default_factory=dict)  # from which position of the founder's control feed on
    revoked: list[Revoked] = field(default_factory=list)
    _begun: dict[str, Revoked] = field(default_factory=dict)  # the founder may crash just before it, or just after

    @property
    def names(self) -> set[str]:
        """Who was ever revoked."""
        return {revoked.name for revoked in self.revoked}

    def admitted(self, name: str, stamp: Stamp) -> None:
        self.members[name] = stamp.seq

    def revoking(self, founder: SimPeer, name: str) -> None:
        """A revocation is about to be written. Of a feed whose admission the founder lacks it can keep nothing."""
        known = founder.member.machine.authority.owners()
        held = {record.feed: record.valid_length for record in founder.store.feeds(founder.key)}
        lengths = {feed: length for feed, length in held.items() if feed in known}
        self._begun[name] = Revoked(name, lengths[founder.genesis_feed], lengths)

    def is_revoked(self, name: str) -> None:
        """It stands in the founder's control feed, be it that the founder crashed before it knew."""
        revoked = self._begun.pop(name, None)
        if revoked is not None:
            self.revoked.append(revoked)
            self.members.pop(name, None)


class Ends:
    """Made when all is quiet: what counts of that which was written."""

    def __init__(self, account: Account, founder: SimPeer, opened: Mapping[bytes, int]) -> None:
        self._genesis_feed = bytes(founder.genesis_feed)
        self._final: Sequence[FinalEpoch] = founder.epochs.chain().final
        self._account = account
        self._opened = opened  # how much of the founder's control feed was known where a data feed was opened

    def counts(self, written: Written) -> bool:
        """Whether a write counts. What was final before the revocation was heard of stays so."""
        return all(
            written.stamp.seq < self._end(bytes(written.stamp.feed), revoked)
            for revoked in self._account.revoked
            if revoked.name == written.peer and self._opened[bytes(written.stamp.feed)] <= revoked.seq
        )

    def _end(self, feed: bytes, revoked: Revoked) -> int:
        before = [epoch for epoch in self._final if epoch.control.get(self._genesis_feed, -1) < revoked.seq]
        return max([revoked.lengths.get(feed, 0), *(epoch.cut.get(feed, 0) for epoch in before)])
