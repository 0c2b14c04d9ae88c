"""Check a declared epoch against the data feeds, before it is recomputed.

`halo.member.genesis_checks` has the checks that need only control feeds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from antiphon.core.reasons import text_of
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.header import NO_END, Flag
from antiphon.halo.credentials.claims import EpochGenesis
from antiphon.party.engine.lane import Lane
from antiphon.party.engine.lanes_at_cut import advances

if TYPE_CHECKING:
    from antiphon.feed.store.reader import FeedReader
    from antiphon.halo.finality.epoch_values import FinalEpoch
    from antiphon.party.engine.engine import Engine
    from antiphon.party.epochs.snapshot_fold import EpochPlan
    from antiphon.snapshot.root import FeedCut

    Declared = EpochGenesis | EpochPlan


def why_wait(engine: Engine, genesis: EpochGenesis | FinalEpoch) -> str:
    """Return what is missing here to recompute a snapshot: blocks, bodies or code. That is no reason to refuse it."""
    return why_behind(engine, genesis) or lacks_body(engine, genesis.cut)


def why_behind(engine: Engine, genesis: EpochGenesis | FinalEpoch) -> str:
    """The same as `why_wait` without looking for bodies, so it is cheap."""
    if engine.scope.ready_items is not None:
        return f"one view alone is held here, so epoch {genesis.number} cannot be recomputed"
    at = b"" if engine.base is None else bytes(engine.base.cid)
    if at != genesis.previous:
        return f"epoch {genesis.number} follows another epoch than the one that this device is at"
    for feed, length in sorted(genesis.cut.items()):
        lane = engine.delivery.lanes.get(feed)
        have = 0 if lane is None else lane.state.position
        if have < length:
            rot = text_of(engine.delivery.rot.reason(feed))
            return f"blocks {have} to {length - 1} of feed {feed.hex()[:8]} are not here{rot and f': {rot}'}"
    for name, version, codec in genesis.models:
        model = engine.models.find(name, version)
        if model is None or model.codec != codec:
            return f"no code for model {name} {version} with snapshots of format {codec} is here"
    return ""


def lacks_body(engine: Engine, cut: Mapping[bytes, int]) -> str:
    """Name a message in the cut without a body here, void or not; "" if all have one.

    A device that lacks a body neither declares nor attests (rule 13). Reads all of the cut: not under the party's lock.
    """
    for feed, length in sorted(cut.items()):
        lane = engine.delivery.lanes.get(feed)
        if lane is None or length <= lane.state.base:
            continue
        for span, low, high in engine.store.runs(feed, lane.state.base, length):
            if span.states and any(span.states[low:high]):
                if engine.store.record(feed).ignored:
                    return f"the bodies of feed {feed.hex()[:8]} are ignored here: this device attests nothing"
                seq = span.first + next(at for at in range(low, high) if span.states[at])
                return f"the body of block {seq} of feed {feed.hex()[:8]} is not here"
    return ""


def is_other_branch(
    engine: Engine, cut: Mapping[bytes, int], cuts: Mapping[bytes, FeedCut], common: Callable[[bytes], int]
) -> bool:
    """True if a root holds another branch of a forked feed than this device: another block, or one never received.

    `cut` is that of the epoch that differs here, and `cuts` are those of the root, of the same epoch or a later one.
    This counts only for a feed whose writer provably signed two histories, and only if the epoch reaches beyond the
    blocks that are `common` to both. Otherwise the maker of the root could claim anything. Beyond the fork, a false
    hash cannot be distinguished from a third history.
    """
    for record in engine.store.feeds(engine.party):
        shared = min(common(record.feed), record.end if record.why is End.FORK else NO_END)
        if shared < cut.get(record.feed, 0) and _differs(engine.store, record, cuts[record.feed]):
            return True
    return False


def _differs(store: FeedReader, record: FeedRecord, cut: FeedCut) -> bool:
    if cut.length <= record.start:  # no block of the cut is here, or all are pruned
        return False
    if record.length < cut.length:
        return True
    (last,) = store.held(record.feed, cut.length - 1, cut.length)  # blocks past the fork are kept
    return last.hash_at(cut.length - 1) != cut.hash


def why_refuse(engine: Engine, declared: Declared, *, patient: bool = False) -> str:
    """Return why a cut must not be attested; "" if it may be. All blocks of the cut must be here.

    Blocks that are here as a branch only may never be history for anybody. With `patient`, they may still come.
    """
    reach: dict[bytes, int] = defaultdict(lambda: NO_END if patient else 0)
    if not patient:
        reach |= {feed: lane.state.position for feed, lane in engine.delivery.lanes.items()}
        reach |= {entry.feed: entry.seq + 1 for entry in engine.authority.entries()}
    for feed, length in sorted(declared.cut.items()):
        lane = engine.delivery.lanes.get(feed)
        if lane is not None and length > lane.state.base:
            reason = _feed(engine, lane, length, declared, reach)
            if reason:
                return f"feed {feed.hex()[:8]}: {reason}"
    return ""


def _feed(engine: Engine, lane: Lane, length: int, declared: Declared, reach: Mapping[bytes, int]) -> str:
    if engine.store.block(lane.feed, length - 1).flags & Flag.MORE:
        return "the cut falls into a batch"
    if not all(_covered(engine, declared, reach, *seen) for seen in lane.seen_at(length - 1).items()):
        return "its messages refer to control blocks that the epoch does not cover"
    for seq, entries in advances(engine.store, lane.feed, lane.state.base, length):
        for entry in entries:
            if not _covered(engine, declared, reach, entry.feed, entry.seq):
                return f"the cut is not closed: block {seq} saw block {entry.seq} of feed {entry.feed.hex()[:8]}"
    return ""


def _covered(engine: Engine, declared: Declared, reach: Mapping[bytes, int], feed: bytes, seq: int) -> bool:
    """True if a block that was seen is in the epoch, or is on a branch: beyond a fork, or beyond what is delivered."""
    if seq >= min(reach[feed], engine.authority.fork_end(feed)):
        return True
    in_control = engine.authority.is_control(feed) and declared.control.includes(feed, seq)
    return in_control or seq < declared.cut.get(feed, 0)  # a feed may have branches of both kinds
