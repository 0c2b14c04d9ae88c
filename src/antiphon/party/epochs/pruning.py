"""Pruning: drop messages that a snapshot covers, and bodies of erased messages.

A message may be dropped only while the snapshot is whole on this disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from antiphon.core.errors import MissingBlob
from antiphon.feed.block import BodyState
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import Kind
from antiphon.party.engine.epoch_base import EpochBase

if TYPE_CHECKING:
    from antiphon.party.live.processor import PartyProcessor


def prune(party: PartyProcessor, base: EpochBase, cut: Mapping[bytes, int]) -> int:
    """Drop the messages before a cut, and return how many. The cut is that of `base`, or of an earlier epoch.

    Blocks of another branch than the base has taken stay: messages that are held have seen them (rule 23).
    """
    with party.locked() as engine:
        ready = None if engine.scope.ready_items is None else frozenset(engine.scope.ready_items)
    missing = base.missing(ready)
    if missing:
        raise MissingBlob(
            f"epoch {base.number}: {len(missing)} blobs of its snapshot, {missing[0]} among them, are not here, so no "
            "message may be dropped; fetch them first",
            cid=missing[0],
        )
    with party.locked() as engine:
        records = party.store.feeds(party.key)
        parted = {record.feed for record in records if engine.delivery.parts_from_base(record)}
        parted |= {record.feed for record in records if _ends_otherwise(record, base)}
        held = {record.feed for record in records} - parted
    return sum(_prune(party, feed, length) for feed, length in sorted(cut.items()) if feed in held)


def _ends_otherwise(record: FeedRecord, base: EpochBase) -> bool:
    """True if the held blocks end at the cut with another block: the proof of the base's branch may still come."""
    cut = base.feeds.get(record.feed)
    return cut is not None and record.length == cut.length and record.hash != cut.hash


def _prune(party: PartyProcessor, feed: bytes, length: int) -> int:
    before = party.store.bounds(feed).start
    return max(0, party.store.prune(feed, length).start - before)


def erase_bodies(party: PartyProcessor) -> int:
    """Remove the bodies of messages that the base covers as erased, and return how many. The chain stays (rule 13).

    Before a final epoch covers them, other devices may need those bodies to recompute the cut.
    """
    with party.locked() as engine:
        base = engine.base
        if base is None:
            return 0
        judge = party.authority.epoch_judge(base.root.control)
        covered = {feed: [seq for seq in judge.erased(feed) if seq < cut.length] for feed, cut in base.feeds.items()}
    # If a feed is forked, the epoch may cover more of one branch than can be read here.
    records = party.store.feeds(party.key)
    held = {record.feed: range(record.start, record.valid_length) for record in records}
    branched = {record.feed for record in records if record.branches}
    count = 0
    for feed, seqs in covered.items():
        data = bool(seqs) and feed in held and party.store.first_kind(feed) is not Kind.CREDENTIAL
        for seq in seqs if data else ():
            if seq in held[feed] and party.store.block(feed, seq).state is BodyState.PRESENT:
                party.store.erase(feed, seq)
                count += 1
        if seqs and feed in branched:  # a genesis of a branch inside the cut begins nothing any more
            count += party.store.erase_in_branches(feed, seqs)
    return count
