"""Evidence of forks, told to the party by one of its members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from antiphon.core.stamp import Stamp
from antiphon.feed.fork import Fork
from antiphon.halo.claims import Equivocated
from antiphon.halo.grant import NO_END

if TYPE_CHECKING:
    from antiphon.halo.membership import Membership


def publish_forks(member: Membership, known: Iterable[Fork]) -> list[Stamp]:
    """Tell of the forks that are known here and that no control feed tells for everybody yet."""
    ends = member.machine.authority.fork_ends
    told: dict[bytes, int] = {}
    found = {fork.feed: fork for fork in known if fork.party == member.party}
    for act in member.machine.acts():
        if not isinstance(act.claim, Equivocated):
            continue
        feed, length = act.claim.feed, act.claim.length
        if act.stamp.seq < ends.get(act.stamp.feed, NO_END):
            told[feed] = min(length, told.get(feed, NO_END))
        elif feed not in found or length < found[feed].seq:  # told only on a branch that others need not hold
            found[feed] = Fork.decode(act.claim.evidence)
    new = [fork for feed, fork in sorted(found.items()) if fork.seq < told.get(feed, NO_END)]
    return [member.write_claim(Equivocated(fork.feed, fork.seq, fork.encode())) for fork in new]
