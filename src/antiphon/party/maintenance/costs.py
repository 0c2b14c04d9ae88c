"""`party_costs`: what each identity costs this device in a party, for its operator."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from antiphon.core.keys import PublicKey
from antiphon.feed.header import ENTRY_SIZE, HEADER_SIZE

if TYPE_CHECKING:
    from antiphon.halo.member.membership import Membership
    from antiphon.party.live.processor import PartyProcessor

REFUSED_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class MemberCost:
    """The cost of the feeds of one identity on this device. `identity` is None for feeds that no admission names."""

    identity: PublicKey | None
    feeds: int = 0
    blocks: int = 0  # that are held
    header_bytes: int = 0  # of headers, with their entries
    body_bytes: int = 0  # of bodies that are held
    refused: int = 0  # messages and acts that do not count, and blocks that were not taken
    seconds: float = 0.0  # spent reading its acts and folding its messages since the party was opened
    ignored: int = 0  # feeds whose bodies are ignored here

    def plus(self, other: MemberCost) -> MemberCost:
        """Return the sum with the cost of further feeds."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in _SUMS}
        return MemberCost(self.identity, **sums)

    @property
    def bytes(self) -> int:
        """The bytes of headers and bodies."""
        return self.header_bytes + self.body_bytes


_SUMS = tuple(field.name for field in fields(MemberCost) if field.name != "identity")


def party_costs(party: PartyProcessor, member: Membership) -> list[MemberCost]:
    """Return the cost of each identity, the dearest first: by the time that its messages took, then by bytes.

    Blocks and bytes are those held here. It reads the headers of all blocks, and takes the party's lock for a moment.
    """
    with party.locked() as engine:
        engine.save()
        member.refresh()
        owners = {feed: owner.identity for feed, owner in member.machine.authority.owners().items()}
        givers = {owner.device: owner.identity for _, owner in member.machine.authority.feeds}
        seconds = {**engine.times.seconds, **member.seconds}  # of data feeds, and of control feeds
        refused = Counter(row.feed for row in engine.items.refused(REFUSED_MAX))
        refused.update(void.stamp.feed for void in member.machine.voids())
    found: dict[PublicKey | None, MemberCost] = {}
    for refusal in party.store.quarantine().refusals:
        if refusal.source in givers:  # who sent blocks that do not verify, and not whose feed they were said to be of
            giver = PublicKey(givers[refusal.source])
            found[giver] = found.get(giver, MemberCost(giver)).plus(MemberCost(giver, refused=refusal.count))
        elif refusal.source == refusal.feed:
            refused[refusal.feed] += refusal.count
    for record in party.store.feeds(party.key):
        feed = record.feed
        headers = bodies = 0
        for span in party.store.spans(feed):
            headers += HEADER_SIZE * span.count + ENTRY_SIZE * int(span.columns["advance"].sum())
            bodies += len(span.bodies)
        identity = PublicKey(owners[feed]) if feed in owners else None
        blocks = record.length - record.start
        spent = seconds.get(feed, 0.0)
        cost = MemberCost(identity, 1, blocks, headers, bodies, refused[feed], spent, int(record.ignored))
        found[identity] = cost if identity not in found else found[identity].plus(cost)
    return sorted(found.values(), key=lambda cost: (-round(cost.seconds, 3), -cost.bytes, cost.identity or b""))
