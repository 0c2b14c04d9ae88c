"""The bytes of erased messages go, once nobody has to recompute them any more (rule 13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.feed.block import BodyState

if TYPE_CHECKING:
    from antiphon.party.live.processor import PartyProcessor


def erase_bodies(party: PartyProcessor) -> int:
    """Take away the bodies of messages that an epoch covers and had as erased; the chain stays. How many?

    Before that, others may have to recompute what lies in front of the cut.
    """
    with party.locked() as engine:
        base = engine.base
        if base is None:
            return 0
        judge = party.authority.epoch_judge(base.root.control)
        covered = {feed: [seq for seq in judge.erased(feed) if seq < cut.length] for feed, cut in base.feeds.items()}
    # Where a feed is forked, the epoch may hold more of one branch than can be read here.
    held = {record.feed: range(record.start, record.valid_length) for record in party.store.feeds(party.key)}
    count = 0
    for feed, seqs in covered.items():
        for seq in seqs:
            if seq in held.get(feed, ()) and party.store.block(feed, seq).state is BodyState.PRESENT:
                party.store.erase(feed, seq)
                count += 1
    return count
