"""Pruning: messages that a snapshot covers may go, once that is whole on this disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from antiphon.core.errors import MissingBlob
from antiphon.feed.block import BodyState
from antiphon.party.engine.epoch_base import EpochBase

if TYPE_CHECKING:
    from antiphon.party.live.processor import PartyProcessor


def prune(party: PartyProcessor, base: EpochBase, cut: Mapping[bytes, int]) -> int:
    """Drop the messages before a cut, of an epoch that is not newer than the one stood on; returns how many."""
    with party.locked() as engine:
        follows = None if engine.scope.follows is None else frozenset(engine.scope.follows)
    missing = base.missing(follows)
    if missing:
        raise MissingBlob(
            f"epoch {base.number}: {len(missing)} blobs of its snapshot, {missing[0]} among them, are not here, so no "
            "message may go; fetch them first",
            cid=missing[0],
        )
    held = {record.feed for record in party.store.feeds(party.key)}
    return sum(_prune(party, feed, length) for feed, length in sorted(cut.items()) if feed in held)


def _prune(party: PartyProcessor, feed: bytes, length: int) -> int:
    before = party.store.bounds(feed).start
    return max(0, party.store.prune(feed, length).start - before)


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
